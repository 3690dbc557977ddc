"""What tasks get of each NUMA zone: by hand, against a flow, and in plans of random snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_flow
from zoned_strategies import zoned_snapshots

import placement as pl
from placement import units
from placement.numa.cpus import union
from placement.numa.kinds import Kind
from placement.numa.node import Shared, Wanted
from placement.plan import Place
from placement.snapshot import Gpu, Job, Nic, Node, NumaZone, Running, RunningTask, Snapshot, Task, TaskGroup

Load = tuple[int, int]
"""A set of zones as bits, and the amount that lies within it."""

ZONES = (
    NumaZone(id=0, cpus="0-3,8-11", cpu=8, memory="16Gi", gpus=(0, 1)),
    NumaZone(id=2, cpus="4-7,12-15", cpu=8, memory="16Gi", gpus=(2, 3)),
)


def job(name: str, count: int = 1, **task: object) -> Job:
    return Job(name=name, groups=(TaskGroup(name="g", count=count, task=Task(**task)),))  # type: ignore[arg-type]


def runs(name: str, *places: RunningTask, **task: object) -> Job:
    groups = (TaskGroup(name="g", count=len(places), task=Task(**task)),)  # type: ignore[arg-type]
    return Job(name=name, groups=groups, running=Running(tasks=places))


def at(index: int = 0, *gpus: int, zone: int | None = None) -> RunningTask:
    return RunningTask(group="g", index=index, node="n", gpus=gpus, zone=zone)


def cluster(*jobs: Job, zones: tuple[NumaZone, ...] = ZONES, count: int = 1) -> Snapshot:
    cpu = sum((units.exact(zone.cpu) for zone in zones if zone.cpu is not None), Fraction(0))
    memory = sum(units.exact(zone.memory) for zone in zones if zone.memory is not None)
    cards = sum(len(zone.gpus) for zone in zones)
    node = Node(
        name="n",
        count=count,
        cpu=float(cpu) if zones[0].cpu is not None else None,
        memory=int(memory) if zones[0].memory is not None else None,
        gpus=(Gpu(model="A", count=cards),) if cards else (),
        zones=zones,
    )
    return Snapshot(nodes=(node,), jobs=jobs)


def placed(snapshot: Snapshot) -> dict[str, Place]:
    plan = pl.solve(snapshot, solver="best-fit")
    assert plan.checked
    tasks = plan.tasks
    return {f"{name}{index}": tasks[name, group, index] for name, group, index, _, _ in tasks}


# --- by hand -------------------------------------------------------------------------------------------------


def test_a_task_gets_what_the_zone_of_its_cards_has() -> None:
    found = placed(cluster(job("a", gpus=1, cpu=3, memory="4Gi"), job("b", gpus=2, cpu=5, numa="single-numa-node")))
    # b needs both cards of a zone, so a is in the other; neither needs another zone
    a, b = found["a0"], found["b0"]
    assert len(a.zones) == len(b.zones) == 1
    assert a.zones != b.zones
    assert (a.cpu, a.memory, b.cpu, b.memory) == ((3,), (4 * 2**30,), (5,), ())
    assert a.cpuset_mems == str(a.zones[0])
    assert a.cpuset_cpus == {0: "0-3,8-11", 2: "4-7,12-15"}[a.zones[0]]


def test_a_large_task_spans_zones() -> None:
    # 12 cores of 16, of which 7 run in zone 0: 1 is left there and 8 are in zone 2
    busy = runs("r", at(zone=0), cpu=7)
    found = placed(cluster(busy, job("a", cpu=9)))["a0"]
    assert (found.zones, found.cpu, found.memory) == ((0, 2), (1, 8), ())
    assert found.cpuset_cpus == "0-15"


def test_running_work_that_may_be_anywhere_makes_room() -> None:
    # 9 cores run somewhere. A single-zone task of 7 fits in zone 0 or 2, since 9 = 8 + 1 find room beside it
    found = placed(cluster(runs("r", at(), cpu=9), job("a", cpu=7, numa="single-numa-node")))["a0"]
    assert (len(found.zones), found.cpu) == (1, (7,))


def test_those_that_are_bound_come_first() -> None:
    # zone 0 has 8 cores: 6 for the task bound to it by its cards (those of zone 2 run), 2 for the other with 4 cores
    busy = runs("r", at(0, 2), at(1, 3), gpus=1)
    found = placed(cluster(busy, job("a", gpus=1, cpu=4), job("b", gpus=1, cpu=6, numa="single-numa-node")))
    assert (found["b0"].zones, found["b0"].cpu) == ((0,), (6,))
    assert (found["a0"].zones, found["a0"].cpu) == ((0, 2), (2, 2))


def test_amounts_are_exact() -> None:
    # zone 0 has 1.7 cores left of 2.7 and zone 1 has 2.05: 3.711 are 2.05 and 1.661, or 1.7 and 2.011
    zones = (NumaZone(id=0, cpu=2.7), NumaZone(id=1, cpu="2050m"))
    found = placed(cluster(runs("r", at(zone=0), cpu=1), job("a", cpu=3.711), zones=zones))["a0"]
    assert found.cpu == ("1.661", "2.05")


def test_what_is_over_full_takes_nothing_from_others() -> None:
    # 10 cores run in zone 0 that has 8, so the node has 14 left of 24, and zones 1 and 2 have 8 each. A node-wide 14
    # goes there whole: 8 + 6
    zones = tuple(NumaZone(id=number, cpu=8) for number in range(3))
    found = placed(cluster(runs("r", at(zone=0), cpu=10), job("a", cpu=14), zones=zones))["a0"]
    assert (found.zones, sorted(found.cpu, key=str)) == ((1, 2), [6, 8])


def test_zones_that_count_nothing() -> None:
    zones = tuple(msgspec.structs.replace(zone, cpu=None, memory=None, cpus="") for zone in ZONES)
    plan = pl.solve(cluster(job("a", gpus=3, cpu=3), job("b", cpu=1), zones=zones), solver="best-fit")
    assert plan.checked
    assert (plan.tasks.zones, plan.tasks.nics) == ([[0, 2], []], msgspec.UNSET)
    assert plan.tasks.cpu is plan.tasks.memory is plan.tasks.cpus is msgspec.UNSET


def test_no_zones_no_columns() -> None:
    tasks = pl.solve(Snapshot(nodes=(Node(name="n", cpu=4),), jobs=(job("a", cpu=1),)), solver="best-fit").tasks
    assert {tasks.zones, tasks.cpu, tasks.memory, tasks.nics, tasks.cpus} == {msgspec.UNSET}
    assert tasks["a", "g", 0] == Place(node="n", gpus=())


def test_what_is_alike_is_one_object() -> None:
    plan = pl.solve(cluster(job("a", 3, gpus=4, cpu=16), count=3), solver="best-fit")
    assert plan.checked
    assert isinstance(plan.tasks.zones, list)
    assert len({id(zones) for zones in plan.tasks.zones}) == 1


def test_lists_of_cpus() -> None:
    assert union(["8-11,0-3", "4-7"]) == "0-11"
    assert union(["1,3,5"]) == "1,3,5"
    assert union(["5,1-3,2-4"]) == "1-5"
    assert union(["0", "2"]) == "0,2"
    assert union(["0-3", ""]) == union([]) == ""


# --- wherever there is room ----------------------------------------------------------------------------------


def flow(capacity: Sequence[int], loads: Sequence[Load]) -> int:
    """Return how much of some loads finds room in the zones."""
    source, sink = len(loads) + len(capacity), len(loads) + len(capacity) + 1
    edges = np.zeros((sink + 1, sink + 1), dtype=np.int32)
    for number, (within, amount) in enumerate(loads):
        edges[source, number] = amount
        for zone in range(len(capacity)):
            edges[number, len(loads) + zone] = amount if within >> zone & 1 else 0
    edges[len(loads) : source, sink] = capacity
    return int(maximum_flow(csr_matrix(edges), source, sink).flow_value)


def holds(capacity: Sequence[int], running: Sequence[Load], new: Sequence[Load]) -> bool:
    """Return whether new loads fit by Hall's condition, where running work that overfills leaves nothing."""

    def inside(loads: Sequence[Load], bits: int) -> int:
        return sum(amount for within, amount in loads if not within & ~bits)

    return all(
        inside(new, bits)
        <= max(0, sum(amount for zone, amount in enumerate(capacity) if bits >> zone & 1) - inside(running, bits))
        for bits in range(1, 1 << len(capacity))
    )


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[list[int]], list[tuple[int, int, int]], list[Wanted], list[int]]:
    """Draw what zones have of CPU, memory and NICs, what runs, new tasks that fit, and the zone of each card."""
    count = draw(st.integers(1, 4))
    everything = (1 << count) - 1
    bits = st.integers(1, everything)
    capacity = [draw(st.lists(st.integers(0, most), min_size=count, max_size=count)) for most in (12, 12, 4)]
    running = draw(st.lists(st.tuples(bits, st.integers(0, 2), st.integers(0, 6)), max_size=4))
    cards = draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=4))
    new: list[Wanted] = []
    for _ in range(draw(st.integers(0, 6))):
        within = draw(st.one_of(st.just(0), st.just(0), bits))
        inside = [card for card, zone in enumerate(cards) if not within or within >> zone & 1]
        own = draw(st.lists(st.sampled_from(inside), max_size=2, unique=True)) if inside else []
        one = Wanted(within, tuple(own), tuple(draw(st.integers(0, most)) for most in (9, 9, 2)))
        if all(
            holds(
                capacity[r],
                [(within, amount) for within, resource, amount in running if resource == r],
                [(one.within or everything, one.amounts[r]) for one in (*new, one)],
            )
            for r in range(3)
        ):
            new.append(one)
    return capacity, running, new, cards


