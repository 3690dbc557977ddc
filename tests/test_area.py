"""The area bound is a bound, and is tight where it should be."""

from __future__ import annotations

import brute
import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.area import area_bounds
from placement.area.items import Free, items_of
from placement.area.rows import rows_of
from placement.compile import compile as compile_snapshot
from placement.heuristics import HEURISTICS
from placement.instance import Instance
from placement.snapshot import DomainLimit, Gpu, Job, Node, Snapshot, Task, TaskGroup
from placement.solver import Limits


def bounds(snapshot: Snapshot) -> dict[tuple[str, int | None], float]:
    found = area_bounds(compile_snapshot(snapshot))
    return {(b.objective, b.priority): round(b.value or 0.0, 6) for b in found}


def job(name: str, task: Task, count: int = 1, priority: int = 0, weight: int = 1) -> Job:
    groups = (TaskGroup(name="w", task=task),)
    return Job(name=name, count=count, priority=priority, weight=weight, groups=groups)


def test_cards_bind() -> None:
    # 4 cards. Weight 3: two tasks of 1 card (6000). Weight 1: tasks of 3 cards; 2/3 of one fits beside (2000). Plans
    # are worth whole multiples of 3000, the worth of either task, so 8000 is rounded down.
    snapshot = Snapshot(
        nodes=(Node(name="n", gpus=(Gpu(model="A", count=4),)),),
        jobs=(job("heavy", Task(gpus=1), 2, weight=3), job("light", Task(gpus=3), 2)),
    )
    # tasks: the two small ones, then 2/3 of a large one
    assert bounds(snapshot) == {("value", 0): 6000.0, ("tasks", None): 2.0}


def test_cpu_binds_and_priorities_have_bounds_of_their_own() -> None:
    # 6 cores: three tasks of 2 cores, whatever the 4 cards allow
    snapshot = Snapshot(
        nodes=(Node(name="n", cpu=6, gpus=(Gpu(model="A", count=4),)),),
        jobs=(job("a", Task(gpus=1, cpu=2), 4, priority=1), job("b", Task(gpus=1, cpu=2), 4)),
    )
    assert bounds(snapshot) == {("value", 1): 3000.0, ("value", 0): 3000.0, ("tasks", None): 3.0}


def test_refused_everywhere_counts_nowhere() -> None:
    snapshot = Snapshot(
        nodes=(Node(name="n", gpus=(Gpu(model="A", count=4),)),),
        jobs=(job("a", Task(gpus=1, node_selector={"x": "y"})),),
    )
    assert bounds(snapshot) == {("value", 0): 0.0, ("tasks", None): 0.0}


def test_nothing() -> None:
    assert area_bounds(compile_snapshot(Snapshot())) == ()


# --- what today's sums alone do not see ----------------------------------------------------------------------------


def cards(name: str, number: int, count: int = 1, model: str = "A", memory: str | None = None) -> Node:
    return Node(name=name, count=count, gpus=(Gpu(model=model, count=number, memory=memory),))


def test_ladder() -> None:
    # Three nodes of 3 cards: one task of 2 fits on each, although there are 9 cards for 4 of them.
    # Value: 3 tasks of 2 cards are worth 6000; a task of 1 card fills a gap: 9 cards take 6 + 1 (there is one such).
    snapshot = Snapshot(nodes=(cards("n", 3, 3),), jobs=(job("two", Task(gpus=2), 4), job("one", Task(gpus=1))))
    assert bounds(snapshot) == {("value", 0): 7000.0, ("tasks", None): 4.0}


def test_ladder_of_nested_sizes() -> None:
    # Nodes of 4 and 6 cards. Tasks of 4: 1 + 1. Tasks of 2 (weight 3) make 2 + 3 places, of which a 4 takes two.
    #   2 sixes... value: five tasks of 2 at 6000 each leave no room for a 4: 30000.
    snapshot = Snapshot(
        nodes=(cards("four", 4), cards("six", 6)),
        jobs=(job("four", Task(gpus=4), 3), job("two", Task(gpus=2), 9, weight=3)),
    )
    assert bounds(snapshot) == {("value", 0): 30000.0, ("tasks", None): 5.0}


