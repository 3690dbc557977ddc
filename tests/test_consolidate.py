"""Moving MIG instances: cases solved by hand, what counts, and wrong arguments; see `consolidate_cases`."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from consolidate_cases import A100, SEVENTH, TWO, cluster, one, places, proven, runs, sound, started, waits

from placement import SnapshotError, UsageError, consolidate, solve
from placement.decisions.entries import node_names
from placement.snapshot import (
    Affinity,
    Gpu,
    Job,
    MigInstance,
    Node,
    Running,
    RunningTask,
    Task,
    TaskGroup,
    Topology,
)

# --- by hand ---------------------------------------------------------------------------------------------------


def test_one_move_frees_a_card() -> None:
    """x (1/7) goes beside y: 1000 - 100/7. That y (2/7) goes to x would cost 200/7."""
    snapshot = cluster(runs("x", "1g.5gb", 0, 0), runs("y", "2g.10gb", 1, 2), waits("big", "7g.40gb"))
    found = consolidate(snapshot)
    sound(snapshot, found)
    proven(found, 1000, SEVENTH / 10)
    assert [(move.job, move.group, move.index, move.source) for move in found.moves] == [("x", "g", 0, ("a", 0, 0))]
    node, card, start = found.moves[0].target
    assert (node, card) == ("a", 1)
    assert start not in (2, 3)  # which y has
    assert started(found) == ["big"]
    assert found.plan.tasks.gpus == [[0]]
    # without moves nothing of it starts
    assert solve(snapshot, without=("jobs.preemptible",)).value == 0


def test_a_move_that_costs_more_than_it_brings() -> None:
    """Moving x costs 6.9/7 or 7.1/7 of what the 7g is worth."""
    snapshot = cluster(runs("x", "1g.5gb", 0, 0), runs("y", "2g.10gb", 1, 2), waits("big", "7g.40gb"))
    proven(consolidate(snapshot, move_cost=6.9), 1000, 6.9 * SEVENTH)
    found = consolidate(snapshot, move_cost=7.1)
    proven(found, 0, 0)
    assert found.moves == ()
    assert found.after == snapshot
    assert [job.job for job in found.plan.pending] == ["big"]
    # y is worth 2/7 a weight: as 10 of them it had rather stay, as x of weight 3 costs 3/7 and y 2/7 that one goes
    other = cluster(runs("x", "1g.5gb", 0, 0, weight=3), runs("y", "2g.10gb", 1, 2), waits("big", "7g.40gb"))
    found = consolidate(other)
    proven(found, 1000, 2 * SEVENTH / 10)
    assert list(places(found)) == ["y"]


def test_at_most_so_many_moves() -> None:
    """Two 1g leave card 0 for 2/70, or one 3g leaves card 1 for 3/70, the only way with a single move."""
    work = (runs("x", "1g.5gb", 0, 0), runs("y", "1g.5gb", 0, 3), runs("z", "3g.20gb", 1, 4))
    snapshot = cluster(*work, waits("big", "7g.40gb"))
    for most, cost, movers in ((None, 2, ["x", "y"]), (2, 2, ["x", "y"]), (1, 3, ["z"])):
        found = consolidate(snapshot, max_moves=most)
        sound(snapshot, found, most)
        proven(found, 1000, cost * SEVENTH / 10)
        assert sorted(places(found)) == movers
    # slots 4 to 7 of card 0 are the only place of a 3g beside 1g at 0 and 3
    assert places(found) == {"z": ("a", 0, 4)}
    found = consolidate(snapshot, max_moves=0)
    proven(found, 0, 0)
    assert found.moves == ()


@pytest.mark.parametrize(
    "stays",
    [
        {"gpu_models": ("A100-40GB",)},
        {"node_selector": {"disk": "fast"}},
        {"preemptible": False},
        {"affinity": (Affinity(a="g", b="h", level="rack", kind="apart"),)},
        {"topology": Topology(preferred="rack")},
    ],
    ids=lambda stays: next(iter(stays)),
)
def test_who_has_to_stay(stays: dict[str, Any]) -> None:
    """x holds up the only A100, and there is room for it on an A30, where it may not go."""
    nodes = (
        Node(name="a", gpus=(A100,), labels={"disk": "fast"}, position={"rack": "r"}),
        Node(name="b", gpus=(Gpu(model="A100-80GB", mig_enabled=True),), position={"rack": "r"}),
    )
    name = "1g.10gb"  # two slots of one model, one of the other
    big = waits("big", "7g.40gb", gpu_models=("A100-40GB",))
    levels = {"topology": ("rack",)}
    free = cluster(runs("x", name, 0, 0), big, nodes=nodes, **levels)
    proven(consolidate(free), 1000, SEVENTH / 10)
    x = runs("x", name, 0, 0, **stays)
    if "affinity" in stays:
        x = msgspec.structs.replace(x, groups=(*x.groups, one(name, name="h")))
        second = RunningTask(group="h", index=0, node="a", gpus=(0,), mig_starts=(2,))
        assert x.running is not None
        x = msgspec.structs.replace(x, running=Running(tasks=(*x.running.tasks, second)))
    bound = cluster(x, big, nodes=nodes, **levels)
    found = consolidate(bound)
    sound(bound, found)
    proven(found, 0, 0)
    assert found.moves == ()


def test_a_job_that_waits_for_what_runs_of_another() -> None:
    """What waits is just like what may move, and is no less counted for it: seven 1g on each card, two of them run."""
    snapshot = cluster(
        runs("x", "1g.5gb", 0, 0), runs("y", "1g.5gb", 1, 0), *(waits(f"n{i}", "1g.5gb") for i in range(15))
    )
    found = consolidate(snapshot)
    sound(snapshot, found)
    proven(found, 12 * SEVENTH, 0)
    assert found.moves == ()


def test_a_place_on_a_card_that_stays_as_it_is() -> None:
    """Card 0 has two instances of 3g and keeps them; x takes one of them and leaves card 1 to the 7g."""
    fixed = Gpu(
        model="A100-40GB",
        mig_enabled=True,
        mig_static=True,
        mig_layout=(MigInstance(profile="3g.20gb", start=0), MigInstance(profile="3g.20gb", start=4)),
    )
    nodes = (Node(name="a", gpus=(fixed, A100)),)
    snapshot = cluster(runs("x", "3g.20gb", 1, 4), waits("big", "7g.40gb"), nodes=nodes)
    found = consolidate(snapshot)
    sound(snapshot, found)
    proven(found, 1000, 3 * SEVENTH / 10)
    assert places(found)["x"][:2] == ("a", 0)
    assert found.after.nodes == snapshot.nodes
    # a 2g has no place there
    other = cluster(runs("x", "2g.10gb", 1, 4), waits("big", "7g.40gb"), nodes=nodes)
    proven(consolidate(other), 0, 0)


def test_leaving_a_card_that_stays_as_it_is() -> None:
    """new can only run in the 3g that x has: 3/7, less a tenth of that for moving x."""
    fixed = Gpu(
        model="A100-40GB",
        mig_enabled=True,
        mig_static=True,
        mig_layout=(MigInstance(profile="3g.20gb", start=4), MigInstance(profile="1g.5gb", start=0)),
    )
    nodes = (Node(name="a", gpus=(fixed,), labels={"zone": "a"}), Node(name="b", gpus=(A100,)))
    new = waits("new", "3g.20gb", node_selector={"zone": "a"})
    snapshot = cluster(runs("x", "3g.20gb", 0, 4), new, nodes=nodes)
    found = consolidate(snapshot)
    sound(snapshot, found)
    proven(found, 3 * SEVENTH, 0.3 * SEVENTH)
    assert found.plan.tasks.mig_starts == [[4]]
    assert found.after.nodes == snapshot.nodes


def test_layouts_that_no_longer_hold() -> None:
    """Instances are listed on both nodes; those of the cards that x leaves and comes to are not what is said there."""
    listed = Gpu(model="A100-40GB", mig_enabled=True, mig_layout=(MigInstance(profile="1g.5gb", start=0),))
    nodes = (Node(name="a", gpus=(listed,)), Node(name="b", gpus=(A100, listed)), Node(name="c", gpus=(listed,)))
    work = (runs("x", "1g.5gb", 0, 0), runs("y", "2g.10gb", 0, 2, node="b"), runs("z", "1g.5gb", 0, 0, node="c"))
    y, z = (msgspec.structs.replace(job, preemptible=False) for job in work[1:])
    big = waits("big", "7g.40gb", count=2)
    snapshot = cluster(work[0], y, z, big, nodes=nodes)
    found = consolidate(snapshot)
    sound(snapshot, found)
    # card 1 of b is empty, and a is once x is gone
    proven(found, 2000, SEVENTH / 10)
    assert places(found)["x"][:2] in {("b", 0), ("c", 0)}
    layouts = {node.name: [len(gpu.mig_layout) for gpu in node.gpus] for node in found.after.nodes}
    assert layouts == {"a": [0], "b": [0, 1], "c": [0 if places(found)["x"][0] == "c" else 1]}


def test_engines_and_not_slots() -> None:
    """Each card has one optical flow unit. new must run on a, where x has it: 1/7 less a tenth of it."""
    nodes = (Node(name="a", gpus=(A100,), labels={"zone": "a"}), Node(name="b", gpus=(A100,)))
    new = waits("new", "1g.5gb+me", node_selector={"zone": "a"})
    snapshot = cluster(runs("x", "1g.5gb+me", 0, 3), new, nodes=nodes)
    found = consolidate(snapshot)
    sound(snapshot, found)
    proven(found, SEVENTH, SEVENTH / 10)
    assert places(found)["x"][0] == "b"
    # and where that of b is taken too, x has nowhere to go
    taken = runs("y", "1g.5gb+me", 0, 0, node="b", preemptible=False)
    proven(consolidate(cluster(runs("x", "1g.5gb+me", 0, 3), taken, new, nodes=nodes)), 0, 0)


def test_a_gang_that_waits() -> None:
    """Three cards with a 1g each: two of them move to the third, and two 7g start, which one move would not do."""
    nodes = (Node(name="a", gpus=(Gpu(model="A100-40GB", count=3, mig_enabled=True),)),)
    work = tuple(runs(f"x{card}", "1g.5gb", card, 0) for card in range(3))
    snapshot = cluster(*work, waits("gang", "7g.40gb", 2), nodes=nodes)
    found = consolidate(snapshot)
    sound(snapshot, found)
    proven(found, 2000, 2 * SEVENTH / 10)
    assert found.plan.tasks.index == [0, 1]
    found = consolidate(snapshot, max_moves=1)
    sound(snapshot, found, 1)
    proven(found, 0, 0)
    some = waits("gang", "7g.40gb", 2)
    some = msgspec.structs.replace(some, groups=(msgspec.structs.replace(some.groups[0], min_count=1),))
    proven(consolidate(cluster(*work, some, nodes=nodes), max_moves=1), 1000, SEVENTH / 10)


def test_a_gang_that_runs_moves_task_by_task() -> None:
    """Of its two tasks the one moves that is in the way; each is a seventh of the job's value 70, a half of it: 35."""
    group = one("1g.5gb", 2)
    tasks = tuple(RunningTask(group="g", index=card, node="a", gpus=(card,), mig_starts=(card,)) for card in range(2))
    gang = Job(name="x", groups=(group,), value=70, preemptible=True, running=Running(tasks=tasks))
    snapshot = cluster(gang, waits("big", "7g.40gb"))
    found = consolidate(snapshot)
    sound(snapshot, found)
    proven(found, 1000, 3.5)
    assert len(found.moves) == 1


