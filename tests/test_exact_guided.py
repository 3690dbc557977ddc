"""Packing pools by what the relaxation allots them, and the steps that improve a packing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from strategies import random_tiny

from placement.compile import compile as compile_snapshot
from placement.evaluate import demand
from placement.exact.layouts.layout import Layout
from placement.exact.ledger import Ledger
from placement.exact.moves.overfill import overfill
from placement.exact.moves.repack import repack
from placement.exact.moves.upgrade import upgrade
from placement.exact.objectives.targets import targets_of
from placement.exact.packing.gang_fill import fill_gangs, gang_sizes
from placement.exact.packing.pack import best_filling, pack, scarcity_order
from placement.exact.pipeline import Pipeline
from placement.exact.pools.allot import allotments
from placement.exact.pools.guide import Guide
from placement.exact.pools.guided import loose_shapes
from placement.exact.pools.sketch import retouch, rough, sketch
from placement.exact.timing import Timing
from placement.generate import generate
from placement.instance import Instance, Ints
from placement.models.parts import parts_of
from placement.models.pools import pooling
from placement.snapshot import DomainLimit, Gpu, Job, Node, Snapshot, Task, TaskGroup
from placement.solver import Limits, Progress, Stop
from placement.state import State

FOREVER = Limits()


def instance_of(
    nodes: tuple[Node, ...], *tasks: Task, count: int = 1, limits: tuple[DomainLimit, ...] = ()
) -> Instance:
    """Return an instance with one shape a task, in order."""
    jobs = tuple(
        Job(name=f"j{i}", count=count, groups=(TaskGroup(name="g", task=task),)) for i, task in enumerate(tasks)
    )
    return compile_snapshot(Snapshot(nodes=nodes, jobs=jobs, limits=limits))


def pools_of(instance: Instance) -> list[Ints]:
    """Return nodes that admit the same shapes and count in the same domain limits, together."""
    found: dict[object, list[int]] = {}
    for node, number in enumerate(instance.node_class.tolist()):
        key = instance.admits_node[:, number].tobytes(), instance.classes[number].limits
        found.setdefault(key, []).append(node)
    return [np.array(nodes) for nodes in found.values()]


def worth_of(instance: Instance) -> np.ndarray:
    return np.array([max(1, s.gpus * s.units) for s in instance.shapes], dtype=np.float64)


def assert_sound(layout: Layout, over_full: bool = False) -> None:
    """Assert that a layout's figures are those of its tasks, each of which may lie there, and that all have room."""
    instance = layout.instance
    again = State(instance)
    count = np.zeros(len(instance.shapes), dtype=np.int64)
    for node, spots in enumerate(layout.tasks):
        for shape, cards in spots:
            task = instance.shapes[shape]
            assert instance.admits_node[shape, instance.node_class[node]]
            assert len(set(cards)) == len(cards) == task.gpus
            assert all(again.admits_card[shape, again.kind[node, card]] for card in cards)
            again.place(shape, node, cards)
            count[shape] += 1
    for name in ("free", "units", "memory", "limits"):
        assert (getattr(again, name) == getattr(layout.state, name)).all(), name
    assert (count == layout.count).all()
    assert (again.units >= 0).all()
    assert (again.memory >= 0).all()
    assert (again.limits >= 0).all()
    assert over_full or (again.free >= 0).all()


# --- by hand -----------------------------------------------------------------------------------------------------


def test_best_filling_by_hand() -> None:
    # parts of 3 and 5: 1 and 2 hold nothing; 3 and 4 hold one 3; 5 a 5; 6 and 7 two 3; 8 = 3 + 5; 9 = 3 * 3; 10 = 2 * 5
    assert best_filling(np.array([3, 5]), 10).tolist() == [0, 0, 0, 3, 3, 5, 6, 6, 8, 9, 10]
    assert best_filling(np.array([], dtype=np.int64), 3).tolist() == [0, 0, 0, 0]
    assert best_filling(np.array([4, 0]), 3).tolist() == [0, 0, 0, 0]


def test_largest_remainders_are_rounded_up() -> None:
    # one shape in three pools: 1.2 + 1.7 + 0.1 = 3 tasks; floors make 2, the missing one goes where 0.7 was cut off
    nodes = tuple(Node(name=f"n{i}", gpus=(Gpu(model=model, count=4),)) for i, model in enumerate("ABC"))
    instance = instance_of(nodes, Task(gpus=1), count=9)
    view = pooling(State(instance), parts_of(State(instance), 0))
    assert view.pool.tolist() == [0, 1, 2]
    room = np.array([1.2, 1.7, 0.1])
    assert allotments(view, room, np.array([9])).tolist() == [[1], [2], [0]]
    # no more than there are
    assert allotments(view, room, np.array([2])).sum() == 2


