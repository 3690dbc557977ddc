"""Preferred levels: the objective ``locality`` measured by engine, check and brute force, and reached."""

from __future__ import annotations

import random
from fractions import Fraction

import brute
import pytest
from strategies import random_tied_tiny

import placement
from placement.check import objective
from placement.compile import compile as compile_snapshot
from placement.evaluate import scores
from placement.exact import run
from placement.instance import Assignment
from placement.naming import name_tasks
from placement.preferred import wishes
from placement.snapshot import Gpu, Job, Node, Snapshot, Task, TaskGroup, Topology
from placement.solver import Limits, Stop

CARD = Task(gpus=1)


def node(name: str, cards: int, **position: str) -> Node:
    return Node(name=name, position=position, gpus=(Gpu(model="m", count=cards),))


def cluster(*jobs: Job) -> Snapshot:
    """Block x has racks r (1 and 2 cards) and s (2 cards), block y has rack t (3 cards)."""
    nodes = (
        node("a", 1, block="x", rack="r"),
        node("b", 2, block="x", rack="r"),
        node("c", 2, block="x", rack="s"),
        node("d", 3, block="y", rack="t"),
    )
    return Snapshot(topology=("block", "rack"), nodes=nodes, jobs=jobs)


def gang(name: str, count: int, prefers: str, **more: object) -> Job:
    group = TaskGroup(name="w", count=count, task=CARD, topology=Topology(preferred=prefers))
    return Job(name=name, groups=(group,), **more)  # type: ignore[arg-type]


def cost(snapshot: Snapshot, *places: tuple[int, int]) -> Fraction:
    """Return the locality of tasks of job 0, given as pairs of node and card, by engine and check, which must agree."""
    instance = compile_snapshot(snapshot)
    assignment = Assignment.of((0, 0, task, n, (card,)) for task, (n, card) in enumerate(places))
    (found,) = scores(instance, assignment, ("locality",))
    assert objective(snapshot, name_tasks(instance, assignment), ("locality",)) == [("locality", None, found.value)]
    return found.value


def test_levels_are_counted_from_the_narrowest_that_holds_the_copy() -> None:
    # levels: cluster 0, block 1, rack 2, node 3
    snapshot = cluster(gang("j", 2, "rack"))
    assert cost(snapshot, (0, 0), (1, 0)) == 0  # both in rack r
    assert cost(snapshot, (1, 0), (2, 0)) == 1  # racks r and s, one block x: 2 - 1
    assert cost(snapshot, (1, 0), (3, 0)) == 2  # two blocks: 2 - 0
    assert cost(snapshot, (1, 0), (1, 1)) == 0  # one node is narrower than asked, which is no cheaper
    by_node = cluster(gang("j", 2, "node"))
    assert cost(by_node, (0, 0), (1, 0)) == 1  # 3 - 2
    assert cost(by_node, (1, 0), (1, 1)) == 0


def test_a_node_outside_every_domain_makes_it_the_cluster() -> None:
    nodes = (node("a", 1, block="x", rack="r"), node("b", 1, block="x"))
    snapshot = Snapshot(topology=("block", "rack"), nodes=nodes, jobs=(gang("j", 2, "rack"),))
    assert cost(snapshot, (0, 0), (1, 0)) == 1  # no common rack, but block x
    nowhere = Snapshot(topology=("block", "rack"), nodes=(nodes[0], node("b", 1)), jobs=(gang("j", 2, "rack"),))
    assert cost(nowhere, (0, 0), (1, 0)) == 2


