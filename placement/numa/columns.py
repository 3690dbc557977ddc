"""The columns of a plan that say what its tasks take of NUMA zones."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

import numpy as np

from placement.compile.running import places
from placement.compile.work import Work
from placement.compile.zones import taken_in_zones
from placement.instance import Assignment, Instance, Ints
from placement.numa.cpus import union
from placement.numa.kinds import RESOURCES, Kind
from placement.numa.node import NICS, Given, Shared, Wanted
from placement.snapshot import NumaZone
from placement.units import Quantity

Loads = tuple[tuple[int, int, Fraction], ...]
"""Sets of zones as bits, a resource, and what running work takes of it within the set."""


@dataclass(frozen=True, slots=True)
class Row:
    """What the plan says of one task; see `placement.plan.Tasks`. Equal rows are one object."""

    zones: list[int]
    cpu: list[Quantity]
    memory: list[Quantity]
    nics: list[str]
    cpus: str


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of all tasks; a column in which no task has anything is empty."""

    zones: list[list[int]]
    cpu: list[list[Quantity]]
    memory: list[list[Quantity]]
    nics: list[list[str]]
    cpus: list[str]


def without_zones(instance: Instance, assignment: Assignment) -> tuple[Assignment, Ints]:
    """Return an assignment that names cards alone, and the canonical zones that each task is bound to, as bits.

    First slots of MIG instances are left out like zones; `placement.naming` has them.
    """
    bound = np.zeros(len(assignment), dtype=np.int64)
    is_zone = assignment.cards >= instance.widest
    if not is_zone.any():
        return assignment, bound
    row = np.repeat(np.arange(len(assignment), dtype=np.int64), np.diff(assignment.offset))
    zones = is_zone & (assignment.cards < instance.slot_base)
    np.bitwise_or.at(bound, row[zones], 1 << assignment.cards[zones] - instance.widest)
    lengths = np.bincount(row[~is_zone], minlength=len(assignment))
    offset = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths, dtype=np.int64)])
    return replace(assignment, cards=assignment.cards[~is_zone], offset=offset), bound


def in_zones(instance: Instance, assignment: Assignment, bound: Ints, gpus: list[list[int]]) -> Columns:
    """Return what each task takes of the zones of its node.

    Parameters
    ----------
    instance : Instance
    assignment : Assignment
    bound : int array (T,)
        Canonical zones that each task is bound to, as bits; see `without_zones`.
    gpus : list of list of int
        Device indices of each task's cards.
    """
    lists = np.array([bool(node.zones) for node in instance.snapshot.nodes], dtype=np.bool_)
    there = np.flatnonzero(lists[instance.node_spec[assignment.node]])
    there = there[np.argsort(assignment.node[there], kind="stable")]
    rows: list[Row] = [Row([], [], [], [], "")] * len(assignment)
    if len(there):
        nodes = assignment.node[there]
        first = np.concatenate([[0], np.flatnonzero(np.diff(nodes)) + 1, [len(nodes)]])
        solver = _Nodes(instance, assignment, bound, gpus, nodes)
        for begin, end in pairwise(first.tolist()):
            inside = there[begin:end].tolist()
            for number, row in zip(inside, solver.rows(int(nodes[begin]), inside), strict=True):
                rows[number] = row
    return Columns(
        zones=[row.zones for row in rows] if any(row.zones for row in rows) else [],
        cpu=[row.cpu for row in rows] if any(row.cpu for row in rows) else [],
        memory=[row.memory for row in rows] if any(row.memory for row in rows) else [],
        nics=[row.nics for row in rows] if any(row.nics for row in rows) else [],
        cpus=[row.cpus for row in rows] if any(row.cpus for row in rows) else [],
    )