def test_shares_that_leave_a_rest_on_every_card() -> None:
    # 4 cards hold one share of 0.6 each, not 4 / 0.6 = 6
    snapshot = Snapshot(nodes=(cards("n", 4),), jobs=(job("j", Task(gpus=1, gpu_share=0.6), 9),))
    assert bounds(snapshot) == {("value", 0): 2400.0, ("tasks", None): 4.0}


def test_device_memory_binds() -> None:
    # 16 GiB a card: two of 6 GiB on each of 2 cards, though a tenth of a card is all they take
    task = Task(gpus=1, gpu_share=0.1, gpu_memory="6Gi")
    snapshot = Snapshot(nodes=(cards("n", 2, memory="16Gi"),), jobs=(job("j", task, 9),))
    assert bounds(snapshot)["tasks", None] == 4.0


def test_cards_of_one_model_are_no_help_to_tasks_of_another() -> None:
    # 2 cards of A and 6 of B. Of 5 tasks for A, 2 run; of 3 for B all; of 4 for both, 3 on what is left of B.
    snapshot = Snapshot(
        nodes=(cards("a", 2, model="A"), cards("b", 6, model="B")),
        jobs=(
            job("a", Task(gpus=1, gpu_models=("A",)), 5),
            job("b", Task(gpus=1, gpu_models=("B",)), 3),
            job("both", Task(gpus=1, gpu_models=("A", "B")), 1),
        ),
    )
    assert bounds(snapshot) == {("value", 0): 6000.0, ("tasks", None): 6.0}


def test_a_domain_limit_binds() -> None:
    # 4 cards in the rack, of which 1 may be used, and 2 outside
    inside = Node(name="r", position={"rack": "r"}, gpus=(Gpu(model="A", count=4),))
    limits = (DomainLimit(level="rack", domain="r", gpus=1),)
    snapshot = Snapshot(
        topology=("rack",), nodes=(inside, cards("n", 2)), limits=limits, jobs=(job("j", Task(gpus=1), 6),)
    )
    assert bounds(snapshot)["tasks", None] == 3.0


def test_a_gang_that_cannot_start_counts_nothing() -> None:
    # the leader needs CPU that no node has; of the other job, one of two groups is enough and only one can run
    leader, worker = TaskGroup(name="leader", task=Task(cpu=9)), TaskGroup(name="worker", count=2, task=Task(gpus=1))
    some = TaskGroup(name="some", groups=(leader, worker), min_groups=1)
    snapshot = Snapshot(
        nodes=(Node(name="n", cpu=4, gpus=(Gpu(model="A", count=8),)),),
        jobs=(Job(name="all", groups=(leader, worker)), Job(name="some", groups=(some,))),
    )
    assert bounds(snapshot) == {("value", 0): 2000.0, ("tasks", None): 2.0}
    # three workers at least, and two cards
    three = TaskGroup(name="w", count=5, min_count=3, task=Task(gpus=1))
    assert bounds(Snapshot(nodes=(cards("n", 2),), jobs=(Job(name="j", groups=(three,)),)))["tasks", None] == 0.0


def test_a_plan_is_worth_whole_tasks() -> None:
    # 5 cards: one task of 3 and 2/3 of another by the sum, one by the ladder; and no value between 3000 and 6000
    snapshot = Snapshot(nodes=(cards("n", 5),), jobs=(job("j", Task(gpus=3), 2),))
    assert bounds(snapshot) == {("value", 0): 3000.0, ("tasks", None): 1.0}


