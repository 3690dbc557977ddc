"""What all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from cli_cases import SMALL, placement
from hypothesis import settings

from placement.snapshot.read import dumps

# a terminal's wishes must not change what commands print here
for _name in ("FORCE_COLOR", "NO_COLOR", "COLUMNS", "LINES", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
    os.environ.pop(_name, None)
# how long an example takes says nothing on a machine that others work on
settings.register_profile("placement", deadline=None)
settings.load_profile("placement")


@pytest.fixture
def in_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory that is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def small(in_tmp: Path) -> Path:
    (in_tmp / "small.json").write_bytes(dumps(SMALL))
    return in_tmp / "small.json"


@pytest.fixture
def plan(small: Path) -> Path:
    result = placement("solve", small, "-o", "plan.json", "--solver", "best-fit")
    assert result.exit_code == 0, result.output
    return small.with_name("plan.json")