def test_instances_that_change_places() -> None:
    """A 4g can only start at slot 0, where x (3g) is, and y (1g) at 4 keeps x from going to the slots behind.

    Alone on the card there is no way, nor beside a card that takes nothing. Where another has slots 4 to 7 free, x goes
    there for 3/70; y there and x to slot 4 would be 4/70. Without y, x moves within its card.
    """
    first = Node(name="a", gpus=(A100, Gpu(model="A30-24GB", mig_enabled=True)))
    work = (runs("x", "3g.20gb", 0, 0), runs("y", "1g.5gb", 0, 4))
    alone = cluster(*work, waits("four", "4g.20gb"), nodes=(first,))
    proven(consolidate(alone), 0, 0)
    nodes = (first, Node(name="b", gpus=(A100,), cordoned=True))
    proven(consolidate(cluster(*work, waits("four", "4g.20gb"), nodes=nodes)), 0, 0)
    nodes = (first, Node(name="b", gpus=(A100,), labels={"zone": "b"}))
    four = waits("four", "4g.20gb", gpu_models=("A100-40GB",))
    filled = runs("z", "4g.20gb", 0, 0, node="b", preemptible=False)
    snapshot = cluster(*work, filled, four, nodes=nodes)
    found = consolidate(snapshot)
    sound(snapshot, found)
    proven(found, 4 * SEVENTH, 3 * SEVENTH / 10)
    assert places(found) == {"x": ("b", 0, 4)}
    snapshot = cluster(work[0], waits("four", "4g.20gb"), nodes=(first,))
    found = consolidate(snapshot)
    sound(snapshot, found)
    proven(found, 4 * SEVENTH, 3 * SEVENTH / 10)
    assert places(found) == {"x": ("a", 0, 4)}


