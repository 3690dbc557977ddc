"""Schedules that start from an earlier one: its order is tried first, beside what is always tried."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

import placement as pl
from placement.errors import UsageError
from placement.session import Session
from placement.snapshot import Duration, Gpu, Job, Node, Snapshot, Task, TaskGroup
from placement.snapshot.events import JobArrived, JobEnded, NodeFailed

FAST = 1.0
"""Gap with which the search ends after its first passes."""


def gang(name: str, tasks: int, cards: int, seconds: float, weight: int) -> Job:
    group = TaskGroup(name="t", count=tasks, task=Task(gpus=cards))
    return Job(name=name, groups=(group,), weight=weight, duration=Duration(seconds=seconds))


def some(seed: int, **fields: object) -> Snapshot:
    """Return twelve gangs for three nodes of four cards."""
    draw = Random(seed)
    jobs = [
        gang(
            f"g{number}",
            draw.choice((1, 1, 2)),
            draw.choice((1, 2, 3, 4)),
            float(draw.randint(1, 50)),
            draw.randint(1, 9),
        )
        for number in range(12)
    ]
    nodes = [Node(name=f"n{number}", gpus=tuple(Gpu(model="A") for _ in range(4))) for number in range(3)]
    return Snapshot(nodes=tuple(nodes), jobs=tuple(jobs), **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("share", [False, True])
def test_first_passes_are_better_where_they_start_from_a_search(share: bool) -> None:
    """With so large a gap only first passes are made, which are worse than a search; that in its order is tried beside.

    It may come to more than the search did, for on nodes a pass in the same order may choose others.
    """
    gained = 0
    for seed in range(12):
        snapshot = some(seed)
        if share:  # a longest wait is looked at on devices alone
            snapshot = msgspec.structs.replace(
                snapshot, policy=msgspec.structs.replace(snapshot.policy, max_wait_seconds=1e6)
            )
        first = pl.schedule(snapshot)
        alone, again = pl.schedule(snapshot, gap=FAST), pl.schedule(snapshot, gap=FAST, start=first)
        assert again.checked
        assert again.value <= alone.value
        gained += again.value < alone.value
    assert gained > 3


def test_what_has_changed_since_is_left_out_of_account() -> None:
    """Jobs that have gone and come, and a node that has gone: the rest still goes in its order."""
    for seed in range(6):
        snapshot = some(seed)
        first = pl.schedule(snapshot)
        jobs = (*snapshot.jobs[2:], gang("new", 1, 2, 5.0, 3), gang("late", 2, 4, 9.0, 1))
        changed = msgspec.structs.replace(snapshot, jobs=jobs, nodes=snapshot.nodes[1:])
        again = pl.schedule(changed, gap=FAST, start=first)
        assert again.checked
        assert sorted(again.jobs.job) == sorted(job.name for job in jobs)
        assert again.value <= pl.schedule(changed, gap=FAST).value


def test_rules_start_from_nothing() -> None:
    snapshot = some(0)
    first = pl.schedule(snapshot, gap=FAST)
    with pytest.raises(UsageError, match="fifo starts from nothing"):
        pl.schedule(snapshot, solver="fifo", start=first)


def test_a_session_starts_from_its_last_schedule() -> None:
    for seed in range(4):
        session = Session(some(seed))
        session.schedule()
        alone = pl.schedule(session.snapshot(), gap=FAST)
        assert session.schedule(gap=FAST).value <= alone.value
        # a rule may be asked for in between
        session.schedule(solver="fifo")
        session.apply(
            [
                JobArrived(time=0.0, job=gang("new", 1, 2, 5.0, 3)),
                JobEnded(time=0.0, job="g3"),
                NodeFailed(time=0.0, node="n1"),
            ]
        )
        again = session.schedule(gap=FAST)
        assert again.checked
        assert {*again.jobs.job} == {"new", *(f"g{number}" for number in range(12) if number != 3)}
