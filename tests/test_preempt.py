"""Preemption: whom it costs least to stop, by hand with the arithmetic."""

from __future__ import annotations

from typing import Any

import pytest
from preempt_cases import kinds, node, runs, sure, waits

from placement.snapshot import (
    Duration,
    Job,
    Policy,
    Snapshot,
    Task,
    TaskGroup,
)

# --- what it costs -----------------------------------------------------------------------------------------------


def test_the_cheaper_of_two() -> None:
    """x has worked for 1000 s at weight 2: 2 x 1000 = 2000. y for 1000 s, at a weight of 1, restart 60: 1060."""
    x = runs("x", ("a", (0, 1, 2, 3)), weight=2, since=0.0)
    y = runs("y", ("b", (0, 1, 2, 3)), restart_seconds=60.0, since=0.0)
    snapshot = Snapshot(time=1000.0, nodes=(node("a"), node("b")), jobs=(x, y, waits(gpus=4)))
    found = sure(snapshot)
    assert kinds(found) == {"y": "stop"}
    assert found.cost == 1060.0
    assert found.evictions[0].reason == "new"
    assert [(job.name, job.running is None) for job in found.after.jobs] == [("x", False), ("y", True), ("new", True)]


@pytest.mark.parametrize(
    ("fields", "cost"),
    [
        ({"since": 0.0}, 1000.0),
        # of 1000 s of work the last checkpoint was after 900, three times 300
        ({"since": 0.0, "checkpoint_interval": 300.0}, 100.0),
        ({"since": 0.0, "checkpoint_interval": 300.0, "last_checkpoint": 960.0}, 40.0),
        # 250 s of work are done in 1000 s
        ({"since": 0.0, "work_done": 250.0}, 250.0),
        # it began to work after its last checkpoint
        ({"work_done": 20.0, "last_checkpoint": 900.0}, 20.0),
        ({"restart_seconds": 12.5}, 12.5),
        ({"weight": 0, "since": 0.0}, 0.0),
        ({}, 0.0),
    ],
)
def test_what_restarting_costs(fields: dict[str, Any], cost: float) -> None:
    snapshot = Snapshot(time=1000.0, nodes=(node("a", 1),), jobs=(runs("x", ("a", (0,)), **fields), waits()))
    found = sure(snapshot)
    assert found.cost == cost
    assert kinds(found) == {"x": "stop"}


def test_many_cheap_ones_rather_than_a_dear_one() -> None:
    """Four jobs of 10 s each on a: 40 < 41 of the one on b."""
    cheap = [runs(f"c{i}", ("a", (i,)), restart_seconds=10.0) for i in range(4)]
    dear = runs("d", ("b", (0, 1, 2, 3)), restart_seconds=41.0)
    snapshot = Snapshot(nodes=(node("a"), node("b")), jobs=(*cheap, dear, waits(gpus=4)))
    found = sure(snapshot)
    assert found.cost == 40.0
    assert set(kinds(found)) == {"c0", "c1", "c2", "c3"}


def test_of_equal_cost_fewer_jobs_then_the_lower_priority() -> None:
    two = [runs(f"c{i}", ("a", (i,)), priority=0) for i in range(2)]
    one = runs("d", ("b", (0, 1)), priority=1)
    low = runs("e", ("c", (0, 1)), priority=0)
    nodes = node("a", 2), node("b", 2), node("c", 2)
    snapshot = Snapshot(nodes=nodes[:2], jobs=(*two, one, waits(gpus=2, priority=2)))
    assert kinds(sure(snapshot)) == {"d": "stop"}
    snapshot = Snapshot(nodes=nodes, jobs=(*two, one, low, waits(gpus=2, priority=2)))
    assert kinds(sure(snapshot)) == {"e": "stop"}


# --- gangs -------------------------------------------------------------------------------------------------------


def test_one_victim_and_not_ten() -> None:
    """As in volcano#5984: a gang of 11 that needs 1, and a job that needs one card: one task leaves, at no cost."""
    gang = runs("gang", *(("a", (i,)) for i in range(11)), least=1, since=0.0)
    found = sure(Snapshot(time=500.0, nodes=(node("a", 11),), jobs=(gang, waits())))
    assert kinds(found) == {"gang": "shrink"}
    assert (len(found.evictions[0].tasks), found.cost) == (1, 0.0)
    assert found.after.jobs[0].running is not None
    assert len(found.after.jobs[0].running.tasks) == 10


def test_redundant_members_first() -> None:
    """Two cards are needed: two tasks of the gang of 3 that needs 1, rather than the single job that costs 5."""
    gang = runs("gang", ("a", (0,)), ("a", (1,)), ("a", (2,)), least=1, restart_seconds=100.0)
    single = runs("one", ("a", (3,)), restart_seconds=5.0)
    found = sure(Snapshot(nodes=(node("a"),), jobs=(gang, single, waits(gpus=2))))
    assert (kinds(found), found.cost) == ({"gang": "shrink"}, 0.0)
    # with three, the single one has to go too: 5 < 100
    found = sure(Snapshot(nodes=(node("a"),), jobs=(gang, single, waits(gpus=3))))
    assert (kinds(found), found.cost) == ({"gang": "shrink", "one": "stop"}, 5.0)