# --- what counts -----------------------------------------------------------------------------------------------


def test_what_does_not_count() -> None:
    """A job of a whole card waits with another priority and starts beside; one with both sorts of tasks has no room."""
    nodes = (Node(name="a", gpus=(TWO, Gpu(model="A100-40GB"))),)
    whole = Job(name="whole", priority=5, groups=(TaskGroup(name="g", task=Task(gpus=1)),))
    mixed = Job(name="mixed", groups=(one("1g.5gb"), TaskGroup(name="w", task=Task(gpus=1))))
    work = (runs("x", "1g.5gb", 0, 0), runs("y", "2g.10gb", 1, 2))
    snapshot = cluster(*work, waits("big", "7g.40gb"), whole, mixed, nodes=nodes)
    found = consolidate(snapshot)
    sound(snapshot, found)
    proven(found, 1000, SEVENTH / 10)
    assert started(found) == ["big", "whole"]
    assert [(job.job, job.reason) for job in found.plan.pending] == [("mixed", "no_room")]
    # with one more card there is, beside x and y on their card
    wide = msgspec.structs.replace(snapshot, nodes=(Node(name="a", gpus=(TWO, Gpu(model="A100-40GB", count=2))),))
    found = consolidate(wide)
    sound(wide, found)
    proven(found, 1000, SEVENTH / 10)
    assert started(found) == ["big", "mixed", "mixed", "whole"]
    assert found.plan.pending == []


