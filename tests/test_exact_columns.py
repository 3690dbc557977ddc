"""Column generation: prices against exhaustive search, bounds against brute force, plans never better than optimal."""

from __future__ import annotations

import itertools
import math
import time

import brute
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import random_tiny, snapshots

from placement.compile import compile as compile_snapshot
from placement.evaluate import demand
from placement.exact.columns.master import ColumnMaster
from placement.exact.columns.method import Columns, contents_laid_out, suits
from placement.exact.columns.multipliers import multipliers
from placement.exact.columns.pricing import Pricer
from placement.exact.layouts.layout import Layout
from placement.exact.layouts.standing import Standing
from placement.exact.ledger import Ledger
from placement.exact.objectives.targets import targets_of
from placement.exact.packing.arrange import arrange
from placement.exact.timing import Timing
from placement.heuristics import HEURISTICS
from placement.instance import Assignment, Instance
from placement.snapshot import DomainLimit, Gpu, Job, Node, Snapshot, Task, TaskGroup
from placement.solver import Limits, Progress, Result, Stop

OBJECTIVES = ("value", "tasks")


def job(name: str, count: int, **task: object) -> Job:
    return Job(name=name, count=count, groups=(TaskGroup(name="g", task=Task(**task)),))  # type: ignore[arg-type]


def contents(instance: Instance, k: int, most: int = 4) -> list[tuple[int, ...]]:
    """Return the counts of every set of at most some tasks that one node of a class can hold, by trying all."""
    wanted = demand(instance)
    node = int(instance.classes[k].nodes[0])
    shapes = [s for s in range(len(instance.shapes)) if wanted[s] and instance.admits_node[s, k]]
    found = []
    for size in range(most + 1):
        for tasks in itertools.combinations_with_replacement(shapes, size):
            counts = tuple(tasks.count(s) for s in range(len(instance.shapes)))
            if (np.array(counts) <= wanted).all() and arrange(Layout(instance), node, list(tasks), 10**6):
                found.append(counts)
    return found


def price_and_compare(instance: Instance, prices: np.ndarray, most: int = 4) -> None:
    """Price all classes at several widths; bounds must be bounds, contents must fit, and wide means exact."""
    pricer = Pricer(instance)
    classes, shapes = len(instance.classes), len(instance.shapes)
    none = np.zeros((classes, shapes), dtype=np.int64)
    every = [contents(instance, k, most) for k in range(classes)]
    relaxed = pricer.relaxed(prices)
    for width in (1, 3, 1000):
        found = pricer.price(prices, np.zeros(classes), none, width=width, tolerance=0.0)
        for k in range(classes):
            best = max(float(np.array(c) @ prices[k].clip(0)) for c in every[k])
            counts = tuple(found.counts[k].tolist())
            assert counts in every[k]
            assert float(np.array(counts) @ prices[k].clip(0)) == pytest.approx(found.value[k])
            assert found.bound[k] >= best
            assert relaxed[k] >= best
            assert found.bound[k] >= found.value[k]
            if width == 1000:
                assert found.value[k] == pytest.approx(best)
                if not pricer.nodes.inexact[k]:
                    assert found.bound[k] == pytest.approx(best)


@pytest.mark.parametrize("seed", range(60))
def test_prices_are_those_of_exhaustive_search(seed: int) -> None:
    instance = compile_snapshot(random_tiny(seed, max_tasks=4))
    if not instance.classes or not instance.shapes:
        return
    rng = np.random.default_rng(seed)
    price_and_compare(instance, rng.uniform(-0.2, 1.0, size=(len(instance.classes), len(instance.shapes))))


@settings(deadline=None, max_examples=40)
@given(snapshots(max_tasks=4), st.integers(0, 99))
def test_prices_hold_on_drawn_snapshots(snapshot: Snapshot, seed: int) -> None:
    instance = compile_snapshot(snapshot)
    if instance.classes and instance.shapes:
        rng = np.random.default_rng(seed)
        price_and_compare(instance, rng.uniform(-0.2, 1.0, size=(len(instance.classes), len(instance.shapes))))


