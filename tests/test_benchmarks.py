"""The benchmarks of scale, queues, deadlines and repetition at their smallest size; nothing is said about seconds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

import deadlines
import memory
import mixed
import queues
import repeat
import scale
import table
from load import load

import placement as pl
from placement.heuristics import HEURISTICS

# --- tables ----------------------------------------------------------------------------------------------------------


def test_a_line_is_as_wide_as_its_heading() -> None:
    columns = (table.Column("a", "a", 6, ".2f"), table.Column("b", "b", 4), table.Column("c", "c", 5))
    row: table.Row = {"a": 1.234, "b": None, "c": "text"}
    assert table.heading(columns) == "     a    b     c"
    assert table.line(columns, row) == "  1.23    -  text"


# --- scale -----------------------------------------------------------------------------------------------------------


def test_a_limit_leaves_time_for_reading_and_writing() -> None:
    assert scale.goal_of(1_000) == scale.Goal(3.0, 0.005)
    assert scale.goal_of(2_000) == scale.goal_of(10_000)
    assert scale.goal_of(1_000_000) == scale.goal_of(100_000)
    # 60 - 0.6 - 100,000 * 0.06 ms
    assert scale.Goal(60.0, 0.01).limit(100_000) == 53.4
    assert scale.Goal(0.4, 0.01).limit(1_000) == 0.1


def test_the_command_is_measured_from_file_to_plan(tmp_path: Path) -> None:
    row = scale.measure(tmp_path, 20, 0, scale.Goal(3.0, 1.0), tuple(HEURISTICS))
    assert row["valid"]
    assert row["tasks"]
    greedy = row["greedy"]
    assert isinstance(greedy, dict)
    assert greedy.keys() == HEURISTICS.keys()
    assert min(greedy.values()) > 0
    assert table.number(row, "value") > 0
    assert row["gap_percent"] is not None
    assert (row["mebibytes"] is None) == (not memory.PROC.exists())
    said = scale.report([row], {20: scale.Goal(3.0, 1.0)})
    assert any("greedy" in line for line in said)
    # the second time the load is there already
    path, about = scale.made(tmp_path, 20, 0)
    before = path.stat().st_mtime_ns
    assert scale.made(tmp_path, 20, 0) == (path, about)
    assert path.stat().st_mtime_ns == before


# --- queues ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", queues.CASES)
def test_queues_have_quotas_that_come_to_no_more_than_all_cards_and_rules_are_beside(case: str) -> None:
    drawn = load(12, 0).snapshot
    snapshot = queues.with_queues(drawn, case, 0)
    cards = sum(gpu.count for node in drawn.nodes for gpu in node.gpus)
    quotas = sum(int(count) for queue in snapshot.queues for count in queue.quota.values())
    assert 0.5 * cards < quotas <= cards
    assert {job.queue for job in snapshot.jobs} <= {queue.name for queue in snapshot.queues[1:]}
    row = queues.measure(snapshot, case, 3.0, ("first-fit",))
    assert table.number(row, "bound") >= table.number(row, "value") > 0
    assert row["best_greedy"] == "first-fit"
    assert table.number(row, "behind_percent") >= 0
    if case == "none":
        assert row["by_quota"] == 0


def test_cases_of_queues_are_known() -> None:
    assert queues.parsed(["--cases", "lending"]).cases == ["lending"]
    with pytest.raises(SystemExit):
        queues.parsed(["--cases", "lent"])


def test_targets_that_were_not_measured_are_neither_met_nor_missed() -> None:
    row: table.Row = {"seconds": 4.0, "gap_percent": None, "build_percent": None}
    assert scale.targets(row, scale.Goal(3.0, 0.01)) == {"time": False, "gap": False, "build": None, "greedy": None}
    row = {"seconds": 2.0, "gap_percent": 1.0, "build_percent": 3.0, "behind_percent": 2.9}
    assert scale.targets(row, scale.Goal(3.0, 0.01)) == {"time": True, "gap": True, "build": True, "greedy": False}


@pytest.mark.skipif(not memory.PROC.exists(), reason="only Linux tells")
def test_memory_is_that_of_a_process_and_its_children() -> None:
    argv = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE) as child:
        assert {os.getpid(), child.pid} <= set(memory.tree(os.getpid()))
        assert memory.together([os.getpid()]) < memory.together([os.getpid(), child.pid])
        child.communicate()
    assert memory.together([child.pid]) == 0


# --- deadlines -------------------------------------------------------------------------------------------------------


def test_deadlines_are_compared_with_every_rule() -> None:
    case = mixed.CASES["generated-8"]
    row = deadlines.measure(case, pl.loads(case.data()), 5.0)
    assert row["beaten_by"] == "none"
    assert isinstance(row["values"], list)
    assert len(row["values"]) == len(case.objectives)
    said = deadlines.summary([row, {**row, "over": 9.0, "beaten_by": "fgd"}])
    assert any(line.startswith("1 of 2 calls") for line in said)
    assert said[-1].startswith("1 of 2 answers")


def test_quick_calls_load_no_solver() -> None:
    rows = deadlines.all_quick("3", 0.05)
    assert rows[0]["loaded"] == "none"
    assert rows[0]["nodes"] == 3


# --- instances -------------------------------------------------------------------------------------------------------


def test_there_are_twenty_instances_of_many_kinds() -> None:
    assert len(mixed.CASES) == 20
    made = [mixed.CASES[name].make() for name in ("generated-64-ranked", "generated-200-limited")]
    assert {job.priority for job in made[0].jobs if job.running is None} == {0, 1, 2}
    assert made[1].limits
    assert {case.name for case in mixed.chosen("openb,used-200")} == {"openb", "used-200"}
    with pytest.raises(SystemExit, match="unknown: nothing"):
        mixed.chosen("nothing")


# --- repetition ------------------------------------------------------------------------------------------------------


def test_equal_plans_are_told_from_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = mixed.CASES["domain-limit"]
    row = repeat.measure(case, [sys.executable], repeat.Run(more=("--solver", "first-fit")), tmp_path)
    assert (row["runs"], row["plans"], row["differing"]) == (2, 1, "none")
    turns = iter(range(9))
    monkeypatch.setattr(
        repeat, "plan_of", lambda *_: (b'{"stop":"gap","provenance":{"solver":""}}' + b" " * next(turns), 0)
    )
    row = repeat.measure(case, [sys.executable, sys.executable], repeat.Run(), tmp_path)
    assert row["plans"] == 3
    assert row["differing"] == "domain-limit.plan-0-1.json,domain-limit.plan-1-0.json"
    monkeypatch.setattr(repeat, "plan_of", lambda *_: (b"", 1.0))
    row = repeat.measure(case, [sys.executable], repeat.Run(patience=1.0), tmp_path)
    assert row["differing"] == "domain-limit.plan-0-0.json did not end in 1 s"


def test_names_of_the_repeated_instances_exist() -> None:
    assert len(mixed.chosen(repeat.NAMES)) == 12
