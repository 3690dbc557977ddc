"""`--log`: progress as lines of JSON, and what becomes of it where it cannot be written."""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cli_cases import needs_full, placement, refused

from placement.commands.log import Log
from placement.errors import UsageError
from placement.plan import Plan


def lines(text: str) -> list[dict[str, Any]]:
    assert text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def test_solve_logs_its_progress_and_its_outcome(small: Path) -> None:
    result = placement("solve", small, "--log", "run.log", "-o", "-")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout_bytes == placement("solve", small, "-o", "-").stdout_bytes
    *progress, last = lines(Path("run.log").read_text("utf-8"))
    plan = msgspec.json.decode(result.stdout_bytes, type=Plan)
    assert last.pop("seconds") >= max(line["seconds"] for line in progress) >= progress[0]["seconds"] >= 0
    assert last == {
        "phase": "done",
        "value": plan.value,
        "bound": plan.bound,
        "gap": plan.gap,
        "status": plan.status,
        "stop": plan.stop,
    }
    assert all(set(line) == {"seconds", "phase", "value", "bound", "gap"} for line in progress)
    assert progress[0]["value"] is None
    assert progress[-1]["value"] == 1000
    assert (progress[-1]["bound"], progress[-1]["gap"]) == (pytest.approx(1000), pytest.approx(0, abs=1e-9))
    assert any(line["phase"].startswith("exact") for line in progress)


def test_a_log_is_written_anew(small: Path) -> None:
    Path("run.log").write_text("old\n" * 1000, "utf-8")
    assert placement("solve", small, "--solver", "fgd", "--log", "run.log").exit_code == 0
    assert lines(Path("run.log").read_text("utf-8"))[-1]["phase"] == "done"


def test_compare_logs_every_method(small: Path) -> None:
    result = placement("compare", small, "--solvers", "fgd,random", "--log", "run.log", "--format", "json")
    assert (result.exit_code, result.stderr) == (0, "")
    found = lines(Path("run.log").read_text("utf-8"))
    assert [line["solver"] for line in found if line["phase"] == "done"] == ["fgd", "random"]
    assert found[-1]["solver"] == "random"
    middle = [line["solver"] for line in found].index("random")
    assert {line["solver"] for line in found[:middle]} == {"fgd"}
    assert middle > 1
    values = {method["method"]: method["values"][0] for method in json.loads(result.stdout)["methods"]}
    assert {line["solver"]: line["value"] for line in found if line["phase"] == "done"} == values


@pytest.mark.parametrize("command", ["solve", "compare"])
def test_a_log_on_standard_error(small: Path, command: str) -> None:
    words: list[str | Path] = [
        command,
        small,
        "--format",
        "json",
        *(["--solvers", "fgd"] if command == "compare" else []),
    ]
    result = placement(*words, "--log", "-")
    assert result.exit_code == 0
    assert lines(result.stderr)[-1]["phase"] == "done"
    assert json.loads(result.stdout)
    assert os.listdir() == ["small.json"]


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--log", ""], ["is empty"]),
        (["--log", "."], ["is a directory"]),
        (["--log", "run.log/"], ["is a directory"]),
        (["--log", "nowhere/run.log"], ["no directory nowhere"]),
        (["--log", "small.json/run.log"], ["no directory small.json"]),
        (["--log", "loop"], ["loop cannot be written"]),
        (["--log", "n" * 5000], ["nnn cannot be written"]),
        (["--log", "socket"], ["socket cannot be written"]),
        (["--log", "small.json"], ["is the input"]),
        (["--log", "alias.json"], ["is the input"]),
        (["--log", "plan.json", "-o", "plan.json"], ["is the output"]),
        (["--log", "./plan.json", "-o", "plan.json"], ["is the output"]),
        (["--log", "dangling.json", "-o", "plan.json"], ["is the output"]),
    ],
    ids=lambda value: " ".join(value)[:40],
)
def test_a_log_that_cannot_be(small: Path, words: list[str], parts: list[str]) -> None:
    before = small.read_bytes()
    Path("alias.json").symlink_to("small.json")
    Path("dangling.json").symlink_to("plan.json")
    Path("loop").symlink_to("loop")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        refused(placement("solve", small, *words), "--log", *parts)
        if "-o" not in words:
            refused(placement("compare", small, "--solvers", "fgd", *words), "--log", *parts)
    assert sorted(os.listdir()) == ["alias.json", "dangling.json", "loop", "small.json", "socket"]
    assert small.read_bytes() == before


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_log_is_not_where_a_stream_goes(in_tmp: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    with open("run.log", "w", encoding="utf-8") as file:
        monkeypatch.setattr(sys, name, file)
        with pytest.raises(UsageError, match=r"--log: standard \w+ goes to run.log too"):
            Log.to("run.log")
        Log.to("other.log")


@pytest.mark.parametrize("command", ["solve", "compare"])
def test_bad_input_leaves_no_log(in_tmp: Path, command: str) -> None:
    job = {"name": "j", "deadline": 5.0, "groups": [{"name": "g", "task": {"gpus": 1}}]}
    late = {"format": "placement-snapshot/1", "nodes": [{"name": "n", "gpus": [{"model": "T4"}]}], "jobs": [job]}
    Path("late.json").write_text(json.dumps(late), "utf-8")
    refused(placement(command, "late.json", "--log", "run.log"), "jobs[0].deadline")
    refused(placement(command, "missing.json", "--log", "run.log"), "missing.json")
    assert os.listdir() == ["late.json"]


@needs_full
@pytest.mark.parametrize("command", ["solve", "compare"])
def test_a_log_that_breaks_does_not_cost_the_answer(small: Path, command: str) -> None:
    words: list[str | Path] = [
        command,
        small,
        "--format",
        "json",
        *(["--solvers", "fgd"] if command == "compare" else []),
    ]
    result = placement(*words, "--log", "/dev/full")
    assert result.exit_code == 0
    assert result.stderr == "warning: --log: /dev/full could not be written in full (No space left on device)\n"
    assert json.loads(result.stdout)


def test_a_log_may_be_a_device_that_is_the_output_too(small: Path) -> None:
    assert placement("solve", small, "--solver", "fgd", "--log", os.devnull, "-o", os.devnull).exit_code == 0