@given(cases())
def test_all_that_fits_gets_its_amounts(
    case: tuple[list[list[int]], list[tuple[int, int, int]], list[Wanted], list[int]],
) -> None:
    capacity, running, new, cards = case
    zones = tuple(
        NumaZone(
            id=zone,
            gpus=tuple(card for card, own in enumerate(cards) if own == zone),
            nics=tuple(Nic(name=f"{zone}-{number}") for number in range(nics)),
        )
        for zone, nics in enumerate(capacity[2])
    )
    kind = Kind.of(Node(name="n", gpus=(Gpu(model="A", count=len(cards)),), zones=zones))
    given_ = Shared(kind, capacity, running, frozenset(), new).result()
    for one, got in zip(new, given_, strict=True):
        assert [sum(amounts.values()) for amounts in got.amounts] == list(one.amounts)
        assert all(amount > 0 for amounts in got.amounts for amount in amounts.values())
        assert all(not one.within or one.within >> zone & 1 for amounts in got.amounts for zone in amounts)
        in_zones = np.bincount([kind.nics[nic][1] for nic in got.nics], minlength=len(zones))
        assert in_zones.tolist() == [got.amounts[2].get(zone, 0) for zone in range(len(zones))]
    nics = [nic for got in given_ for nic in got.nics]
    assert len(nics) == len(set(nics))
    for r, zones_have in enumerate(capacity):
        left = [have - sum(got.amounts[r].get(zone, 0) for got in given_) for zone, have in enumerate(zones_have)]
        assert min(left) >= 0
        loads = [(within, amount) for within, resource, amount in running if resource == r]
        # as much of what runs finds room beside the new tasks as without them
        assert flow(left, loads) == flow(zones_have, loads)


