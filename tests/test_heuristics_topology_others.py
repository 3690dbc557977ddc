"""Rules of other schedulers, on clusters small enough to count by hand."""

from __future__ import annotations

from collections import Counter

import pytest
from tied_cases import CARD, one, rack, racks, solve

from placement.compile import compile as compile_snapshot
from placement.heuristics import BY_NAME, HEURISTICS, PORTFOLIO
from placement.snapshot import Gpu, Job, Node, Running, RunningTask, Slice, Snapshot, Task, TaskGroup, Topology
from placement.solver import Limits


def test_kueue_takes_the_domain_with_least_room_that_fits() -> None:
    # Room for tasks of 2 cards: a 3, b 2 (of 5 cards), c 2 (of 4 cards). Two tasks fit in b and in c alike, and b is
    # first; by idle cards it would be c.
    tied = TaskGroup(name="w", count=2, task=Task(gpus=2), topology=Topology(required="rack"))
    nodes = [*rack("a", 6), *rack("b", 5), *rack("c", 4)]
    assert solve(nodes, one(tied), rule="kueue-tas-best-fit") == [{"w": ["b-0", "b-0"]}]
    assert solve(nodes, one(tied)) == [{"w": ["c-0", "c-0"]}]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        # 3 + 3 + 1: two with most room, and of what holds the last one the node with least room
        ("kueue-tas-best-fit", {"n-0": 3, "n-1": 3, "n-3": 1}),
        # 1 + 2 + 3 + 1: those with least room first
        ("kueue-tas-least-free", {"n-3": 1, "n-2": 2, "n-0": 3, "n-1": 1}),
    ],
)
def test_kueue_deals_out_to_nodes(rule: str, expected: dict[str, int]) -> None:
    # the example of Kueue's KEP-2724: nodes with room for 3, 3, 2 and 1, and 7 tasks that must share a rack
    tied = TaskGroup(name="w", count=7, task=CARD, topology=Topology(required="rack"))
    (places,) = solve(rack("n", 3, 3, 2, 1), one(tied), rule=rule)
    assert Counter(places["w"]) == expected


def test_kueue_deals_out_level_by_level() -> None:
    # 5 tasks prefer a rack. None holds 5, zone z holds 4 + 3 and zone y 4 + 4: z has less room. In it rack b (4) has
    # most room, and rack a holds the last one. All are dealt out anew to the nodes of both, 3, 1 and 3: the first of
    # those with most room takes 3, and the other one has least room of those that hold the 2 that are left.
    wish = TaskGroup(name="w", count=5, task=CARD, topology=Topology(preferred="rack"))
    nodes = [*rack("a", 3), *rack("b", 1, 3), *rack("c", 4, zone="y"), *rack("d", 4, zone="y")]
    (places,) = solve(nodes, one(wish), rule="kueue-tas-best-fit")
    assert Counter(places["w"]) == {"a-0": 3, "b-1": 2}
    # 6 tasks of a zone with racks of 4 + 1 and 3 + 2: both racks, then 4 on the largest node and 2 where just 2 fit
    must = TaskGroup(name="w", count=6, task=CARD, topology=Topology(required="zone"))
    (places,) = solve([*rack("a", 4, 1), *rack("b", 3, 2)], one(must), rule="kueue-tas-best-fit")
    assert Counter(places["w"]) == {"a-0": 4, "b-1": 2}


def test_kueue_without_a_level_looks_at_nodes_alone() -> None:
    # three tasks: of the nodes with 4, 3 and 2 cards one holds all with least room, whatever its rack
    free = TaskGroup(name="w", count=3, task=CARD)
    nodes = [*rack("a", 4), *rack("b", 3), *rack("c", 2)]
    for rule in ("kueue-tas-best-fit", "kueue-tas-least-free"):
        assert solve(nodes, one(free), rule=rule) == [{"w": ["b-0"] * 3}]
    # and four tasks, where a is gone: most room first, or least room first
    nodes = [*rack("b", 3), *rack("c", 2)]
    free = TaskGroup(name="w", count=4, task=CARD)
    assert solve(nodes, one(free), rule="kueue-tas-best-fit") == [{"w": ["b-0"] * 3 + ["c-0"]}]
    assert solve(nodes, one(free), rule="kueue-tas-least-free") == [{"w": ["c-0"] * 2 + ["b-0"] * 2}]


def test_kueue_fills_one_rack_with_slices_before_the_next() -> None:
    # Five slices of 2 cards over racks that hold 3, 3 and 2 of them: a is filled, and the last two fit in c and in b,
    # of which c has less room.
    topology = Topology(required="zone", slices=(Slice(level="rack", sizes=(2,)),))
    tied = TaskGroup(name="w", count=10, task=CARD, topology=topology)
    (places,) = solve([*rack("a", 6), *rack("b", 6), *rack("c", 4)], one(tied), rule="kueue-tas-best-fit")
    assert Counter(racks(places["w"])) == {"a": 6, "c": 4}


def test_kueue_starts_at_the_widest_level_where_no_domain_holds_what_prefers_one() -> None:
    # 8 tasks; zones hold 3 + 3, 4 and 2. The first has most room, and the third holds the last two with least room.
    wish = TaskGroup(name="w", count=8, task=CARD, topology=Topology(preferred="rack"))
    nodes = [*rack("a", 3), *rack("b", 3), *rack("c", 4, zone="y"), *rack("d", 2, zone="x")]
    (places,) = solve(nodes, one(wish), rule="kueue-tas-best-fit")
    assert Counter(places["w"]) == {"a-0": 3, "b-0": 3, "d-0": 2}