def random_node(seed: int) -> Instance:
    """A node or two with cards half taken or of two models, and tasks that take shares, whole cards, or none."""
    rng = np.random.default_rng(seed)
    cards = [Gpu(model="A", count=int(rng.integers(1, 4)), memory="40Gi")]
    if rng.random() < 0.5:
        cards.append(Gpu(model="B", count=int(rng.integers(1, 3)), memory=f"{int(rng.integers(10, 80))}Gi"))
    nodes = [
        Node(name=f"n{i}", cpu=int(rng.integers(2, 12)), memory=f"{int(rng.integers(4, 40))}Gi", gpus=tuple(cards))
        for i in range(2)
    ]
    jobs = []
    for number in range(4):
        gpus = int(rng.integers(0, 3))
        share = float(rng.choice([0.25, 0.4, 0.5, 0.6, 1.0])) if gpus else 1.0
        memory = f"{int(rng.integers(1, 30))}Gi" if gpus and rng.random() < 0.4 else None
        jobs.append(
            job(
                f"j{number}",
                2,
                gpus=gpus,
                gpu_share=None if share == 1 else share,
                gpu_memory=memory,
                cpu=int(rng.integers(0, 5)),
                memory=f"{int(rng.integers(0, 12))}Gi",
                gpu_models=("A",) if gpus and rng.random() < 0.3 else (),
            )
        )
    return compile_snapshot(Snapshot(nodes=tuple(nodes), jobs=tuple(jobs)))


@pytest.mark.parametrize("seed", range(60))
def test_prices_with_cards_of_two_models_and_shares_of_several(seed: int) -> None:
    instance = random_node(seed)
    rng = np.random.default_rng(seed)
    price_and_compare(instance, rng.uniform(0.1, 1.0, size=(len(instance.classes), len(instance.shapes))), most=8)


def test_classes_of_two_models_are_priced_apart() -> None:
    # 24 nodes of each of two models, no two with as many cores, and no task that may run on both: two searches of
    # two tasks each take no more steps than one search of four.
    nodes = tuple(
        Node(name=f"{model}{cpu}", cpu=cpu, gpus=(Gpu(model=model, count=2),)) for model in "AB" for cpu in range(1, 25)
    )
    jobs = tuple(job(f"{m}{g}", 2, gpus=g, cpu=4 * g - 1, gpu_models=(m,)) for m in "AB" for g in (1, 2))
    instance = compile_snapshot(Snapshot(nodes=nodes, jobs=jobs))
    batches = [batch.classes for batch in Pricer(instance).batches]
    assert [len(classes) for classes in batches] == [24, 24]
    models = [{instance.snapshot.nodes[instance.classes[k].nodes[0]].gpus[0].model for k in b} for b in batches]
    assert sorted(model for some in models for model in some) == ["A", "B"]
    rng = np.random.default_rng(0)
    price_and_compare(instance, rng.uniform(0.1, 1.0, size=(48, 4)))


