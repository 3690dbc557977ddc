"""What NUMA zones of a node have to hold: new tasks as the plan splits them, and what is known of running work.

Running work of which the zone is not known lies wherever it is least in the way. So a node is overfilled if and only
if some of its zones have to hold more than they have, work that is known to lie within them alone (Hall's theorem).
Running work may do so by itself, which is no violation; new work may not make it worse.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from placement.check.case.case import Case
from placement.check.exact import Ints, Whole, whole
from placement.check.facts.amounts import NICS
from placement.check.facts.kinds import Shape
from placement.check.facts.zones import Zoning
from placement.snapshot import RunningTask

TOGETHER = 1024
"""Nodes of which all sets of zones are looked at together; keeps the tables small."""


@dataclass(frozen=True, slots=True)
class Over:
    """Zones of a node that new work overfills; amounts in the judge's numbers.

    Attributes
    ----------
    node : int
        Position in the load.
    resource : str
    zones : tuple of int
    before, new : Fraction
        What running work and new work take within these zones.
    allowed : int
    """

    node: int
    resource: str
    zones: tuple[int, ...]
    before: Fraction
    new: Fraction
    allowed: int


def overfilled(case: Case, resources: Sequence[str]) -> list[Over]:
    """Return the zones that new work overfills, node by node; the smallest sets of zones, and never all of a node."""
    lying, load = case.lying, case.load
    node = load.new.node[lying.rows] if len(lying.rows) else lying.rows
    zonings = case.facts.zonings if len(node) else []
    several = np.array([zoning is not None and len(zoning.ids) > 1 for zoning in zonings], dtype=np.bool_)
    rows = np.flatnonzero(several[load.kind[node]]) if len(node) else node
    if not len(rows):
        return []
    nodes, place = np.unique(node[rows], return_inverse=True)
    known = _running(case, nodes)
    found = [
        over
        for order, resource in enumerate(resources)
        for over in _Zones(case, resource, nodes, place.reshape(-1), lying.number[rows], known[resource]).over()
    ]
    return sorted(found, key=lambda over: (over.node, resources.index(over.resource)))


# --- what runs -----------------------------------------------------------------------------------------------

_Known = dict[tuple[int, int], int]
"""What running work takes within zones that it is known to lie in, by place of the node and zones as bits."""


def _running(case: Case, nodes: Ints) -> dict[str, _Known]:
    """Return what is known of running work on some nodes, by resource."""
    facts, load = case.facts, case.load
    known: dict[str, _Known] = defaultdict(lambda: defaultdict(int))
    rows = np.flatnonzero(np.isin(load.running.node, nodes))
    places = facts.places if len(rows) else []
    where = np.searchsorted(nodes, load.running.node[rows]).tolist()
    kinds = load.kind[load.running.node[rows]].tolist()
    shapes = facts.shape_of_leaf[facts.running.leaf[rows]].tolist()
    for row, node, kind, shape in zip(rows.tolist(), where, kinds, shapes, strict=True):
        zoning = facts.zonings[kind]
        assert zoning is not None
        for resource, bits, amount in known_of(zoning, facts.shapes[shape], places[row]):
            known[resource][node, bits] += amount
    return known


def known_of(zoning: Zoning, shape: Shape, place: RunningTask) -> Iterator[tuple[str, int, int]]:
    """Yield resource, zones as bits, and amount, of one running task."""
    within: set[int] = set()
    if place.zone in zoning.ids:
        within = {zoning.ids.index(place.zone)}
    elif shape.policy:
        within = {zoning.card[device] for device in place.gpus}
    bits = sum(1 << zone for zone in within if zone >= 0)
    for resource in zoning.there:
        if resource == NICS and place.nics:
            for name in place.nics:
                if name in zoning.nic:
                    yield NICS, 1 << zoning.nic[name], 1
        elif bits and resource in shape.demand:
            yield resource, bits, shape.demand[resource]


# --- one resource --------------------------------------------------------------------------------------------


class _Zones:
    """One resource in the zones of some nodes, in columns by node and zone."""

    def __init__(self, case: Case, resource: str, nodes: Ints, place: Ints, number: Ints, known: _Known) -> None:
        self.resource, self.nodes = resource, nodes
        self._kinds = case.load.kind[nodes]
        there = [None if zoning is None else zoning.there.get(resource) for zoning in case.facts.zonings]
        width = max(len(there[kind] or ()) for kind in self._kinds.tolist())
        self.counted = np.array([amounts is not None for amounts in there], dtype=np.bool_)[self._kinds]
        taken = [parts.get(resource, []) for parts in case.lying.taken]
        # amounts of a plan may be finer than those of the snapshot
        self.times = math.lcm(1, *{part.denominator for parts in taken for part in parts})
        largest = max((part for parts in taken for part in parts), default=Fraction(0))
        most = max((amount for amounts in there for amount in amounts or ()), default=0)
        beside = self.times * (math.ceil(largest) * len(place) + sum(known.values()) + most * max(1, width))
        lies = _matrix([[int(part * self.times) for part in parts] for parts in taken], width, beside)
        allowed = _matrix([[amount * self.times for amount in amounts or ()] for amounts in there], width, beside)
        self.allowed = allowed[self._kinds]
        self.zones = np.array([len(amounts or ()) for amounts in there], dtype=np.int64)[self._kinds]
        self.new = np.zeros((len(nodes), width), dtype=lies.dtype)
        np.add.at(self.new, place, lies[number])
        self.before = np.zeros_like(self.new)
        self.wide: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for (node, bits), amount in known.items():
            if bits & (bits - 1):
                self.wide[node].append((bits, amount * self.times))
            else:
                self.before[node, bits.bit_length() - 1] += amount * self.times

    def over(self) -> Iterator[Over]:
        """Yield zones that new work overfills."""
        # where all work lies in single zones, some zones are overfilled only if one of them is
        alone = self.before + self.new > np.maximum(self.allowed, self.before)
        alone[~self.counted | np.isin(np.arange(len(self.nodes)), list(self.wide))] = False
        for node, zone in np.argwhere(alone).tolist():
            yield self._over(node, 1 << zone, self.before[node, zone])
        wide = [node for node in sorted(self.wide) if self.counted[node]]
        for first in range(0, len(wide), TOGETHER):
            yield from self._sets(np.array(wide[first : first + TOGETHER], dtype=np.int64))

    def _sets(self, nodes: Ints) -> Iterator[Over]:
        """Yield the smallest sets of zones that are overfilled, of some nodes where running work lies in several."""
        full = (1 << self.zones[nodes]) - 1
        short, new = self.before[nodes] - self.allowed[nodes], self.new[nodes]
        within: dict[int, Whole] = defaultdict(lambda: np.zeros_like(short[:, 0]))
        for row, node in enumerate(nodes.tolist()):
            for bits, amount in self.wide[node]:
                within[bits][row] += amount
        excess, found = {0: np.zeros_like(short[:, 0])}, defaultdict[int, list[int]](list)
        for bits in sorted(range(1, int(full.max())), key=lambda bits: (bits.bit_count(), bits)):
            zones = _places(bits)
            over = short[:, zones].sum(axis=1) + sum(load for inside, load in within.items() if not inside & ~bits)
            # what running work overfills by itself, in these zones or in some of them
            excess[bits] = over
            for zone in zones:
                excess[bits] = np.maximum(excess[bits], excess[bits & ~(1 << zone)])
            fuller = (over + new[:, zones].sum(axis=1) > excess[bits]) & (bits & ~full == 0) & (bits != full)
            for row in np.flatnonzero(fuller).tolist():
                if not any(smaller & bits == smaller for smaller in found[row]):
                    yield self._over(int(nodes[row]), bits, int(over[row]) + self._sum(self.allowed[nodes[row]], bits))
                found[row].append(bits)

    def _over(self, node: int, bits: int, before: int) -> Over:
        new, allowed = self._sum(self.new[node], bits), self._sum(self.allowed[node], bits)
        return Over(
            int(self.nodes[node]),
            self.resource,
            tuple(_places(bits)),
            Fraction(int(before), self.times),
            Fraction(new, self.times),
            allowed // self.times,
        )

    @staticmethod
    def _sum(amounts: Whole, bits: int) -> int:
        return sum(int(amounts[zone]) for zone in _places(bits))


def _places(bits: int) -> list[int]:
    return [zone for zone in range(bits.bit_length()) if bits >> zone & 1]


def _matrix(rows: list[list[int]], width: int, beside: int) -> Whole:
    """Return rows of whole numbers, filled up with 0."""
    flat = [amount for row in rows for amount in (row + [0] * width)[:width]]
    return whole(flat, 1, beside).reshape(len(rows), width)
