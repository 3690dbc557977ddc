"""From counts to cards: relieving over-full nodes, filling gaps, and arranging what the quick rules cannot."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from strategies import random_tiny

from placement.compile import compile as compile_snapshot
from placement.evaluate import demand, scores
from placement.exact.layouts.gangs import named, startable
from placement.exact.layouts.layout import Layout
from placement.exact.moves.polish import Polish
from placement.exact.moves.repair import drop_excess, relieve
from placement.exact.objectives.residual import RESIDUAL
from placement.exact.packing.arrange import arrange
from placement.exact.packing.fill import fill
from placement.heuristics import HEURISTICS
from placement.instance import Assignment, Instance
from placement.snapshot import Gpu, Job, Node, Snapshot, Task, TaskGroup
from placement.solver import Limits


def instance_of(node: Node, *tasks: Task, count: int = 9) -> Instance:
    """Return an instance with one shape a task, in order."""
    jobs = tuple(
        Job(name=f"j{i}", count=count, groups=(TaskGroup(name="g", task=task),)) for i, task in enumerate(tasks)
    )
    return compile_snapshot(Snapshot(nodes=(node,), jobs=jobs))


def none_waiting(instance: Instance) -> np.ndarray:
    return np.zeros(len(instance.shapes), dtype=np.int64)


def contents(layout: Layout) -> list[list[int]]:
    return [sorted(shape for shape, _ in spots) for spots in layout.tasks]


def test_tasks_that_use_cards_alike_change_places() -> None:
    # two nodes of 10 cores and 2 cards: 8+8 and 2+2 must become 8+2 and 8+2
    instance = instance_of(
        Node(name="n", count=2, cpu=10, gpus=(Gpu(model="A", count=2),)), Task(gpus=1, cpu=8), Task(gpus=1, cpu=2)
    )
    layout = Layout(instance)
    for node, shape in ((0, 0), (1, 1)):
        for card in (0, 1):
            layout.place(shape, node, (card,))
    assert layout.over_full().tolist() == [0]
    assert relieve(layout, none_waiting(instance)) == 1
    assert contents(layout) == [[0, 1], [0, 1]]


def test_what_lies_on_whole_cards_changes_places() -> None:
    # no two tasks are alike, so only 6 cores of halves against 1 core of a whole card will do
    instance = instance_of(
        Node(name="n", count=2, cpu=9, gpus=(Gpu(model="A", count=2),)),
        Task(gpus=1, gpu_share=0.5, cpu=3),
        Task(gpus=1, cpu=1),
    )
    layout = Layout(instance)
    for card in (0, 1):
        layout.place(0, 0, (card,))
        layout.place(0, 0, (card,))
        layout.place(1, 1, (card,))
    assert relieve(layout, none_waiting(instance)) == 1
    assert contents(layout) == [[0, 0, 1], [0, 0, 1]]
    assert all(len({cards for shape, cards in spots if shape == 0}) == 1 for spots in layout.tasks)


def test_a_waiting_task_takes_the_place_of_a_heavier_one() -> None:
    instance = instance_of(Node(name="n", cpu=4, gpus=(Gpu(model="A"),)), Task(gpus=1, cpu=5), Task(gpus=1, cpu=4))
    layout = Layout(instance)
    layout.place(0, 0, (0,))
    waiting = np.array([0, 1], dtype=np.int64)
    assert relieve(layout, waiting) == 1
    assert contents(layout) == [[1]]
    assert waiting.tolist() == [1, 0]


def test_tasks_without_cards_move() -> None:
    instance = instance_of(Node(name="n", count=2, cpu=4), Task(cpu=3))
    layout = Layout(instance)
    layout.place(0, 0, ())
    layout.place(0, 0, ())
    assert relieve(layout, none_waiting(instance)) == 1
    assert contents(layout) == [[0], [0]]


def test_exchanges_respect_filters() -> None:
    # the light task may only run on the second node
    heavy = Task(gpus=1, cpu=8)
    light = Task(gpus=1, cpu=2, node_selector={"zone": "b"})
    gpus = (Gpu(model="A", count=2),)
    snapshot = Snapshot(
        nodes=(Node(name="a", cpu=10, gpus=gpus), Node(name="b", cpu=10, gpus=gpus, labels={"zone": "b"})),
        jobs=tuple(
            Job(name=n, count=2, groups=(TaskGroup(name="g", task=t),)) for n, t in (("h", heavy), ("l", light))
        ),
    )
    instance = compile_snapshot(snapshot)
    layout = Layout(instance)
    for node, shape in ((0, 0), (1, 1)):
        for card in (0, 1):
            layout.place(shape, node, (card,))
    assert relieve(layout, none_waiting(instance)) == 0
    assert drop_excess(layout, np.ones(2)).tolist() == [1, 0]
    assert not len(layout.over_full())
    waiting = np.array([1, 0], dtype=np.int64)
    assert fill(layout, waiting, np.ones(2)) == 0


def test_what_is_dropped_loses_least() -> None:
    instance = instance_of(
        Node(name="n", cpu=4, gpus=(Gpu(model="A", count=3),)), Task(gpus=1, cpu=2), Task(gpus=1, cpu=1)
    )
    layout = Layout(instance)
    for card, shape in enumerate((0, 0, 1)):
        layout.place(shape, 0, (card,))
    assert drop_excess(layout, np.array([3.0, 1.0])).tolist() == [0, 1]


def test_gaps_are_filled_with_the_most_valuable_where_they_are_tightest() -> None:
    instance = instance_of(
        Node(name="n", count=2, gpus=(Gpu(model="A"),)), Task(gpus=1, gpu_share=0.6), Task(gpus=1, gpu_share=0.4)
    )
    layout = Layout(instance)
    layout.place(0, 1, (0,))
    waiting = np.array([0, 1], dtype=np.int64)
    assert fill(layout, waiting, np.array([6.0, 4.0])) == 1
    assert contents(layout) == [[], [0, 1]]
    assert waiting.tolist() == [0, 0]


def test_layouts_give_back_what_they_take() -> None:
    instance = instance_of(
        Node(name="n", count=2, cpu=4, gpus=(Gpu(model="A", count=2),)), Task(gpus=2, gpu_share=0.5, cpu=1)
    )
    layout = Layout(instance)
    before = layout.state.free.copy(), layout.state.units.copy()
    layout.place(0, 0, (0, 1))
    twin = layout.copy()
    taken = layout.clear([0, 1])
    assert (layout.state.free == before[0]).all()
    assert (layout.state.units == before[1]).all()
    layout.restore(taken)
    assert contents(layout) == contents(twin) == [[0], []]
    assert layout.count.tolist() == [1]
    twin.remove(0, 0)
    assert (twin.state.units == before[1]).all()
    assert contents(layout) == [[0], []]


@pytest.mark.parametrize(
    ("times", "possible"),
    [((2, 2), True), ((3, 2), False), ((0, 4), True), ((4, 0), True), ((4, 1), False)],
)
def test_arranging_tries_other_cards(times: tuple[int, int], possible: bool) -> None:
    """Two cards: tasks of a quarter of both, and of half of one."""
    instance = instance_of(
        Node(name="n", gpus=(Gpu(model="A", count=2),)), Task(gpus=2, gpu_share=0.25), Task(gpus=1, gpu_share=0.5)
    )
    layout = Layout(instance)
    tasks = [0] * times[0] + [1] * times[1]
    assert arrange(layout, 0, tasks) is possible
    assert len(layout.tasks[0]) == (len(tasks) if possible else 0)
    assert (layout.state.units >= 0).all()


def test_arranging_keeps_scarce_cards_for_those_that_need_them() -> None:
    # the task with a wish must get card B although both take any whole card
    instance = instance_of(
        Node(name="n", gpus=(Gpu(model="A"), Gpu(model="B"))), Task(gpus=1), Task(gpus=1, gpu_models=("B",))
    )
    layout = Layout(instance)
    assert arrange(layout, 0, [0, 1])
    kinds = {shape: instance.card_kinds[layout.state.kind[0, cards[0]]].model for shape, cards in layout.tasks[0]}
    assert kinds == {0: "A", 1: "B"}
    assert not arrange(layout, 0, [0], steps=10)


# --- what nodes are left like --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_costs_of_nodes_add_up_to_the_objectives(seed: int) -> None:
    instance = compile_snapshot(random_tiny(seed))
    greedy = HEURISTICS["first-fit"].solve(instance, objectives=("tasks",), limits=Limits()).assignment
    layout = Layout.of(instance, greedy)
    polish = Polish(layout, RESIDUAL, Limits(), 0)
    assert_costs(polish, greedy)
    before = polish.costs.sum(axis=0).tolist()
    assert polish.run()
    assert polish.costs.sum(axis=0).tolist() <= before
    started = startable(layout, [("tasks", None)], 0)
    after = named(layout, started, 0)
    assert len(after) >= len(greedy)
    assert (layout.state.free >= 0).all()
    assert (layout.state.units >= 0).all()
    assert (layout.state.memory >= 0).all()
    if len(after) == int(layout.count.sum()):
        assert_costs(polish, after)


def assert_costs(polish: Polish, assignment: Assignment) -> None:
    instance = polish.instance
    nodes, whole, lost = polish.costs.sum(axis=0).tolist()
    found = {score.objective: score.value for score in scores(instance, assignment, RESIDUAL)}
    wanted = int(demand(instance).sum())
    assert found["nodes"] == nodes
    assert found["whole_nodes"] == -whole
    assert found["fragmentation"] == (Fraction(lost * 1000, wanted * instance.card_units) if wanted else 0)


def test_nodes_are_emptied() -> None:
    instance = instance_of(Node(name="n", count=3, cpu=8, gpus=(Gpu(model="A", count=2),)), Task(gpus=1, cpu=1))
    layout = Layout(instance)
    for node in (0, 1):
        layout.place(0, node, (0,))
    polish = Polish(layout, ("nodes",), Limits(), 0)
    assert polish.run()
    assert sorted(map(len, layout.tasks)) == [0, 0, 2]
    assert int(polish.costs.sum()) == 1