def test_a_narrow_domain_is_preferred_and_a_wide_one_still_found() -> None:
    # 3 of 8 cards: rack t has 3, and no other rack would leave all together
    plan = placement.solve(cluster(gang("j", 3, "rack")), solver="exact")
    assert [phase.objective for phase in plan.phases] == ["value", "tasks", "locality"]
    assert (plan.phases[2].value, plan.phases[2].bound, plan.status) == (0.0, 0.0, "proven")
    # 5 of 8 cards: no rack has 5, block x has 1 + 2 + 2: one level wider
    plan = placement.solve(cluster(gang("j", 5, "rack")), solver="exact")
    assert (plan.phases[2].value, plan.phases[2].bound) == (1.0, 1.0)
    assert {plan.tasks.node[row] for row in range(5)} == {"a", "b", "c"}


def test_value_comes_before_what_is_preferred() -> None:
    # both gangs of 3 would like rack t; one of them lies in block x: 3 of 5 cards, over racks r and s or all in r
    plan = placement.solve(cluster(gang("i", 3, "rack"), gang("j", 3, "rack")), solver="exact")
    assert [phase.value for phase in plan.phases] == [6000.0, 6.0, 0.0]
    # three gangs of 2 and one of 2 more: a + b + c hold 5, so one of four gangs crosses; 8 cards in all
    plan = placement.solve(cluster(*(gang(f"j{i}", 2, "rack") for i in range(4))), solver="exact")
    # rack r holds one and leaves 1, s one, t one and leaves 1: the fourth lies over two blocks
    assert [phase.value for phase in plan.phases] == [8000.0, 8.0, 2.0]


def test_the_objective_is_added_only_where_it_is_wished_for() -> None:
    plain = Job(name="j", groups=(TaskGroup(name="w", count=2, task=CARD),))
    assert [phase.objective for phase in placement.solve(cluster(plain)).phases] == ["value", "tasks"]
    asked = placement.solve(cluster(plain), objectives=("value", "locality"))
    assert [(phase.objective, phase.value, phase.bound) for phase in asked.phases][1] == ("locality", 0.0, 0.0)
    chosen = placement.solve(cluster(gang("j", 2, "rack")), objectives=("value",))
    assert [phase.objective for phase in chosen.phases] == ["value"]
    alone = placement.solve(cluster(plain), objectives=("locality",), solver="exact")
    assert (alone.phases[0].value, alone.stop) == (0.0, "optimal")


def test_copies_of_nested_groups_count_one_by_one() -> None:
    inner = TaskGroup(name="w", count=2, task=CARD)
    replica = TaskGroup(name="r", count=2, groups=(inner,), topology=Topology(preferred="node"))
    snapshot = cluster(Job(name="j", groups=(replica,)))
    (wish,) = wishes(compile_snapshot(snapshot))
    assert (wish.level, wish.copies) == (3, 1)
    # the group as a whole prefers a node for its four tasks, and no node has 4: block x holds 5, 3 - 1
    assert placement.solve(snapshot, solver="exact").phases[2].value == 2.0
    within = TaskGroup(name="w", count=2, task=CARD, topology=Topology(preferred="node"))
    each = cluster(Job(name="j", groups=(TaskGroup(name="r", count=2, groups=(within,)),)))
    # each replica's two tasks prefer a node: b, c and d have two cards
    assert placement.solve(each, solver="exact").phases[2].value == 0.0


@pytest.mark.parametrize("seed", range(120))
def test_values_of_plans_against_brute_force(seed: int) -> None:
    snapshot = random_tied_tiny(seed, 4)
    orders = [("value", "tasks", "locality"), ("locality", "value"), ("value", "locality", "nodes")]
    objectives = random.Random(seed).choice(orders)
    expected = brute.optimum(snapshot, objectives)
    instance = compile_snapshot(snapshot)
    result = run(instance, objectives=objectives, limits=Limits())
    found = [(s.objective, s.priority, s.value) for s in scores(instance, result.assignment, objectives)]
    assert found == expected
    assert result.stop is Stop.OPTIMAL


def test_some_random_snapshots_prefer_a_level() -> None:
    wished = [wishes(compile_snapshot(random_tied_tiny(seed, 5))) for seed in range(120)]
    assert sum(bool(one) for one in wished) > 20
