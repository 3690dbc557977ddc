"""The command line in one process: what goes where, and what it says."""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from cli_cases import NODES_CSV, PODS_CSV, SMALL, needs_full, placement, refused

from placement import instances
from placement.engine import SOLVERS
from placement.plan import Plan
from placement.snapshot import Job, Task, TaskGroup
from placement.snapshot.read import dumps, loads

# --- solve ---------------------------------------------------------------------------------------------------


def test_solve_prints_a_table(small: Path) -> None:
    result = placement("solve", small)
    assert result.exit_code == 0
    assert result.stderr == ""
    assert "1 of 3 pending jobs start" in result.stdout
    assert "proof that no plan is better" in result.stdout
    assert re.search(r"value +more +1,000 +1,000 +1,000 +0\.00", result.stdout)
    assert "|aaaaaaaa|AAAAAAAA|" in result.stdout
    assert "never" in result.stdout
    assert "\x1b" not in result.stdout
    assert max(len(line) for line in result.stdout.splitlines()) <= 80


def test_solve_prints_a_plan(small: Path) -> None:
    result = placement("solve", small, "--format", "json")
    assert result.exit_code == 0
    assert result.stderr == ""
    made = msgspec.json.decode(result.stdout_bytes, type=Plan)
    assert made.checked
    assert list(made.tasks) == [("fits", "g", 0, "a", [1])]
    assert result.stdout.count("\n") == 1


def test_solve_writes_a_plan(small: Path) -> None:
    result = placement("solve", small, "-o", "plan.json")
    assert result.exit_code == 0
    assert "pending jobs start" in result.stdout
    assert msgspec.json.decode(Path("plan.json").read_bytes(), type=Plan).checked
    assert sorted(os.listdir()) == ["plan.json", "small.json"]


def test_same_command_same_bytes(small: Path) -> None:
    first = placement("solve", small, "-o", "-")
    assert first.stdout_bytes == placement("solve", small, "--format", "json").stdout_bytes
    assert placement("solve", small, "--format", "json", "-o", "plan.json").stdout_bytes == first.stdout_bytes
    assert Path("plan.json").read_bytes() == first.stdout_bytes


def test_solve_reads_standard_input(small: Path) -> None:
    result = placement("solve", "-", "-o", "-", stdin=small.read_bytes())
    assert result.stdout_bytes == placement("solve", small, "-o", "-").stdout_bytes


def test_a_file_goes_before_a_shipped_instance(small: Path) -> None:
    small.rename("fragmentation-two-nodes")
    assert "1 of 3 pending jobs" in placement("solve", "fragmentation-two-nodes", "--solver", "fgd").stdout


def test_options_reach_the_plan(small: Path) -> None:
    words = [
        "--objective",
        "tasks,nodes",
        "--time-limit",
        "20",
        "--gap",
        "0.25",
        "--solver",
        "first-fit",
        "--seed",
        "7",
        "--format",
        "json",
    ]
    result = placement("solve", small, *words)
    made = msgspec.json.decode(result.stdout_bytes, type=Plan).provenance
    assert made.objectives == ("tasks", "nodes")
    assert (made.time_limit, made.gap, made.method, made.seed) == (20, 0.25, "first-fit", 7)


def test_a_field_that_no_rule_honours(small: Path) -> None:
    job = {"name": "j", "deadline": 5.0, "groups": [{"name": "g", "task": {"gpus": 1}}]}
    late = {"format": "placement-snapshot/1", "nodes": [{"name": "n", "gpus": [{"model": "T4"}]}], "jobs": [job]}
    Path("late.json").write_text(json.dumps(late), "utf-8")
    refused(placement("solve", "late.json", "-o", "plan.json"), "jobs[0].deadline", "--without")
    assert not Path("plan.json").exists()
    result = placement("solve", "late.json", "--without", "jobs.deadline", "-o", "plan.json")
    assert result.exit_code == 0, result.output
    made = msgspec.json.decode(Path("plan.json").read_bytes(), type=Plan)
    assert made.provenance.without == ("jobs.deadline",)
    assert placement("check", "late.json", "plan.json").exit_code == 0


# --- output --------------------------------------------------------------------------------------------------


