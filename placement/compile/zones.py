"""NUMA zones: within how many a task lies, and what those of each node have left; see `placement.instance.Zones`.

All of it is by node kind, but for what running work takes. Only nodes on which a pending task is bound get zones: to
everybody else two halves of a node are the node.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations

import numpy as np

from placement import units
from placement.compile.cards import Cards
from placement.compile.free import Free
from placement.compile.jobs import Shapes
from placement.compile.running import places
from placement.compile.work import Work
from placement.index import MOST, numbered
from placement.instance import ANY, ONE, Bools, Ints, Zones
from placement.scale import Scale
from placement.snapshot import Node, NumaZone, RunningTask, Snapshot, Task

NEVER = -1
"""Zones needed by a task that no number of them can hold."""

Taken = tuple[int, int, Fraction]
"""A set of zones as bits, a resource, and what running work takes of it within the set."""


@dataclass(frozen=True, slots=True)
class KindZones:
    """The zones of nodes of one kind.

    Attributes
    ----------
    zone : tuple of int
        Zone of each card by device index.
    capacity : tuple of (tuple of Fraction or None)
        For each resource what each zone has, or None where zones do not count it.
    count : int
        How many zones there are.
    """

    zone: tuple[int, ...]
    capacity: tuple[tuple[Fraction, ...] | None, ...]
    count: int

    @classmethod
    def of(cls, node: Node, resources: Sequence[str]) -> KindZones:
        """Return the zones of a node that lists some."""
        of_card = {card: number for number, zone in enumerate(node.zones) for card in zone.gpus}
        return cls(
            tuple(of_card[card] for card in range(len(of_card))),
            tuple(_capacity(node.zones, resource) for resource in resources),
            len(node.zones),
        )

    def needed(self, gpus: int, demand: Sequence[Fraction], fine: Sequence[bool]) -> int:
        """Return how many zones of an empty node hold one task, given which cards it may use, or `NEVER`."""
        inside = [0] * self.count
        for usable, zone in zip(fine, self.zone, strict=True):
            inside[zone] += usable
        asked: list[tuple[Fraction | int, Sequence[Fraction | int]]] = [(gpus, inside)] if gpus else []
        asked += [(amount, have) for amount, have in zip(demand, self.capacity, strict=True) if amount and have]
        if any(all(have[zone] >= amount for amount, have in asked) for zone in range(self.count)):
            return 1
        for size in range(2, self.count + 1):
            if any(sum(sorted(have)[-size:]) < amount for amount, have in asked):
                continue  # not even where each is taken from the zones that have most of it
            for some in combinations(range(self.count), size):
                if all(sum(have[zone] for zone in some) >= amount for amount, have in asked):
                    return size
        return NEVER


def _capacity(zones: Sequence[NumaZone], resource: str) -> tuple[Fraction, ...] | None:
    if resource == "nics":
        return tuple(Fraction(len(zone.nics)) for zone in zones)
    if resource not in ("cpu", "memory") or getattr(zones[0], resource) is None:
        return None
    return tuple(units.exact(getattr(zone, resource)) for zone in zones)


def zones_needed(nodes: Sequence[Node], cards: Cards, shapes: Shapes, admits_card: Bools, resources: list[str]) -> Ints:
    """Return within how many zones each shape lies on each kind of node, shape (S, kinds).

    It is 0 where it is not bound, which is so too where it takes all zones, and `NEVER` where zones cannot hold it.
    Amounts are compared as they were written: were they rounded, a task might seem to need more zones than it does.

    Parameters
    ----------
    nodes : sequence of Node
        The first of each kind.
    cards : Cards
    shapes : Shapes
    admits_card : bool array (S, C)
    resources : list of str
    """
    needed = np.zeros((len(shapes.shapes), len(nodes)), dtype=np.int64)
    bound = [s for s, shape in enumerate(shapes.shapes) if shape.numa != ANY]
    for kind, node in enumerate(nodes if bound else ()):
        if not node.zones:
            needed[bound, kind] = NEVER
            continue
        zones = KindZones.of(node, resources)
        of_card, memory = cards.kinds_of(kind), cards.memory_of(kind)
        for s in bound:
            amounts = shapes.amounts[s]
            fine = [
                bool(admits_card[s, one]) and (have is None or have >= amounts.memory)
                for one, have in zip(of_card, memory, strict=True)
            ]
            demand = [amounts.demand.get(name, Fraction(0)) for name in resources]
            size = zones.needed(shapes.shapes[s].gpus, demand, fine)
            if size > 1 and shapes.shapes[s].numa == ONE:
                size = NEVER
            needed[s, kind] = 0 if size == zones.count else size
    return needed


@dataclass(frozen=True, slots=True)
class Zoned:
    """What is free, with zones.

    Attributes
    ----------
    free : Free
    sets : tuple of int
        See `placement.instance.Instance.zone_sets`.
    """

    free: Free
    sets: tuple[int, ...]


def zoned(
    snapshot: Snapshot,
    work: Work,
    nodes: Sequence[Node],
    needed: Ints,
    free: Free,
    used: Ints,
    scale: Scale,
    total: dict[str, int],
    across: bool = False,
) -> Zoned:
    """Return what is free with the zones of nodes on which some pending task is bound.

    Parameters
    ----------
    snapshot : Snapshot
    work : Work
    nodes : sequence of Node
        The first of each kind.
    needed : int array (S, kinds)
        See `zones_needed`.
    free : Free
    used : int array (B,)
        The nodes with running work, whose rows come last in `free`.
    scale : Scale
    total : dict of str to int
        What stands for "no limit" of each resource.
    across : bool
        See `placement.compile.compile`.
    """
    # nodes that hold as much are told apart where some task is bound on them in another way
    alike = numbered(zip(free.alike.tolist(), _columns(needed)[free.kind].tolist(), strict=True))[0]
    free = replace(free, alike=alike) if needed.any() else free
    which = np.flatnonzero((needed > 0).any(axis=0)).tolist()
    if not which:
        return Zoned(free, ())
    resources = list(scale.resources)
    kinds = {kind: KindZones.of(nodes[kind], resources) for kind in which}
    row_of = dict(zip(used.tolist(), range(len(free.kind) - len(used), len(free.kind)), strict=True))
    taken: dict[int, list[Taken]] = defaultdict(list)
    for node, task, place in places(snapshot, work):
        row = row_of[node]
        kind = int(free.kind[row])
        if kind in kinds:
            taken[row] += taken_in_zones(
                nodes[kind].zones, kinds[kind], work.tasks[task], work.amounts[task].demand, place, resources
            )
    widest = max(len(nodes[kind].zones) for kind in which)
    several = across or (needed > 1).any() or any(bits & (bits - 1) for loads in taken.values() for bits, _, _ in loads)
    singles = [1 << zone for zone in range(widest)]
    sets = tuple(range(1, (1 << widest) - 1) if several else singles)
    rows = _Rows(free, kinds, sets, scale, total)
    for row, kind in enumerate(free.kind.tolist()):
        rows.add(row, kind, taken.get(row, []))
    return Zoned(rows.result(), sets)


def _columns(needed: Ints) -> Ints:
    """Return the number of each kind by within how many zones each shape lies there."""
    return numbered(map(tuple, needed.T.tolist()))[0]


def taken_in_zones(
    zones: Sequence[NumaZone],
    kind: KindZones,
    task: Task,
    demand: dict[str, Fraction],
    place: RunningTask,
    resources: Sequence[str],
) -> Iterator[Taken]:
    """Yield what a running task takes in zones that it is known to lie in."""
    bits = 0
    if place.zone is not None:
        bits = 1 << [zone.id for zone in zones].index(place.zone)
    elif task.numa in ("restricted", "single-numa-node"):
        bits = sum({1 << kind.zone[card] for card in place.gpus})
    for r, resource in enumerate(resources):
        if resource == "nics" and place.nics:
            for number, zone in enumerate(zones):
                held = sum(nic.name in place.nics for nic in zone.nics)
                if held:
                    yield 1 << number, r, Fraction(held)
        elif bits and demand.get(resource):
            yield bits, r, demand[resource]


class _Rows:
    """The rows of `Free` while they get zones."""

    def __init__(
        self,
        free: Free,
        kinds: dict[int, KindZones],
        sets: Sequence[int],
        scale: Scale,
        total: dict[str, int],
    ) -> None:
        self.free, self.kinds, self.sets = free, kinds, sets
        self.units, self.total = list(scale.resources.values()), tuple(total[name] for name in scale.resources)
        self.order = np.arange(len(free.device), dtype=np.int64)
        self.zones: list[Zones | None] = []
        self.zone_order: list[tuple[int, ...]] = []
        self._known: dict[tuple[int, tuple[Taken, ...]], dict[int, tuple[int, ...]]] = {}

    def add(self, row: int, kind: int, taken: list[Taken]) -> None:
        """Add the zones of the next row."""
        if kind not in self.kinds:
            self.zones.append(None)
            self.zone_order.append(())
            return
        zones, count = self.kinds[kind], self.kinds[kind].count
        begin, end = int(self.free.start[row]), int(self.free.start[row + 1])
        of_card = [zones.zone[device] for device in self.free.device[begin:end].tolist()]
        cards = self.free.cards[begin:end].tolist()
        inside: list[list[list[int]]] = [[] for _ in range(count)]
        for zone, card in zip(of_card, cards, strict=True):
            inside[zone].append(card)
        slack_of = self._slack(kind, taken)
        order = sorted(range(count), key=lambda zone: (inside[zone], slack_of.get(1 << zone, self.total), zone))
        place = {zone: number for number, zone in enumerate(order)}
        moved = sorted(range(end - begin), key=lambda card: (place[of_card[card]], card))
        self.order[begin:end] = begin + np.array(moved, dtype=np.int64)
        in_file = (sum(1 << zone for zone in range(count) if bits >> place[zone] & 1) for bits in self.sets)
        slack = tuple(
            slack_of.get(some, self.total) if bits >> count == 0 else self.total
            for bits, some in zip(self.sets, in_file, strict=True)
        )
        self.zones.append(Zones(count, tuple(place[of_card[card]] for card in moved), slack))
        self.zone_order.append(() if order == list(range(count)) else tuple(order))

    def _slack(self, kind: int, taken: list[Taken]) -> dict[int, tuple[int, ...]]:
        """Return what tasks bound within each proper set of zones may still take; zones are numbered as in the file."""
        key = kind, tuple(sorted(taken))
        if key not in self._known:
            everything = (1 << self.kinds[kind].count) - 1
            proper = [bits for bits in self.sets if bits < everything]
            columns = [
                [most] * len(proper) if capacity is None else _left(capacity, proper, loads, unit)
                for capacity, unit, most, loads in zip(
                    self.kinds[kind].capacity,
                    self.units,
                    self.total,
                    ([one for one in taken if one[1] == r] for r in range(len(self.units))),
                    strict=True,
                )
            ]
            self._known[key] = dict(zip(proper, zip(*columns, strict=True), strict=True))
        return self._known[key]

    def result(self) -> Free:
        """Return what is free, with zones, cards in order of zones."""
        cards = self.free.cards[self.order]
        # rows of equal cards may have them in other zones, so the cards are compared again, in their new order
        runs = zip(self.free.start[:-1].tolist(), self.free.start[1:].tolist(), strict=True)
        bytes_of = [
            b"" if zones is None else cards[begin:end].tobytes()
            for zones, (begin, end) in zip(self.zones, runs, strict=True)
        ]
        alike, _ = numbered(zip(self.free.alike.tolist(), self.zones, bytes_of, strict=True))
        return replace(
            self.free,
            cards=cards,
            device=self.free.device[self.order],
            alike=alike,
            zones=self.zones,
            zone_order=self.zone_order,
        )


def _left(capacity: Sequence[Fraction], sets: Sequence[int], taken: Sequence[Taken], unit: Fraction) -> list[int]:
    """Return what is left of one resource within each of some sets, which come after those that are within them.

    Zones that running work has over-filled take nothing more, and what they are short of is not taken from others.
    """
    times = math.lcm(*(amount.denominator for amount in capacity), *(amount.denominator for _, _, amount in taken))
    loads: dict[int, int] = defaultdict(int)
    for bits, _, amount in taken:
        loads[bits] += int(amount * times)
    of_zone = [int(amount * times) for amount in capacity]
    least = {0: 0}
    left = []
    for bits in sets:
        zones = [zone for zone, _ in enumerate(capacity) if bits >> zone & 1]
        own = sum(of_zone[zone] for zone in zones)
        own -= sum(amount for within, amount in loads.items() if not within & ~bits)
        least[bits] = min(own, *(least[bits & ~(1 << zone)] for zone in zones))
        left.append(min(MOST, (own - least[bits]) * unit.denominator // (unit.numerator * times)))
    return left
