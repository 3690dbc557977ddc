"""Random tiny snapshots with NUMA zones and NICs, by seed or by hypothesis. Import it as ``zoned_strategies``.

There are at most three nodes of at most four cards, and at most four pending tasks, so that the brute force ends soon.
Room is tight: a task often fits a node and no zone of it, running work lies in zones or wherever it is least in the
way, zones state CPU and memory or do not, and nodes without zones stand beside those with some.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction

from hypothesis import strategies as st
from strategies import Source

from placement import units
from placement.snapshot import (
    Gpu,
    Job,
    Nic,
    Node,
    NumaZone,
    PcieSwitch,
    Policy,
    Running,
    RunningTask,
    Snapshot,
    Task,
    TaskGroup,
)
from placement.units import Quantity

MOST_NODES = 3
IDS = ((0, 1, 2), (0, 1, 2), (1, 0, 4))
POLICIES = ("single-numa-node", "restricted", "restricted", "none", "single-numa-node", "best-effort", "restricted")
CPU: tuple[Quantity, ...] = (1, 0, 2, "1500m", 3, "500m")
MEMORY: tuple[Quantity, ...] = (0, "1Gi", 0, "2Gi", "512Mi")
ZONE_CPU: tuple[Quantity, ...] = (2, 3, "2500m", 1, 2, 4)
ZONE_MEMORY: tuple[Quantity, ...] = ("2Gi", "1Gi", 2**31, "1536Mi")


def random_zoned(seed: int, max_tasks: int = 4) -> Snapshot:
    """Return the snapshot of a seed; the same on every machine and Python.

    Parameters
    ----------
    seed : int
    max_tasks : int
        Most tasks that the pending jobs want together.
    """
    return zoned_tiny(Source(random.Random(seed).randint), max_tasks)


@st.composite
def zoned_snapshots(draw: st.DrawFn, max_tasks: int = 4) -> Snapshot:
    """Draw a tiny snapshot with NUMA zones."""
    return zoned_tiny(Source(lambda low, high: draw(st.integers(low, high))), max_tasks)


def zoned_tiny(source: Source, max_tasks: int = 4) -> Snapshot:
    """Return a tiny snapshot with NUMA zones made of a source's choices."""
    nodes = list(_nodes(source))
    running = list(_running(source, nodes))
    jobs = list(_jobs(source, max_tasks))
    objectives = ("value", "tasks") if source.one_in(2) else (source.pick(("value", "tasks", "nodes")),)
    policy = Policy(objectives=objectives)  # type: ignore[arg-type]
    return Snapshot(nodes=tuple(nodes), jobs=(*running, *jobs), policy=policy)


# --- nodes ----------------------------------------------------------------------------------------------------


def _nodes(source: Source) -> Iterator[Node]:
    left = source.pick((1, 2, 1, MOST_NODES))
    number = 0
    while left:
        count = min(left, source.pick((1, 1, 2)))
        yield _node(source, f"n{number}", count)
        left -= count
        number += 1


def _node(source: Source, name: str, count: int) -> Node:
    cards = source.pick((4, 3, 2, 4, 3, 1, 0))
    zones = () if source.one_in(8) else _zones(source, cards)
    cpu: Quantity | None = source.pick((None, 4, "5500m", 3))
    memory: Quantity | None = source.pick((None, "4Gi", "3Gi"))
    if zones and zones[0].cpu is not None:
        cpu = _total([zone.cpu for zone in zones])
    if zones and zones[0].memory is not None:
        memory = _total([zone.memory for zone in zones])
    return Node(
        name=name,
        count=count,
        cpu=cpu,
        memory=memory,
        pods=source.pick((None, None, 3, 2)),
        gpus=tuple(_gpus(source, cards)),
        zones=zones,
    )


def _total(amounts: list[Quantity | None]) -> Quantity:
    """Return a sum as a snapshot may state it: here always a multiple of a half."""
    total = sum((units.exact(amount) for amount in amounts if amount is not None), Fraction(0))
    return int(total) if total.denominator == 1 else float(total)


def _gpus(source: Source, cards: int) -> Iterator[Gpu]:
    while cards:
        count = min(cards, source.pick((4, 2, 1)))
        yield Gpu(
            model=source.pick(("A", "A", "B")),
            count=count,
            memory=source.pick((None, "16Gi", "8Gi")),
            health="unhealthy" if source.rarely(12) else "healthy",
        )
        cards -= count