class _Nodes:
    """Works out one node after the other; what is alike is worked out once."""

    def __init__(
        self, instance: Instance, assignment: Assignment, bound: Ints, gpus: list[list[int]], nodes: Ints
    ) -> None:
        self.instance, self.assignment, self.gpus = instance, assignment, gpus
        self.bound: list[int] = bound.tolist()
        self.work = Work(instance.snapshot.jobs)
        self.task = self._tasks()
        self.amounts = [tuple(one.demand.get(name, Fraction(0)) for name in RESOURCES) for one in self.work.amounts]
        self._kinds: dict[tuple[NumaZone, ...], Kind] = {}
        self._of_spec: dict[int, Kind] = {}
        self.running = self._running(frozenset(nodes.tolist()))
        self._known: dict[tuple[object, ...], list[Row]] = {}
        self._rows: dict[tuple[object, ...], Row] = {}
        self._examples: dict[tuple[int, tuple[int, ...]], tuple[int, ...]] = {}

    def _tasks(self) -> list[int]:
        """Return the number of each placed task among the distinct ones."""
        instance, assignment = self.instance, self.assignment
        of_pair: dict[tuple[int, int], int] = {}
        found = []
        gangs = self.work.of_job[instance.job_spec[assignment.job]].tolist()
        for gang, job, leaf in zip(gangs, assignment.job.tolist(), assignment.leaf.tolist(), strict=True):
            if (gang, leaf) not in of_pair:
                path = instance.job_classes[instance.job_class[job]].leaves[leaf].path
                of_pair[gang, leaf] = self.work.leaves[gang][path][0]
            found.append(of_pair[gang, leaf])
        return found

    def _kind(self, node: int) -> Kind:
        spec = int(self.instance.node_spec[node])
        if spec not in self._of_spec:
            entry = self.instance.snapshot.nodes[spec]
            if entry.zones not in self._kinds:
                self._kinds[entry.zones] = Kind.of(entry)
            self._of_spec[spec] = self._kinds[entry.zones]
        return self._of_spec[spec]

    def _running(self, nodes: frozenset[int]) -> dict[int, tuple[Loads, frozenset[str]]]:
        """Return what runs on some nodes: loads, and the NICs held by name."""
        loads: dict[int, list[tuple[int, int, Fraction]]] = defaultdict(list)
        held: dict[int, set[str]] = defaultdict(set)
        for node, task, place in places(self.instance.snapshot, self.work):
            if node not in nodes:
                continue
            kind, demand = self._kind(node), self.work.amounts[task].demand
            zones = self.instance.snapshot.nodes[int(self.instance.node_spec[node])].zones
            known = list(taken_in_zones(zones, kind.counted, self.work.tasks[task], demand, place, RESOURCES))
            placed = {resource for _, resource, _ in known}
            everywhere = (1 << len(zones)) - 1
            loads[node] += known
            loads[node] += [
                (everywhere, r, demand[name])
                for r, name in enumerate(RESOURCES)
                if r not in placed and demand.get(name)
            ]
            held[node].update(place.nics)
        return {node: (tuple(sorted(some)), frozenset(held[node])) for node, some in loads.items()}

    def rows(self, node: int, numbers: Sequence[int]) -> list[Row]:
        """Return what the plan says of all tasks on a node."""
        kind = self._kind(node)
        order = self.instance.node_zones.get(node)
        running, held = self.running.get(node, ((), frozenset()))
        tasks = [
            (self.task[number], _in_file(self.bound[number], order), tuple(self.gpus[number])) for number in numbers
        ]
        if not any(self.amounts[task][NICS] for task, _, _ in tasks):
            # which cards they are does not matter then, but in which zones
            tasks = [(task, bits, self._example(kind, cards)) for task, bits, cards in tasks]
        key = (id(kind), running, held, tuple(tasks))
        if key not in self._known:
            self._known[key] = list(self._solved(kind, running, held, tasks))
        return self._known[key]

    def _example(self, kind: Kind, cards: tuple[int, ...]) -> tuple[int, ...]:
        """Return as many cards of each zone as there are among some: the same for all that are alike in that."""
        key = id(kind), cards
        if key not in self._examples:
            left = Counter(kind.card[card] for card in cards)
            found = []
            for card, zone in enumerate(kind.card):
                if left[zone]:
                    left[zone] -= 1
                    found.append(card)
            self._examples[key] = tuple(found)
        return self._examples[key]

    def _solved(
        self, kind: Kind, running: Loads, held: frozenset[str], tasks: Sequence[tuple[int, int, tuple[int, ...]]]
    ) -> Iterator[Row]:
        asked = [self.amounts[task] for task, _, _ in tasks]
        scale = [
            math.lcm(
                *(amount.denominator for amount in zones or ()),
                *(amount.denominator for _, resource, amount in running if resource == r),
                *(amounts[r].denominator for amounts in asked),
            )
            for r, zones in enumerate(kind.capacity)
        ]
        shared = Shared(
            kind,
            [
                None if zones is None else [_whole(amount, one) for amount in zones]
                for zones, one in zip(kind.capacity, scale, strict=True)
            ],
            [(bits, resource, _whole(amount, scale[resource])) for bits, resource, amount in running],
            held,
            [
                Wanted(bits, cards, tuple(map(_whole, amounts, scale)))
                for amounts, (_, bits, cards) in zip(asked, tasks, strict=True)
            ],
        )
        for given, (_, _, cards) in zip(shared.result(), tasks, strict=True):
            yield self._row(kind, given, cards, scale)

    def _row(self, kind: Kind, given: Given, cards: Iterable[int], scale: Sequence[int]) -> Row:
        zones = sorted({kind.card[card] for card in cards}.union(*given.amounts))
        cpu, memory = (
            tuple(_text(Fraction(amounts.get(zone, 0), one)) for zone in zones) if amounts else ()
            for amounts, one in zip(given.amounts[:NICS], scale, strict=False)
        )
        nics = tuple(kind.nics[nic][0] for nic in sorted(given.nics))
        key = (id(kind), tuple(zones), cpu, memory, nics)
        if key not in self._rows:
            ids = [kind.ids[zone] for zone in zones]
            self._rows[key] = Row(ids, [*cpu], [*memory], [*nics], union(kind.cpus[zone] for zone in zones))
        return self._rows[key]


def _in_file(bits: int, order: tuple[int, ...] | None) -> int:
    """Return canonical zones as those of the file, both as bits."""
    if order is None or not bits:
        return bits
    return sum(1 << place for number, place in enumerate(order) if bits >> number & 1)


def _whole(amount: Fraction, scale: int) -> int:
    """Return an amount in a unit of which it is a whole number."""
    return amount.numerator * (scale // amount.denominator)


def _text(amount: Fraction) -> Quantity:
    """Return an amount as a quantity: a whole number, or an exact decimal.

    Examples
    --------
    >>> _text(Fraction(5)), _text(Fraction(16711, 1000)), _text(Fraction(1, 8))
    (5, '16.711', '0.125')
    >>> _text(Fraction(1, 10**42))
    '0.0000000000000000000000000000000000000001e-2'
    """
    if amount.denominator == 1:
        return amount.numerator
    places = 0
    while amount.denominator != 1:
        amount *= 10
        places += 1
    # a quantity has at most 40 digits behind its point
    shown = min(places, 40)
    digits = f"{amount.numerator:0{shown + 1}}"
    return f"{digits[:-shown]}.{digits[-shown:]}{f'e-{places - shown}' if places > shown else ''}"