def test_output_keeps_permissions(small: Path) -> None:
    Path("plan.json").write_text("old", "utf-8")
    Path("plan.json").chmod(0o640)
    placement("solve", small, "-o", "plan.json", "--solver", "fgd")
    assert stat.S_IMODE(Path("plan.json").stat().st_mode) == 0o640
    assert placement("solve", small, "-o", "new.json", "--solver", "fgd").exit_code == 0
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(Path("new.json").stat().st_mode) == 0o666 & ~mask


def test_output_follows_a_link(small: Path) -> None:
    Path("real.json").write_text("old", "utf-8")
    Path("link.json").symlink_to("real.json")
    placement("solve", small, "-o", "link.json", "--solver", "fgd")
    assert Path("link.json").is_symlink()
    assert b"placement-plan/1" in Path("real.json").read_bytes()


def test_output_follows_a_link_to_what_is_not_there_yet(small: Path) -> None:
    Path("folder").mkdir()
    Path("link.json").symlink_to("folder/new.json")
    assert placement("solve", small, "-o", "link.json", "--solver", "fgd").exit_code == 0
    assert os.readlink("link.json") == "folder/new.json"
    assert b"placement-plan/1" in Path("folder/new.json").read_bytes()
    assert os.listdir("folder") == ["new.json"]


def test_output_to_a_device_does_not_replace_it(small: Path) -> None:
    assert placement("solve", small, "-o", os.devnull, "--solver", "fgd").exit_code == 0
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


@needs_full
def test_output_to_a_full_device(small: Path) -> None:
    refused(placement("solve", small, "-o", "/dev/full", "--solver", "fgd"), "--output", "No space left")


# --- check ---------------------------------------------------------------------------------------------------


def test_check_accepts(small: Path, plan: Path) -> None:
    result = placement("check", small, plan)
    assert result.exit_code == 0
    assert result.stdout.startswith("valid: 1 placed task; every rule holds, values are right, bounds consistent")
    listed = placement("check", small, plan, "--format", "json")
    assert json.loads(listed.stdout) == {"valid": True, "total": 0, "violations": [], "running": []}


def test_check_lists_violations(small: Path, plan: Path) -> None:
    edited = json.loads(plan.read_bytes())
    edited["tasks"]["gpus"] = [[0]]
    plan.write_text(json.dumps(edited), "utf-8")
    result = placement("check", small, plan)
    assert result.exit_code == 1
    assert "shares: " in result.stdout
    assert "tasks[0]" in result.stdout or "nodes[0].gpus[0]" in result.stdout
    assert "not valid" in result.stdout
    listed = placement("check", small, plan, "--format", "json")
    assert listed.exit_code == 1
    found = json.loads(listed.stdout)
    assert found["valid"] is False
    assert found["total"] == len(found["violations"])
    assert {"rule", "path", "what"} == set(found["violations"][0])


def test_check_lists_the_first_violations_of_many(small: Path, plan: Path) -> None:
    edited = json.loads(plan.read_bytes())
    edited["tasks"] = {name: column * 60 for name, column in edited["tasks"].items()}
    edited["tasks"]["job"] = [f"stranger-{number}" for number in range(60)]
    plan.write_text(json.dumps(edited), "utf-8")
    listed = json.loads(placement("check", small, plan, "--format", "json").stdout)
    assert listed["valid"] is False
    assert listed["total"] > 60
    assert len(listed["violations"]) == 50
    result = placement("check", small, plan)
    assert result.exit_code == 1
    *shown, more, verdict = result.stdout.splitlines()
    assert [line.split(": ")[1] for line in shown] == [f"tasks[{number}]" for number in range(50)]
    assert more == f"and {listed['total'] - 50} more violations"
    assert verdict == f"not valid: {listed['total']} violations in 60 placed tasks"


def test_check_reads_standard_input(small: Path, plan: Path) -> None:
    assert placement("check", "-", plan, stdin=small.read_bytes()).exit_code == 0
    assert placement("check", small, "-", stdin=plan.read_bytes()).exit_code == 0
    refused(placement("check", "-", "-", stdin=b""), "only once")


# --- compare -------------------------------------------------------------------------------------------------


