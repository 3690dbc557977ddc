"""An option that takes one value is given once, by every command and in whatever words."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from cli_cases import placement, refused
from typer.main import get_command

from placement.cli import app

COMMANDS: dict[str, Any] = cast(Any, get_command(app)).commands
OPTIONS = [
    (name, option)
    for name, command in COMMANDS.items()
    for option in command.params
    if option.param_type_name == "option" and not option.is_eager
]


@pytest.mark.parametrize(("name", "option"), OPTIONS, ids=lambda one: one if isinstance(one, str) else one.name)
def test_every_option_of_every_command(in_tmp: Path, name: str, option: Any) -> None:
    long, other = option.opts[0], option.opts[-1]
    words = [long, other] if option.is_flag else [f"{long}=1", other, "1"]
    result = placement(name, *words)
    assert result.exit_code == 2
    assert ("is given twice; give" in result.stderr) == (not option.multiple)
    if not option.multiple:
        assert result.stderr.startswith(f"error: {long}")


def test_one_way_and_the_other(in_tmp: Path) -> None:
    for words in (["--move", "--no-move"], ["--no-move", "--move"], ["--move", "--move"]):
        refused(placement("preempt", "none.json", *words), "--move/--no-move: is given twice; give one of the two")
    refused(placement("solve", "none.json", "-o", "a", "-oa", "--output=b"), "--output: is given 3 times; give it once")
    words = ["--seed", "1", "--gap", "0", "--seed", "1", "--gap", "0.1"]
    refused(placement("schedule", "none.json", *words), "--seed: is given twice", "--gap: is given twice", lines=2)


def test_help_as_often_as_one_likes() -> None:
    result = placement("preempt", "--move", "--help", "-h")
    assert result.exit_code == 0
    assert "--no-move" in result.stdout
