"""Run times: how long jobs run where they are placed, and how long their data take to get there.

What a place is worth is said in `placement.snapshot.Duration` and `placement.snapshot.DataLocality`. The weighted sum
over all jobs is the objective ``run_time``. `placement.check.run_time` measures the same from the snapshot alone.

Which of a node's alike cards a task gets is chosen when cards are named, by links and zones (`settled`); what is
measured is what a plan of the assignment says.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np

from placement.durations import RunTime
from placement.instance import Assignment, Bools, Instance, Ints
from placement.links import by_links
from placement.numa import without_zones

ONE = Fraction(1)


@dataclass(frozen=True, slots=True)
class Times:
    """What placed jobs take that state a duration or data.

    Attributes
    ----------
    job : int array
        Ascending.
    run, fetch : list of int
        Milliseconds of each.
    total : int
        Of all of them, times their weights.
    """

    job: Ints
    run: list[int]
    fetch: list[int]
    total: int


def run_time(instance: Instance, assignment: Assignment) -> int:
    """Return the weighted sum of what jobs run and what their data take, in milliseconds."""
    return placed(instance, assignment).total if instance.timed else 0


def placed(instance: Instance, assignment: Assignment) -> Times:
    """Return what jobs take with the cards that a plan of an assignment names."""
    # where zones do not count it is all one which of alike cards they are
    own = settled(instance, assignment) if by_cards(instance) else without_zones(instance, assignment)[0]
    return times(instance, own)


def settled(instance: Instance, assignment: Assignment) -> Assignment:
    """Return an assignment of cards alone, alike ones exchanged by links, but not so that jobs run longer."""
    assignment = without_zones(instance, assignment)[0]
    linked = by_links(instance, assignment)
    if linked is assignment or not by_cards(instance):
        return linked
    if times(instance, linked).total <= times(instance, assignment).total:
        return linked
    return by_links(instance, assignment, within_zones=True)


def by_cards(instance: Instance) -> bool:
    """Return whether it matters to some pending job in which NUMA zones the cards of a task lie."""
    found = any(one.run is not None and (one.run.numa != 1 or one.run.nic != 1) for one in instance.job_classes)
    return found and any(node.zones for node in instance.snapshot.nodes)


def times(instance: Instance, assignment: Assignment) -> Times:
    """Return what jobs take with the cards that an assignment names."""
    timed = np.array([job_class.run is not None for job_class in instance.job_classes], dtype=np.bool_)
    rows = np.flatnonzero(timed[instance.job_class[assignment.job]]) if len(assignment) else assignment.job
    if not len(rows):
        return Times(rows, [], [], 0)
    jobs, place = np.unique(assignment.job[rows], return_inverse=True)
    return _Measure(instance, assignment, rows, jobs, place.reshape(-1)).times()


class _Measure:
    """Measures jobs, given the rows of their tasks and which of the jobs each is of."""

    def __init__(self, instance: Instance, assignment: Assignment, rows: Ints, jobs: Ints, place: Ints) -> None:
        self.instance, self.assignment, self.rows, self.jobs, self.place = instance, assignment, rows, jobs, place
        self.number = instance.job_class[jobs]
        self.runs = [job_class.run for job_class in instance.job_classes]

    def times(self) -> Times:
        """Return what the jobs take."""
        model, factors = self._models()
        far, few = self._zones()
        columns = np.column_stack([self.number, self.level, model, far, few])
        modes, which = np.unique(columns, axis=0, return_inverse=True)
        of_mode = [
            self._run(number).milliseconds(level, ONE if rank < 0 else factors[rank], bool(far_), bool(few_))
            for number, level, rank, far_, few_ in modes.tolist()
        ]
        run = [of_mode[mode] for mode in which.reshape(-1).tolist()]
        fetch = self._fetch().tolist()
        weights = [self._run(number).weight for number in self.number.tolist()]
        total = sum(weight * (a + b) for weight, a, b in zip(weights, run, fetch, strict=True))
        return Times(self.jobs, run, fetch, total)

    def _run(self, number: int) -> RunTime:
        run = self.runs[number]
        assert run is not None
        return run

    @cached_property
    def domain(self) -> Ints:
        """The domain that holds all tasks of each job, shape (levels, jobs); -1 where none does."""
        of_row = self.instance.domains[:, self.assignment.node[self.rows]]
        found = np.full((len(of_row), len(self.jobs)), -1, dtype=np.int64)
        for level, domain in enumerate(of_row):
            low, high = np.full(len(self.jobs), np.iinfo(np.int64).max), np.full(len(self.jobs), -1, dtype=np.int64)
            np.minimum.at(low, self.place, domain)
            np.maximum.at(high, self.place, domain)
            same = low == high
            found[level, same] = low[same]
        return found

    @cached_property
    def level(self) -> Ints:
        """The narrowest level of which one domain holds all tasks of each job."""
        found = np.zeros(len(self.jobs), dtype=np.int64)
        for level, domain in enumerate(self.domain):
            found[domain >= 0] = level
        return found

    def _models(self) -> tuple[Ints, list[Fraction]]:
        """Return the largest factor over the models of each job's cards, as its rank, -1 without cards; and factors."""
        instance, assignment = self.instance, self.assignment
        listed = [() if run is None else run.models for run in self.runs]
        factors = sorted({ONE, *(factor for models in listed for _, factor in models)})
        rank = {factor: number for number, factor in enumerate(factors)}
        known: dict[tuple[tuple[str, Fraction], ...], int] = {}
        table_of = np.array([known.setdefault(models, len(known)) for models in listed], dtype=np.int64)
        tables = np.array(
            [[rank[dict(models).get(kind.model, ONE)] for kind in instance.card_kinds] for models in known],
            dtype=np.int64,
        ).reshape(len(known), len(instance.card_kinds))
        found = np.full(len(self.jobs), -1, dtype=np.int64)
        lengths = np.diff(assignment.offset)[self.rows]
        flat = np.repeat(assignment.offset[self.rows] - np.cumsum(lengths) + lengths, lengths)
        card = assignment.cards[flat + np.arange(len(flat))]
        place = np.repeat(self.place, lengths)
        node_class = instance.node_class[np.repeat(assignment.node[self.rows], lengths)]
        kinds = np.full((len(instance.classes), max(1, instance.widest)), -1, dtype=np.int64)
        for number, one in enumerate(instance.classes):
            kinds[number, : len(one.cards)] = [kind for kind, _, _ in one.cards]
        if len(card):
            np.maximum.at(found, place, tables[table_of[self.number[place]], kinds[node_class, card]])
        return found, factors

    def _zones(self) -> tuple[Bools, Bools]:
        """Return which jobs have a task whose cards lie in too many zones, and which in zones with too few NICs."""
        far, few = (np.zeros(len(self.jobs), dtype=np.bool_) for _ in range(2))
        instance, assignment = self.instance, self.assignment
        if not by_cards(instance):
            return far, few
        lying = Lying(instance)
        zoned = np.array([bool(node.zones) for node in instance.snapshot.nodes], dtype=np.bool_)
        mine = zoned[instance.node_spec[assignment.node[self.rows]]] & (np.diff(assignment.offset)[self.rows] > 0)
        for entry in np.flatnonzero(mine).tolist():
            row, place = int(self.rows[entry]), int(self.place[entry])
            cards = tuple(assignment.cards[assignment.offset[row] : assignment.offset[row + 1]].tolist())
            leaf = instance.job_classes[self.number[place]].leaves[assignment.leaf[row]]
            one, other = lying.of(int(assignment.node[row]), cards, lying.nics(leaf.shape))
            far[place] |= one
            few[place] |= other
        return far, few

    def _fetch(self) -> Ints:
        """Return what the cheapest copy of each job's data costs."""
        found = np.zeros(len(self.jobs), dtype=np.int64)
        order = np.argsort(self.number, kind="stable")
        numbers, first = np.unique(self.number[order], return_index=True)
        for number, (begin, end) in zip(numbers.tolist(), pairwise([*first.tolist(), len(order)]), strict=True):
            jobs = order[begin:end]
            costs = []
            for copy in self._run(number).data:
                cost = np.full(len(jobs), copy.fetch[0], dtype=np.int64)
                for level, domain in enumerate(copy.domains):
                    if domain >= 0:
                        cost[self.domain[level, jobs] == domain] = copy.fetch[level]
                costs.append(cost)
            if costs:
                found[jobs] = np.minimum.reduce(costs)
        return found


