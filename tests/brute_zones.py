"""What NUMA zones and NICs mean for the tasks of one node: read off the fields, one set of zones after the other.

A task that is bound lies in a set of zones; of everything else it is open which zones hold it. Whether the zones of a
node hold all of it is a question of flow, from tasks to the zones that they may lie in. No code of the judge is here.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from brute_facts import card_allows, card_memory_of, cards_of, leaf_tasks

from placement import units
from placement.snapshot import Job, Node, RunningTask, Snapshot, Task

COUNTED = ("cpu", "memory", "nics")
Within = frozenset[int]
"""Zones by place in the file."""
Load = tuple[Within, tuple[Fraction, ...]]
"""The zones that a task lies within, and what it takes of each counted resource."""


@dataclass(frozen=True)
class Zones:
    """Zones of a node: that of each card, and what each has of every counted resource; None where zones state none."""

    of_card: tuple[int, ...]
    there: tuple[tuple[Fraction, ...] | None, ...]

    @property
    def all(self) -> Within:
        return frozenset(range(len(self.there[-1] or ())))


def zones_of(node: Node) -> Zones | None:
    if not node.zones:
        return None
    cards = sum(gpu.count for gpu in node.gpus)
    of_card = [next(i for i, zone in enumerate(node.zones) if card in zone.gpus) for card in range(cards)]
    cpu = [zone.cpu for zone in node.zones]
    memory = [zone.memory for zone in node.zones]
    stated = [
        None if None in amounts else tuple(units.exact(amount) for amount in amounts if amount is not None)
        for amounts in (cpu, memory)
    ]
    return Zones(tuple(of_card), (*stated, tuple(Fraction(len(zone.nics)) for zone in node.zones)))


def is_bound(task: Task) -> bool:
    return task.numa not in ("none", "best-effort")


def counted(task: Task) -> tuple[Fraction, ...]:
    return units.exact(task.cpu), units.exact(task.memory), Fraction(task.nics)


def sets_of(job: Job, task: Task, node: Node) -> list[Within | None]:
    """Return the sets of zones that a task may lie in on a node; None stands for no zones at all."""
    zones = zones_of(node)
    if zones is None:
        return [] if is_bound(task) else [None]
    if not is_bound(task):
        return [zones.all]
    memory = card_memory_of(task)
    usable = [
        zone
        for (_, gpu), zone in zip(cards_of(node), zones.of_card, strict=True)
        if card_allows(job, task, gpu) and (gpu.memory is None or memory <= units.exact(gpu.memory))
    ]
    everything = [
        frozenset(s) for size in range(1, len(zones.all) + 1) for s in itertools.combinations(zones.all, size)
    ]
    able = [
        within
        for within in everything
        if sum(zone in within for zone in usable) >= task.gpus
        and all(
            there is None or sum(there[zone] for zone in within) >= amount
            for there, amount in zip(zones.there, counted(task), strict=True)
        )
    ]
    if not able or (task.numa == "single-numa-node" and len(able[0]) > 1):
        return []
    return [within for within in everything if len(within) == len(able[0])]


def running_loads(node: Node, task: Task, place: RunningTask) -> list[Load]:
    """Return what one running task takes of the zones of its node."""
    zones = zones_of(node)
    if zones is None:
        return []
    within = zones.all
    if place.zone is not None:
        within = frozenset(i for i, zone in enumerate(node.zones) if zone.id == place.zone)
    elif is_bound(task) and place.gpus:
        within = frozenset(zones.of_card[card] for card in place.gpus)
    cpu, memory, nics = counted(task)
    if not place.nics:
        return [(within, (cpu, memory, nics))]
    of_name = {nic.name: i for i, zone in enumerate(node.zones) for nic in zone.nics}
    none = Fraction(0)
    named = [(frozenset({of_name[name]}), (none, none, Fraction(1))) for name in place.nics]
    return [(within, (cpu, memory, none)), *named]


def all_running(snapshot: Snapshot) -> dict[str, list[Load]]:
    """Return what runs, by name of the node."""
    of_name = {
        name: node
        for node in snapshot.nodes
        for name in ([node.name] if node.count == 1 else [f"{node.name}-{i}" for i in range(node.count)])
    }
    found: dict[str, list[Load]] = defaultdict(list)
    for job in snapshot.jobs:
        tasks = {path: task for path, task, _ in leaf_tasks(job)}
        for place in job.running.tasks if job.running else ():
            found[place.node] += running_loads(of_name[place.node], tasks[place.group], place)
    return found


def in_order(loads: Iterable[Load]) -> tuple[Load, ...]:
    return tuple(sorted(loads, key=lambda load: (sorted(load[0]), load[1])))


def hold(zones: Zones, running: Iterable[Load], new: Iterable[Load]) -> bool:
    """Return whether zones hold new tasks, and as much of what runs as without them."""
    running, new = in_order(running), in_order(new)
    stated = [(there, place) for place, there in enumerate(zones.there) if there is not None]
    return all(_together(there, _of(running, place), _of(new, place)) for there, place in stated)


def _of(loads: Iterable[Load], place: int) -> tuple[tuple[Within, Fraction], ...]:
    return tuple((within, amounts[place]) for within, amounts in loads if amounts[place])


One = tuple[tuple[Within, Fraction], ...]
"""Loads of one resource."""


@lru_cache(maxsize=200_000)
def _together(there: tuple[Fraction, ...], running: One, new: One) -> bool:
    total = sum((amount for _, amount in new), Fraction(0))
    return _most(there, (*new, *running)) == _most(there, running) + total


@lru_cache(maxsize=200_000)
def _most(there: tuple[Fraction, ...], loads: One) -> Fraction:
    return sum((amount for row in flow(there, loads) for amount in row), Fraction(0))


def flow(there: Sequence[Fraction], loads: Sequence[tuple[Within, Fraction]]) -> list[list[Fraction]]:
    """Return how much of each load lies in each zone, as much in all as can be; earlier loads come first."""
    lies = [[Fraction(0)] * len(there) for _ in loads]
    for number, (_, amount) in enumerate(loads):
        left = amount
        while left:
            path = _path(there, loads, lies, number)
            if path is None:
                break
            # (load, zone it moves to) from the one that is added to the one that moves into a zone with room
            more = min([left, _room(there, lies, path[-1][1])] + [lies[b][zone] for (_, zone), (b, _) in _steps(path)])
            for load, zone in path:
                lies[load][zone] += more
            for (_, zone), (load, _) in _steps(path):
                lies[load][zone] -= more
            left -= more
    return lies


def _steps(path: list[tuple[int, int]]) -> Iterable[tuple[tuple[int, int], tuple[int, int]]]:
    return itertools.pairwise(path)


def _room(there: Sequence[Fraction], lies: list[list[Fraction]], zone: int) -> Fraction:
    return there[zone] - sum((row[zone] for row in lies), Fraction(0))


def _path(
    there: Sequence[Fraction], loads: Sequence[tuple[Within, Fraction]], lies: list[list[Fraction]], first: int
) -> list[tuple[int, int]] | None:
    """Return moves that make room for more of a load: it goes to a zone, from which another moves on, and so forth."""
    seen: set[int] = set()
    paths = [[(first, zone)] for zone in sorted(loads[first][0])]
    while paths:
        path = paths.pop(0)
        zone = path[-1][1]
        if zone in seen:
            continue
        seen.add(zone)
        if _room(there, lies, zone) > 0:
            return path
        for load, row in enumerate(lies):
            if row[zone]:
                paths += [[*path, (load, other)] for other in sorted(loads[load][0]) if other not in seen]
    return None
