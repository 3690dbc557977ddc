"""Jobs with a hard deadline that could not start at any time are not called late, and nothing else stays unproven."""

from __future__ import annotations

import pytest

import placement as pl
from placement.scheduling.baselines import BASELINES
from placement.snapshot import Duration, Queue, Running, RunningTask

CARDS = pl.TaskGroup(name="g", task=pl.Task(gpus=3))
SOLVERS = ["auto", *(name for name in BASELINES if name != "fifo")]
"""Under FIFO nobody goes ahead of who does not fit, so others are late for that."""


def endless(queue: str = "") -> pl.Job:
    """Return a job of 3 cards that runs and says nothing of its end."""
    running = Running(tasks=(RunningTask(group="g", index=0, node="n", gpus=(0, 1, 2)),))
    return pl.Job(name="endless", groups=(CARDS,), running=running, queue=queue)


def waiting(name: str, gpus: int, queue: str = "", hard: bool = True) -> pl.Job:
    group = pl.TaskGroup(name="g", task=pl.Task(gpus=gpus))
    deadline = 100 if hard else None
    return pl.Job(
        name=name, groups=(group,), duration=Duration(seconds=10), deadline=deadline, hard_deadline=hard, queue=queue
    )


def nodes(cards: int) -> tuple[pl.Node, ...]:
    return (pl.Node(name="n", gpus=(pl.Gpu(model="A", count=cards),)),)


@pytest.mark.parametrize("solver", SOLVERS)
def test_what_never_comes_free_makes_no_job_late(solver: str) -> None:
    # 1 of 4 cards is free, for ever
    snapshot = pl.Snapshot(nodes=nodes(4), jobs=(endless(), waiting("two", 2), waiting("one", 1)))
    schedule = pl.schedule(snapshot, solver=solver)
    assert [(job.job, job.reason) for job in schedule.left_out] == [("two", "never")]
    assert schedule.value == 10
    assert solver != "auto" or schedule.status == "proven"


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_quota_that_is_used_for_ever_makes_no_job_late(solver: str) -> None:
    # 3 of the 4 cards of the queue are used for ever, of 8
    queues = (Queue(name="q", quota={"*": 4}),)
    jobs = (endless("q"), waiting("two", 2, "q"), waiting("one", 1, "q", hard=False))
    schedule = pl.schedule(pl.Snapshot(nodes=nodes(8), jobs=jobs, queues=queues), solver=solver)
    assert [(job.job, job.reason) for job in schedule.left_out] == [("two", "quota")]
    assert schedule.value == 10
    assert solver != "auto" or schedule.status == "proven"


def test_a_deadline_that_passes_while_work_with_an_end_is_in_the_way_makes_a_job_late() -> None:
    running = Running(tasks=(RunningTask(group="g", index=0, node="n", gpus=(0, 1, 2)),), since=0)
    runs = pl.Job(name="runs", groups=(CARDS,), running=running, duration=Duration(seconds=95), queue="q")
    snapshot = pl.Snapshot(
        nodes=nodes(4), jobs=(runs, waiting("two", 2, "q")), queues=(Queue(name="q", quota={"*": 4}),)
    )
    schedule = pl.schedule(snapshot)
    assert [(job.job, job.reason) for job in schedule.left_out] == [("two", "late")]
    assert schedule.status != "proven"
