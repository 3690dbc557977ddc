"""Gangs of several groups that may run with fewer tasks of each: against brute force, by hand, and with quotas."""

from __future__ import annotations

import pytest
from brute_groups import optimum, random_groups_case
from policy_cases import job, node

import placement as pl
from placement.compile import compile as compile_snapshot
from placement.scheduling.counting import MOST_WAYS, fewer
from placement.snapshot import Duration, Job, Queue, Snapshot, Task, TaskGroup, Topology


def gang(name: str, *groups: tuple[int, int], cards: int = 1, seconds: float = 10, **more: object) -> Job:
    """Return a job of groups, each as the fewest and all of its tasks."""
    listed = tuple(
        TaskGroup(name=f"g{number}", count=count, min_count=least, task=Task(gpus=cards))
        for number, (least, count) in enumerate(groups)
    )
    return Job(name=name, groups=listed, duration=Duration(seconds=seconds), **more)  # type: ignore[arg-type]


def test_as_good_as_brute_force_and_bounds_are_bounds() -> None:
    missed = []
    for seed in range(100):
        snapshot = random_groups_case(seed)
        best, never = optimum(snapshot)
        found = pl.schedule(snapshot)
        assert {one.job for one in found.left_out} == never, seed
        assert found.bound is not None
        assert round(1000 * found.bound) <= best <= round(1000 * found.value), seed
        assert pl.check(snapshot, found) == []
        if round(1000 * found.value) > best:
            missed.append(seed)
    # there the first job is best put on the larger node but for one task, which no greedy rule does
    assert missed == [64]


def test_a_gang_leaves_room_for_another_by_both_of_its_groups() -> None:
    # All four tasks of x take all cards: 10 + 20. Two of them, one of each group, leave two to y: 10 + 10.
    snapshot = Snapshot(nodes=(node("a", 4),), jobs=(gang("x", (1, 2), (1, 2)), job("y", 2, 10)))
    found = pl.schedule(snapshot)
    assert (found.value, found.status) == (20.0, "proven")
    ran = [
        (found.stretches.job[number], group)
        for number, group in zip(found.tasks.stretch, found.tasks.group, strict=True)
    ]
    assert sorted(ran)[:2] == [("x", "g0"), ("x", "g1")]


def test_a_gang_waits_for_more_where_fewer_are_slow() -> None:
    # 2 of 4 tasks are a fifth as fast: 50 s at once, or 10 s after y, which takes 5 s on two cards.
    slow = Duration(seconds=10, scaling=((2, 0.2),))
    x = pl.Job(name="x", groups=gang("x", (1, 2), (1, 2)).groups, duration=slow)
    found = pl.schedule(Snapshot(nodes=(node("a", 4),), jobs=(x, job("y", 2, 5, weight=9))))
    assert found.value == 15 + 9 * 5
    assert len(found.tasks) == 5


@pytest.mark.parametrize(("quota", "tasks"), [(2, 2), (3, 3), (4, 4)])
def test_as_many_start_as_the_quota_admits(quota: int, tasks: int) -> None:
    queues = (Queue(name="q", quota={"*": quota}),)
    snapshot = Snapshot(nodes=(node("a", 8),), queues=queues, jobs=(gang("x", (1, 2), (1, 2), queue="q"),))
    for solver in ("auto", "fifo", "kueue-preemption"):
        found = pl.schedule(snapshot, solver=solver)
        assert len(found.tasks) == tasks
        assert pl.check(snapshot, found) == []


def test_below_the_fewest_of_all_groups_the_quota_admits_nothing() -> None:
    queues = (Queue(name="q", quota={"*": 1}),)
    snapshot = Snapshot(nodes=(node("a", 8),), queues=queues, jobs=(gang("x", (1, 2), (1, 2), queue="q"),))
    (one,) = pl.schedule(snapshot).left_out
    assert (one.reason, one.detail) == ("quota", "it asks for 1 card of A too many for the quota of queue q")


def ways(one: Job) -> list[tuple[int, ...]]:
    (found,) = compile_snapshot(Snapshot(nodes=(node("a", 1),), jobs=(one,))).job_classes
    return fewer(found)


def test_numbers_of_tasks() -> None:
    assert ways(gang("x", (1, 2), (2, 2), (1, 2))) == [(1, 2, 1), (1, 2, 2), (2, 2, 1), (2, 2, 2)]
    assert ways(gang("x", (2, 2), (3, 3))) == []
    assert ways(gang("x", (1, 3))) == []
    many = ways(gang("x", (1, 100), (5, 50)))
    assert 16 <= len(many) <= MOST_WAYS
    assert (many[0], many[-1]) == ((1, 5), (100, 50))
    assert len(ways(gang("x", *[(1, 9)] * 6))) == 64
    assert ways(gang("x", *[(1, 9)] * 7)) == []


def test_it_is_not_said_where_it_matters_which_tasks_run() -> None:
    tied = TaskGroup(name="t", count=2, min_count=1, task=Task(gpus=1), topology=Topology(required="node"))
    nested = TaskGroup(name="n", count=2, min_count=1, groups=gang("x", (1, 2), (1, 2)).groups)
    plain = gang("x", (1, 2)).groups
    for groups in ((*plain, tied), (*plain, nested)):
        assert ways(Job(name="x", groups=groups)) == []
