"""Preemption: moves, places and quotas by hand, and tiny clusters beside every set of victims."""

from __future__ import annotations

import msgspec
import pytest
from preempt_brute import best, key_of, tiny
from preempt_cases import kinds, node, runs, sure, waits

from placement import UsageError, preempt
from placement.errors import UnhonouredError
from placement.snapshot import (
    Affinity,
    Gpu,
    Job,
    MigInstance,
    Node,
    NumaZone,
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


def test_tasks_that_have_names_elsewhere_move_and_start() -> None:
    """As imported: tasks are called what their pods are. x moves; of the elastic w one of two is enough."""
    x = runs("x", ("a", (0,)), restart_seconds=30.0)
    moving = msgspec.structs.replace(x, task_names={x.groups[0].name: ("pod-x",)})
    new = waits(gpus=3, count=2)
    (group,) = new.groups
    elastic = msgspec.structs.replace(
        new,
        groups=(msgspec.structs.replace(group, min_count=1),),
        task_names={group.name: ("pod-0", "pod-1")},
    )
    snapshot = Snapshot(time=50.0, nodes=(node("a", 3), node("b", 1)), jobs=(moving, elastic))
    found = sure(snapshot)
    assert (kinds(found), found.cost) == ({"x": "move"}, 30.0)
    assert found.evictions[0].tasks[0].target == ("b", (0,), ())
    assert [job.task_names for job in found.after.jobs] == [job.task_names for job in snapshot.jobs]


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


def test_instances_that_nobody_uses_make_room_for_several_jobs() -> None:
    """The 1g at 1 is idle and in the way of the 4g; once this has started the list of instances is no longer true."""
    card = Gpu(model="A100-40GB", mig_enabled=True, mig_layout=(MigInstance(profile="1g.5gb", start=1),))
    jobs = tuple(waits(name=f"j{i}", gpus=1, mig_profile=one) for i, one in enumerate(("4g.20gb", "3g.20gb", "1g.5gb")))
    found = preempt(Snapshot(nodes=(Node(name="a", gpus=(card,), count=2),), jobs=jobs))
    assert (found.started, found.evictions) == (("j0", "j1", "j2"), ())


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
    for seed in range(6 * tens, 6 * tens + 6):
        snapshot, move = tiny(seed), seed % 2 == 0
        expected = best(snapshot, "new", move)
        found = sure(snapshot, "new", move=move)
        assert (key_of(snapshot, found) if found.started else None) == expected, seed
