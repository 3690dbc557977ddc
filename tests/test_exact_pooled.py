"""The pooled model: every placement is a point of it, prices are right, and counts can be dealt out."""

from __future__ import annotations

import itertools
import math

import brute
import numpy as np
import pytest
from strategies import random_tiny

from placement.compile import compile as compile_snapshot
from placement.exact.layouts.gangs import named, startable
from placement.exact.layouts.layout import Layout
from placement.exact.layouts.standing import Goals, Standing
from placement.exact.milp import highs
from placement.exact.milp.arrays import program
from placement.exact.pools.master import Master
from placement.exact.pools.patterns import Pricer, fits, maximal, of_one_type
from placement.exact.small.size import most_patterns
from placement.exact.timing import Timing
from placement.gang import runs
from placement.heuristics import HEURISTICS
from placement.instance import Instance, Ints
from placement.models import pooled
from placement.models.parts import parts_of
from placement.models.patterns import TooMany, enumerate_patterns
from placement.models.pools import CardGroup, Pattern, Pooling, SlotType, pooling
from placement.snapshot import Gpu, Job, Node, Snapshot, Task, TaskGroup
from placement.solver import Limits
from placement.state import State

TASKS = ("tasks", None)


def one_pool(instance: Instance) -> list[tuple[Ints, Ints]]:
    """All nodes counted together, however unlike they are."""
    first = np.array([c.nodes[0] for c in instance.classes], dtype=np.int64)
    return [(first, np.array([c.size for c in instance.classes], dtype=np.int64))]


def all_patterns(view: Pooling) -> list[Pattern]:
    found = list(of_one_type(view))
    for k, pool in enumerate(view.pools):
        for c, group in enumerate(pool.groups):
            mine = [i for i, slot in enumerate(pool.slots) if c in slot.groups]
            for some in maximal(group, [pool.slots[i] for i in mine], [group.units] * len(mine), 10_000):
                parts = dict(zip(mine, some, strict=True))
                found.append(Pattern(k, c, tuple(parts.get(i, 0) for i in range(len(pool.slots)))))
    return found


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("merged", [False, True])
def test_the_optimum_of_the_model_bounds_the_problem(seed: int, merged: bool) -> None:
    snapshot = random_tiny(seed)
    (_, _, best), *_ = brute.optimum(snapshot, ("tasks",))
    instance = compile_snapshot(snapshot)
    if merged and instance.limits:
        return  # limits are stated for pools that lie inside or outside of each
    state = State(instance)
    view = pooling(state, one_pool(instance) if merged and instance.classes else parts_of(state))
    solved = highs.solve(program(pooled.build(view, all_patterns(view), {TASKS: 1.0})))
    assert solved.objective is not None
    assert solved.objective >= best - 1e-6
    master = Master(view, 0, Timing())
    bounds = list(master.bounds(TASKS, {}, Limits()))
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] >= solved.objective - 1e-6  # column generation ends at the relaxation over all patterns
    tight, in_time = master.whole_bound(TASKS, {}, gap=0.0, nodes=1000, time_limit=math.inf)
    assert in_time
    assert tight is not None
    assert best <= tight <= bounds[-1]


def test_prices_bound_whole_counts_where_the_relaxation_does_not() -> None:
    # nine cards and two gangs of five: the relaxation starts nine tenths of them, whole counts one gang
    gang = TaskGroup(name="g", count=5, task=Task(gpus=1))
    snapshot = Snapshot(
        nodes=(Node(name="n", count=3, gpus=(Gpu(model="A", count=3),)),),
        jobs=(Job(name="gang", count=2, groups=(gang,)),),
    )
    instance = compile_snapshot(snapshot)
    state = State(instance)
    master = Master(pooling(state, parts_of(state)), 0, Timing())
    target = ("value", 0)
    *_, relaxed = master.bounds(target, {}, Limits())
    assert relaxed * instance.value_unit == 9000
    tight, _ = master.whole_bound(target, {}, gap=0.0, nodes=100, time_limit=math.inf)
    assert tight is not None
    assert tight * instance.value_unit == 5000


# --- patterns ------------------------------------------------------------------------------------------------------