def test_a_gang_is_stopped_whole() -> None:
    """Both tasks are needed, so both leave though one card is wanted."""
    gang = runs("gang", ("a", (0,)), ("b", (0,)), restart_seconds=7.0)
    found = sure(Snapshot(nodes=(node("a", 1), node("b", 1)), jobs=(gang, waits())), move=False)
    assert (kinds(found), found.cost, len(found.evictions[0].tasks)) == ({"gang": "stop"}, 7.0, 2)


def test_one_victim_on_each_node() -> None:
    """N nodes of one card, all taken, and a gang of N: one victim on each (KAI-Scheduler, pull request 1537)."""
    nodes = tuple(node(f"n{i}", 1) for i in range(6))
    jobs = tuple(runs(f"v{i}", (f"n{i}", (0,)), restart_seconds=1.0) for i in range(6))
    found = sure(Snapshot(nodes=nodes, jobs=(*jobs, waits(count=6))))
    assert (len(found.evictions), found.cost) == (6, 6.0)


def test_a_free_node_is_used() -> None:
    """Two nodes, one of them free, and a gang of two: one victim (volcano#3291)."""
    snapshot = Snapshot(nodes=(node("a", 1), node("b", 1)), jobs=(runs("v", ("a", (0,))), waits(count=2)))
    found = sure(snapshot, move=False)
    assert kinds(found) == {"v": "stop"}
    assert sorted(found.plan.tasks.node) == ["a", "b"]


def test_what_starts_grows_where_there_is_room() -> None:
    """One card is needed of three wanted, and stopping makes room for two."""
    found = sure(Snapshot(nodes=(node("a", 2),), jobs=(runs("v", ("a", (0, 1))), waits(count=3, least=1))))
    assert len(found.plan.tasks.job) == 2


# --- nobody leaves in vain -----------------------------------------------------------------------------------------


def test_no_eviction_when_none_helps() -> None:
    """As in kueue#5243: on each node 6 of 8 cards are of high priority, so no set of victims frees 8."""
    jobs = []
    for i in range(4):
        jobs += [runs(f"h{i}", (f"n{i}", tuple(range(6))), priority=5), runs(f"l{i}", (f"n{i}", (6, 7)))]
    nodes = tuple(node(f"n{i}", 8) for i in range(4))
    found = sure(Snapshot(nodes=nodes, jobs=(*jobs, waits(gpus=8, priority=5))), move=False)
    (waiting,) = found.waiting
    assert waiting.reason == "no_victims"
    assert waiting.detail == "no set of victims that may be stopped or moved lets it start"
    assert found.after.jobs == Snapshot(nodes=nodes, jobs=(*jobs, waits(gpus=8, priority=5))).jobs


def test_never() -> None:
    found = sure(Snapshot(nodes=(node("a", 2),), jobs=(runs("v", ("a", (0, 1))), waits(gpus=3))))
    assert [(one.job, one.reason) for one in found.waiting] == [("new", "never")]


@pytest.mark.parametrize(
    "fields",
    [
        {"preemptible": False},
        {"priority": 1},
        {"priority": 2},
        {"minimum_run_seconds": 11.0, "since": 90.0},
        {"minimum_run_seconds": 1.0},
    ],
)
def test_who_is_never_stopped(fields: dict[str, Any]) -> None:
    found = sure(Snapshot(time=100.0, nodes=(node("a", 1),), jobs=(runs("v", ("a", (0,)), **fields), waits())))
    assert [one.reason for one in found.waiting] == ["no_victims"]


def test_who_has_run_long_enough() -> None:
    victim = runs("v", ("a", (0,)), minimum_run_seconds=10.0, since=90.0)
    found = sure(Snapshot(time=100.0, nodes=(node("a", 1),), jobs=(victim, waits())))
    assert found.cost == 10.0


def test_most_that_may_be_stopped() -> None:
    jobs = [runs(f"v{i}", ("a", (i,))) for i in range(2)]
    snapshot = Snapshot(nodes=(node("a", 2),), jobs=(*jobs, waits(gpus=2)), policy=Policy(max_preemptions=1))
    assert [one.reason for one in sure(snapshot).waiting] == ["no_victims"]
    snapshot = Snapshot(nodes=(node("a", 2),), jobs=(*jobs, waits(gpus=2)), policy=Policy(max_preemptions=2))
    assert len(sure(snapshot).evictions) == 2


def test_what_may_not_start_yet() -> None:
    jobs = runs("v", ("a", (0,))), waits("b", after=("v",)), waits("c", submit_time=5.0)
    found = sure(Snapshot(nodes=(node("a", 1),), jobs=jobs))
    assert [(one.job, one.reason) for one in found.waiting] == [("b", "held"), ("c", "held")]


def test_a_gang_whose_speed_depends_on_its_size() -> None:
    # two of three cards are free: it starts with two of three tasks, at their speed, and nobody is stopped for that
    group = TaskGroup(name="g", count=3, min_count=1, task=Task(gpus=1))
    duration = Duration(seconds=10.0, scaling=((1, 0.5), (2, 0.8)))
    gang = Job(name="j", priority=1, groups=(group,), duration=duration)
    found = sure(Snapshot(nodes=(node("a", 3),), jobs=(runs("v", ("a", (0,))), gang)))
    assert (found.started, found.evictions, len(found.plan.tasks)) == (("j",), (), 2)