def test_two_times_four_tenths_are_not_eight_tenths() -> None:
    # Two cards, each 0.6 taken by what came first: 0.4 + 0.4 is free. A task of 0.8 fits on no card, so the best
    # content is one task of 0.4 on each card: 2 * 1 = 2, not the 5 that the sum of the free shares would allow.
    snapshot = Snapshot(
        nodes=(Node(name="n", cpu=8, gpus=(Gpu(model="A", count=2),)),),
        jobs=(
            job("big", 2, gpus=1, gpu_share=0.6),
            job("wide", 1, gpus=1, gpu_share=0.8),
            job("s", 3, gpus=1, gpu_share=0.4),
        ),
    )
    instance = compile_snapshot(snapshot)
    by_units = {s.units * 10 // instance.card_units: n for n, s in enumerate(instance.shapes)}
    prices = np.zeros((1, 3))
    prices[0, [by_units[6], by_units[8], by_units[4]]] = 10.0, 5.0, 1.0
    found = Pricer(instance).price(prices, np.zeros(1), np.zeros((1, 3), dtype=np.int64), width=100, tolerance=0.0)
    # 0.6 and 0.4 on each card: 2 * 10 + 2 * 1
    assert found.value[0] == 22.0
    assert found.bound[0] == pytest.approx(22.0)


def test_a_pricing_without_time_still_bounds() -> None:
    instance = random_node(3)
    shape = (len(instance.classes), len(instance.shapes))
    prices = np.random.default_rng(0).uniform(0.1, 1.0, size=shape)
    limits = Limits(deadline=time.monotonic() - 1)
    none = np.zeros(shape, dtype=np.int64)
    found = Pricer(instance).price(prices, np.zeros(shape[0]), none, width=100, tolerance=0.0, limits=limits)
    for k in range(shape[0]):
        assert found.bound[k] >= max(float(np.array(c) @ prices[k]) for c in contents(instance, k, 8))


def test_prices_of_room_are_the_duals_of_a_knapsack() -> None:
    # max 3a + 4b with a + 2b <= 4 and 3a + b <= 6: a = 8/5, b = 6/5, and by duality 3 = y + 3z, 4 = 2y + z: y = 9/5,
    # z = 2/5
    found = multipliers(np.array([[3.0, 4.0]]), np.array([[1.0, 3.0], [2.0, 1.0]]), np.array([[4.0, 6.0]]))
    assert found[0] == pytest.approx([9 / 5, 2 / 5])


# --- the master ----------------------------------------------------------------------------------------------------


def run(snapshot: Snapshot, start: Assignment | None = None) -> tuple[Columns, Result, list[Progress]]:
    instance = compile_snapshot(snapshot)
    told: list[Progress] = []
    columns = Columns(Ledger(instance, targets_of(instance, OBJECTIVES), Limits(), 0, start, told.append))
    return columns, columns.run(), told


def agree(snapshot: Snapshot) -> None:
    """Every bound must be one, and the values at most the optimum; with bounds met, the optimum itself."""
    expected = brute.optimum(snapshot, OBJECTIVES)
    columns, result, told = run(snapshot)
    unit = columns.ledger.instance.value_unit
    values = [
        r * (unit if t[0] == "value" else 1)
        for r, t in zip(columns.ledger.standing.ranks, columns.ledger.targets, strict=True)
    ]
    assert values <= [value for _, _, value in expected]
    for bounds in (*(progress.bounds for progress in told), result.bounds):
        for number, bound in enumerate(bounds):
            reached = [float(value) for _, _, value in expected[:number]]
            # a bound holds for plans that keep what it took as given, and an optimal plan keeps at least that
            if bound.value is not None and reached >= list(bound.held) and list(bound.held) == reached:
                assert bound.value >= float(expected[number].value) - 1e-6
            elif bound.value is not None and not number:
                assert bound.value >= float(expected[0].value) - 1e-6
    if result.stop is Stop.OPTIMAL:
        assert values == [value for _, _, value in expected]


@pytest.mark.parametrize("seed", range(50))
def test_bounds_and_values_against_brute_force(seed: int) -> None:
    agree(random_tiny(seed))


@settings(deadline=None, max_examples=40)
@given(snapshots(max_tasks=6))
def test_bounds_and_values_on_drawn_snapshots(snapshot: Snapshot) -> None:
    agree(snapshot)


def test_two_unlike_nodes_by_hand() -> None:
    # Node p: 4 cards, 8 cores. Node q: 2 cards, 12 cores. Tasks: x takes 2 cards and 2 cores (2000 each, three of
    # them), y takes 1 card and 6 cores (1000 each, three of them).
    # p holds at most 2x (4 cards) or x + y (3 cards, 8 cores); q holds x or 2y (2 cards, 12 cores) or y.
    # Best: p with 2x = 4000 and q with x or 2y = 2000, 6000 in all; with 2y there are 4 tasks, with x only 3.
    snapshot = Snapshot(
        nodes=(
            Node(name="p", cpu=8, gpus=(Gpu(model="A", count=4),)),
            Node(name="q", cpu=12, gpus=(Gpu(model="A", count=2),)),
        ),
        jobs=(job("x", 3, gpus=2, cpu=2), job("y", 3, gpus=1, cpu=6)),
    )
    columns, result, _ = run(snapshot)
    assert columns.ledger.standing.ranks[0] * columns.ledger.instance.value_unit == 6000
    assert columns.ledger.standing.ranks[1] == 4
    assert result.stop is Stop.OPTIMAL
    assert [bound.value for bound in result.bounds] == [6000.0, 4.0]


def test_a_gang_runs_whole_or_not_and_limits_hold() -> None:
    # Three nodes of 2 cards with 2, 3 and 4 cores, tasks of one card and one core. A gang of 5 fits (6 cards), but
    # not under the limit of 4 cards on the whole cluster; below it four of the single tasks run: 4000 by 4 tasks.
    gang = Job(name="gang", groups=(TaskGroup(name="g", count=5, task=Task(gpus=1, cpu=1)),), weight=10)
    nodes = tuple(Node(name=f"n{i}", cpu=i + 2, gpus=(Gpu(model="A", count=2),)) for i in range(3))
    jobs = (gang, job("s", 6, gpus=1, cpu=1))
    free, _, _ = run(Snapshot(nodes=nodes, jobs=jobs))
    assert free.ledger.standing.ranks[0] * free.ledger.instance.value_unit == 51_000
    limited = Snapshot(nodes=nodes, jobs=jobs, limits=(DomainLimit(level="cluster", domain="", gpus=4),))
    columns, result, _ = run(limited)
    assert columns.ledger.standing.ranks[0] * columns.ledger.instance.value_unit == 4000
    assert columns.ledger.standing.ranks[1] == 4
    first = result.bounds[0].value
    assert first is not None
    assert first >= 4000


def test_priorities_come_in_order() -> None:
    # Nodes of 3 and of 1 card. First the two jobs of priority 1 with 1 card and 4 cores: only node p has 8 cores, so
    # both go there, 2000. What is left, one card on p without cores and one on q, holds none of 2 cards and 0 cores,
    # but two of 1 card: 2000, and 4 tasks.
    snapshot = Snapshot(
        nodes=(
            Node(name="p", cpu=8, gpus=(Gpu(model="A", count=3),)),
            Node(name="q", cpu=1, gpus=(Gpu(model="A", count=1),)),
        ),
        jobs=(
            Job(name="first", count=2, priority=1, groups=(TaskGroup(name="g", task=Task(gpus=1, cpu=4)),)),
            job("wide", 1, gpus=2),
            job("small", 3, gpus=1),
        ),
    )
    columns, result, _ = run(snapshot)
    values = [rank * columns.ledger.instance.value_unit for rank in columns.ledger.standing.ranks[:2]]
    assert [*map(int, values), columns.ledger.standing.ranks[2]] == [2000, 2000, 4]
    assert result.stop is Stop.OPTIMAL


def test_the_answer_is_never_worse_than_the_start() -> None:
    snapshot = random_tiny(11)
    instance = compile_snapshot(snapshot)
    start = HEURISTICS["first-fit"].solve(instance, objectives=OBJECTIVES, limits=Limits()).assignment
    columns, result, _ = run(snapshot, start)
    before = Standing.of_assignment(columns.ledger.goals, start).ranks
    assert columns.ledger.standing.ranks >= before
    assert Standing.of_assignment(columns.ledger.goals, result.assignment).ranks == columns.ledger.standing.ranks
    limits = Limits(deadline=time.monotonic())
    late = Columns(Ledger(instance, targets_of(instance, OBJECTIVES), limits, 0, start, print))
    assert len(late.run().assignment) == len(start)


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_few_rounds_give_a_legal_plan_and_a_bound(rounds: int) -> None:
    instance = compile_snapshot(unlike(30, rounds))
    start = HEURISTICS["random"].solve(instance, objectives=("value",), limits=Limits()).assignment
    ledger = Ledger(instance, targets_of(instance, ("value",)), Limits(), 0, start, lambda _: None)
    before = ledger.standing.ranks[0]
    Columns(ledger).pursue(0, rounds)
    assert ledger.standing.ranks[0] >= before
    Columns(best := Ledger(instance, targets_of(instance, ("value",)), Limits(), 0, start, lambda _: None)).run()
    proven = ledger.bound(0)
    assert proven is not None
    assert proven >= best.standing.ranks[0]
    state = Layout.of(instance, ledger.assignment()).state
    assert (state.free >= 0).all()


def test_columns_of_a_layout_make_its_value_available() -> None:
    instance = compile_snapshot(unlike(20, 0))
    start = HEURISTICS["first-fit"].solve(instance, objectives=OBJECTIVES, limits=Limits()).assignment
    master = ColumnMaster(instance, 0, Timing())
    layout = Layout.of(instance, start)
    master.learn(layout)
    found = master.contents(("tasks", None), {}, gap=0.0, nodes=None, time_limit=math.inf)
    assert found is not None
    assert int(found.started.sum()) >= len(start)
    assert (contents_laid_out(instance, found).state.free >= 0).all()


# --- many unlike nodes ---------------------------------------------------------------------------------------------


def unlike(nodes: int, seed: int) -> Snapshot:
    """Nodes with cores and memory of their own, and tasks in three proportions."""
    rng = np.random.default_rng(seed)
    listed = tuple(
        Node(
            name=f"n{i}",
            cpu=int(rng.integers(8, 60)),
            memory=f"{int(rng.integers(50, 400))}Gi",
            gpus=(Gpu(model="A", count=int(rng.integers(2, 9))),),
        )
        for i in range(nodes)
    )
    jobs = tuple(
        job(f"j{i}", nodes, gpus=g, cpu=c, memory=f"{m}Gi", gpu_share=s)
        for i, (g, c, m, s) in enumerate(
            [(1, 4, 60, None), (2, 20, 40, None), (4, 12, 120, None), (1, 2, 10, 0.4), (1, 9, 20, 0.6)]
        )
    )
    return Snapshot(nodes=listed, jobs=jobs)


def test_many_unlike_nodes_to_a_small_gap() -> None:
    instance = compile_snapshot(unlike(60, 1))
    assert suits(instance)
    columns = Columns(Ledger(instance, targets_of(instance, ("value",)), Limits(gap=1e-3), 0, None, lambda _: None))
    result = columns.run()
    bound, value = result.bounds[0].value, float(columns.ledger.standing.ranks[0] * instance.value_unit)
    assert bound is not None
    assert value <= bound <= 1.002 * value


def test_it_does_not_suit_few_classes() -> None:
    instance = compile_snapshot(Snapshot(nodes=(Node(name="n", count=100, gpus=(Gpu(model="A"),)),), jobs=()))
    assert not suits(instance)