def by_hand(group: CardGroup, slots: list[SlotType]) -> list[tuple[int, ...]]:
    most = [group.units // slot.units for slot in slots]
    every = itertools.product(*(range(n + 1) for n in most))
    return [parts for parts in every if fits(group, slots, parts)]


def random_card(rng: np.random.Generator) -> tuple[CardGroup, list[SlotType]]:
    group = CardGroup(0, int(rng.integers(5, 15)), int(rng.integers(4, 12)), 1)
    sizes = {(int(rng.integers(1, 8)), int(rng.integers(0, 5))) for _ in range(4)}
    slots = [SlotType(u, m, (0,)) for u, m in sorted(sizes) if u <= group.units and m <= group.memory]
    return group, slots or [SlotType(1, 0, (0,))]


@pytest.mark.parametrize("seed", range(20))
def test_maximal_patterns_are_those_nothing_fits_beside(seed: int) -> None:
    group, slots = random_card(np.random.default_rng(seed))
    every = set(by_hand(group, slots))
    expected = {
        parts
        for parts in every
        if not any(tuple(n + (i == j) for j, n in enumerate(parts)) in every for i in range(len(slots)))
    }
    found = maximal(group, slots, [group.units] * len(slots), 10_000)
    assert len(found) == len(set(found))
    assert set(found) == expected


@pytest.mark.parametrize("seed", range(30))
def test_prices_are_those_of_the_best_pattern(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shares = rng.choice([0.1, 0.2, 0.25, 0.3, 0.45, 0.5, 0.7], size=3, replace=False).tolist()
    tasks = [
        Task(gpus=1, gpu_share=share, gpu_memory=f"{int(rng.integers(1, 30))}Gi" if seed % 2 else None)
        for share in shares
    ]
    snapshot = Snapshot(
        nodes=(Node(name="n", gpus=(Gpu(model="A", memory="40Gi"),)),),
        jobs=tuple(Job(name=f"j{i}", count=20, groups=(TaskGroup(name="g", task=t),)) for i, t in enumerate(tasks)),
    )
    state = State(compile_snapshot(snapshot))
    view = pooling(state, parts_of(state))
    prices = rng.random(3)
    ((pattern, value),) = Pricer(view).price([prices])
    (group,) = view.pools[0].groups
    best = max(float(prices @ np.array(parts)) for parts in by_hand(group, list(view.pools[0].slots)))
    assert fits(group, view.pools[0].slots, pattern.parts)
    assert float(prices @ np.array(pattern.parts)) == pytest.approx(best)
    assert value == pytest.approx(best)


def test_shares_too_fine_for_a_table_are_bounded_from_above() -> None:
    shares = (0.333331, 0.249999, 0.12345)
    snapshot = Snapshot(
        nodes=(Node(name="n", gpus=(Gpu(model="A"),)),),
        jobs=tuple(
            Job(name=f"j{i}", count=9, groups=(TaskGroup(name="g", task=Task(gpus=1, gpu_share=share)),))
            for i, share in enumerate(shares)
        ),
    )
    instance = compile_snapshot(snapshot)
    assert instance.card_units > 10_000
    state = State(instance)
    view = pooling(state, parts_of(state))
    prices = np.array([slot.units / instance.card_units for slot in view.pools[0].slots])
    ((pattern, value),) = Pricer(view).price([prices])
    (group,) = view.pools[0].groups
    best = max(float(prices @ np.array(parts)) for parts in by_hand(group, list(view.pools[0].slots)))
    assert fits(group, view.pools[0].slots, pattern.parts)
    assert value >= best - 1e-9


@pytest.mark.parametrize("seed", range(60))
def test_the_estimate_of_patterns_is_from_above(seed: int) -> None:
    instance = compile_snapshot(random_tiny(seed))
    try:
        patterns = enumerate_patterns(instance, maximal=False, fragmentation=False)
    except TooMany:
        return
    assert most_patterns(instance, 10**9) >= sum(len(mine.counts) for mine in patterns)


# --- gangs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_counts_become_jobs_that_may_run(seed: int) -> None:
    instance = compile_snapshot(random_tiny(seed))
    greedy = HEURISTICS["first-fit"].solve(instance, objectives=("tasks",), limits=Limits()).assignment
    layout = Layout.of(instance, greedy)
    started = startable(layout, [TASKS], 0)
    assert int(started.sum()) >= len(greedy)  # the same tasks start at least as many when they may change jobs
    assignment = named(layout, started, 0)
    assert len(assignment) == int(started.sum())
    placed: dict[int, list[list[int]]] = {}
    for job, leaf, task in zip(
        assignment.job.tolist(), assignment.leaf.tolist(), assignment.task.tolist(), strict=True
    ):
        leaves = instance.job_classes[instance.job_class[job]].leaves
        mine = placed.setdefault(job, [[0] * one.copies for one in leaves])
        mine[leaf][task // leaves[leaf].count] += 1
    for job, counts in placed.items():
        assert runs(instance.job_classes[instance.job_class[job]].root, counts)


def test_a_standing_counts_what_it_has_and_drops_what_nobody_wants() -> None:
    gang = TaskGroup(name="g", count=3, min_count=2, task=Task(gpus=1))
    snapshot = Snapshot(
        nodes=(Node(name="n", count=2, gpus=(Gpu(model="A", count=2),)),),
        jobs=(Job(name="gang", count=2, groups=(gang,)),),
    )
    instance = compile_snapshot(snapshot)
    goals = Goals(instance, [("value", 0), TASKS])
    layout = Layout(instance)
    layout.place(0, 0, (0,))
    assert Standing.of_layout(goals, layout.copy(), 0).ranks == (0, 0)
    assert not sum(map(len, Standing.of_layout(goals, layout.copy(), 0).layout.tasks))
    layout.place(0, 1, (1,))
    standing = Standing.of_layout(goals, layout, 0)
    assert standing.ranks == (int(2000 / instance.value_unit), 2)
    again = Standing.of_assignment(goals, named(layout, standing.started, 0))
    assert again.ranks == standing.ranks