def test_a_demanding_task_goes_where_resources_are_to_spare() -> None:
    # 2 cards each; 4 cores and 20 cores. Tasks of one card with 10 cores (2 of them) and with 2 cores (2 of them):
    # the poor node can hold no demanding task, the rich one holds both, so all four are placed
    nodes = tuple(Node(name=f"n{cpu}", cpu=cpu, gpus=(Gpu(model="A", count=2),)) for cpu in (20, 4))
    instance = instance_of(nodes, Task(gpus=1, cpu=10), Task(gpus=1, cpu=2), count=2)
    layout = Layout(instance)
    (pool,) = pools_of(instance)
    supply = demand(instance)
    assert pack(layout, pool, supply, worth_of(instance), FOREVER) == 4
    assert supply.tolist() == [0, 0]
    assert [sorted(shape for shape, _ in spots) for spots in layout.tasks] == [[0, 0], [1, 1]]


def test_the_node_with_least_for_its_cards_chooses_first() -> None:
    # cores per idle card: 10, 2, 5
    nodes = tuple(Node(name=f"n{cpu}", cpu=cpu, gpus=(Gpu(model="A", count=2),)) for cpu in (20, 4, 10))
    instance = instance_of(nodes, Task(gpus=1, cpu=2), count=20)
    assert scarcity_order(State(instance), np.arange(3)).tolist() == [1, 2, 0]


def test_a_card_is_filled_to_the_brim() -> None:
    # one card. 0.6 first would leave 0.4 that neither 0.6 nor 0.5 fills; 0.5 + 0.5 leaves nothing
    node = Node(name="n", gpus=(Gpu(model="A"),))
    instance = instance_of((node,), Task(gpus=1, gpu_share="0.6"), Task(gpus=1, gpu_share="0.5"), count=2)
    layout = Layout(instance)
    pack(layout, np.array([0]), demand(instance), worth_of(instance), FOREVER)
    assert [shape for shape, _ in layout.tasks[0]] == [1, 1]


def test_an_over_full_node_gives_a_demanding_task_away() -> None:
    # 2 cards and 12 cores each. One node has a task of 9 cores and an idle card, the other two of 2; one of 4 waits.
    nodes = tuple(Node(name=name, cpu=12, gpus=(Gpu(model="A", count=2),)) for name in "ab")
    instance = instance_of(nodes, Task(gpus=1, cpu=9), Task(gpus=1, cpu=2), Task(gpus=1, cpu=4), count=2)
    layout = Layout(instance)
    layout.place(0, 0, (0,))
    for card in (0, 1):
        layout.place(1, 1, (card,))
    waiting = np.array([0, 0, 1])
    every = np.ones(3, dtype=np.bool_)
    # 9 + 4 = 13 > 12 and 2 + 2 = 4; after 9 and 2 change places: 2 + 4 = 6 and 9 + 2 = 11
    assert overfill(layout, np.array([0, 1]), waiting, worth_of(instance), every, FOREVER) == 1
    assert [sorted(shape for shape, _ in spots) for spots in layout.tasks] == [[1, 2], [0, 1]]
    assert waiting.tolist() == [0, 0, 0]
    assert_sound(layout)


def test_a_task_makes_way_for_one_that_is_worth_more() -> None:
    # 0.5 lies on the card; 0.7 waits and fits in its place, 1.0 does not for want of cores
    node = Node(name="n", cpu=4, gpus=(Gpu(model="A"),))
    tasks = (Task(gpus=1, gpu_share="0.5"), Task(gpus=1, gpu_share="0.7", cpu=4), Task(gpus=1, cpu=5))
    instance = instance_of((node,), *tasks)
    layout = Layout(instance)
    layout.place(0, 0, (0,))
    waiting = np.array([0, 1, 1])
    every = np.ones(3, dtype=np.bool_)
    assert upgrade(layout, np.array([0]), waiting, worth_of(instance), every, FOREVER) == 1
    assert layout.tasks[0] == [(1, (0,))]
    assert waiting.tolist() == [1, 0, 1]
    # a task that others depend on stays
    tied = np.array([True, False, True])
    assert upgrade(layout, np.array([0]), waiting, worth_of(instance), tied, FOREVER) == 0


def test_a_domain_limit_stops_packing() -> None:
    # 8 cards, of which new work may take 3
    node = Node(name="n", count=4, gpus=(Gpu(model="A", count=2),))
    instance = instance_of((node,), Task(gpus=1), count=8, limits=(DomainLimit(level="cluster", domain="", gpus=3),))
    layout = Layout(instance)
    assert pack(layout, np.arange(4), demand(instance), worth_of(instance), FOREVER) == 3
    assert_sound(layout)


# --- on many instances -------------------------------------------------------------------------------------------


