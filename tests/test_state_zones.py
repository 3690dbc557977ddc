"""What is free where tasks are bound to NUMA zones, against a recount of all that was placed."""

from __future__ import annotations

import dataclasses
import random
from fractions import Fraction
from itertools import combinations

import numpy as np
import zoned_strategies
from hypothesis import given
from hypothesis import strategies as st
from zoned_room import Placed, all_spots, fits_beside

from placement import units
from placement.compile import compile as compile_snapshot
from placement.heuristics.nodes import Nodes
from placement.instance import Instance
from placement.snapshot import Gpu, Job, Nic, Node, NumaZone, Snapshot, Task, TaskGroup
from placement.state import State


def amounts(state: State) -> list[bytes]:
    return [table.tobytes() for table in (state.free, state.units, state.memory, state.slack, state.limits)]


@given(zoned_strategies.zoned_snapshots(), st.integers(0, 1000))
def test_there_is_room_exactly_where_some_choice_fits(snapshot: Snapshot, seed: int) -> None:
    instance = compile_snapshot(snapshot)
    state, rng = State(instance), random.Random(seed)
    nodes = np.arange(instance.nodes)
    placed: list[Placed] = []
    before = amounts(state)
    for _ in range(6):
        open_spots: list[Placed] = []
        for shape in range(len(instance.shapes)):
            room, reach = state.has_room(shape, nodes), state.within_reach(shape, nodes)
            fits = state.fits(shape, nodes)
            for node in nodes.tolist():
                good = [s for s in all_spots(instance, shape, node) if fits_beside(instance, placed, (shape, node, s))]
                assert bool(room[node]) == bool(good)
                assert bool(fits[node]) == (bool(good) and bool(instance.admits_node[shape, instance.node_class[node]]))
                spot = state.spot(shape, node)
                assert (spot is None) == (not good)
                if spot is not None:
                    assert spot in good
                    assert list(spot) == sorted(spot)
                if good:
                    cards = {card for s in good for card in s if card < instance.widest}
                    if instance.shapes[shape].gpus:
                        assert set(np.flatnonzero(reach[node]).tolist()) == cards
                    if instance.shapes[shape].gpus == 1:
                        assert all(state.on_card(shape, node, card) in good for card in cards)
                    open_spots += [(shape, node, s) for s in good]
        if not open_spots:
            break
        placed.append(rng.choice(open_spots))
        state.place(*placed[-1])
    rng.shuffle(placed)
    for one in placed:
        state.remove(*one)
    assert amounts(state) == before


@given(zoned_strategies.zoned_snapshots(), st.integers(0, 1000))
def test_rows_in_another_order_have_the_zones_of_their_nodes(snapshot: Snapshot, seed: int) -> None:
    instance = compile_snapshot(snapshot)
    state = State(instance)
    order = np.random.default_rng(seed).permutation(instance.nodes)
    rows = Nodes(instance, order)
    kinds = rows.kind_row[: rows.count]
    for shape in range(len(instance.shapes)):
        for row, node in enumerate(order.tolist()):
            spot = state.spot(shape, node)
            assert rows.state.spot(shape, row) == spot
            assert rows.state.spot(shape, int(kinds[row])) == spot
            if spot is not None:
                before = amounts(rows.state)
                rows.place(shape, row, spot)
                state.place(shape, node, spot)
                assert np.array_equal(rows.state.slack[row], state.slack[node])
                assert rows.state.spot(shape, row) == state.spot(shape, node)
                state.remove(shape, node, spot)
                rows.undo(0)
                assert amounts(rows.state) == before


@given(zoned_strategies.zoned_snapshots())
def test_what_kubernetes_admits_fits(snapshot: Snapshot) -> None:
    """Kubernetes asks for one set of zones that is, for each resource by itself, as narrow as an empty node allows.

    Where there is one, these zones hold all together too, and no fewer do: so a task fits wherever Kubernetes admits
    it. The other way round, all together may need more zones than some resource by itself, which Kubernetes refuses.
    """
    jobs = tuple(job for job in snapshot.jobs if job.running is None)
    instance = compile_snapshot(Snapshot(nodes=snapshot.nodes, jobs=jobs))
    state = State(instance)
    for number in range(instance.jobs):
        for leaf in instance.job_classes[instance.job_class[number]].leaves:
            groups = {group.name: group.task for group in jobs[instance.job_spec[number]].groups}
            task = groups[leaf.path]
            assert task is not None
            for node in range(instance.nodes):
                spec = snapshot.nodes[instance.node_spec[node]]
                room = state.free[node] >= state.demand[leaf.shape]
                admitted = bool(room.all()) and kubernetes_admits(instance, leaf.shape, node, spec, task)
                fits = bool(state.fits(leaf.shape, np.array([node]))[0])
                if task.numa == "restricted":
                    assert fits >= admitted
                elif task.numa == "single-numa-node":
                    assert fits == admitted