def test_what_does_not_count_gets_what_is_left_of_hosts() -> None:
    """Of eight cores big takes five. Of the jobs of whole cards one starts with two cores, not the one with four."""
    nodes = (Node(name="a", cpu=8, gpus=(TWO, Gpu(model="A100-40GB", count=2))),)
    work = (runs("x", "1g.5gb", 0, 0), runs("y", "2g.10gb", 1, 2), waits("big", "7g.40gb", cpu=5))
    others = tuple(
        Job(name=f"whole{cores}", groups=(TaskGroup(name="g", task=Task(gpus=1, cpu=cores)),)) for cores in (4, 2)
    )
    snapshot = cluster(*work, *others, nodes=nodes)
    found = consolidate(snapshot)
    sound(snapshot, found)
    proven(found, 1000, SEVENTH / 10)
    assert started(found) == ["big", "whole2"]
    assert [(job.job, job.reason) for job in found.plan.pending] == [("whole4", "no_room")]


def test_others_beside_running_instances_alone() -> None:
    """No MIG job waits: nothing moves, and the job of a whole card starts."""
    nodes = (Node(name="a", gpus=(A100, Gpu(model="A100-40GB"))),)
    whole = Job(name="whole", count=2, groups=(TaskGroup(name="g", task=Task(gpus=1)),))
    snapshot = cluster(runs("x", "1g.5gb", 0, 0), whole, nodes=nodes)
    found = consolidate(snapshot)
    sound(snapshot, found)
    assert (found.moves, found.worth, found.bound, found.gap) == ((), 0, 0, 0)
    assert started(found) == ["whole-0"]


def test_nothing_waits_and_nothing_moves() -> None:
    snapshot = cluster(runs("x", "1g.5gb", 0, 0))
    found = consolidate(snapshot)
    sound(snapshot, found)
    assert (found.moves, found.worth, found.cost, found.bound, found.gap) == ((), 0, 0, 0, 0)
    none = cluster(waits("big", "7g.40gb"))
    found = consolidate(none)
    sound(none, found)
    proven(found, 1000, 0)


def test_no_cards_at_all() -> None:
    snapshot = cluster(waits("big", "7g.40gb"), nodes=(Node(name="a", cpu=4),))
    found = consolidate(snapshot)
    sound(snapshot, found)
    assert (found.worth, found.bound, started(found)) == (0, 0, [])


def test_moves_for_nothing() -> None:
    """Without a cost the 7g starts too; and where nothing waits that needs room, nothing moves."""
    work = (runs("x", "1g.5gb", 0, 0), runs("y", "2g.10gb", 1, 2))
    proven(consolidate(cluster(*work, waits("big", "7g.40gb")), move_cost=0), 1000, 0)
    found = consolidate(cluster(*work, waits("small", "1g.5gb")), move_cost=0)
    proven(found, SEVENTH, 0)


def test_no_time() -> None:
    """There always is an answer: at worst everything stays."""
    snapshot = cluster(runs("x", "1g.5gb", 0, 0), runs("y", "2g.10gb", 1, 2), waits("big", "7g.40gb"))
    found = consolidate(snapshot, time_limit=1e-6)
    sound(snapshot, found)
    assert found.worth in (0, pytest.approx(1000))


