"""Run times: how long jobs run where they are placed, and how long their data take to get there.

What a place is worth is said in `placement.snapshot.Duration` and `placement.snapshot.DataLocality`. The weighted sum
over all jobs is the objective ``run_time``. `placement.check.values.run_time` measures the same from the snapshot
alone.

Which of a node's alike cards a task gets is chosen when cards are named, by links and zones (`settled`); what is
measured is what a plan of the assignment says.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np

from placement.durations import RunTime
from placement.instance import Assignment, Bools, Instance, Ints
from placement.links import by_links
from placement.numa import without_zones
from placement.shared_cards import parted_leaves, sharing_factor

ONE = Fraction(1)

_Layout = tuple[tuple[tuple[int, ...], int], ...]
"""Of each NUMA zone of a node its cards, by device index, and how many NICs it has."""
_Place = tuple[_Layout, tuple[int, ...] | None]
"""What nodes have in common on which cards lie alike: the layout, and the order of the cards."""


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
    if not by_cards(instance):
        return times(instance, without_zones(instance, assignment)[0])
    known = _kept.of(instance, assignment)
    if known is None or known.times is None:
        found = times(instance, settled(instance, assignment))
        known = _kept.of(instance, assignment)
        if known is None:
            return found
        known.times = found
    return known.times


def settled(instance: Instance, assignment: Assignment) -> Assignment:
    """Return an assignment of cards alone, alike ones exchanged by links, but not so that jobs run longer."""
    known = _kept.of(instance, assignment)
    if known is None:
        found, of_found = _settled(instance, assignment)
        _kept.keep(instance, assignment, found, of_found)
        return found
    return assignment if known.cards is None else known.cards


def _settled(instance: Instance, assignment: Assignment) -> tuple[Assignment, Times | None]:
    """Return the same, and what jobs take with it where that had to be found out."""
    assignment = without_zones(instance, assignment)[0]
    linked = by_links(instance, assignment)
    if linked is assignment or not by_cards(instance) or np.array_equal(linked.cards, assignment.cards):
        return linked, None
    after, before = times(instance, linked), times(instance, assignment)
    if after.total <= before.total:
        return linked, after
    return by_links(instance, assignment, within_zones=True), None


@dataclass(slots=True)
class _Settled:
    """What is known of an assignment that somebody holds.

    Attributes
    ----------
    instance : Instance
    columns : tuple of int array
        Of the assignment but for its cards, which may be forgotten.
    cards : Assignment, optional
        What was settled; None where that is the assignment itself.
    times : Times, optional
        What jobs take with it.
    """

    instance: Instance
    columns: tuple[Ints, ...]
    cards: Assignment | None
    times: Times | None


class _Kept:
    """Remembers what was settled for as long as somebody holds the cards it was settled for.

    An assignment is settled to be measured, to be compared and to be named, and that takes long on large clusters.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Ints], _Settled]] = {}

    def of(self, instance: Instance, assignment: Assignment) -> _Settled | None:
        """Return what is known of an assignment: of these very arrays, in this very instance."""
        cards, found = self._known.get(id(assignment.cards), (None, None))
        if cards is None or found is None or cards() is not assignment.cards or found.instance is not instance:
            return None
        same = all(one is other for one, other in zip(found.columns, _beside_cards(assignment), strict=True))
        return found if same else None

    def keep(self, instance: Instance, assignment: Assignment, found: Assignment, of_found: Times | None) -> None:
        """Remember what was settled."""
        cards, columns, number = assignment.cards, _beside_cards(assignment), id(assignment.cards)
        changed = None if found is assignment else found
        held = (*columns, *(() if changed is None else (changed.cards,)))
        if any(one is cards for one in held):
            return  # they would never be let go
        known = weakref.ref(cards, lambda _: self._known.pop(number, None))
        self._known[number] = known, _Settled(instance, columns, changed, of_found)


_kept = _Kept()


