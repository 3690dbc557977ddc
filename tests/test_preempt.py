"""Preemption: hand-computed cases with their arithmetic, and tiny clusters beside every set of victims."""

from __future__ import annotations

from typing import Any

import pytest
from preempt_brute import best, key_of, tiny

from placement import Preemption, UsageError, check, preempt
from placement.errors import UnhonouredError
from placement.snapshot import (
    Affinity,
    Gpu,
    Job,
    MigInstance,
    Node,
    NumaZone,
    Policy,
    Reservation,
    Running,
    RunningTask,
    Slice,
    Snapshot,
    Task,
    TaskGroup,
    Topology,
)
from placement.snapshot.queues import Queue

STATE = ("since", "work_done", "last_checkpoint")


def node(name: str, cards: int = 4, **fields: Any) -> Node:
    return Node(name=name, gpus=(Gpu(model="A", count=cards),) if cards else (), **fields)


def runs(name: str, *places: tuple[str, tuple[int, ...]], least: int | None = None, **fields: Any) -> Job:
    """Return a preemptible job of equal tasks, one at each place."""
    state = {key: fields.pop(key) for key in STATE if key in fields}
    topology = fields.pop("topology", None)
    task = Task(gpus=len(places[0][1]), **fields.pop("task", {}))
    group = TaskGroup(name="g", count=len(places), min_count=least, task=task, topology=topology)
    tasks = tuple(RunningTask(group="g", index=i, node=at, gpus=cards) for i, (at, cards) in enumerate(places))
    return Job(name=name, groups=(group,), running=Running(tasks=tasks, **state), **{"preemptible": True, **fields})


def waits(name: str = "new", count: int = 1, least: int | None = None, **fields: Any) -> Job:
    ours = {key: fields.pop(key) for key in ("queue", "weight", "submit_time", "after", "topology") if key in fields}
    priority = fields.pop("priority", 1)
    group = TaskGroup(
        name="g", count=count, min_count=least, task=Task(**{"gpus": 1, **fields}), topology=ours.pop("topology", None)
    )
    return Job(name=name, priority=priority, groups=(group,), **ours)


def kinds(found: Preemption) -> dict[str, str]:
    return {one.job: one.kind for one in found.evictions}


def sure(snapshot: Snapshot, *args: Any, **options: Any) -> Preemption:
    """Return an answer of which everything is proven and the plan passes the check."""
    found = preempt(snapshot, *args, **options)
    assert found.proven
    assert (found.bound, found.gap) == (found.cost, 0.0)
    assert found.plan.checked
    assert check(found.after, found.plan) == []
    assert set(found.plan.tasks.job) == set(found.started)
    if not found.started:
        assert not found.evictions
        assert found.cost == 0
    return found


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


# --- moves -------------------------------------------------------------------------------------------------------


def test_moving_rather_than_stopping() -> None:
    """Both are of a lower priority and cost 30; x has room on b, y has none on a: x moves, nobody is stopped."""
    x, y = runs("x", ("a", (0,)), restart_seconds=30.0), runs("y", ("b", (0, 1, 2)), restart_seconds=30.0)
    snapshot = Snapshot(time=50.0, nodes=(node("a", 3), node("b")), jobs=(x, y, waits(gpus=3)))
    found = sure(snapshot)
    assert (kinds(found), found.cost) == ({"x": "move"}, 30.0)
    assert found.evictions[0].tasks[0].target == ("b", (3,), ())
    state = found.after.jobs[0].running
    assert state is not None
    assert (state.since, state.restarts) == (50.0, 1)
    assert list(kinds(sure(snapshot, move=False)).values()) == ["stop"]


def test_two_moves_for_one_node() -> None:
    """As in volcano#3948: 3 nodes of 8 hold 4+2+1, 4+2, 4+2+1, and 4 cards are wanted: 3 are moved, in two moves.

    1 + 2 + 1 are free. Node a needs 3 more: its 2 find room on b alone, and its 1 on c.
    """
    sizes = {"a": (4, 2, 1), "b": (4, 2), "c": (4, 2, 1)}
    jobs = []
    for at, parts in sizes.items():
        first = 0
        for size in parts:
            jobs.append(runs(f"{at}{size}", (at, tuple(range(first, first + size))), priority=1))
            first += size
    found = sure(Snapshot(nodes=tuple(node(at, 8) for at in sizes), jobs=(*jobs, waits(gpus=4))))
    assert set(kinds(found).values()) == {"move"}
    assert len(found.evictions) == 2
    assert sum(len(task.source[1]) for one in found.evictions for task in one.tasks) == 3