def test_compare_ends_with_the_bound(small: Path) -> None:
    result = placement("compare", small, "--solvers", "random,best-fit,exact")
    assert result.exit_code == 0
    assert result.stderr == ""
    rows = [line.split() for line in result.stdout.splitlines() if line.strip()]
    assert {row[0] for row in rows} >= {"random", "best-fit", "exact"}
    (bound,) = [row for row in rows if row[0] == "bound"]
    assert bound == ["bound", "1,000", "of", "3", "0.00"]
    assert "gap, %" in result.stdout
    assert "Greedy: random, best-fit." in result.stdout or "Greedy: best-fit, random." in result.stdout
    assert "Exact: exact." in result.stdout
    assert "Every plan was checked and is valid." in result.stdout
    assert max(len(line) for line in result.stdout.splitlines()) <= 80


def test_compare_prints_json(small: Path) -> None:
    result = placement("compare", small, "--solvers", "fgd,exact", "--format", "json")
    found = json.loads(result.stdout)
    assert {method["method"]: method["kind"] for method in found["methods"]} == {"exact": "exact", "fgd": "greedy"}
    assert all(method["checked"] for method in found["methods"])
    assert found["bound"] == 1000
    assert found["unallocated_percent_bound"] == 0
    assert found["phases"][0] == {"objective": "value", "priority": 0, "sense": "max"}


def test_compare_knows_every_method_by_itself(small: Path) -> None:
    found = json.loads(placement("compare", small, "--format", "json").stdout)
    assert len(found["methods"]) == 26


@pytest.mark.parametrize("objective", ["value", "tasks", "value,tasks"])
def test_nothing_is_pending(in_tmp: Path, objective: str) -> None:
    """The value of no job at all has no phase, and every command says so instead of failing."""
    Path("idle.json").write_bytes(dumps(msgspec.structs.replace(SMALL, jobs=SMALL.jobs[:1])))
    words = ["idle.json", "--objective", objective]
    for command in (
        ["solve", *words],
        ["solve", *words, "--solver", "fgd"],
        ["compare", *words, "--solvers", "fgd,exact"],
    ):
        result = placement(*command)
        assert (result.exit_code, result.stderr) == (0, "")
        assert ("so there is no value" in result.stdout) == (command[0] == "solve" and objective == "value")
    found = json.loads(placement("compare", *words, "--solvers", "fgd,exact", "--format", "json").stdout)
    assert len(found["phases"]) == ("tasks" in objective)
    assert (found["bound"] is None) == (objective == "value")
    assert placement("solve", *words, "-o", "plan.json").exit_code == 0
    assert placement("check", "idle.json", "plan.json").stdout.startswith("valid: 0 placed tasks;")


def test_a_bound_on_value_is_one_on_idle_gpu_only_where_value_is_gpu(in_tmp: Path) -> None:
    heavy = msgspec.structs.replace(SMALL.jobs[1], weight=3)
    Path("heavy.json").write_bytes(dumps(msgspec.structs.replace(SMALL, jobs=(SMALL.jobs[0], heavy))))
    found = json.loads(placement("compare", "heavy.json", "--solvers", "fgd", "--format", "json").stdout)
    assert found["bound"] == 3000
    assert found["unallocated_percent_bound"] is None