def kubernetes_admits(instance: Instance, shape: int, node: int, spec: Node, task: Task) -> bool:
    """Return whether some set of zones of an empty node is as narrow as can be for each resource by itself."""
    fine = instance.admits_card[shape]
    devices = instance.node_cards.get(node, tuple(range(len(instance.classes[instance.node_class[node]].cards))))
    if not spec.zones:
        return False
    cards = dict(zip(devices, instance.classes[instance.node_class[node]].cards, strict=True))
    usable = {d for d, (kind, _, memory) in cards.items() if fine[kind] and memory >= instance.shapes[shape].memory}
    amounts: list[tuple[Fraction, list[Fraction]]] = [
        (Fraction(task.gpus), [Fraction(len(usable & set(zone.gpus))) for zone in spec.zones]),
        (Fraction(task.nics), [Fraction(len(zone.nics)) for zone in spec.zones]),
    ]
    for name in ("cpu", "memory"):
        if getattr(spec.zones[0], name) is not None:
            has = [units.exact(getattr(zone, name)) for zone in spec.zones]
            amounts += [(units.exact(getattr(task, name)), has)]
    asked = [(amount, has) for amount, has in amounts if amount]
    size = 1 if task.numa == "single-numa-node" else len(spec.zones)
    some = [one for n in range(1, size + 1) for one in combinations(range(len(spec.zones)), n)]
    enough = [{one for one in some if sum(has[zone] for zone in one) >= amount} for amount, has in asked]
    narrow = [{one for one in sets if len(one) == min(map(len, sets))} for sets in enough]
    return not narrow or bool(set.intersection(*narrow))


def pending(*tasks: Task, nodes: tuple[Node, ...]) -> State:
    jobs = tuple(Job(name=f"j{i}", groups=(TaskGroup(name="w", task=task),)) for i, task in enumerate(tasks))
    return State(compile_snapshot(Snapshot(nodes=nodes, jobs=jobs)))


def test_amounts_of_two_zones_are_not_those_of_one() -> None:
    # 4 and 8 cores: 9 of 12 are free and no zone has them; 8 fill the second, and then 4 are left of the first
    zones = (NumaZone(id=0, cpu=4), NumaZone(id=1, cpu=8))
    bound = [Task(cpu=cpu, numa="single-numa-node") for cpu in (8, 4, 5)]
    state = pending(*bound, nodes=(Node(name="n", cpu=12, zones=zones),))
    everywhere = np.array([0])
    eight, four, five = range(3)
    spot = state.spot(eight, 0)
    assert spot is not None
    assert len(spot) == 1  # a zone, no card
    state.place(eight, 0, spot)
    assert not state.has_room(five, everywhere)[0]
    assert state.has_room(four, everywhere)[0]
    state.remove(eight, 0, spot)
    assert state.has_room(five, everywhere)[0]


def test_three_zones_hold_two_tasks_of_two_zones_where_every_pair_has_room_and_all_three_have() -> None:
    # Zones of 2 cores, tasks of 3: each lies in two zones, and any two tasks in one pair ask for 6 of 4. In two pairs,
    # {0,1} and {1,2}, they ask for 3 of 4 each, and for 6 of the 6 of all three.
    zones = tuple(NumaZone(id=zone, cpu=2) for zone in range(3))
    task = Task(cpu=3, numa="restricted")
    state = pending(task, task, nodes=(Node(name="n", cpu=6, zones=zones),))
    for _ in range(2):
        spot = state.spot(0, 0)
        assert spot is not None
        assert len(spot) == 2
        state.place(0, 0, spot)
    assert state.spot(0, 0) is None
    assert not state.has_room(0, np.array([0]))[0]


def test_a_task_that_is_not_bound_leaves_a_zone_whole() -> None:
    # Four cards in each zone, and four tasks of a card: once one is used, the next comes from the same zone.
    zones = (NumaZone(id=0, gpus=(0, 1, 2, 3)), NumaZone(id=1, gpus=(4, 5, 6, 7)))
    node = Node(name="n", gpus=(Gpu(model="A", count=8),), zones=zones)
    state = pending(*[Task(gpus=1)] * 4, Task(gpus=4, numa="single-numa-node"), nodes=(node,))
    for _ in range(4):
        spot = state.spot(0, 0)
        assert spot is not None
        state.place(0, 0, spot)
    assert state.has_room(1, np.array([0]))[0]


def test_a_task_that_is_not_bound_gets_cards_of_one_zone_where_one_has_enough() -> None:
    # Free are cards 1, 2, 3 of the first zone and card 6 of the second: one card fits the second, three the first.
    zones = (NumaZone(id=0, gpus=(0, 1, 2, 3)), NumaZone(id=1, gpus=(4, 5, 6, 7)))
    node = Node(name="n", gpus=(Gpu(model="A", count=8),), zones=zones)
    state = pending(Task(gpus=1), Task(gpus=3), Task(gpus=2, numa="single-numa-node"), nodes=(node,))
    one, three, two = range(3)
    state.place(one, 0, (0,))
    state.place(one, 0, (7,))
    state.place(two, 0, (4, 5, 9))  # and the second of two zones behind eight cards
    assert state.spot(one, 0) == (6,)
    assert state.spot(three, 0) == (1, 2, 3)


def test_nics_are_counted_by_zone() -> None:
    zones = (NumaZone(id=0, gpus=(0,)), NumaZone(id=1, gpus=(1,), nics=(Nic(name="mlx"),)))
    node = Node(name="n", gpus=(Gpu(model="A", count=2),), zones=zones)
    state = pending(Task(gpus=1, nics=1, numa="single-numa-node"), nodes=(node,))
    spot = state.spot(0, 0)
    assert spot is not None
    card, zone = spot
    assert state.zone[0, card] == zone - state.instance.widest
    state.place(0, 0, spot)
    assert state.spot(0, 0) is None


def test_without_bound_tasks_there_are_no_zones() -> None:
    zones = (NumaZone(id=0, gpus=(0,)), NumaZone(id=1, gpus=(1,)))
    node = Node(name="n", gpus=(Gpu(model="A", count=2),), zones=zones)
    state = pending(Task(gpus=1), nodes=(node,))
    assert not state.instance.zoned
    assert state.slack.shape[1] == 0
    assert state.zone_count(np.array([0])).tolist() == [0]
    assert dataclasses.replace(state.instance).bound.sum() == 0