def test_an_equal_moves_but_is_not_stopped() -> None:
    snapshot = Snapshot(nodes=(node("a", 1), node("b", 1)), jobs=(runs("v", ("a", (0,)), priority=1), waits(count=2)))
    assert [one.reason for one in sure(snapshot).waiting] == ["no_victims"]


def test_members_that_stay_keep_a_gang_running() -> None:
    """One of two tasks is enough meanwhile, so moving the other costs nothing."""
    gang = runs("gang", ("a", (0,)), ("b", (0,)), least=1, restart_seconds=9.0, priority=1)
    nodes = node("a", 2), node("b", 2)
    found = sure(Snapshot(nodes=nodes, jobs=(gang, waits(gpus=2))))
    assert (kinds(found), found.cost) == ({"gang": "move"}, 0.0)
    whole = runs("gang", ("a", (0,)), ("b", (0,)), restart_seconds=9.0, priority=1)
    found = sure(Snapshot(nodes=nodes, jobs=(whole, waits(gpus=2))))
    assert (kinds(found), found.cost, len(found.evictions[0].tasks)) == ({"gang": "move"}, 9.0, 1)


# --- where tasks lie -----------------------------------------------------------------------------------------------


def test_a_rack_is_cleared() -> None:
    """4 cards of one rack are wanted. r has 2 victims that cost 3 each, s has 3 of 1 each: 3 < 6; single ones of both
    racks (1 + 1) would do if it did not matter where."""
    nodes = tuple(node(f"{rack}{i}", 1, position={"rack": rack}) for rack in "rs" for i in range(4))
    jobs = [runs(f"r{i}", (f"r{i}", (0,)), restart_seconds=3.0) for i in range(2)]
    jobs += [runs(f"s{i}", (f"s{i}", (0,)), restart_seconds=1.0) for i in range(3)]
    new = waits(count=4, topology=Topology(required="rack"))
    found = sure(Snapshot(topology=("rack",), nodes=nodes, jobs=(*jobs, new)), move=False)
    assert (set(kinds(found)), found.cost) == ({"s0", "s1", "s2"}, 3.0)
    assert {name[0] for name in found.plan.tasks.node} == {"s"}
    assert sure(Snapshot(topology=("rack",), nodes=nodes, jobs=(*jobs, waits(count=4))), move=False).cost == 1.0


def test_slices_that_counts_do_not_know() -> None:
    """Two slices of 2, each in one rack: racks have 3, 1, 1 cards, one of the first taken: its victim must leave."""
    nodes = tuple(node(f"{rack}{i}", 1, position={"rack": rack}) for rack in "rrrst" for i in [0])
    names = [Node(name=f"n{i}", gpus=one.gpus, position=one.position) for i, one in enumerate(nodes)]
    jobs = runs("v", ("n0", (0,)), restart_seconds=5.0), runs("w", ("n3", (0,)), restart_seconds=1.0)
    new = waits(count=2, topology=Topology(slices=(Slice(level="rack", sizes=(2,)),)))
    found = sure(Snapshot(topology=("rack",), nodes=tuple(names), jobs=(*jobs, new)), move=False)
    assert found.cost == 0.0  # n1 and n2 are free
    more = waits(count=3, topology=Topology(slices=(Slice(level="rack", sizes=(3,)),)))
    found = sure(Snapshot(topology=("rack",), nodes=tuple(names), jobs=(*jobs, more)), move=False)
    assert (kinds(found), found.cost) == ({"v": "stop"}, 5.0)


