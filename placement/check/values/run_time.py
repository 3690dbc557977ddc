"""Run time: how long jobs run where they are placed and how long their data take, from the snapshot and the tasks.

A job runs for its seconds times the factors of its card models, of the narrowest level that holds it, of NUMA zones, of
NICs and of how its cards are shared, over the speed with so many tasks, rounded up to milliseconds; the cheapest copy
of its data is fetched. Numbers are the decimals they are written as.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeVar

import numpy as np

from placement import units
from placement.check.case.case import Case, Placed
from placement.check.exact import Bools, Ints
from placement.check.values.slowdown import shared_factor, sharing_factor
from placement.check.values.tables import differing
from placement.check.violation import Violation, as_float, show
from placement.plan import RunTimes
from placement.slowdown import usual
from placement.snapshot import Duration, Job

RULE = "run_time"
ONE = Fraction(1)

Factors = tuple[Fraction, Fraction, Fraction, Fraction, Fraction]
"""Of card models, of the level, of NUMA zones, of NICs and of sharing."""

Look = TypeVar("Look")


@dataclass(frozen=True, slots=True)
class Found:
    """What a job takes where it is placed: a row of the plan, exactly, and the weight of the job."""

    row: int
    weight: int
    level: str
    run: Fraction
    fetch: Fraction
    factors: Factors


def run_time(placed: Placed) -> Fraction:
    """Return the sum over all jobs, in seconds times weight."""
    return Fraction(sum(int(1000 * (one.run + one.fetch)) * one.weight for one in found_of(placed)), 1000)


def found_of(placed: Placed) -> list[Found]:
    """Return what each placed job takes that states a duration or data, in the order of the snapshot."""
    if RULE not in placed.kept:
        placed.kept[RULE] = Jobs(placed).found()
    found: list[Found] = placed.kept[RULE]
    return found


def run_times_of(placed: Placed) -> RunTimes | None:
    """Return what each placed job takes that states a duration or data; None where there is none."""
    found = found_of(placed)
    if not found:
        return None
    model, level, numa, nic, sharing = ([as_float(one.factors[which]) for one in found] for which in range(5))
    return RunTimes(
        job=[placed.job_name(one.row) for one in found],
        level=[one.level for one in found],
        seconds=[as_float(one.run) for one in found],
        fetch=[as_float(one.fetch) for one in found],
        by_model=model,
        by_level=level,
        by_numa=numa,
        by_nic=nic,
        by_sharing=sharing,
    )


def judge(case: Case) -> Iterator[Violation]:
    """Yield every row that is not what the tasks make."""
    found, due = (RunTimes() if one is None else one for one in (case.plan.run, run_times_of(case)))
    yield from differing(RULE, "run", found, due, _text)


_Row = tuple[str, str, float, float, float, float, float, float, float]


def _text(row: _Row) -> str:
    job, level, seconds, fetch, *factors = row
    listed = ", ".join(map(repr, factors))
    return f"{show(job)} in one {show(level)}: {seconds!r} s (factors {listed}) and {fetch!r} s for data"


def speed(duration: Duration, tasks: int, wanted: int) -> Fraction:
    """Return the speed of a job with some of the tasks placed that it wants, relative to all of them."""
    if not duration.scaling:
        return ONE
    stated = {0: Fraction(0), wanted: ONE} | {number: units.exact(one) for number, one in duration.scaling}
    above = min(number for number in stated if number >= tasks)
    if above == tasks:
        return stated[tasks]
    below = max(number for number in stated if number < tasks)
    return stated[below] + (stated[above] - stated[below]) * Fraction(tasks - below, above - below)


# --- jobs ----------------------------------------------------------------------------------------------------


class Jobs:
    """The placed jobs that state a duration or data.

    Attributes
    ----------
    row : int array
        Of their tasks.
    unit : int array
        Which job each of these is of, numbered in the order of the snapshot.
    first : int array
        A row of each job.
    """

    def __init__(self, placed: Placed) -> None:
        self.placed, self.facts = placed, placed.facts
        jobs = self.facts.snapshot.jobs
        states = np.array([job.duration is not None or bool(job.data) for job in jobs], dtype=np.bool_)
        self.row: Ints = np.flatnonzero(states[placed.rows.job]) if len(jobs) else np.zeros(0, dtype=np.int64)
        _, first, unit = np.unique(placed.job[self.row], return_index=True, return_inverse=True)
        self.unit: Ints = unit.reshape(-1)
        self.first: Ints = self.row[first]
        self.levels = ["cluster", *self.facts.snapshot.topology, "node"]

    def found(self) -> list[Found]:
        """Return what each of them takes."""
        if not len(self.row):
            return []
        entries = self.placed.rows.job[self.first].tolist()
        level, model, sharing = self.level.tolist(), self._models(), self._sharing()
        far, few = self._zones()
        tasks = np.bincount(self.unit, minlength=len(self.first)).tolist()
        known: dict[tuple[int, int, Fraction, bool, bool, Fraction, Fraction], tuple[Fraction, Factors]] = {}
        rows = []
        for number, entry in enumerate(entries):
            job = self.facts.snapshot.jobs[entry]
            zoned = bool(far[number]), bool(few[number])
            runs = ONE if job.duration is None else speed(job.duration, tasks[number], self.facts.gang_of(entry).wanted)
            key = (entry, level[number], model[number], *zoned, sharing[number], runs)
            if key not in known:
                known[key] = self._run(job.duration, *key[1:])
            run, factors = known[key]
            fetch = self._fetch(job, number)
            name = self.levels[level[number]]
            rows.append(Found(int(self.first[number]), job.weight, name, run, fetch, factors))
        return rows

    def _run(
        self,
        duration: Duration | None,
        level: int,
        model: Fraction,
        far: bool,
        few: bool,
        sharing: Fraction,
        runs: Fraction,
    ) -> tuple[Fraction, Factors]:
        """Return the run time, and the factors in it but for the speed with so many tasks, which divides."""
        if duration is None:
            return Fraction(0), (ONE, ONE, ONE, ONE, ONE)
        by_level = usual(len(self.levels) - 1 - level)
        if duration.levels:
            by_level = self._listed(duration.levels, level, ONE)
        numa = units.exact(duration.numa_misaligned) if far else ONE
        nic = units.exact(duration.nic_misaligned) if few else ONE
        exactly = units.exact(duration.seconds) * model * by_level * numa * nic * sharing / runs
        return _up(exactly), (model, by_level, numa, nic, sharing)

    def _listed(self, by_level: Mapping[str, float], level: int, otherwise: Fraction) -> Fraction:
        """Return what is listed of a level, or of the next narrower one that is."""
        for name in self.levels[level:]:
            if name in by_level:
                return units.exact(by_level[name])
        return otherwise

    # --- levels ----------------------------------------------------------------------------------------------

    @cached_property
    def domains(self) -> list[Ints]:
        """For each level a number for the domain that each task is in; -1 for none."""
        facts, rows = self.facts, self.placed.rows
        spec = rows.spec[self.row]
        found = [self._numbers[level][spec] for level in self.levels[1:-1]]
        return [np.zeros(len(self.row), dtype=np.int64), *found, facts.node_names.first[spec] + rows.copy[self.row]]

    @cached_property
    def _numbers(self) -> dict[str, Ints]:
        """By level the number of the domain that the nodes of each entry are in; -1 for none."""
        found = {}
        for level in self.levels[1:-1]:
            names = [node.domains.get(level) for node in self.facts.snapshot.nodes]
            known = {name: number for number, name in enumerate(dict.fromkeys(name for name in names if name))}
            found[level] = np.array([-1 if not name else known[name] for name in names], dtype=np.int64)
        return found

    @cached_property
    def whole(self) -> list[Ints]:
        """For each level the domain that holds all tasks of each job; -1 where none does."""
        found = []
        for domain in self.domains:
            of_first = np.zeros(len(self.first), dtype=np.int64)
            of_first[self.unit[::-1]] = domain[::-1]
            of_first[self.unit[domain != of_first[self.unit]]] = -1
            found.append(of_first)
        return found

    @cached_property
    def level(self) -> Ints:
        """The narrowest level of which one domain holds each job."""
        holds = np.stack([domain >= 0 for domain in self.whole])
        return np.asarray(len(self.levels) - 1 - np.argmax(holds[::-1], axis=0), dtype=np.int64)

    # --- cards -----------------------------------------------------------------------------------------------

    def _models(self) -> list[Fraction]:
        """Return for each job the largest factor over the models of its cards, 1 without cards."""
        models = [card.gpu.model for card in self.facts.cards]
        every = np.ones(len(self.facts.leaves), dtype=np.bool_)
        return self._largest(
            models, every, lambda duration, model: units.exact(duration.gpu_models.get(model, 1) if duration else 1)
        )

    def _sharing(self) -> list[Fraction]:
        """Return for each job the largest factor over the cards that its tasks share, 1 where none shares any."""
        cards = [(card.gpu.model, sharing_factor(card.gpu)) for card in self.facts.cards]
        tasks = [leaf.group.task for leaf in self.facts.leaves]
        shares = [
            task is not None and not task.mig_profile and task.gpu_share is not None and units.exact(task.gpu_share) < 1
            for task in tasks
        ]
        if not any(shares):
            return [ONE] * len(self.first)

        def factor(duration: Duration | None, card: tuple[str, Fraction]) -> Fraction:
            return ONE if duration is None else shared_factor(duration, *card)

        return self._largest(cards, np.array(shares, dtype=np.bool_), factor)

    def _largest(
        self, of_cards: Sequence[Look], counts: Bools, factor: Callable[[Duration | None, Look], Fraction]
    ) -> list[Fraction]:
        """Return for each job the largest factor over the cards of tasks of leaves that count, 1 without any.

        Parameters
        ----------
        of_cards : sequence
            What a factor depends on, of each card of `Facts.cards`.
        counts : bool array
            By leaf.
        factor : callable
            Returns the factor of a job's duration and one of these.
        """
        facts, rows = self.facts, self.placed.rows
        of_row = np.full(len(rows), -1, dtype=np.int64)
        of_row[self.row] = self.unit
        of_row[~counts[rows.leaf]] = -1
        cards = np.flatnonzero(of_row[rows.row] >= 0)
        kind = facts.kind[rows.spec[rows.row[cards]]]
        known = {look: number for number, look in enumerate(dict.fromkeys(of_cards))}
        of_card = np.array([known[look] for look in of_cards], dtype=np.int64)
        number = of_card[facts.first_card[kind] + rows.device[cards]]
        pairs = np.unique(np.column_stack([of_row[rows.row[cards]], number]), axis=0)
        most: dict[int, Fraction] = {}
        listed = list(known)
        for unit, look in pairs.tolist():
            one = factor(facts.snapshot.jobs[rows.job[self.first[unit]]].duration, listed[look])
            most[unit] = max(one, most.get(unit, one))
        return [most.get(unit, ONE) for unit in range(len(self.first))]

    def _zones(self) -> tuple[Bools, Bools]:
        """Return which jobs have a task with cards in too many zones, and which in zones with too few NICs."""
        facts, rows = self.facts, self.placed.rows
        far, few = (np.zeros(len(self.first), dtype=np.bool_) for _ in range(2))
        kind = facts.kind[rows.spec[self.row]]
        listed = np.array([zoning is not None for zoning in facts.zonings], dtype=np.bool_)
        known: dict[tuple[int, tuple[int, ...], int], tuple[bool, bool]] = {}
        entries = np.flatnonzero(listed[kind]) if len(listed) else np.zeros(0, dtype=np.int64)
        row = self.row[entries]
        devices = rows.device.tolist()
        tasks = [leaf.group.task for leaf in facts.leaves]
        nics = [0 if task is None else task.nics for task in tasks]
        begin, end = (np.searchsorted(rows.row, row + after).tolist() for after in (0, 1))
        columns = (self.unit[entries].tolist(), kind[entries].tolist(), rows.leaf[row].tolist(), begin, end)
        for unit, number, leaf, first, last in zip(*columns, strict=True):
            key = (number, tuple(devices[first:last]), nics[leaf])
            if key not in known:
                known[key] = self._lies(*key)
            if known[key][0]:
                far[unit] = True
            if known[key][1]:
                few[unit] = True
        return far, few

    def _lies(self, kind: int, cards: tuple[int, ...], nics: int) -> tuple[bool, bool]:
        """Return whether cards lie in more zones than so many need, and whether these have too few NICs."""
        zoning = self.facts.zonings[kind]
        if zoning is None or not cards:
            return False, False
        inside = sorted((zoning.card.count(zone) for zone in zoning.places), reverse=True)
        needed = next((size for size in zoning.places if sum(inside[:size]) >= len(cards)), len(inside))
        used = {zoning.card[card] for card in cards}
        return len(used) > needed, sum(zone in used for zone in zoning.nic.values()) < nics

    # --- data ------------------------------------------------------------------------------------------------

    def _fetch(self, job: Job, number: int) -> Fraction:
        """Return what the cheapest copy of a job's data costs."""
        costs = []
        for data in job.data:
            shared = self._shared(data.level, data.domain, number)
            costs.append(_up(self._listed(data.fetch_seconds, shared, Fraction(0))))
        return min(costs, default=Fraction(0))

    def _shared(self, level: str, name: str, number: int) -> int:
        """Return the narrowest level of which one domain holds a job and a copy of its data."""
        holding = self._holding(level, name)
        both = [place for place, domain in enumerate(holding) if domain >= 0 and self.whole[place][number] == domain]
        return max(both)

    def _holding(self, level: str, name: str) -> list[int]:
        """Return the domain that holds a copy of data at each level down to its own; -1 where none does."""
        if (level, name) not in self._copies:
            nodes, own = self.facts.snapshot.nodes, self.levels.index(level)
            if level == "node":
                place = self.facts.node_names.find(name)
                entries = [] if place is None else [place[0]]
                last = -1 if place is None else int(self.facts.node_names.first[place[0]]) + place[1]
            else:
                entries = [entry for entry, node in enumerate(nodes) if node.domains.get(level) == name]
                last = int(self._numbers[level][entries[0]]) if entries else -1
            found = [0]
            for wider in self.levels[1:own]:
                inside = {int(self._numbers[wider][entry]) for entry in entries}
                found.append(inside.pop() if len(inside) == 1 else -1)
            self._copies[level, name] = [*found, last]
        return self._copies[level, name]

    @cached_property
    def _copies(self) -> dict[tuple[str, str], list[int]]:
        return {}


def _up(seconds: Fraction) -> Fraction:
    """Return seconds rounded up to whole milliseconds."""
    return Fraction(-(-1000 * seconds.numerator // seconds.denominator), 1000)