def instances() -> Iterator[tuple[str, Instance]]:
    """Yield tiny instances with every rule, and synthetic clusters of some dozens of nodes."""
    for seed in range(150):
        yield f"tiny {seed}", compile_snapshot(random_tiny(seed))
    for seed in range(6):
        models = (("T4-16", "H100-80"), ("A100-80",))[seed % 2]
        yield f"cluster {seed}", compile_snapshot(generate(nodes=24, models=models, load=1.4, gangs=0.1, seed=seed))


Step = Callable[[Layout, Ints, Ints, np.ndarray], object]


def _steps(instance: Instance) -> dict[str, Step]:
    loose, noise = loose_shapes(instance), np.random.default_rng(1)
    return {
        "pack": lambda layout, pool, rest, worth: pack(layout, pool, rest, worth, FOREVER),
        "upgrade": lambda layout, pool, rest, worth: upgrade(layout, pool, rest, worth, loose, FOREVER),
        "repack": lambda layout, pool, rest, worth: repack(layout, pool, rest, worth, loose, noise, FOREVER),
        "overfill": lambda layout, pool, rest, worth: overfill(layout, pool, rest, worth, loose, FOREVER),
    }


def test_every_step_keeps_a_layout_sound_and_the_supply_right() -> None:
    for name, instance in instances():
        layout, worth, wanted = Layout(instance), worth_of(instance), demand(instance)
        loose = loose_shapes(instance)
        pools = pools_of(instance)
        for pool in pools:
            waiting = wanted - layout.count
            pack(layout, pool, waiting, worth, FOREVER)
            assert (waiting == wanted - layout.count).all(), name
        assert_sound(layout)
        for step, run in _steps(instance).items():
            for pool in pools:
                waiting = np.where(loose, wanted - layout.count, 0)
                run(layout, pool, waiting, worth)
                assert (waiting == np.where(loose, wanted - layout.count, 0)).all(), (name, step)
                assert (layout.count <= wanted).all(), (name, step)
                assert_sound(layout, over_full=step == "overfill")


def test_upgrades_and_repacking_never_lose_worth() -> None:
    for name, instance in instances():
        layout, worth, wanted, loose = Layout(instance), worth_of(instance), demand(instance), loose_shapes(instance)
        for pool in pools_of(instance):
            pack(layout, pool, wanted - layout.count, worth, FOREVER)
        steps = _steps(instance)
        for step in ("upgrade", "repack", "upgrade"):
            for pool in pools_of(instance):
                before = float(layout.count @ worth)
                steps[step](layout, pool, np.where(loose, wanted - layout.count, 0), worth)
                assert float(layout.count @ worth) >= before - 1e-9, (name, step)


@pytest.mark.parametrize("seed", range(4))
def test_merged_pools_give_sound_answers_within_their_bound(seed: int) -> None:
    snapshot = generate(nodes=40, models=("T4-16", "A100-80", "H100-80"), load=1.3, running=0.4, seed=seed)
    instance = compile_snapshot(snapshot)
    targets = targets_of(instance, ("value", "tasks"))
    told: list[float] = []

    def listen(progress: Progress) -> None:
        told.extend(bound.value or 0.0 for bound in progress.bounds[:1])

    ledger = Ledger(instance, targets, Limits(gap=0.02, nodes=20), seed, None, listen)
    result = Pipeline(ledger).run()
    assert result.stop in (Stop.GAP, Stop.OPTIMAL, Stop.WORK)
    value = ledger.standing.ranks[0] * float(instance.value_unit)
    assert result.bounds[0].value is not None
    assert value <= result.bounds[0].value
    assert all(bound >= result.bounds[0].value for bound in told)
    assert_sound(ledger.standing.layout)


def test_repacking_keeps_to_domain_limits() -> None:
    # Two nodes of 4 cards in a rack that may use 4. One holds a task of 3 cards, the other one of 1, which is all;
    # tasks of 1 and 2 cards wait. When both nodes are emptied, what the first gives up the second may take, and then
    # the first cannot have it back.
    nodes = tuple(Node(name=name, position={"rack": "r"}, gpus=(Gpu(model="A", count=4),)) for name in "ab")
    jobs = tuple(
        Job(name=f"j{gpus}", count=2, groups=(TaskGroup(name="g", task=Task(gpus=gpus)),)) for gpus in (3, 1, 2)
    )
    limit = DomainLimit(level="rack", domain="r", gpus=4)
    instance = compile_snapshot(Snapshot(topology=("rack",), nodes=nodes, jobs=jobs, limits=(limit,)))
    for seed in range(50):
        layout = Layout(instance)
        layout.place(0, 0, (0, 1, 2))
        layout.place(1, 1, (0,))
        waiting = demand(instance) - layout.count
        noise = np.random.default_rng(seed)
        repack(layout, np.arange(2), waiting, worth_of(instance), np.ones(3, dtype=np.bool_), noise, FOREVER)
        assert_sound(layout)
        assert float(layout.count @ worth_of(instance)) >= 4 * instance.card_units