def _zones(source: Source, cards: int) -> tuple[NumaZone, ...]:
    """Return one to three zones, with every card in one of them: blocks of alike size, or any."""
    count = source.pick((2, 3, 2, 3, 2, 3, 1))
    ids = source.pick(IDS)
    even = not source.one_in(3)
    zone_of = [card * count // cards if even else source.number(0, count - 1) for card in range(cards)]
    with_cpu, with_memory = not source.one_in(4), source.one_in(2)
    with_cpus = source.one_in(6)
    zones = []
    for number in range(count):
        gpus = tuple(card for card, zone in enumerate(zone_of) if zone == number)
        nics = tuple(Nic(name=f"nic{number}-{i}") for i in range(source.pick((1, 0, 2, 1))))
        switch = PcieSwitch(name=f"switch{number}", gpus=gpus[:1], nics=tuple(nic.name for nic in nics[:1]))
        zones.append(
            NumaZone(
                id=ids[number],
                cpus=f"{8 * number}-{8 * number + 3}" if with_cpus else "",
                cpu=source.pick(ZONE_CPU) if with_cpu else None,
                memory=source.pick(ZONE_MEMORY) if with_memory else None,
                gpus=gpus,
                nics=nics,
                switches=(switch,) if source.one_in(4) else (),
            )
        )
    return tuple(zones)


# --- jobs -----------------------------------------------------------------------------------------------------


def _task(source: Source) -> Task:
    gpus = source.pick((1, 2, 0, 2))
    return Task(
        gpus=gpus,
        gpu_share=source.pick((None, None, 0.5)) if gpus else None,
        gpu_memory=source.pick((None, None, "6Gi", "10Gi")) if gpus else None,
        gpu_models=("A",) if gpus and source.rarely(6) else (),
        cpu=source.pick(CPU),
        memory=source.pick(MEMORY),
        nics=source.pick((0, 1, 0, 0, 2)),
        numa=source.pick(POLICIES),  # type: ignore[arg-type]
    )


def _jobs(source: Source, max_tasks: int) -> Iterator[Job]:
    left = max_tasks
    for number in range(source.pick((1, 2, 3))):
        groups = []
        for group in range(source.pick((1, 1, 2))):
            count = min(left, source.pick((1, 2, 1, 3)))
            if count:
                left -= count
                least = source.pick((None, 1))
                groups.append(TaskGroup(name=f"g{group}", count=count, min_count=least, task=_task(source)))
        if groups:
            priority, weight = source.pick((0, 0, 10)), source.pick((1, 1, 3))
            yield Job(name=f"job{number}", priority=priority, weight=weight, groups=tuple(groups))


def _running(source: Source, nodes: list[Node]) -> Iterator[Job]:
    """Yield running jobs; nothing keeps them from overfilling nodes, cards or zones, and no NIC is named twice."""
    names = [
        (node, node.name if node.count == 1 else f"{node.name}-{copy}") for node in nodes for copy in range(node.count)
    ]
    held: set[tuple[str, str]] = set()
    for number in range(source.pick((0, 1, 2))):
        task = _task(source)
        places = []
        for index in range(source.pick((1, 1, 2))):
            node, name = source.pick(names)
            cards = sum(gpu.count for gpu in node.gpus)
            if cards < task.gpus:
                continue
            first = source.number(0, cards - 1) if cards else 0
            gpus = tuple(sorted((first + i) % cards for i in range(task.gpus)))
            zone = source.pick([zone.id for zone in node.zones]) if node.zones and source.one_in(2) else None
            free = [nic.name for zone in node.zones for nic in zone.nics if (name, nic.name) not in held]
            nics = tuple(free[-task.nics :]) if 0 < task.nics <= len(free) and not source.one_in(3) else ()
            held.update((name, nic) for nic in nics)
            places.append(RunningTask(group="g", index=index, node=name, gpus=gpus, zone=zone, nics=nics))
        if places:
            group = TaskGroup(name="g", count=2, min_count=1, task=task)
            yield Job(name=f"running{number}", groups=(group,), running=Running(tasks=tuple(places)))
