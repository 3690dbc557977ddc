"""``placement preempt`` on the command line: what it prints and writes, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from cli_cases import placement, refused

from placement import check, load, load_plan
from placement.snapshot import Gpu, Job, Node, Running, RunningTask, Snapshot, Task, TaskGroup
from placement.snapshot.read import dumps


def _runs(name: str, at: str, cards: tuple[int, ...], seconds: float) -> Job:
    group = TaskGroup(name="g", task=Task(gpus=len(cards)))
    running = Running(tasks=(RunningTask(group="g", index=0, node=at, gpus=cards),))
    return Job(name=name, preemptible=True, restart_seconds=seconds, groups=(group,), running=running)


def _waits(name: str, gpus: int) -> Job:
    return Job(name=name, priority=1, groups=(TaskGroup(name="g", task=Task(gpus=gpus)),))


TWO_NODES = Snapshot(
    nodes=tuple(Node(name=name, gpus=(Gpu(model="A", count=2),)) for name in "ab"),
    jobs=(_runs("x", "a", (0,), 5.0), _runs("y", "b", (0, 1), 60.0), _waits("new", 2), _waits("never", 3)),
)
"""x has to leave a, for 5, or y b, for 60; neither has room elsewhere but on what the other leaves."""


@pytest.fixture
def file(in_tmp: Path) -> Path:
    path = Path("in.json")
    path.write_bytes(dumps(TWO_NODES))
    return path


def test_a_table(file: Path) -> None:
    result = placement("preempt", file)
    assert result.exit_code == 0, result.output
    lines = [line.rstrip() for line in result.stdout.splitlines()]
    assert lines[:7] == [
        "job  for  what  task  from       to",
        "───────────────────────────────────",
        "x    new  stop  g 0   a, card 0",
        "",
        "1 job to stop; 1 job to start",
        "cost 5 weighted seconds",
        "no victims cost less than 5, gap 0.00 %",
    ]
    assert lines[7].startswith("never waits: no node could take a task of g even without other work")


def test_what_is_written(file: Path) -> None:
    result = placement("preempt", file, "--format", "json", "-o", "plan.json", "--after", "after.json")
    answer = msgspec.json.decode(result.stdout)
    assert answer["started"] == ["new"]
    assert (answer["cost"], answer["bound"], answer["gap"], answer["proven"]) == (5.0, 5.0, 0.0, True)
    (eviction,) = answer["evictions"]
    assert (eviction["job"], eviction["kind"]) == ("x", "stop")
    after, plan = load("after.json"), load_plan("plan.json")
    assert check(after, plan) == []
    assert plan.tasks.job == ["new"]
    assert [job.name for job in after.jobs if job.running is None] == ["x", "new", "never"]


def test_one_job(file: Path) -> None:
    assert placement("preempt", file, "--job", "new").exit_code == 0
    result = placement("preempt", file, "--job", "never")
    assert result.exit_code == 1
    assert "nothing leaves; 0 jobs to start" in result.stdout
    refused(placement("preempt", file, "--job", "x"), "--job", "runs already")
    refused(placement("preempt", file, "--seed", "-1"), "--seed")
    refused(placement("preempt", file, "-o", "-", "--after", "-"))