def test_counted_nodes_and_fields_left_out() -> None:
    """x moves from one copy of a node to the other."""
    nodes = (Node(name="a", count=2, gpus=(A100,)),)
    snapshot = cluster(
        runs("x", "1g.5gb", 0, 0, node="a-0"),
        runs("y", "2g.10gb", 0, 2, node="a-1"),
        msgspec.structs.replace(waits("big", "7g.40gb"), queue="q"),
        nodes=nodes,
    )
    with pytest.raises(SnapshotError, match=r"jobs\.queue"):
        consolidate(snapshot)
    found = consolidate(snapshot, without=("jobs.queue",))
    sound(snapshot, found)
    proven(found, 1000, SEVENTH / 10)
    assert places(found)["x"][:2] == ("a-1", 0)
    assert found.plan.provenance.without == ("jobs.queue", "jobs.preemptible")
    # who is not said to be preemptible stays
    assert consolidate(snapshot, without=("jobs.queue", "jobs.preemptible")).moves == ()


# --- wrong arguments -------------------------------------------------------------------------------------------

FINE = cluster(runs("x", "1g.5gb", 0, 0), waits("big", "7g.40gb"))


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"move_cost": -0.1}, "move_cost"),
        ({"move_cost": float("nan")}, "move_cost"),
        ({"move_cost": float("inf")}, "move_cost"),
        ({"move_cost": "much"}, "move_cost"),
        ({"move_cost": True}, "move_cost"),
        ({"max_moves": -1}, "max_moves"),
        ({"max_moves": 1.5}, "max_moves"),
        ({"max_moves": True}, "max_moves"),
        ({"gap": 1.5}, "gap"),
        ({"gap": float("nan")}, "gap"),
        ({"time_limit": 0}, "time_limit"),
        ({"seed": -1}, "seed"),
        ({"without": ("nowhere",)}, "without"),
        ({"without": ("jobs.groups.task.mig_profile",)}, "without"),
    ],
)
def test_arguments_out_of_range(fields: dict[str, Any], path: str) -> None:
    with pytest.raises(UsageError) as raised:
        consolidate(FINE, **fields)
    assert raised.value.problems[0].path == path
    assert raised.value.problems[0].remedy
    assert sum(problem.path != "without" for problem in raised.value.problems) == (path != "without")


@pytest.mark.parametrize(
    ("work", "words"),
    [
        (
            (waits("one", "1g.5gb"), waits("two", "1g.5gb", priority=3)),
            "jobs of the priorities 3, 0 wait; consolidate for those of one priority at a time",
        ),
        (
            (Job(name="whole", groups=(TaskGroup(name="g", task=Task(gpus=1)),)),),
            "no waiting job and no movable one asks for a MIG instance; use `placement solve`",
        ),
    ],
)
def test_work_that_nothing_can_be_said_of(work: tuple[Job, ...], words: str) -> None:
    with pytest.raises(UsageError) as raised:
        consolidate(cluster(*work))
    assert [problem.path for problem in raised.value.problems] == ["jobs"]
    assert words in str(raised.value)


def test_a_wrong_snapshot() -> None:
    with pytest.raises(SnapshotError, match=r"mig_starts\[0\]"):
        consolidate(cluster(runs("x", "2g.10gb", 0, 1)))


def test_layouts_of_counted_entries() -> None:
    """Three nodes of three cards with a 3g at slot 4 in use, and an idle 1g at slot 0: but for card 1 of a-1, where x
    has the 1g. It takes that of another card, and of these two alone what is listed no longer holds."""
    listed = (MigInstance(profile="1g.5gb", start=0), MigInstance(profile="3g.20gb", start=4))
    gpu = Gpu(model="A100-40GB", count=3, mig_enabled=True, mig_layout=listed)
    spots = [(f"a-{number}", card) for number in range(3) for card in range(3)]
    threes = tuple(
        runs(f"{node}-{card}", "3g.20gb", card, 4, node=node, preemptible=False)
        for node, card in spots
        if (node, card) != ("a-1", 1)
    )
    x = runs("x", "1g.5gb", 1, 0, node="a-1")
    nodes = (Node(name="a", count=3, gpus=(gpu,)),)
    snapshot = cluster(x, *threes, waits("big", "7g.40gb"), nodes=nodes)
    found = consolidate(snapshot)
    sound(snapshot, found)
    proven(found, 1000, SEVENTH / 10)
    assert found.plan.tasks.node == ["a-1"]
    layouts = [
        (name, card, one.mig_layout)
        for entry in found.after.nodes
        for name in node_names(entry)
        for card, one in enumerate(one for one in entry.gpus for _ in range(one.count))
    ]
    emptied = {("a-1", 1), places(found)["x"][:2]}
    assert len(emptied) == 2
    assert layouts == [(*spot, () if spot in emptied else listed) for spot in spots]