def sums(instance: Instance) -> dict[tuple[str, int | None], float]:
    """Return what the whole cluster's sums allow: for each resource the fractional knapsack of all tasks (Dantzig)."""
    use = np.array([(*shape.demand, shape.gpus * shape.units) for shape in instance.shapes], dtype=np.float64)
    free = np.zeros(len(instance.resources) + 1)
    for node_class in instance.classes:
        units = sum(u for kind, u, _ in node_class.cards if instance.card_kinds[kind].healthy)
        free += np.array([*node_class.free, units], dtype=np.float64) * node_class.size
    tasks = [
        (leaf.shape, leaf.count * leaf.copies * c.size, leaf.value, c.priority)
        for c in instance.job_classes
        for leaf in c.leaves
        if instance.admits_node[leaf.shape].any()
    ]

    def knapsack(items: list[tuple[int, int, int]], resource: int) -> float:
        left, worth = free[resource], 0.0
        for shape, count, value in sorted(items, key=lambda i: -i[2] / (use[i[0], resource] or 1e-30)):
            taken = min(count, left / use[shape, resource]) if use[shape, resource] else count
            left -= taken * use[shape, resource]
            worth += taken * value
        return worth

    found: dict[tuple[str, int | None], float] = {}
    for priority in instance.priorities:
        tier = [(s, n, v) for s, n, v, p in tasks if p == priority]
        best = min(knapsack(tier, r) for r in range(len(free)))
        found["value", priority] = best * float(instance.value_unit)
    found["tasks", None] = min(knapsack([(s, n, 1) for s, n, _, _ in tasks], r) for r in range(len(free)))
    return found


@settings(max_examples=80, deadline=None)
@given(strategies.snapshots(max_tasks=6))
def test_no_plan_is_better_and_sums_alone_say_no_more(snapshot: Snapshot) -> None:
    instance = compile_snapshot(snapshot)
    found = {(b.objective, b.priority): b.value for b in area_bounds(instance)}
    if not instance.exact or not instance.jobs:
        return
    for key, most in sums(instance).items():
        bound = found[key]
        assert bound is not None
        assert bound <= most * (1 + 1e-9) + 1e-9
    for objective in ("value", "tasks"):
        try:
            best = brute.optimum(snapshot, (objective,))
        except brute.TooLarge:
            continue
        for value in best:
            bound = found[value.objective, value.priority]
            assert bound is not None
            assert float(value.value) <= bound * (1 + 1e-12) + 1e-9


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_any_prices_prove_a_bound(seed: int) -> None:
    """Rows against a plan: what a greedy rule places keeps every row of every set of cells."""
    instance = compile_snapshot(strategies.random_tiny(seed, max_tasks=14))
    placed = HEURISTICS["best-fit"].solve(instance, objectives=(), limits=Limits()).assignment
    if not len(placed):
        return
    free = Free(instance)
    counted = items_of(instance, free)
    shapes = np.unique(counted.shape)
    table = rows_of(instance, free, shapes)
    leaf_shape = [
        instance.job_classes[instance.job_class[job]].leaves[leaf].shape
        for job, leaf in zip(placed.job.tolist(), placed.leaf.tolist(), strict=True)
    ]
    started = np.array([leaf_shape.count(shape) for shape in shapes.tolist()], dtype=np.float64)
    assert started.sum() == len(placed)
    cells = table.admits.shape[1]
    for chosen in range(1, 1 << min(cells, 6)):
        inside = np.array([bool(chosen >> c & 1) for c in range(cells)])
        confined = ~(table.admits & ~inside).any(axis=1)
        assert (started[confined] @ table.use[confined] <= table.free[inside].sum(axis=0) + 1e-9).all()
    for limit, inside in enumerate(table.limit_cells):
        confined = ~(table.admits & ~inside).any(axis=1)
        assert started[confined] @ table.limit_use[confined, limit] <= table.limit_free[limit]


def test_more_cells_and_sizes_than_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    # node i is labelled i and has i + 1 cards; the task for node i takes one and a half of them at most
    nodes = tuple(Node(name=f"n{i}", labels={"i": str(i)}, gpus=(Gpu(model="A", count=i + 1),)) for i in range(6))
    jobs = tuple(job(f"j{i}", Task(gpus=1, gpu_share=f"{500 + i}m", node_selector={"i": str(i)}), 9) for i in range(6))
    snapshot = Snapshot(nodes=nodes, jobs=jobs)
    exact = bounds(snapshot)["tasks", None]
    assert exact == 2 * 1 + 2 + 3 + 4 + 5 + 6  # the half fits twice on the only card of node 0, the others once a card
    monkeypatch.setattr("placement.area.rows.MOST_CELLS", 2)
    monkeypatch.setattr("placement.area.rows.MOST_SIZES", 3)
    assert exact <= (bounds(snapshot)["tasks", None] or 0.0) <= 2 * 21