class Lying:
    """Tells how the cards of a task lie in the NUMA zones of its node; what is alike is looked at once.

    Parameters
    ----------
    instance : Instance
    """

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._known: dict[tuple[int, tuple[int, ...] | None, tuple[int, ...], int], tuple[bool, bool]] = {}
        self._nics = instance.resources.index("nics") if "nics" in instance.resources else -1

    def nics(self, shape: int) -> int:
        """Return how many NICs a task asks for."""
        if self._nics < 0:
            return 0
        return int(self._instance.shapes[shape].demand[self._nics] * self._instance.resource_units[self._nics])

    def zones(self, node: int) -> list[int]:
        """Return the zone of each card of a node in canonical order, by its place in the file; none without zones."""
        zones = self._instance.snapshot.nodes[self._instance.node_spec[node]].zones
        of_card = {card: number for number, zone in enumerate(zones) for card in zone.gpus}
        order = self._instance.node_cards.get(node, range(len(of_card)))
        return [of_card[device] for device in order] if of_card else []

    def needed(self, node: int, cards: int) -> int:
        """Return how many zones of an empty node have so many cards."""
        zones = self._instance.snapshot.nodes[self._instance.node_spec[node]].zones
        held = np.cumsum(sorted((len(zone.gpus) for zone in zones), reverse=True))
        return int(np.searchsorted(held, cards)) + 1

    def of(self, node: int, cards: tuple[int, ...], nics: int) -> tuple[bool, bool]:
        """Return whether cards lie in more zones than so many need, and whether these have fewer than so many NICs."""
        key = (int(self._instance.node_spec[node]), self._instance.node_cards.get(node), cards, nics)
        if key not in self._known:
            zones, of_card = self._instance.snapshot.nodes[key[0]].zones, self.zones(node)
            used = {of_card[card] for card in cards}
            there = sum(len(zones[number].nics) for number in used)
            self._known[key] = len(used) > self.needed(node, len(cards)), there < nics
        return self._known[key]