def test_one_zone_is_cleared() -> None:
    """Zones of two cards, one busy in each: both cheap victims do not help, for two cards of one zone are wanted.

    x, in zone 0, costs 4, and y and z, in zone 1 with a card each, cost 3 each.
    """
    zones = NumaZone(id=0, gpus=(0, 1)), NumaZone(id=1, gpus=(2, 3))
    jobs = (
        runs("x", ("a", (0,)), restart_seconds=4.0),
        *(runs(name, ("a", (card,)), restart_seconds=3.0) for name, card in (("y", 2), ("z", 3))),
    )
    new = waits(gpus=2, numa="single-numa-node")
    found = sure(Snapshot(nodes=(node("a", zones=zones),), jobs=(*jobs, new)), move=False)
    assert (kinds(found), found.cost) == ({"x": "stop"}, 4.0)
    assert sure(Snapshot(nodes=(node("a", zones=zones),), jobs=(*jobs, waits(gpus=2))), move=False).cost == 3.0


def test_shares_of_one_card() -> None:
    """0.6 of one card is wanted, and each has 0.5 free: counts see a whole card, but somebody has to leave."""
    jobs = [runs(f"v{i}", ("a", (i,)), restart_seconds=2.0 + i, task={"gpu_share": 0.5}) for i in range(2)]
    new = waits(gpus=1, gpu_share=0.6)
    found = sure(Snapshot(nodes=(node("a", 2),), jobs=(*jobs, new)), move=False)
    assert (kinds(found), found.cost) == ({"v0": "stop"}, 2.0)
    # two halves fit on one card
    found = sure(Snapshot(nodes=(node("a", 2),), jobs=(*jobs, new)))
    assert kinds(found) == {"v0": "move"}


def test_slots_of_a_mig_card() -> None:
    """3g needs slots 0 to 3 or 4 to 7: x lies at 2, y at 4 and z at 6, so one victim of 5 or two of 2 each: 4 < 5."""
    places = (("x", "1g.5gb", 2, 5.0), ("y", "2g.10gb", 4, 2.0), ("z", "1g.5gb", 6, 2.0))
    jobs = []
    for name, profile, start, seconds in places:
        task = RunningTask(group="g", index=0, node="a", gpus=(0,), mig_starts=(start,))
        group = TaskGroup(name="g", task=Task(gpus=1, mig_profile=profile))
        running = Running(tasks=(task,))
        jobs.append(Job(name=name, preemptible=True, restart_seconds=seconds, groups=(group,), running=running))
    layout = tuple(MigInstance(profile=profile, start=start) for _, profile, start, _ in places)
    card = Gpu(model="A100-40GB", mig_enabled=True, mig_layout=layout)
    new = waits(gpus=1, mig_profile="3g.20gb")
    found = sure(Snapshot(nodes=(Node(name="a", gpus=(card,)),), jobs=(*jobs, new)), move=False)
    assert (set(kinds(found)), found.cost) == ({"y", "z"}, 4.0)
    # of those that may go on, each has room in slots 0 and 1 or 3: two moves of 2 each, or one of 5
    found = sure(Snapshot(nodes=(Node(name="a", gpus=(card,)),), jobs=(*jobs, new)))
    assert set(kinds(found).values()) == {"move"}
    assert found.cost == 4.0


def test_gangs_that_are_tied_move_whole() -> None:
    gang = runs("gang", ("a", (0,)), ("a", (1,)), topology=Topology(required="node"), restart_seconds=2.0, priority=1)
    found = sure(Snapshot(nodes=(node("a", 3), node("b", 2)), jobs=(gang, waits(gpus=3))))
    assert (kinds(found), len(found.evictions[0].tasks)) == ({"gang": "move"}, 2)


def test_groups_apart() -> None:
    """Two groups apart by node: two nodes of one card are needed, and one of them is taken."""
    groups = tuple(TaskGroup(name=name, task=Task(gpus=1)) for name in "pq")
    new = Job(name="new", priority=1, groups=groups, affinity=(Affinity(a="p", b="q", level="node", kind="apart"),))
    found = sure(Snapshot(nodes=(node("a", 2), node("b", 1)), jobs=(runs("v", ("b", (0,))), new)), move=False)
    assert kinds(found) == {"v": "stop"}


# --- several jobs, and queues --------------------------------------------------------------------------------------