def _beside_cards(assignment: Assignment) -> tuple[Ints, ...]:
    return assignment.job, assignment.leaf, assignment.task, assignment.node, assignment.offset


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
        (model, factors), (sharing, costs) = self._models(), self._sharing()
        far, few = self._zones()
        tasks = np.bincount(self.place, minlength=len(self.jobs))
        columns = np.column_stack([self.number, self.level, model, far, few, sharing, tasks])
        modes, which = np.unique(columns, axis=0, return_inverse=True)
        of_mode = [
            self._run(number).milliseconds(
                level,
                ONE if rank < 0 else factors[rank],
                bool(far_),
                bool(few_),
                ONE if shared < 0 else costs[shared],
                self._run(number).speed(count),
            )
            for number, level, rank, far_, few_, shared, count in modes.tolist()
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
        listed = [() if run is None else run.models for run in self.runs]
        factors = sorted({ONE, *(factor for models in listed for _, factor in models)})
        rank = {factor: number for number, factor in enumerate(factors)}
        names = [kind.model for kind in self.instance.card_kinds]
        known = {models: [rank[dict(models).get(name, ONE)] for name in names] for models in dict.fromkeys(listed)}
        return self._largest([known[models] for models in listed], np.ones(len(self.rows), dtype=np.bool_)), factors

    def _sharing(self) -> tuple[Ints, list[Fraction]]:
        """Return the same of the factors for sharing, over the cards that are shared."""
        instance, assignment = self.instance, self.assignment
        table = parted_leaves(instance)
        if not table.any():
            return np.full(len(self.jobs), -1, dtype=np.int64), []
        said = [None if run is None else (run.shared, run.measured) for run in self.runs]
        runs = dict(zip(said, self.runs, strict=True))
        known = {one: [sharing_factor(kind, run) for kind in instance.card_kinds] for one, run in runs.items()}
        factors = sorted({factor for of_kinds in known.values() for factor in of_kinds})
        rank = {factor: number for number, factor in enumerate(factors)}
        ranks = {one: [rank[factor] for factor in of_kinds] for one, of_kinds in known.items()}
        among = table[self.number[self.place], assignment.leaf[self.rows]]
        return self._largest([ranks[one] for one in said], among), factors

    def _largest(self, ranks: list[list[int]], among: Bools) -> Ints:
        """Return the largest rank over each job's cards of the rows among those that count, -1 without such a card.

        Parameters
        ----------
        ranks : list of list of int
            For each job class, by card kind.
        among : bool array
            Which of the rows count.
        """
        instance, assignment, rows = self.instance, self.assignment, self.rows[among]
        known: dict[tuple[int, ...], int] = {}
        table_of = np.array([known.setdefault(tuple(of_kinds), len(known)) for of_kinds in ranks], dtype=np.int64)
        tables = np.array(list(known), dtype=np.int64).reshape(len(known), len(instance.card_kinds))
        found = np.full(len(self.jobs), -1, dtype=np.int64)
        lengths = np.diff(assignment.offset)[rows]
        flat = np.repeat(assignment.offset[rows] - np.cumsum(lengths) + lengths, lengths)
        card = assignment.cards[flat + np.arange(len(flat))]
        cards = card < instance.widest
        place = np.repeat(self.place[among], lengths)[cards]
        node_class = instance.node_class[np.repeat(assignment.node[rows], lengths)[cards]]
        kinds = np.full((len(instance.classes), max(1, instance.widest)), -1, dtype=np.int64)
        for number, one in enumerate(instance.classes):
            kinds[number, : len(one.cards)] = [kind for kind, _, _ in one.cards]
        if len(place):
            np.maximum.at(found, place, tables[table_of[self.number[place]], kinds[node_class, card[cards]]])
        return found

    def _zones(self) -> tuple[Bools, Bools]:
        """Return which jobs have a task whose cards lie in too many zones, and which in zones with too few NICs."""
        far, few = (np.zeros(len(self.jobs), dtype=np.bool_) for _ in range(2))
        instance, assignment = self.instance, self.assignment
        if not by_cards(instance):
            return far, few
        lying = Lying(instance)
        spec, which = np.unique(instance.node_spec[assignment.node[self.rows]], return_inverse=True)
        zoned = np.array([bool(instance.snapshot.nodes[one].zones) for one in spec.tolist()], dtype=np.bool_)
        mine = zoned[which.reshape(-1)] & (np.diff(assignment.offset)[self.rows] > 0)
        row, place = self.rows[mine], self.place[mine]
        cards = assignment.cards.tolist()
        nics = [[lying.nics(leaf.shape) for leaf in one.leaves] for one in instance.job_classes]
        columns = (
            assignment.node[row],
            assignment.offset[row],
            assignment.offset[row + 1] - (assignment.node[row] >= instance.hosts),  # without the slot on a MIG card
            self.number[place],
            assignment.leaf[row],
        )
        lies = [
            lying.of(node, tuple(cards[begin:end]), nics[number][leaf])
            for node, begin, end, number, leaf in zip(*(column.tolist() for column in columns), strict=True)
        ]
        one, other = np.array(lies, dtype=np.bool_).reshape(-1, 2).T
        far[place[one]] = True
        few[place[other]] = True
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
        self._layouts: dict[int, _Layout] = {}
        self._numbers: dict[_Place, int] = {}
        self._of_node: dict[int, int] = {}
        self._known: dict[tuple[int, tuple[int, ...], int], tuple[bool, bool]] = {}
        self._nics = instance.resources.index("nics") if "nics" in instance.resources else -1

    def nics(self, shape: int) -> int:
        """Return how many NICs a task asks for."""
        if self._nics < 0:
            return 0
        return int(self._instance.shapes[shape].demand[self._nics] * self._instance.resource_units[self._nics])

    def zones(self, node: int) -> list[int]:
        """Return the zone of each card of a node in canonical order, by its place in the file; none without zones."""
        layout, order = self._place(node)
        of_card = _of_card(layout)
        return [of_card[device] for device in order or range(len(of_card))] if of_card else []

    def needed(self, node: int, cards: int) -> int:
        """Return how many zones of an empty node have so many cards."""
        return _needed(self._place(node)[0], cards)

    def of(self, node: int, cards: tuple[int, ...], nics: int) -> tuple[bool, bool]:
        """Return whether cards lie in more zones than so many need, and whether these have fewer than so many NICs."""
        if node not in self._of_node:
            self._of_node[node] = self._numbers.setdefault(self._place(node), len(self._numbers))
        key = (self._of_node[node], cards, nics)
        if key not in self._known:
            self._known[key] = _lies(*self._place(node), cards, nics)
        return self._known[key]

    def _place(self, node: int) -> _Place:
        """Return how the zones of a node are laid out, and the order of its cards."""
        spec = int(self._instance.node_spec[node])
        if spec not in self._layouts:
            zones = self._instance.snapshot.nodes[spec].zones
            self._layouts[spec] = tuple((zone.gpus, len(zone.nics)) for zone in zones)
        return self._layouts[spec], self._instance.node_cards.get(node)


def _of_card(layout: _Layout) -> dict[int, int]:
    """Return the zone of each card by device index."""
    return {card: number for number, (cards, _) in enumerate(layout) for card in cards}


def _needed(layout: _Layout, cards: int) -> int:
    held = np.cumsum(sorted((len(inside) for inside, _ in layout), reverse=True))
    return int(np.searchsorted(held, cards)) + 1


def _lies(layout: _Layout, order: tuple[int, ...] | None, cards: tuple[int, ...], nics: int) -> tuple[bool, bool]:
    """Return what `Lying.of` does of nodes that are laid out so."""
    of_card = _of_card(layout)
    used = {of_card[card if order is None else order[card]] for card in cards}
    there = sum(layout[number][1] for number in used)
    return len(used) > _needed(layout, len(cards)), there < nics