# --- the sketch and the guide, each by itself ----------------------------------------------------------------------


def alike(seed: int) -> Instance:
    """Two classes of nodes, fifteen of each, and more work of four kinds than they can take."""
    rng = np.random.default_rng(seed)
    nodes = tuple(
        Node(name=f"n{model}", count=15, cpu=int(rng.integers(20, 40)), gpus=(Gpu(model=model, count=4),))
        for model in "AB"
    )
    tasks = (Task(gpus=1, cpu=8), Task(gpus=2, cpu=6), Task(gpus=1, gpu_share="0.4", cpu=2), Task(gpus=4, cpu=8))
    return instance_of(nodes, *tasks, count=int(rng.integers(18, 30)))


@pytest.mark.parametrize("step", ["sketch", "guide"])
@pytest.mark.parametrize("seed", range(2))
def test_alike_nodes_get_a_sound_answer_within_the_bound(seed: int, step: str) -> None:
    instance = alike(seed)
    told: list[Progress] = []
    ledger = Ledger(instance, targets_of(instance, ("value", "tasks")), Limits(), seed, None, told.append)
    relaxed = rough(ledger, State(instance), Timing())
    relaxed.bound(0)
    if step == "sketch":
        sketch(relaxed, 10, Timing())
    else:
        Guide(relaxed, Timing()).run(0)
    bound, value = ledger.bound(0), ledger.standing.ranks[0]
    assert bound is not None
    assert 0.95 * bound <= value <= bound
    assert_sound(ledger.standing.layout)
    assert ledger.standing.ranks == ledger.goals.ranks(ledger.standing.started)
    assert (ledger.standing.layout.count <= demand(instance)).all()
    # all nodes in exactly one pool
    assert np.sort(np.concatenate(relaxed.members())).tolist() == list(range(instance.nodes))
    price = relaxed.idle_price()
    assert price.shape == (len(instance.classes),)
    assert (price >= 0).all()
    values = [p.bounds[0].value for p in told if p.bounds[0].value is not None]
    assert values == sorted(values, reverse=True)


def test_whole_gangs_fill_what_is_left_and_no_part_of_one() -> None:
    # 7 idle cards; gangs of 3 tasks of one card and gangs of 2 tasks of two cards wait, two of each. The larger gang
    # (4 cards) goes first: one fits, three cards are left, one gang of 3 fits, none is left over
    nodes = (Node(name="a", gpus=(Gpu(model="A", count=4),)), Node(name="b", gpus=(Gpu(model="A", count=3),)))
    jobs = (
        Job(name="ones", count=2, groups=(TaskGroup(name="g", count=3, task=Task(gpus=1)),)),
        Job(name="twos", count=2, groups=(TaskGroup(name="g", count=2, task=Task(gpus=2)),)),
    )
    instance = compile_snapshot(Snapshot(nodes=nodes, jobs=jobs))
    sizes = gang_sizes(instance)
    assert sorted(sizes.tolist()) == [2, 3]
    layout = Layout(instance)
    assert fill_gangs(layout, pools_of(instance), sizes, worth_of(instance), FOREVER) == 5
    assert_sound(layout)
    assert sorted(layout.count.tolist()) == [2, 3]


def test_gangs_come_whole_on_many_instances() -> None:
    for name, instance in instances():
        layout, sizes = Layout(instance), gang_sizes(instance)
        fill_gangs(layout, pools_of(instance), sizes, worth_of(instance), FOREVER)
        assert_sound(layout)
        rigid = sizes > 0
        assert (layout.count[rigid] % sizes[rigid] == 0).all(), name
        assert not layout.count[~rigid].any(), name
        assert (layout.count <= demand(instance)).all(), name


# --- going on from what others made ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_what_stands_is_only_replaced_by_what_is_legal_and_better(seed: int) -> None:
    instance = compile_snapshot(generate(nodes=12, load=1.4, seed=seed))
    ledger = Ledger(instance, targets_of(instance, ("value",)), FOREVER, 0, None, lambda progress: None)
    timing = Timing()
    relaxed = rough(ledger, State(instance), timing)
    relaxed.bound(0)
    sketch(relaxed, 0, timing)
    before = ledger.standing
    ranks, tasks = before.ranks, [list(spots) for spots in before.layout.tasks]
    retouch(relaxed, 6, timing)
    assert before.layout.tasks == tasks
    assert ledger.standing.ranks >= ranks
    assert (ledger.standing.layout.state.free >= 0).all()
    assert (ledger.standing.layout.state.units >= 0).all()