def test_each_in_turn() -> None:
    """Priority 2 first: it takes a. Of priority 1 those without harm come first, t on b, and then s, at y's expense."""
    x, y = runs("x", ("a", (0, 1)), restart_seconds=1.0), runs("y", ("b", (0,)), restart_seconds=5.0)
    work = waits("t", gpus=1), waits("s", gpus=1), waits("u", gpus=2, priority=2)
    found = sure(Snapshot(nodes=(node("a", 2), node("b", 2)), jobs=(x, y, *work)), move=False)
    assert found.started == ("u", "t", "s")
    assert (kinds(found), found.cost) == ({"x": "stop", "y": "stop"}, 6.0)
    assert {one.job: one.reason for one in found.evictions} == {"x": "u", "y": "s"}


def test_a_job_by_name() -> None:
    work = waits("t"), Job(name="c", count=2, priority=1, groups=(TaskGroup(name="g", task=Task(gpus=1)),))
    snapshot = Snapshot(nodes=(node("a", 1),), jobs=(runs("x", ("a", (0,))), *work))
    assert sure(snapshot, "c-1").started == ("c-1",)
    for name, part in (("x", "runs already"), ("c", "no job is called")):
        with pytest.raises(UsageError, match=part):
            preempt(snapshot, name)


def quotas(*amounts: int) -> tuple[Queue, ...]:
    top = Queue(name="top", quota={"*": 0})
    return (top, *(Queue(name=f"q{i}", parent="top", quota={"*": amount}) for i, amount in enumerate(amounts)))


def reclaimed(sizes: tuple[int, ...], asks: int, own: int, theirs: int) -> dict[str, str]:
    """Return who leaves where jobs of q1, of a higher priority, take all cards and a job of q0 waits."""
    jobs, first = [], 0
    for number, size in enumerate(sizes):
        cards = tuple(range(first, first + size))
        jobs.append(runs(f"v{number}", ("a", cards), queue="q1", priority=9))
        first += size
    snapshot = Snapshot(
        nodes=(node("a", first),), jobs=(*jobs, waits(gpus=asks, queue="q0")), queues=quotas(own, theirs)
    )
    return kinds(sure(snapshot))


def test_what_is_beyond_a_quota_is_reclaimed() -> None:
    # q1 uses 4 of 2: one job of 1 for one card, whatever its priority
    assert set(reclaimed((1, 1, 1, 1), 1, 2, 2).values()) == {"stop"}
    # two of them come back at most
    assert len(reclaimed((1, 1, 1, 1), 2, 2, 2)) == 2
    assert reclaimed((1, 1, 1, 1), 3, 3, 2) == {}
    # the job that asks would be beyond its own quota
    assert reclaimed((1, 1, 1, 1), 2, 1, 3) == {}
    # a job of 4 is stopped as long as its queue is beyond its quota, here by 1
    assert reclaimed((4,), 1, 1, 3) == {"v0": "stop"}
    assert reclaimed((4,), 1, 1, 4) == {}


def test_a_quota_keeps_a_job_waiting() -> None:
    """The queue has 1 card and uses it; with a lower priority its own job leaves, else nobody can help."""
    queues = (Queue(name="q", quota={"*": 1}),)
    for priority, outcome in ((0, {"v": "stop"}), (1, {})):
        victim = runs("v", ("a", (0,)), queue="q", priority=priority)
        found = sure(Snapshot(nodes=(node("a", 2),), jobs=(victim, waits(queue="q")), queues=queues), move=False)
        assert kinds(found) == outcome
        assert [one.reason for one in found.waiting] == ([] if outcome else ["quota"])


def test_what_is_refused() -> None:
    reserved = Reservation(name="r", nodes=("a",), start=0.0, end=1.0)
    snapshot = Snapshot(nodes=(node("a", 1),), jobs=(waits(),), reservations=(reserved,))
    with pytest.raises(UnhonouredError, match="reservations"):
        preempt(snapshot)
    assert preempt(snapshot, without=("reservations",)).started == ("new",)
    with pytest.raises(UsageError, match="move"):
        preempt(snapshot, move=1)  # type: ignore[arg-type]


# --- beside every set of victims -----------------------------------------------------------------------------------


@pytest.mark.parametrize("tens", range(3))
def test_the_best_there_is(tens: int) -> None:
    for seed in range(10 * tens, 10 * tens + 10):
        snapshot, move = tiny(seed), seed % 2 == 0
        expected = best(snapshot, "new", move)
        found = sure(snapshot, "new", move=move)
        assert (key_of(snapshot, found) if found.started else None) == expected, seed
