"""Prices that the relaxation over pools hands on to node classes: by hand, and bounds from them against brute force."""

from __future__ import annotations

import brute
import numpy as np
import pytest
from hypothesis import given, settings
from strategies import random_tiny, snapshots

from placement.compile import compile as compile_snapshot
from placement.exact.columns.master import ColumnMaster
from placement.exact.milp.arrays import program
from placement.exact.pools.master import Master
from placement.exact.pools.relaxation import PoolRelaxation
from placement.exact.pools.shadow import shadow
from placement.exact.timing import Timing
from placement.instance import Instance
from placement.models import pooled
from placement.models.parts import parts_of
from placement.models.pooled_linear import Target
from placement.models.pools import pooling
from placement.snapshot import DomainLimit, Gpu, Job, Node, Snapshot, Task, TaskGroup
from placement.solver import Limits
from placement.state import State

VALUE: Target = ("value", 0)
TASKS: Target = ("tasks", None)


def job(name: str, count: int, weight: int = 1, **task: object) -> Job:
    group = TaskGroup(name="g", task=Task(**task))  # type: ignore[arg-type]
    return Job(name=name, count=count, weight=weight, groups=(group,))


def bounded(instance: Instance, target: Target, merged: bool = False) -> tuple[Master, list[int]]:
    """Return a master over pools, all nodes in one if so, and the bounds that it proves."""
    state = State(instance)
    first = np.array([c.nodes[0] for c in instance.classes], dtype=np.int64)
    whole = [(first, np.array([c.size for c in instance.classes], dtype=np.int64))]
    master = Master(pooling(state, whole if merged else parts_of(state)), 0, Timing())
    return master, list(master.bounds(target, {}, Limits()))


def by_cards(instance: Instance, prices: np.ndarray) -> dict[int, float]:
    return {shape.gpus: float(price) for shape, price in zip(instance.shapes, prices, strict=True)}


SCARCE = Snapshot(
    nodes=(Node(name="n", gpus=(Gpu(model="A", count=4),)),),
    jobs=(job("one", 6, gpus=1), job("two", 1, 3, gpus=2), job("eight", 1, gpus=8)),
)
"""Four cards. Six tasks of one card are worth 1 each, one of two cards is worth 6 and goes first, and two of the six
have the other two cards: with some of them waiting a card costs 1. No node has eight cards."""


def test_the_lowest_of_the_prices_that_say_as_much_by_hand() -> None:
    instance = compile_snapshot(SCARCE)
    master, bounds = bounded(instance, VALUE)
    assert bounds[-1] == 8  # 6 + 2
    found = master.shadow(VALUE)
    assert found is not None
    # The task of two cards costs 2. All of those there are have room, so up to the 6 it is worth the node would gain
    # what the task loses. What has no room costs all that it is worth.
    assert by_cards(instance, found.shape) == pytest.approx({1: 1.0, 2: 2.0, 8: 8.0})


@pytest.mark.parametrize("price", [2.0, 3.5, 6.0])
def test_it_does_not_depend_on_the_price_that_the_solver_names(price: float) -> None:
    instance = compile_snapshot(SCARCE)
    master, _ = bounded(instance, VALUE)
    arrays = program(pooled.build(master.view, master.patterns, {VALUE: 1.0}))
    relaxation = PoolRelaxation(master.view, arrays, 0, Timing(), master.missing)
    assert relaxation.priced(60.0) is not None
    two = next(s for s, shape in enumerate(instance.shapes) if shape.gpus == 2)
    duals = relaxation.duals.copy()
    duals[relaxation.row_number[f"room_for_started_tasks[{two}]"]] = price
    # what that row gains or loses is made up for by the columns it links: the bound is the same
    assert relaxation.bound(duals) == pytest.approx(8.0)
    found = shadow(master.view, arrays, relaxation.row_number, duals)
    assert by_cards(instance, found.shape) == pytest.approx({1: 1.0, 2: 2.0, 8: 8.0})


def test_nodes_see_what_pools_do_not_by_hand() -> None:
    # Four cards and one core, one card and four cores: five cards and five cores in all hold five of six tasks of one
    # each, two of every kind. By node it is one task on each, two in all. With a sixth waiting a task costs 1.
    snapshot = Snapshot(
        nodes=(
            Node(name="p", cpu=1, memory="9Gi", gpus=(Gpu(model="A", count=4),)),
            Node(name="q", cpu=4, memory="9Gi", gpus=(Gpu(model="A", count=1),)),
        ),
        jobs=tuple(job(f"j{m}", 2, gpus=1, cpu=1, memory=f"{m}Gi") for m in (1, 2, 3)),
    )
    instance = compile_snapshot(snapshot)
    master, bounds = bounded(instance, TASKS, merged=True)
    assert bounds[-1] == 5
    near = master.shadow(TASKS)
    assert near is not None
    assert near.shape.tolist() == pytest.approx([1.0, 1.0, 1.0])
    rounds = ColumnMaster(instance, 0, Timing()).bounds(TASKS, {}, 0.0, Limits(), near)
    assert next(rounds) == 2


def test_there_are_none_for_another_target_or_with_limits() -> None:
    instance = compile_snapshot(SCARCE)
    master, _ = bounded(instance, VALUE)
    assert master.shadow(TASKS) is None
    limit = DomainLimit(level="cluster", domain="", gpus=3)
    limited = compile_snapshot(Snapshot(nodes=SCARCE.nodes, jobs=SCARCE.jobs, limits=(limit,)))
    master, _ = bounded(limited, VALUE)
    assert master.shadow(VALUE) is None


def bound_and_compare(snapshot: Snapshot) -> None:
    """No bound may be below the optimum, and the last one is where the rounds end without prices to start from."""
    (_, _, best), *_ = brute.optimum(snapshot, ("tasks",))
    instance = compile_snapshot(snapshot)
    if not instance.classes or not instance.shapes:
        return
    master, bounds = bounded(instance, TASKS)
    near = master.shadow(TASKS) if bounds else None
    if near is None:
        return
    started = list(ColumnMaster(instance, 0, Timing()).bounds(TASKS, {}, 0.0, Limits(), near))
    assert started[0] is not None
    assert min(bound for bound in started if bound is not None) >= best
    afresh = list(ColumnMaster(instance, 0, Timing()).bounds(TASKS, {}, 0.0, Limits()))
    assert started[-1] == afresh[-1]


@pytest.mark.parametrize("seed", range(30))
def test_bounds_from_them_against_brute_force(seed: int) -> None:
    bound_and_compare(random_tiny(seed))


@settings(deadline=None, max_examples=25)
@given(snapshots(max_tasks=5))
def test_bounds_from_them_on_drawn_snapshots(snapshot: Snapshot) -> None:
    bound_and_compare(snapshot)