@given(zoned_snapshots())
def test_plans_say_where_all_of_it_comes_from(snapshot: Snapshot) -> None:
    plan = pl.solve(snapshot, solver="best-fit")
    assert plan.checked
    jobs = {one.name: one for one in snapshot.jobs}
    nodes = {
        node.name if node.count == 1 else f"{node.name}-{copy}": node
        for node in snapshot.nodes
        for copy in range(node.count)
    }
    for name, group, index, node, gpus in plan.tasks:
        place = plan.tasks[name, group, index]
        task = next(one.task for one in jobs[name].groups if one.name == group)
        zones = nodes[node].zones
        assert task is not None
        if not zones:
            assert place == Place(node=node, gpus=tuple(gpus))
            continue
        for asked, amounts, counted in (
            (task.cpu, place.cpu, zones[0].cpu is not None),
            (task.memory, place.memory, zones[0].memory is not None),
        ):
            assert len(amounts) == (len(place.zones) if counted and units.exact(asked) else 0)
            if amounts:
                assert sum(map(units.exact, amounts)) == units.exact(asked)
        assert len(place.nics) == len(set(place.nics)) == task.nics
        cards_or_nics = {
            zone.id for zone in zones if {*zone.gpus} & {*gpus} or {nic.name for nic in zone.nics} & {*place.nics}
        }
        assert cards_or_nics <= {*place.zones}
        assert list(place.zones) == [zone.id for zone in zones if zone.id in place.zones]
        if task.numa == "single-numa-node":
            assert len(place.zones) <= 1