# --- schema, generate, import --------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [[], ["snapshot"], ["plan"], ["events"]], ids=lambda words: " ".join(words))
def test_schema(small: Path, plan: Path, words: list[str]) -> None:
    schema: dict[str, Any] = json.loads(placement("schema", *words).stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    sample = {"plan": plan.read_bytes(), "events": b'{"format": "placement-events/1"}'}
    document = sample.get(words[0] if words else "", small.read_bytes())
    jsonschema.validate(json.loads(document), schema)


def test_generate(in_tmp: Path) -> None:
    first = placement("generate", "--nodes", "3", "--seed", "5")
    assert first.exit_code == 0
    assert first.stdout_bytes == placement("generate", "--nodes", "3", "--seed", "5").stdout_bytes
    assert first.stdout_bytes != placement("generate", "--nodes", "3", "--seed", "6").stdout_bytes
    assert placement("generate", "--nodes", "3", "--seed", "5", "-o", "made.json").exit_code == 0
    assert Path("made.json").read_bytes() == first.stdout_bytes
    assert len(loads(first.stdout_bytes).nodes) == 3


@pytest.fixture
def trace(in_tmp: Path) -> list[str]:
    Path("nodes.csv").write_text(NODES_CSV, "utf-8")
    Path("pods.csv").write_text(PODS_CSV, "utf-8")
    return ["import", "openb", "nodes.csv", "pods.csv"]


def test_import_openb(trace: list[str]) -> None:
    assert placement(*trace, "-o", "trace.json").exit_code == 0
    snapshot = loads(Path("trace.json").read_bytes())
    assert [node.name for node in snapshot.nodes] == ["n0", "n1"]
    assert [job.submit_time for job in snapshot.jobs] == [0, 5]
    assert placement("solve", "trace.json", "--solver", "fgd").exit_code == 0


def test_import_openb_arrivals(trace: list[str]) -> None:
    first = placement(*trace, "--arrivals", "3", "--load", "0.5")
    assert first.stdout_bytes == placement(*trace, "--arrivals", "3", "--load", "0.5").stdout_bytes
    assert len(loads(first.stdout_bytes).jobs) < len(loads(placement(*trace, "--arrivals", "3").stdout_bytes).jobs)


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--load", "1"], ["--load", "--arrivals"]),
        (["--arrivals", "1", "--load", "0"], ["--load", "above 0"]),
        (["--arrivals", "1", "--load", "nan"], ["--load", "above 0"]),
        (["--arrivals", "-1"], ["--arrivals", "not negative"]),
        (["-o", "nodes.csv"], ["--output", "is the input"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_bad_usage_of_import(trace: list[str], words: list[str], parts: list[str]) -> None:
    refused(placement(*trace, *words), *parts)
    assert sorted(os.listdir()) == ["nodes.csv", "pods.csv"]


def test_import_names_the_line(trace: list[str]) -> None:
    Path("pods.csv").write_text(PODS_CSV.replace("6000", "six"), "utf-8")
    refused(placement(*trace), "pods.csv", "line 3", "cpu_milli")
    refused(placement("import", "openb", "missing.csv", "pods.csv"), "missing.csv")


# --- everything else -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["solve", "check", "compare", "instances", "schema", "generate", "import"])
def test_help(command: str) -> None:
    assert command in placement("--help").stdout
    result = placement(command, "--help")
    assert result.exit_code == 0
    assert result.stdout.startswith("Usage: ")
    assert placement(command, "-h").stdout == result.stdout


@pytest.mark.parametrize("text", ["help", "page"])
def test_every_method_that_can_be_forced_is_named(text: str) -> None:
    page = (Path(__file__).parent.parent / "docs" / "cli.md").read_text("utf-8")
    # a name can be broken where it has a hyphen
    usage = re.sub(r"-\s+", "-", placement("solve", "--help").stdout)
    pattern = r"`(?:--solver )?{}`" if text == "page" else r"(?<![\w-]){}(?![\w-])"
    shown = page if text == "page" else usage
    assert [name for name in ("auto", *SOLVERS) if not re.search(pattern.format(name), shown)] == []


def test_instances_are_listed_one_a_line() -> None:
    assert placement("instances").stdout.splitlines() == instances.names()


def test_names_cannot_drive_the_terminal(in_tmp: Path) -> None:
    nasty = "[red]\\[/]\x1b[2J\u202e"
    job = Job(name=nasty, groups=(TaskGroup(name="g", task=Task(gpus=3)),))
    data = dumps(msgspec.structs.replace(SMALL, jobs=(job,))) if nasty.isprintable() else None
    raw = {"format": "placement-snapshot/1", "nodes": [{"name": "a"}], "jobs": [msgspec.to_builtins(job)]}
    Path("nasty.json").write_bytes(data or json.dumps(raw).encode())
    result = placement("solve", "nasty.json", "--solver", "fgd")
    assert "\x1b" not in result.output
    assert "[red]" in result.output


def test_everything_that_counts_in_a_schedule_alone_can_be_left_out_at_once(in_tmp: Path) -> None:
    job = {"name": "j", "queue": "q", "preemptible": True, "groups": [{"name": "m", "task": {"gpus": 1}}]}
    nodes = [{"name": "n", "gpus": [{"model": "A"}]}]
    text = {
        "format": "placement-snapshot/1",
        "nodes": nodes,
        "queues": [{"name": "q"}],
        "jobs": [{**job, "deadline": 9.0}],
    }
    Path("in.json").write_text(json.dumps(text), "utf-8")
    refused(placement("solve", "in.json"), "jobs[0].deadline", "--without schedule", lines=1)
    assert placement("solve", "in.json", "--without", "schedule", "-o", "plan.json").exit_code == 0
    assert placement("check", "in.json", "plan.json").exit_code == 0
