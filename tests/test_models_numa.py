"""Tasks bound to NUMA zones: reference model, node patterns, searches and bounds, by hand and against brute force."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import brute
import model_cases
import numpy as np
import pytest
from hypothesis import given, settings
from strategies import OBJECTIVES
from zoned_room import fits_beside
from zoned_strategies import random_zoned, zoned_snapshots
from zoned_tied import random_zoned_tied

from placement import exact, models
from placement.compile import compile as compile_snapshot
from placement.errors import SnapshotError
from placement.evaluate import demand, scores
from placement.exact import unsupported
from placement.exact.domains.tied import Tied
from placement.exact.layouts.layout import Layout
from placement.exact.ledger import Ledger
from placement.exact.objectives.targets import targets_of
from placement.exact.packing.arrange import arrange
from placement.exact.pools.master import Master
from placement.exact.small.classes import solve_configurations
from placement.exact.small.reference import is_small, solve_reference
from placement.exact.small.size import most_patterns
from placement.exact.timing import Timing
from placement.instance import Assignment, Instance
from placement.models.parts import parts_of
from placement.models.patterns import arranger, enumerate_patterns
from placement.models.pools import leaf_rows, leaf_table, pooling
from placement.models.zoned_pools import ZoneRow
from placement.snapshot import (
    Gpu,
    Job,
    Nic,
    Node,
    NumaZone,
    Running,
    RunningTask,
    Snapshot,
    Task,
    TaskGroup,
    Topology,
)
from placement.snapshot.read import verified
from placement.solver import Limits, Result, Stop
from placement.state import State


def fits(instance: Instance, tasks: list[tuple[int, int, tuple[int, ...]]]) -> bool:
    """Return whether (shape, node, positions) fit together: each must beside those before it."""
    return all(fits_beside(instance, tasks[:i], task) for i, task in enumerate(tasks))


def rows_of(instance: Instance, assignment: Assignment) -> list[tuple[int, int, tuple[int, ...]]]:
    shape = leaf_table(instance)[leaf_rows(instance, assignment), 2].tolist()
    ends = assignment.offset.tolist()
    taken = [tuple(assignment.cards[a:b].tolist()) for a, b in pairwise(ends)]
    return list(zip(shape, assignment.node.tolist(), taken, strict=True))


def proven(instance: Instance, result: Result | None, objectives: tuple[str, ...]) -> list[Any]:
    """Return the scores of a result that fits, with bounds that are its scores."""
    assert result is not None
    assert fits(instance, rows_of(instance, result.assignment))
    found = scores(instance, result.assignment, objectives)
    assert result.stop is Stop.OPTIMAL
    assert [brute.close(b.value, s.value) for b, s in zip(result.bounds, found, strict=True)] == [True] * len(found)
    return [(score.objective, score.priority, score.value) for score in found]


def agree(snapshot: Snapshot) -> Instance:
    """Compare both exact formulations with brute force."""
    instance = compile_snapshot(verified(snapshot))
    expected = brute.optimum(snapshot, OBJECTIVES)
    assert proven(instance, solve_reference(instance, OBJECTIVES, Limits()), OBJECTIVES) == expected
    if not instance.tied:
        assert proven(instance, solve_configurations(instance, OBJECTIVES, Limits()), OBJECTIVES) == expected
    return instance


def tasks_run(*nodes: Node, jobs: tuple[Job, ...]) -> int:
    """Return the most tasks that can run, on which all methods agree."""
    instance = agree(Snapshot(nodes=nodes, jobs=jobs))
    result = exact.run(instance, objectives=("tasks",), limits=Limits())
    assert fits(instance, rows_of(instance, result.assignment))
    assert result.bounds[0].value == len(result.assignment)
    return len(result.assignment)


def zoned_node(*zones: NumaZone, name: str = "n", **more: object) -> Node:
    """Return a node of cards of one model in zones that state CPU or not."""
    cards = sum(len(zone.gpus) for zone in zones)
    cpu = None if zones[0].cpu is None else sum(int(zone.cpu or 0) for zone in zones)
    gpus = (Gpu(model="A", count=cards),) if cards else ()
    return Node(name=name, cpu=cpu, gpus=gpus, zones=zones, **more)  # type: ignore[arg-type]


def zone(number: int, *cards: int, cpu: int | None = None, nics: int = 0) -> NumaZone:
    return NumaZone(id=number, cpu=cpu, gpus=cards, nics=tuple(Nic(name=f"nic{number}-{i}") for i in range(nics)))


def running(node: str, *cards: int) -> Job:
    """Return a job of one task on each of some cards."""
    places = tuple(RunningTask(group="g", index=i, node=node, gpus=(card,)) for i, card in enumerate(cards))
    group = TaskGroup(name="g", count=len(cards), task=Task(gpus=1))
    return Job(name=f"runs-{node}", groups=(group,), running=Running(tasks=places))


# --- by hand -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("numa", "gpus", "expected"),
    [
        # empty, 4 cards are within one zone: the 2 + 2 that are free are in two
        ("single-numa-node", 4, 0),
        ("restricted", 4, 0),
        ("none", 4, 1),
        ("best-effort", 4, 1),
        ("restricted", 2, 1),
        # 5 cards need both zones even of an empty node, so nothing is asked of them; but there are only 4
        ("restricted", 5, 0),
    ],
)
def test_free_cards_in_two_zones_are_no_zone(numa: str, gpus: int, expected: int) -> None:
    # Two zones of 4 cards, 2 of each busy.
    node = zoned_node(zone(0, 0, 1, 2, 3), zone(1, 4, 5, 6, 7))
    job = model_cases.job("j", Task(gpus=gpus, numa=numa))  # type: ignore[arg-type]
    assert tasks_run(node, jobs=(running("n", 0, 1, 4, 5), job)) == expected


def test_tasks_that_need_all_zones_are_bound_to_none() -> None:
    # 5 of 8 cards are in two zones of two on any node like this one, so 4 + 1 will do as well as 3 + 2, and with two
    # cores beside: 6 cores of 4 + 4 fit no zone, nor do they have to.
    node = zoned_node(zone(0, 0, 1, 2, 3, cpu=4), zone(1, 4, 5, 6, 7, cpu=4))
    one = model_cases.job("one", Task(gpus=3, cpu=2, numa="single-numa-node"))
    assert tasks_run(node, jobs=(one, model_cases.job("five", Task(gpus=5, cpu=6, numa="restricted")))) == 2


def test_cores_are_in_zones() -> None:
    # Two zones of 3 cores and 2 cards. Of tasks of a card and 2 cores, 3 fit the node and one fits a zone: 1 + 1.
    # One that is not bound takes the core that is left in each.
    node = zoned_node(zone(0, 0, 1, cpu=3), zone(1, 2, 3, cpu=3))
    task = Task(gpus=1, cpu=2, numa="single-numa-node")
    anywhere = Task(gpus=1, cpu=2)
    assert tasks_run(node, jobs=(model_cases.job("j", anywhere, copies=4),)) == 3
    assert tasks_run(node, jobs=(model_cases.job("j", task, copies=3),)) == 2
    assert tasks_run(node, jobs=(model_cases.job("j", task, copies=3), model_cases.job("k", anywhere))) == 3


def test_nics_are_in_zones() -> None:
    # All cards in one zone, all NICs in the other: no task of both fits a zone, ever; restricted needs both, so it is
    # not bound, and two fit. Where zones have one of each, one task each.
    apart = zoned_node(zone(0, 0, 1), zone(1, nics=2))
    single = Task(gpus=1, nics=1, numa="single-numa-node")
    restricted = Task(gpus=1, nics=1, numa="restricted")
    assert tasks_run(apart, jobs=(model_cases.job("j", single, copies=2),)) == 0
    assert tasks_run(apart, jobs=(model_cases.job("j", restricted, copies=2),)) == 2
    alike = zoned_node(zone(0, 0, 1, nics=1), zone(1, 2, 3, nics=1))
    assert tasks_run(alike, jobs=(model_cases.job("j", single, copies=3),)) == 2
    # two NICs are in two zones of three at least, and three NICs are not enough for two such tasks
    three = zoned_node(*(zone(z, z, nics=1) for z in range(3)))
    two = Task(gpus=1, nics=2, numa="restricted")
    assert tasks_run(three, jobs=(model_cases.job("j", two, copies=2),)) == 1


def test_two_zones_of_four() -> None:
    # Four zones of 2 cards, of which zones 0 and 1 have one free: 1, 1, 2, 2. Four cards need two zones, 2 + 2 in the
    # last two, so one of two such tasks runs. Of tasks of three cards two do, as 1 + 2 each.
    node = zoned_node(*(zone(z, 2 * z, 2 * z + 1) for z in range(4)))
    busy = running("n", 0, 2)
    four, three = (Task(gpus=gpus, numa="restricted") for gpus in (4, 3))
    assert tasks_run(node, jobs=(busy, model_cases.job("j", four, copies=2))) == 1
    assert tasks_run(node, jobs=(busy, model_cases.job("j", three, copies=2))) == 2


@pytest.mark.parametrize(("numa", "expected"), [("restricted", 2), ("none", 3)])
def test_zones_share_what_a_task_of_two_zones_takes(numa: str, expected: int) -> None:
    # Three zones of 4 cores. Two tasks of 6 cores are within two zones each, and fill all 12: 4 + 2 and 2 + 4.
    node = zoned_node(*(zone(z, cpu=4) for z in range(3)))
    wide = Task(cpu=6, numa=numa)  # type: ignore[arg-type]
    assert tasks_run(node, jobs=(model_cases.job("wide", wide, copies=3),)) == 2
    # One of them and two of 3 cores within a zone are 12 too. But these are in two zones and leave 1, 1 and 4, of which
    # no two zones have 6: only where the wide one takes from all three there is room for it.
    narrow = Task(cpu=3, numa="single-numa-node")
    jobs = (model_cases.job("wide", wide), model_cases.job("narrow", narrow, copies=2))
    assert tasks_run(node, jobs=jobs) == expected


def test_a_node_without_zones_holds_no_task_that_asks_for_some() -> None:
    job = model_cases.job("j", Task(gpus=1, numa="restricted"), copies=2)
    assert tasks_run(Node(name="m", gpus=(Gpu(model="A", count=2),)), zoned_node(zone(0, 0), zone(1)), jobs=(job,)) == 1


def test_gangs_in_racks_and_zones() -> None:
    # Racks of one node with two zones each: 2 + 2 cards in rack r, 3 + 1 in rack s. A gang of two tasks of 2 cards in
    # one zone each fits r, where each has a zone, and not s; in either it would fit 4 cards.
    at = [{"position": {"rack": rack}} for rack in "rs"]
    nodes = (
        zoned_node(zone(0, 0, 1), zone(1, 2, 3), name="a", **at[0]),
        zoned_node(zone(0, 0, 1, 2), zone(1, 3), name="b", **at[1]),
    )
    for rack, expected in ((nodes, 2), (nodes[1:], 0)):
        group = TaskGroup(
            name="g", count=2, task=Task(gpus=2, numa="single-numa-node"), topology=Topology(required="rack")
        )
        snapshot = Snapshot(topology=("rack",), nodes=rack, jobs=(Job(name="j", groups=(group,)),))
        instance = agree(snapshot)
        assert len(exact.run(instance, objectives=("tasks",), limits=Limits()).assignment) == expected


# --- against brute force -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(60))
def test_formulations_agree_with_brute_force(seed: int) -> None:
    agree(random_zoned(seed))


@settings(deadline=None, max_examples=25)
@given(zoned_snapshots())
def test_formulations_agree_with_brute_force_on_what_is_drawn(snapshot: Snapshot) -> None:
    agree(snapshot)


def valid(draw: Callable[[int], Snapshot], seed: int) -> Snapshot:
    """Return what is drawn for a seed, or for the next of its kind that is a snapshot; some ask for what cannot be."""
    for other in range(seed, seed + 100_000, 10_000):
        try:
            return verified(draw(other))
        except SnapshotError:
            continue
    raise AssertionError("none of ten draws is a snapshot")


@pytest.mark.parametrize("seed", range(60))
def test_gangs_ties_and_zones_together(seed: int) -> None:
    snapshot = valid(random_zoned_tied, seed)
    instance = compile_snapshot(snapshot)
    if not instance.tied:
        agree(snapshot)
        return
    value = ("value", "tasks")
    expected = brute.optimum(snapshot, value)
    assert proven(instance, solve_reference(instance, value, Limits()), value) == expected
    ledger = Ledger(instance, targets_of(instance, value), Limits(), 0, None, lambda _: None)
    result = Tied(ledger, (), None).run()
    assert fits(instance, rows_of(instance, result.assignment))
    assert result.bounds[0].value is None or result.bounds[0].value >= float(expected[0].value) - 1e-6
    reached = scores(instance, result.assignment, value)
    assert [score.value for score in reached] <= [best.value for best in expected]
    if result.stop is Stop.OPTIMAL:
        assert reached[0].value == expected[0].value


def one_pool(instance: Instance) -> list[tuple[Any, Any]]:
    first = np.array([c.nodes[0] for c in instance.classes], dtype=np.int64)
    return [(first, np.array([c.size for c in instance.classes], dtype=np.int64))]


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("merged", [False, True])
def test_pooled_bounds_are_bounds(seed: int, merged: bool) -> None:
    snapshot = verified(random_zoned(seed))
    instance = compile_snapshot(snapshot)
    state = State(instance)
    master = Master(pooling(state, one_pool(instance) if merged else parts_of(state)), 0, Timing())
    (value, *_), (tasks,) = (brute.optimum(snapshot, (name,)) for name in ("value", "tasks"))
    for best, unit in ((value, instance.value_unit), (tasks, 1)):
        target = (best.objective, best.priority)
        bounds = list(master.bounds(target, {}, Limits()))
        whole, _ = master.whole_bound(target, {}, gap=0.0, nodes=0, time_limit=10)
        assert min(bounds) * unit >= best.value
        assert whole is None or whole * unit >= best.value


# --- patterns and searches -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_what_fits_a_node_is_a_pattern_and_is_arranged(seed: int) -> None:
    """All ways to fill a node, by patterns, by depth-first search, and by trying all spots."""
    instance = compile_snapshot(verified(random_zoned(seed)))
    wanted = demand(instance).tolist()
    listed = 0
    for k, node_class in enumerate(instance.classes):
        node = int(node_class.nodes[0])
        filler = arranger(instance, k)
        ways = filler.all_patterns(100_000)
        listed += len(ways)
        assert filler.at_least(10_000) <= len(ways)
        for counts in product(*(range(int(most) + 1) for most in wanted)):
            tasks = [s for s, times in enumerate(counts) for _ in range(times)]
            if not all(instance.admits_node[s, k] for s in tasks):
                assert counts not in ways
                continue
            layout = Layout(instance)
            found = arrange(layout, node, tasks)
            assert found == (counts in ways)
            if found:
                assert fits(instance, [(s, node, spot) for s, spot in layout.tasks[node]])
                spots = filler.arrange(counts, fragmentation=False)
                assert [s for s, _ in spots] == tasks
                assert fits(instance, [(s, node, spot) for s, spot in spots])
    assert listed <= most_patterns(instance, 10**9)


def test_alike_zones_are_interchangeable() -> None:
    # Four zones of two cards, and up to eight tasks of a card in a zone: as many states as there are ways to write the
    # number as a sum of at most four ones and twos, 1 + 1 + 2 + 2 + 3 + 2 + 2 + 1 + 1.
    node = zoned_node(*(zone(z, 2 * z, 2 * z + 1) for z in range(4)))
    instance = compile_snapshot(
        Snapshot(nodes=(node,), jobs=(model_cases.job("j", Task(gpus=1, numa="single-numa-node"), copies=8),))
    )
    assert instance.zone_sets == (1, 2, 4, 8)
    ways = arranger(instance, 0).all_patterns(100)
    assert [len(states) for states in ways.values()] == [1, 1, 2, 2, 3, 2, 2, 1, 1]


def test_maximal_patterns_of_zones() -> None:
    # Two zones of three cards. Tasks of two cards in a zone: one each. Beside them there is one single card in each, or
    # three in a zone without: (0, 6), (1, 4), (2, 2) pairs and singles.
    node = zoned_node(zone(0, 0, 1, 2), zone(1, 3, 4, 5))
    jobs = tuple(model_cases.job(f"j{g}", Task(gpus=g, numa="single-numa-node"), copies=6) for g in (1, 2))
    instance = compile_snapshot(Snapshot(nodes=(node,), jobs=jobs))
    (mine,) = enumerate_patterns(instance, maximal=True, fragmentation=False)
    pair = [shape.gpus for shape in instance.shapes].index(2)
    assert sorted((counts[pair], counts[1 - pair]) for counts in mine.counts) == [(0, 6), (1, 4), (2, 2)]


# --- pools ---------------------------------------------------------------------------------------------------------


def bound_of(view: Any, objective: str = "tasks") -> int:
    return min(Master(view, 0, Timing()).bounds((objective, None), {}, Limits()))


def test_rows_of_zones_tighten_a_bound() -> None:
    # Ten nodes of two zones with 8 cores and no cards, and two kinds of tasks in one zone, of 5 and of 6 cores. Of each
    # alone 20 fit, one a zone, and 26 cores' worth of both in 16: 32 by cores, 20 by zones.
    node = zoned_node(zone(0, cpu=8), zone(1, cpu=8), count=10)
    jobs = tuple(model_cases.job(f"j{cpu}", Task(cpu=cpu, numa="single-numa-node"), copies=20) for cpu in (5, 6))
    instance = compile_snapshot(Snapshot(nodes=(node,), jobs=jobs))
    state = State(instance)
    view = pooling(state, parts_of(state))
    assert bound_of(view) == 20
    assert view.most.tolist() == [20, 20]
    without = replace(view, pools=tuple(replace(pool, zone_rows=()) for pool in view.pools))
    assert bound_of(without) > 20


def test_blocks_of_cards_are_counted_by_zone() -> None:
    # Two zones of 3 cards: two blocks of two, not three, and no row for tasks that are not bound.
    node = zoned_node(zone(0, 0, 1, 2), zone(1, 3, 4, 5))
    jobs = (
        model_cases.job("bound", Task(gpus=2, numa="single-numa-node"), copies=3),
        model_cases.job("free", Task(gpus=2)),
    )
    instance = compile_snapshot(Snapshot(nodes=(node,), jobs=jobs))
    state = State(instance)
    (pool,) = pooling(state, parts_of(state)).pools
    assert pool.blocks == {2: 3}
    bound = [shape.numa for shape in instance.shapes].index(2)
    assert pool.zone_rows == (ZoneRow({bound: 1}, 2),)


def test_shapes_that_are_bound_on_some_nodes_of_a_pool_alone_are_in_no_row() -> None:
    # On the first node two NICs are in one zone, on the second in two of two, where a restricted task is not bound.
    nodes = (
        zoned_node(zone(0, 0, nics=2), zone(1, 1, nics=2), name="a"),
        zoned_node(zone(0, 0, nics=1), zone(1, 1, nics=1), name="b"),
    )
    task = Task(gpus=1, nics=2, numa="restricted")
    instance = compile_snapshot(Snapshot(nodes=nodes, jobs=(model_cases.job("j", task, copies=4),)))
    assert sorted(instance.bound[0].tolist()) == [0, 1]
    state = State(instance)
    (merged,) = pooling(state, one_pool(instance)).pools
    assert merged.zone_rows == ()
    assert len(parts_of(state, 0)) == 2  # so they are not merged
    assert bound_of(pooling(state, parts_of(state))) == 3


# --- which method --------------------------------------------------------------------------------------------------


def test_the_ladder_refuses_zones() -> None:
    node = zoned_node(zone(0, 0, 1), zone(1, 2, 3))
    instance = compile_snapshot(
        Snapshot(nodes=(node,), jobs=(model_cases.job("j", Task(gpus=2, numa="single-numa-node")),))
    )
    assert "NUMA zones" in (unsupported("ladder", instance) or "")
    assert models.LADDER.supports(instance) is not None
    # all of a node is in all of its zones: nothing is bound, and blocks of cards are all there is to count
    whole = compile_snapshot(Snapshot(nodes=(node,), jobs=(model_cases.job("j", Task(gpus=4, numa="restricted")),)))
    assert not whole.zoned
    assert unsupported("ladder", whole) is None


def test_choices_of_zones_count_in_the_size_of_a_model() -> None:
    # 8 cards in 8 zones, and a task of four cards in four zones of eight: 70 choices beside 8 cards and the node, which
    # is 79 variables a task, so 7 tasks are small and 8 are not.
    node = zoned_node(*(zone(z, z) for z in range(8)))
    sizes = {}
    for copies in (7, 8):
        job = model_cases.job("j", Task(gpus=4, numa="restricted"), copies=copies)
        sizes[copies] = is_small(compile_snapshot(Snapshot(nodes=(node,), jobs=(job,))))
    assert sizes == {7: True, 8: False}
