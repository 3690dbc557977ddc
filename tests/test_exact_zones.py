"""Zones in the steps for large instances: nothing is over-full, prices against exhaustive search, exact packings."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import brute
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from zoned_clusters import zoned_cluster
from zoned_strategies import random_zoned

from placement.compile import compile as compile_snapshot
from placement.evaluate import demand, scores
from placement.exact import run
from placement.exact.columns.pricing import Pricer
from placement.exact.layouts.layout import Layout
from placement.exact.layouts.standing import Goals, Standing
from placement.exact.milp.arrays import Program
from placement.exact.neighbourhoods.neighbourhood import Neighbourhood
from placement.exact.objectives.targets import targets_of
from placement.exact.packing.pack import pack
from placement.exact.pools.guided import Guided
from placement.instance import Assignment, Instance
from placement.snapshot import Gpu, Job, Node, NumaZone, Running, RunningTask, Snapshot, Task, TaskGroup
from placement.solver import Limits, Stop
from placement.state import State

OBJECTIVES = ("value", "tasks")


def over_full(instance: Instance, assignment: Assignment) -> list[str]:
    """Return what an assignment takes too much of."""
    state = State(instance)
    state.apply(assignment)
    return [name for name in ("free", "units", "memory", "slack", "limits") if (getattr(state, name) < 0).any()]


def ways(state: State, shape: int, node: int) -> Iterator[tuple[int, ...]]:
    """Yield every way to place a task on a node."""
    instance = state.instance
    task, k = instance.shapes[shape], int(instance.node_class[node])
    usable = np.flatnonzero(state.usable(shape, np.array([node]))[0]).tolist()
    size, zones = int(instance.bound[shape, k]), instance.classes[k].zones
    for cards in itertools.combinations(usable, task.gpus):
        if not size or zones is None:
            yield cards
            continue
        for some in itertools.combinations(range(zones.count), size):
            if all(zones.card[card] in some for card in cards):
                yield (*cards, *(instance.widest + zone for zone in some))


def holds(state: State, node: int, tasks: list[int]) -> bool:
    """Return whether a node holds some tasks, by trying every way."""
    if (state.free[node] < 0).any() or (state.slack[node] < 0).any():
        return False
    if not tasks:
        return True
    for spot in ways(state, tasks[0], node):
        state.place(tasks[0], node, spot)
        found = holds(state, node, tasks[1:])
        state.remove(tasks[0], node, spot)
        if found:
            return True
    return False


def contents(instance: Instance, k: int, most: int) -> list[tuple[int, ...]]:
    """Return the counts of every set of at most some tasks that one node of a class can hold, by trying all."""
    wanted, state = demand(instance), State(instance)
    shapes = [s for s in range(len(instance.shapes)) if wanted[s] and instance.admits_node[s, k]]
    found = []
    for size in range(most + 1):
        for tasks in itertools.combinations_with_replacement(shapes, size):
            counts = tuple(tasks.count(s) for s in range(len(instance.shapes)))
            if (np.array(counts) <= wanted).all() and holds(state, int(instance.classes[k].nodes[0]), list(tasks)):
                found.append(counts)
    return found


SEEDS = (20, 40, 51, 53, 64, 107, 117, 126, 135, 160, 202, 231, 232, 237, 243, 278, 365, 393, 443, 493, 504)
"""Clusters of at most six tasks, at least three of which are bound to one zone somewhere; in 135 some to several."""


@pytest.mark.parametrize("seed", SEEDS)
def test_prices_of_zoned_nodes(seed: int) -> None:
    instance = compile_snapshot(zoned_cluster(seed, nodes=2, jobs=4))
    pricer = Pricer(instance)
    classes, shapes = len(instance.classes), len(instance.shapes)
    none = np.zeros((classes, shapes), dtype=np.int64)
    prices = np.random.default_rng(seed).integers(0, 20, size=(classes, shapes)).astype(np.float64)
    every = [contents(instance, k, int(demand(instance).sum())) for k in range(classes)]
    best = [max(float(np.array(some) @ prices[k]) for some in every[k]) for k in range(classes)]
    for width in (1, 3, 100_000):
        priced = pricer.price(prices, np.zeros(classes), none, width=width, tolerance=0.0)
        assert (priced.bound >= np.array(best) - 1e-9).all()
    for k in range(classes):
        if not (instance.bound[:, k] > 1).any():
            assert tuple(priced.counts[k].tolist()) in every[k]
            assert priced.value[k] == pytest.approx(best[k])


@pytest.mark.parametrize("method", ["pooled", "columns"])
@pytest.mark.parametrize("seed", range(30))
def test_bounds_and_values_against_brute_force(method: str, seed: int) -> None:
    snapshot = random_zoned(seed)
    expected = brute.optimum(snapshot, OBJECTIVES)
    instance = compile_snapshot(snapshot)
    result = run(instance, objectives=OBJECTIVES, limits=Limits(nodes=20), method=method)
    assert not over_full(instance, result.assignment)
    values = [score.value for score in scores(instance, result.assignment, OBJECTIVES)]
    assert values <= [value for _, _, value in expected]
    for number, bound in enumerate(result.bounds):
        reached = [float(value) for _, _, value in expected[:number]]
        if bound.value is not None and list(bound.held) == reached:
            assert bound.value >= float(expected[number].value) - 1e-6
    if result.stop is Stop.OPTIMAL:
        assert values == [value for _, _, value in expected]


@pytest.mark.parametrize("method", ["pooled", "columns"])
@pytest.mark.parametrize("seed", range(8))
def test_nothing_is_over_full(method: str, seed: int) -> None:
    snapshot = zoned_cluster(seed, nodes=6, jobs=16)
    instance = compile_snapshot(snapshot)
    result = run(instance, objectives=OBJECTIVES, limits=Limits(nodes=3), method=method)
    assert not over_full(instance, result.assignment)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 100_000))
def test_packing_in_steps_leaves_nothing_over_full(seed: int) -> None:
    instance = compile_snapshot(zoned_cluster(seed, nodes=8, jobs=30))
    goals = Goals(instance, targets_of(instance, OBJECTIVES))
    ends = np.unique(instance.admits_node[:, instance.node_class].T, axis=0, return_inverse=True)[1].reshape(-1)
    pools = [np.flatnonzero(ends == end) for end in range(int(ends.max()) + 1)]
    wanted = demand(instance)
    size = np.array([max(1, s.gpus * s.units) for s in instance.shapes], dtype=np.float64)
    allotted = np.array([wanted * len(pool) // instance.nodes for pool in pools])
    seen: list[Standing] = []

    def propose(standing: Standing) -> bool:
        state = standing.layout.state
        assert (state.slack >= 0).all()
        assert (state.free >= 0).all()
        seen.append(standing)
        return True

    Guided(goals, pools, allotted, size, Limits(), seed, steps=6).run(propose)
    layout = seen[-1].layout
    rebuilt = State(instance)
    for node, spots in enumerate(layout.tasks):
        for shape, positions in spots:
            assert sum(p >= instance.widest for p in positions) == instance.bound[shape, instance.node_class[node]]
            rebuilt.place(shape, node, positions)
    for name in ("free", "units", "memory", "slack", "limits"):
        assert (getattr(rebuilt, name) == getattr(layout.state, name)).all(), name


def test_a_task_goes_to_the_zone_that_suits_it() -> None:
    # Zones of 2 cards and 10 cores, in which 4 and 8 cores are free, and a card each: 1 card with 4 cores takes
    # all of what the first has, and half of what the second has for its card. It suits the first; one of 8 cores fits
    # the second alone.
    zones = tuple(NumaZone(id=i, cpu=10, gpus=(2 * i, 2 * i + 1)) for i in range(2))
    node = Node(name="n", cpu=20, gpus=(Gpu(model="A", count=4),), zones=zones)
    running = tuple(
        single(f"r{zone}", cpu, Running(tasks=(RunningTask(group="g", index=0, node="n", gpus=(2 * zone,)),)))
        for zone, cpu in enumerate((6, 2))
    )
    for asked, expected in ((4, 4), (8, 8)):
        instance = compile_snapshot(Snapshot(nodes=(node,), jobs=(*running, single("job", asked))))
        layout = Layout(instance)
        supply = demand(instance)
        assert pack(layout, np.arange(1), supply, np.ones(1), Limits()) == 1
        ((_, (card, zone)),) = layout.tasks[0]
        assert layout.state.zone[0, card] == zone - instance.widest
        cpu = instance.resources.index("cpu")
        cores = instance.classes[0].zones
        assert cores is not None
        slack = cores.slack[instance.zone_sets.index(1 << zone - instance.widest)][cpu]
        assert slack * instance.resource_units[cpu] == expected


def single(name: str, cpu: int, running: Running | None = None) -> Job:
    task = Task(gpus=1, cpu=cpu, numa="single-numa-node")
    return Job(name=name, groups=(TaskGroup(name="g", task=task),), running=running)


def test_what_lies_in_zones_is_a_point_of_the_neighbourhood() -> None:
    # Two nodes of two zones of 2 cards and 10 cores; 7 and 3 cores lie in a zone, 6 and 4 in the other of that node.
    zones = tuple(NumaZone(id=i, cpu=10, gpus=(2 * i, 2 * i + 1)) for i in range(2))
    nodes = tuple(Node(name=f"n{i}", cpu=20, gpus=(Gpu(model="A", count=4),), zones=zones) for i in range(2))
    cores = (7, 3, 6, 4)
    instance = compile_snapshot(Snapshot(nodes=nodes, jobs=tuple(single(f"j{cpu}", cpu) for cpu in cores)))
    layout = Layout(instance)
    shape_of = {s.demand[instance.resources.index("cpu")]: number for number, s in enumerate(instance.shapes)}
    for card, (cpu, zone) in enumerate(zip(cores, (0, 0, 1, 1), strict=True)):
        layout.place(shape_of[cpu], 0, (card, instance.widest + zone))
    goals = Goals(instance, targets_of(instance, OBJECTIVES))
    standing = Standing.of_layout(goals, layout, 0)
    model = Neighbourhood(standing, np.arange(2), demand(instance), 0, careful=False)
    # each of 4 tasks on each of 2 nodes in each of 2 zones
    assert len(model.zones.columns) == 16
    there = model.zones.present(model.taken)
    held = {column for column, times in zip(model.zones.columns, there, strict=True) if times}
    of = {(int(model.view.pool[pair]), int(model.view.shape[pair]), zone) for pair, zone in held}
    assert of == {(0, shape_of[cpu], zone) for cpu, zone in zip(cores, (0, 0, 1, 1), strict=True)}
    # of the pairs alone: all four on the first node
    pairs = np.array([float(pool == 0) for pool in model.view.pool.tolist()])
    own = len(pairs)
    empty = Program(
        sense=1,
        cost=np.zeros(own),
        lower=np.zeros(own),
        upper=np.ones(own),
        integer=np.ones(own, dtype=np.bool_),
        start=np.zeros(1, dtype=np.int32),
        index=np.zeros(0, dtype=np.int32),
        value=np.zeros(0),
        row_lower=np.zeros(0),
        row_upper=np.zeros(0),
    )
    program = model.zones.added(empty)
    assert program.violation(np.concatenate([pairs, there])) is None
    # 7 + 6 cores do not fit into the 10 of a zone: exchanging 3 and 6 breaks a row
    wrong = there.copy()
    for number, (pair, zone) in enumerate(model.zones.columns):
        if model.view.pool[pair] == 0 and model.view.shape[pair] in (shape_of[3], shape_of[6]):
            wrong[number] = float(zone == (1 if model.view.shape[pair] == shape_of[3] else 0))
    assert program.violation(np.concatenate([pairs, wrong])) is not None