def test_kueue_takes_the_domain_with_fewest_tasks_of_those_with_room_for_as_many_slices() -> None:
    # racks of 3 and 2 cards hold one slice of 2 each
    topology = Topology(required="zone", slices=(Slice(level="rack", sizes=(2,)),))
    tied = TaskGroup(name="w", count=2, task=CARD, topology=topology)
    for rule in ("kueue-tas-best-fit", "kueue-tas-least-free"):
        assert solve([*rack("a", 3), *rack("b", 2)], one(tied), rule=rule) == [{"w": ["b-0", "b-0"]}]


def test_kueue_looks_for_slices_alone_from_the_widest_level_down() -> None:
    # Two slices of 2: zone z holds two, one in each rack, zone y three in one rack. z has least room.
    topology = Topology(slices=(Slice(level="rack", sizes=(2,)),))
    tied = TaskGroup(name="w", count=4, task=CARD, topology=topology)
    nodes = [*rack("a", 2), *rack("b", 2), *rack("c", 6, zone="y")]
    for rule in ("kueue-tas-best-fit", "kueue-tas-least-free"):
        (places,) = solve(nodes, one(tied), rule=rule)
        assert Counter(racks(places["w"])) == {"a": 2, "b": 2}


def test_kueue_fills_the_smallest_nodes_of_a_slice_first() -> None:
    # two slices of 2 in one rack are four tasks for nodes of 4, 1 and 2 cards: 1, 2 and 1 on the largest
    topology = Topology(required="zone", slices=(Slice(level="rack", sizes=(2,)),))
    tied = TaskGroup(name="w", count=4, task=CARD, topology=topology)
    (places,) = solve(rack("a", 4, 1, 2), one(tied), rule="kueue-tas-best-fit")
    assert Counter(places["w"]) == {"a-1": 1, "a-2": 2, "a-0": 1}


def test_kube_scheduler_scores_by_what_is_allocated() -> None:
    # The task asks for 2 of the CPUs and 1 card; memory is asked for by no task.
    #   small: 4 CPU and 2 cards, nothing runs     (50 + 50) / 2 = 50 allocated with it, 50 free
    #   large: 16 CPU and 8 cards, 4 and 1 in use  CPU 6 / 16 -> 37, cards 2 / 8 -> 25: 62 / 2 = 31, 62 + 75 -> 68 free
    #   third: 12 CPU and 1 card                   CPU 2 / 12 -> 16, card 100: 58 allocated, 83 + 0 -> 41 free
    def node(name: str, cpu: float, cards: int) -> Node:
        return Node(name=name, cpu=cpu, gpus=(Gpu(model="A", count=cards),))

    busy = Job(
        name="busy",
        groups=(TaskGroup(name="g", task=Task(gpus=1, cpu=4)),),
        running=Running(tasks=(RunningTask(group="g", index=0, node="large", gpus=(0,)),)),
    )
    nodes = (node("small", 4, 2), node("large", 16, 8), node("third", 12, 1))
    snapshot = Snapshot(nodes=nodes, jobs=(busy, one(TaskGroup(name="w", task=Task(gpus=1, cpu=2)))))
    instance = compile_snapshot(snapshot)
    for rule, expected in (("kube-most-allocated", "third"), ("kube-least-allocated", "large")):
        found = HEURISTICS[rule].solve(instance, objectives=(), limits=Limits()).assignment
        assert [instance.node_name(node) for node in found.node.tolist()] == [expected]


def test_equal_free_amounts_of_different_nodes_score_apart() -> None:
    # Both have 4 CPUs free. Of "full" 12 are in use: with the task 14 / 16 -> 87. Of "empty" none: 2 / 4 -> 50.
    busy = Job(
        name="busy",
        groups=(TaskGroup(name="g", task=Task(cpu=12)),),
        running=Running(tasks=(RunningTask(group="g", index=0, node="full"),)),
    )
    nodes = (Node(name="empty", cpu=4), Node(name="full", cpu=16))
    instance = compile_snapshot(Snapshot(nodes=nodes, jobs=(busy, one(TaskGroup(name="w", task=Task(cpu=2))))))
    for rule, expected in (("kube-most-allocated", "full"), ("kube-least-allocated", "empty")):
        found = HEURISTICS[rule].solve(instance, objectives=(), limits=Limits()).assignment
        assert [instance.node_name(node) for node in found.node.tolist()] == [expected]


def test_what_is_allocated_may_be_counted_in_very_small_units() -> None:
    # 1e-15 cores are the unit. With the task of 50 cores 50 / 60 -> 83 are allocated, or 50 / 200 -> 25.
    nodes = (Node(name="large", cpu=200), Node(name="small", cpu=60))
    jobs = tuple(
        Job(name=name, groups=(TaskGroup(name="w", task=Task(cpu=cpu)),)) for name, cpu in (("j", 50), ("k", 1e-15))
    )
    instance = compile_snapshot(Snapshot(nodes=nodes, jobs=jobs))
    found = HEURISTICS["kube-most-allocated"].solve(instance, objectives=(), limits=Limits()).assignment
    assert [instance.node_name(node) for node in found.node.tolist()] == ["small", "small"]


def test_rules_of_others_are_tried_by_name_alone() -> None:
    assert set(BY_NAME) < set(HEURISTICS)
    assert not set(BY_NAME) & set(PORTFOLIO)
