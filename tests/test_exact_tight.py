"""Packings with nothing left over: sums against exhaustive search, perfect packings, and where nothing is tried."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.compile import compile as compile_snapshot
from placement.evaluate import demand
from placement.exact.ledger import Ledger
from placement.exact.objectives.targets import targets_of
from placement.exact.packing.sums import LARGEST_HALF, Sums
from placement.exact.packing.tight import fill_exactly, left_over
from placement.exact.timing import Timing
from placement.snapshot import Gpu, Job, Node, NumaZone, Snapshot, Task, TaskGroup
from placement.solver import Limits, Stop, silent
from placement.state import State


def job(name: str, numa: str, gpus: int, cpu: str, memory: str = "0", count: int = 1) -> Job:
    task = Task(gpus=gpus, cpu=cpu, memory=memory, numa=numa)  # type: ignore[arg-type]
    return Job(name=name, count=count, groups=(TaskGroup(name="g", task=task),))


def node(name: str, zones: list[tuple[int, int, int]]) -> Node:
    """Return a node with zones of so many cards, millicores and MiB."""
    listed, cards = [], 0
    for number, (gpus, cpu, memory) in enumerate(zones):
        inside = tuple(range(cards, cards + gpus))
        cards += gpus
        listed.append(NumaZone(id=number, cpu=f"{cpu}m", memory=f"{memory}Mi", gpus=inside))
    return Node(
        name=name,
        cpu=f"{sum(cpu for _, cpu, _ in zones)}m",
        memory=f"{sum(memory for _, _, memory in zones)}Mi",
        gpus=(Gpu(model="A", count=cards),),
        zones=tuple(listed),
    )


def parts(rng: random.Random, total: int, count: int) -> list[int]:
    """Return positive whole numbers with a sum."""
    ends = sorted(rng.sample(range(1, total), count - 1))
    return [high - low for low, high in itertools.pairwise([0, *ends, total])]


def perfect(seed: int, nodes: int) -> Snapshot:
    """Return nodes cut up into jobs: whole nodes, zones, and cards of a zone; nothing is left of anything."""
    rng = random.Random(seed)
    made, jobs = [], []
    for number in range(nodes):
        cpu, memory = rng.choice(((48_000, 200_000), (64_000, 400_000)))
        made.append(node(f"n{number}", [(4, cpu, memory)] * 2))
        if rng.random() < 0.2:
            jobs.append(job(f"n{number}", "restricted", 8, f"{2 * cpu}m", f"{2 * memory}Mi"))
            continue
        for zone in range(2):
            gpus = rng.choice(((4,), (1, 3), (2, 2), (1, 1, 2), (1, 1, 1, 1)))
            shares = zip(gpus, parts(rng, cpu, len(gpus)), parts(rng, memory, len(gpus)), strict=True)
            jobs += [
                job(f"n{number}-{zone}-{i}", "single-numa-node", g, f"{c}m", f"{m}Mi")
                for i, (g, c, m) in enumerate(shares)
            ]
    rng.shuffle(jobs)
    return Snapshot(nodes=tuple(made), jobs=tuple(jobs))


def ledger_of(snapshot: Snapshot) -> Ledger:
    instance = compile_snapshot(snapshot)
    return Ledger(instance, targets_of(instance, ("value", "tasks")), Limits(), 0, None, silent)


# Four zones of 2 cards and 10 cores: 7 + 3 and 6 + 4 fill two; 7 + 4, 6 + 3, 7 + 6 and 3 + 4 leave some or take more.
# The fifth job takes the 4 cards and 20 cores of a node.
HAND_MADE = Snapshot(
    nodes=tuple(node(f"n{number}", [(2, 10_000, 1), (2, 10_000, 1)]) for number in range(2)),
    jobs=(
        *(job(f"j{cpu}", "single-numa-node", 1, str(cpu)) for cpu in (7, 6, 4, 3)),
        job("whole", "restricted", 4, "20"),
    ),
)


def test_hand_made() -> None:
    ledger = ledger_of(HAND_MADE)
    instance = ledger.instance
    # cores asked for: 7 + 6 + 4 + 3 + 20 = 40 of 40; cards: 4 + 4 of 8; nobody asks for memory; pods have no limit
    spare = left_over(instance)
    assert spare is not None
    asked = dict(zip((*instance.resources, "cards"), spare.tolist(), strict=True))
    assert asked["cpu"] == asked["cards"] == 0
    assert {amount for name, amount in asked.items() if name not in ("cpu", "cards")} <= {-1}
    assert fill_exactly(ledger, Timing())
    assert ledger.why() is Stop.OPTIMAL
    cores: dict[tuple[int, int], int] = {}
    for host, spots in enumerate(ledger.standing.layout.tasks):
        for shape, positions in spots:
            for zone in (p - instance.widest for p in positions if p >= instance.widest):
                demanded = instance.shapes[shape].demand[instance.resources.index("cpu")]
                cores[host, zone] = cores.get((host, zone), 0) + demanded
    assert len(cores) == 2
    assert len(set(cores.values())) == 1


@pytest.mark.parametrize(("seed", "nodes"), [(seed, 2 + seed % 7) for seed in range(12)])
def test_perfect_packings(seed: int, nodes: int) -> None:
    ledger = ledger_of(perfect(seed, nodes))
    assert fill_exactly(ledger, Timing())
    assert ledger.standing.layout.count.tolist() == demand(ledger.instance).tolist()
    assert ledger.why() is Stop.OPTIMAL
    state = State(ledger.instance)
    state.apply(ledger.assignment())
    assert not state.units.any()
    assert (state.free >= 0).all()
    assert (state.slack >= 0).all()


def test_nodes_without_zones() -> None:
    # 7 + 3 and 6 + 4 again, on two nodes of 10 cores
    nodes = tuple(Node(name=f"n{i}", cpu=10, gpus=(Gpu(model="A", count=2),)) for i in range(2))
    ledger = ledger_of(Snapshot(nodes=nodes, jobs=tuple(job(f"j{c}", "none", 1, str(c)) for c in (7, 6, 4, 3))))
    assert fill_exactly(ledger, Timing())


def test_zones_that_do_not_count_what_is_tight() -> None:
    # Zones of 2 cards; only the node counts cores, 20. 9 + 8 + 2 + 1 and 7 + 6 + 4 + 3 fill a node, whatever the zones,
    # and so do other fours: the four cards of a node are taken by four tasks in any case.
    zones = tuple(NumaZone(id=i, gpus=(2 * i, 2 * i + 1)) for i in range(2))
    nodes = tuple(Node(name=f"n{i}", cpu=20, gpus=(Gpu(model="A", count=4),), zones=zones) for i in range(2))
    cores = (9, 8, 2, 1, 7, 6, 4, 3)
    ledger = ledger_of(Snapshot(nodes=nodes, jobs=tuple(job(f"j{c}", "single-numa-node", 1, str(c)) for c in cores)))
    assert fill_exactly(ledger, Timing())
    state = State(ledger.instance)
    state.apply(ledger.assignment())
    assert not state.units.any()
    assert (state.free >= 0).all()


def test_tasks_bound_and_not_bound_share_a_node() -> None:
    # Nodes of two zones of 4 cards and 10 cores. 6 cards and 13 cores lie in both zones, which leaves 2 cards and 7
    # cores to tasks of 1 card: 5 + 2 in one zone. The other
    # node holds 4 cards with 10 cores, and 3 with 6 beside 1 with 4.
    nodes = tuple(node(f"n{number}", [(4, 10_000, 1), (4, 10_000, 1)]) for number in range(2))
    jobs = (
        job("wide", "none", 6, "13"),
        job("five", "single-numa-node", 1, "5"),
        job("two", "single-numa-node", 1, "2"),
        job("ten", "single-numa-node", 4, "10"),
        job("six", "single-numa-node", 3, "6"),
        job("four", "single-numa-node", 1, "4"),
    )
    ledger = ledger_of(Snapshot(nodes=nodes, jobs=jobs))
    assert fill_exactly(ledger, Timing())
    assert not len(ledger.standing.layout.over_full())


@pytest.mark.parametrize(("cores", "tried"), [((7, 6, 4, 3), True), ((7, 6, 4, 4), False), ((7, 6, 4, 2), True)])
def test_tried_only_where_less_than_the_smallest_task_is_left(cores: tuple[int, ...], tried: bool) -> None:
    # of 20 cores 20, 21 and 19 are asked for; what the last leaves is 1, less than the 2 of the smallest task
    nodes = tuple(Node(name=f"n{i}", cpu=10) for i in range(2))
    jobs = tuple(job(f"j{number}", "none", 0, str(cpu)) for number, cpu in enumerate(cores))
    instance = compile_snapshot(Snapshot(nodes=nodes, jobs=jobs))
    assert (left_over(instance) is not None) == tried


def test_not_tried_with_room_to_spare() -> None:
    jobs = (job("a", "none", 0, "3"), job("b", "none", 0, "4"))
    instance = compile_snapshot(Snapshot(nodes=(Node(name="n", cpu=10), Node(name="m", cpu=10)), jobs=jobs))
    assert left_over(instance) is None


def test_demand_that_equals_capacity_and_does_not_fit() -> None:
    # 20 cores of 20, but 9 + 5 + 6 cannot be cut into two tens
    nodes = tuple(Node(name=f"n{i}", cpu=10) for i in range(2))
    ledger = ledger_of(Snapshot(nodes=nodes, jobs=tuple(job(f"j{c}", "none", 0, str(c)) for c in (9, 5, 6))))
    assert left_over(ledger.instance) is not None
    assert not fill_exactly(ledger, Timing())
    assert not ledger.standing.started.any()


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_sums_against_every_set(data: st.DataObject) -> None:
    shapes = data.draw(st.integers(1, 5))
    amounts = st.lists(st.integers(0, 4), min_size=2, max_size=2)
    need = np.array([data.draw(amounts) for _ in range(shapes)], dtype=np.int64)
    wanted = np.array([data.draw(st.integers(0, 3)) for _ in range(shapes)], dtype=np.int64)
    allowed = np.array([data.draw(st.booleans()) for _ in range(shapes)])
    room = np.array([data.draw(st.integers(1, 9)) for _ in range(2)], dtype=np.int64)
    most = np.iinfo(np.int64).max
    spare = np.array(data.draw(st.sampled_from([(0, 0), (0, 2), (1, 1), (0, most), (2, most)])), dtype=np.int64)
    found = [tuple(row) for rows in Sums(need, wanted, room).sets(room, spare, allowed) for row in rows.tolist()]
    expected = []
    for size in range(1, 2 * LARGEST_HALF + 1):
        for some in itertools.combinations_with_replacement(np.flatnonzero(allowed).tolist(), size):
            rest = room - need[list(some)].sum(axis=0)
            if all(some.count(s) <= wanted[s] for s in some) and (rest >= 0).all() and (rest <= spare).all():
                expected.append(some)
    assert sorted(found) == sorted(expected)
