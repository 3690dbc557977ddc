"""What the documentation shows is run: Python blocks as one program a page, console blocks command by command."""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    return [text for name, text in BLOCK.findall(page.read_text("utf-8")) if name == language]


def assert_shown(expected: str, got: str) -> None:
    """Compare as doctest does: ``...`` stands for anything, runs of blanks are alike."""
    checker, flags = doctest.OutputChecker(), doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert checker.check_output(expected, got, flags), f"shown:\n{expected}\ngot:\n{got}"


def test_the_readme_starts_with_the_two_commands() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    shell = blocks(ROOT / "README.md", "sh")
    assert [line.split("  ")[0] for line in shell[0].splitlines()] == ["make demo", "make test"]
    assert text.index("make demo") < text.index("make test") < text.index("```console")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python(page: Path, in_tmp: Path) -> None:
    """A line of output in a block is a comment that starts with ``# ->`` after the line that prints it."""
    program = "\n".join(text for text in blocks(page, "python") if "import placement" in text)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program, page.name, "exec"), {"__name__": "__main__"})
    expected = "".join(f"{line}\n" for line in re.findall(r"# -> (.*)", program))
    assert_shown(expected, printed.getvalue())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_console(page: Path, in_tmp: Path) -> None:
    for text in blocks(page, "console"):
        for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
            words = shlex.split(command)
            assert words[0] == "placement", f"only placement is run here, not {words[0]}"
            done = subprocess.run(
                [sys.executable, "-m", "placement", *words[1:]],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                env=os.environ | {"COLUMNS": "80"},
            )
            assert done.returncode == ("error: " in expected) * 2, done.stdout
            if expected:
                assert_shown(expected, done.stdout)
