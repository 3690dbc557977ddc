"""Wrong command lines and wrong files: one clear message each, exit code 2, and nothing written."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from cli_cases import placement, refused


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--time-limit", "0"], ["--time-limit", "above 0"]),
        (["--time-limit", "-1"], ["--time-limit", "above 0"]),
        (["--time-limit", "nan"], ["--time-limit", "above 0"]),
        (["--time-limit", "inf"], ["--time-limit", "above 0"]),
        (["--time-limit", "-inf"], ["--time-limit", "above 0"]),
        (["--time-limit", "1e7"], ["--time-limit", "up to 1e+06"]),
        (["--time-limit", "soon"], ["--time-limit", "number"]),
        (["--gap", "1.5"], ["--gap", "from 0 to 1"]),
        (["--gap", "2"], ["--gap", "from 0 to 1"]),
        (["--gap", "inf"], ["--gap", "from 0 to 1"]),
        (["--gap", "-1"], ["--gap", "from 0 to 1"]),
        (["--gap", "-0.1"], ["--gap", "from 0 to 1"]),
        (["--gap", "nan"], ["--gap", "from 0 to 1"]),
        (["--solver", "best_fit"], ["--solver", 'did you mean "best-fit"?']),
        (["--solver", "quantum"], ["--solver", "exact", "fgd"]),
        (["--objective", "fragmentaton"], ["--objective", 'did you mean "fragmentation"?']),
        (["--objective", "value,value"], ["--objective", "twice"]),
        (["--objective", "value,,tasks"], ["--objective", "empty name"]),
        (["--objective", ""], ["--objective", "empty name"]),
        (["--objective", "completion_time"], ["--objective", "completion_time"]),
        (["--seed", "-1"], ["--seed"]),
        (["--seed", "1.5"], ["--seed", "integer"]),
        (["--format", "yaml"], ["--format", "yaml"]),
        (["-o", "-", "--format", "table"], ["--format", "-o -"]),
        (["--frmat", "json"], ["--frmat", "--format"]),
        (["-o", ""], ["--output", "is empty"]),
        (["-o", "nowhere/plan.json"], ["--output", "no directory nowhere"]),
        (["-o", "small.json/plan.json"], ["--output", "no directory small.json"]),
        (["-o", "n" * 5000], ["--output", "nnn cannot be written"]),
        (["-o", "loop"], ["--output", "loop cannot be written", "symbolic links"]),
        (["-o", "astray.json"], ["--output", "no directory", "nowhere;"]),
        (["-o", "."], ["--output", "is a directory"]),
        (["-o", "plan.json/"], ["--output", "is a directory"]),
        (["-o", "small.json"], ["--output", "is the input"]),
        (["-o", "./../{here}/small.json"], ["--output", "is the input"]),
        (["-o", "alias.json"], ["--output", "is the input"]),
    ],
    ids=lambda value: " ".join(value)[:40],
)
def test_bad_usage_of_solve(small: Path, words: list[str], parts: list[str]) -> None:
    before = small.read_bytes()
    Path("alias.json").symlink_to("small.json")
    Path("astray.json").symlink_to("nowhere/plan.json")
    Path("loop").symlink_to("loop")
    words = [word.replace("{here}", small.parent.name) for word in words]
    target = [] if "-o" in words else ["-o", "plan.json"]
    refused(placement("solve", small, *target, *words), *parts)
    assert sorted(os.listdir()) == ["alias.json", "astray.json", "loop", "small.json"]
    assert small.read_bytes() == before


def test_without_must_name_a_field_that_no_rule_honours(small: Path) -> None:
    words = ["--without", "jobs.deadlin", "-o", "plan.json"]
    refused(placement("solve", small, *words), "--without", "did you mean", "jobs.deadline", lines=2)
    refused(placement("solve", small, "--without", "nodes.cpu"), "--without", "capacity", lines=2)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("opnb", ["opnb", "no such file", 'did you mean "openb"?']),
        ("no/such.json", ["no/such.json", "no such file"]),
        ("", ["no such file"]),
        (".", ["."]),
        ("n" * 5000, ["no such file"]),
    ],
    ids=["misspelt", "path", "empty", "directory", "long"],
)
def test_no_such_snapshot(in_tmp: Path, name: str, parts: list[str]) -> None:
    refused(placement("solve", name, "-o", "plan.json"), *parts)
    assert not os.listdir()


def test_a_bad_snapshot(in_tmp: Path) -> None:
    Path("bad.json").write_text('{"format": "placement-snapshot/1", "nodes": [{"nam": "n"}]}', "utf-8")
    refused(placement("solve", "bad.json", "-o", "plan.json"), "bad.json", "nodes[0]", "nam")
    assert os.listdir() == ["bad.json"]


def test_every_problem_is_a_line(in_tmp: Path) -> None:
    nodes = [{"name": "n", "count": 0}, {"name": "m", "count": -1}]
    Path("bad.json").write_text(json.dumps({"format": "placement-snapshot/1", "nodes": nodes}), "utf-8")
    result = placement("solve", "bad.json")
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 2
    assert all(line.startswith("error: bad.json: nodes[") for line in result.stderr.splitlines())


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"format": "placement-plan/1"}', b"[" * 100_000])
def test_check_refuses_what_is_no_plan(small: Path, content: bytes) -> None:
    Path("no-plan.json").write_bytes(content)
    refused(placement("check", small, "no-plan.json"), "no-plan.json")
    refused(placement("check", small, "missing.json"), "missing.json")


@pytest.mark.parametrize("words", ["--time-limit 0", "--time-limit nan", "--gap 2", "--gap nan", "--seed -1"])
def test_bad_limits_of_compare(small: Path, words: str) -> None:
    refused(placement("compare", small, *words.split()), words.split()[0])


def test_compare_refuses_before_it_starts(small: Path) -> None:
    refused(placement("compare", small, "--solvers", "fgd,exct"), "--solvers", 'did you mean "exact"?')
    refused(placement("compare", small, "--solvers", "fgd,"), "--solvers", "empty name")
    refused(placement("compare", small, "--solvers", "nope"), "--solvers: 'nope' is unknown", "exact", "fgd")
    refused(placement("compare", small, "--solvers", "fgd,exact,fgd"), "--solvers: 'fgd' is named twice", "once")
    refused(placement("compare", small, "--solvers", "fgd,fgd,exct"), "'fgd' is named twice", "'exct'", lines=2)


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--nodes", "0"], ["nodes", "from 1"]),
        (["--models", "H100-8"], ["models", 'did you mean "H100-80"?']),
        (["--models", ""], ["--models", "empty name"]),
        (["--load", "nan"], ["load", "from 0 to 100"]),
        (["--gangs", "2"], ["gangs", "from 0 to 1"]),
        (["--shares", "-1"], ["shares", "from 0 to 1"]),
        (["--running", "inf"], ["running", "from 0 to 1"]),
        (["--seed", "-1"], ["seed", "not negative"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_bad_usage_of_generate(in_tmp: Path, words: list[str], parts: list[str]) -> None:
    refused(placement("generate", "-o", "made.json", *words), *parts)
    assert not os.listdir()


@pytest.mark.parametrize("words", [[], ["solve"], ["nothing"], ["import"], ["solve", "a", "b"], ["check", "a"]])
def test_bad_command_lines(words: list[str]) -> None:
    result = placement(*words)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "placement" in result.stderr or result.stderr.startswith("error: ")
