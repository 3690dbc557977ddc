"""`.ci/venv` says why an interpreter that was asked for cannot be used."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / ".ci" / "venv"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('echo "pyenv: python3.12: command not found" >&2; exit 127', "It said: pyenv: python3.12: command not found"),
        ('[ "$1" = --version ] && echo Python 3.9.1; exit 1', "It is: Python 3.9.1"),
        (None, "not found"),
    ],
    ids=["shim", "old", "missing"],
)
def test_the_reason_is_shown(in_tmp: Path, body: str | None, said: str) -> None:
    Path(".ci").mkdir()
    shutil.copy(SCRIPT, ".ci/venv")
    python = Path("python").resolve()
    if body is not None:
        python.write_text(f"#!/bin/sh\n{body}\n", "utf-8")
        python.chmod(0o755)
    run = subprocess.run(
        ["sh", ".ci/venv"], env=os.environ | {"PYTHON": str(python)}, capture_output=True, text=True, check=False
    )
    assert run.returncode == 1
    assert run.stderr.startswith(f"error: PYTHON={python} is not a Python 3.11 or newer")
    assert said in run.stderr
    assert not Path(".venv").exists()
