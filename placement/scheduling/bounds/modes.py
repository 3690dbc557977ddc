"""Ways in which jobs may run, as a relaxation: what each of them surely takes, whatever a schedule does.

A resource is the card units of all healthy cards of one model, or halves of nodes
(`placement.scheduling.bounds.halves`). A job of which tasks lie on several models is a mixture of its modes there, in
the shares of its units: it takes no less time than its slowest card, so no less than any of them, and no fewer units of
each model than its share. What else nodes have is left out of account: CPU, memory, links between cards, and MIG cards;
and so are quotas.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np

from placement.durations import RunTime
from placement.gang import Leaf, is_flat
from placement.instance import Bools, Instance, JobClass
from placement.scheduling.bounds.halves import halves
from placement.scheduling.capacity import Profile, held, models_of, profiles
from placement.scheduling.work import Work
from placement.shared_cards import parted, sharing_factor

ONE = Fraction(1)
NO_END = 1 << 60
MOST_MODES = 8
"""Most numbers of tasks that an elastic job is given modes for, in each model; others lie between two of these."""


@dataclass(frozen=True, slots=True)
class Mode:
    """A way to run.

    Attributes
    ----------
    run : int
        Least time that all of the job's work takes.
    uses : tuple of (int, int)
        Resources and the units of each that it holds all that time.
    """

    run: int
    uses: tuple[tuple[int, int], ...]

    def area(self, cards: int) -> int:
        """Return the unit milliseconds of the first resources, those that are cards."""
        return self.run * sum(units for resource, units in self.uses if resource < cards)


@dataclass(frozen=True, slots=True)
class Kind:
    """Jobs that the relaxation cannot tell apart.

    Attributes
    ----------
    jobs : tuple of int
    weight : int
    release : int
        From when on its completion time counts.
    start : int
        When it may start; later than `release` where it comes after others.
    due : int
        When it must have ended; `NO_END` for no such time.
    modes : tuple of Mode
        Each job runs in a mixture of them. For a job that runs now, of what is left of its work if it is stopped.
    whole : bool
        Whether all of its work is done at a stretch, the last one. Else it may be stopped and goes on where it was.
    kept : Mode, optional
        What a job that runs now does from time 0 on if it is not stopped.
    stopped : int
        Least time to its end if it is stopped.
    """

    jobs: tuple[int, ...]
    weight: int
    release: int
    start: int
    due: int
    modes: tuple[Mode, ...]
    whole: bool
    kept: Mode | None = None
    stopped: int = 0

    @property
    def count(self) -> int:
        """Number of jobs."""
        return len(self.jobs)

    @property
    def parts(self) -> tuple[Mode, ...]:
        """Modes of which its work is a mixture, whether or not it is stopped."""
        return self.modes if self.kept is None else (self.kept, *self.modes)

    @property
    def least(self) -> int:
        """Least time that it holds anything."""
        return min(mode.run for mode in self.parts)


def in_windows(kind: Kind) -> bool:
    """Return whether the starts of jobs of a kind say all about when they hold what."""
    return kind.whole and kind.kept is None


@dataclass(frozen=True, slots=True)
class Relaxation:
    """Jobs that count and what they run on.

    Attributes
    ----------
    kinds : tuple of Kind
    profiles : tuple of Profile
        By resource.
    cards : int
        How many of them, which come first, are cards of a model; the others are `halves` of nodes.
    """

    kinds: tuple[Kind, ...]
    profiles: tuple[Profile, ...]
    cards: int


def relaxation(work: Work, out: Collection[int] = ()) -> Relaxation:
    """Return the relaxation of a work of which some jobs get no start.

    It says something of every timetable in which all other jobs that count have an end.

    Parameters
    ----------
    work : Work
    out : collection of int
    """
    modes = Modes(work.instance)
    counted = [job for job in range(work.jobs) if work.counts(job) and job not in out]
    found: dict[Kind, list[int]] = {}
    earliest = _Earliest(work, modes)
    for job in counted:
        number = int(work.instance.job_class[job])
        ongoing = work.ongoing.get(job)
        kind = Kind(
            jobs=(),
            weight=int(work.weight[job]),
            release=int(work.release[job]),
            start=earliest.start(job),
            due=int(work.deadline[job]) if work.hard[job] and ongoing is None else NO_END,
            modes=modes.of(number),
            whole=_whole(work, job, modes),
        )
        if ongoing is not None:
            kind = _running(work, job, kind)
        found.setdefault(kind, []).append(job)
    kinds = tuple(replace(kind, jobs=tuple(jobs)) for kind, jobs in found.items())
    cards = profiles(work)
    return Relaxation(kinds, (*cards, *modes.halves.profiles), len(cards))


def _whole(work: Work, job: int, modes: Modes) -> bool:
    """Return whether a job that waits does all its work in its last stretch: it is not stopped, or nothing is kept."""
    every = int(work.checkpoint[job])
    if not work.preemptible[job] or not every:
        return True
    return max(every, int(work.minimum_run[job])) >= modes.longest(int(work.instance.job_class[job]))


def _running(work: Work, job: int, kind: Kind) -> Kind:
    """Return what is left of a job that runs now and may be stopped.

    With t of its time here behind it, 1 - done - t / full of its work is left at most, and restoring it comes on top.
    What it takes altogether is a line in t, so least at one of its ends.
    """
    ongoing = work.ongoing[job]
    assert ongoing.left is not None
    rest = 1 - ongoing.done
    modes = tuple(dict.fromkeys(Mode(math.floor(mode.run * rest), mode.uses) for mode in kind.modes))
    stopped = int(work.restart[job]) + min(ongoing.left, *(mode.run for mode in modes))
    kept = Mode(ongoing.left, held(work, job))
    return replace(kind, start=0, modes=modes, whole=False, kept=kept, stopped=stopped)


class _Earliest:
    """When jobs may start at the earliest, after what they come after."""

    def __init__(self, work: Work, modes: Modes) -> None:
        self._work, self._modes = work, modes
        self._known: dict[int, int] = {}

    def start(self, job: int) -> int:
        """Return the earliest start of a job."""
        pending = [job]
        while pending:
            one = pending[-1]
            unknown = [other for other in self._work.after[one] if other not in self._known]
            if unknown:
                pending += unknown
                continue
            ends = [self._end(other) for other in self._work.after[one]]
            self._known[one] = max([int(self._work.release[one]), *ends])
            pending.pop()
        return self._known[job]

    def _end(self, job: int) -> int:
        ongoing = self._work.ongoing.get(job)
        least = min(mode.run for mode in self._modes.of(int(self._work.instance.job_class[job])))
        if ongoing is None:
            return self._known[job] + least
        if ongoing.left is None:
            return 0
        if not self._work.preemptible[job]:
            return ongoing.left
        return min(ongoing.left, int(self._work.restart[job]) + math.floor(least * (1 - ongoing.done)))


class Modes:
    """The modes of the job classes of an instance."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._models = models_of(instance)
        self.halves = halves(instance)
        self._known: dict[int, tuple[Mode, ...]] = {}

    def of(self, number: int) -> tuple[Mode, ...]:
        """Return the modes of the jobs of a class, at least one."""
        if number not in self._known:
            self._known[number] = self._find(self._instance.job_classes[number])
        return self._known[number]

    def longest(self, number: int) -> int:
        """Return what a job of a class can take at most."""
        one = self._instance.job_classes[number]
        run = one.run
        if run is None:
            return 0
        shared = [sharing_factor(kind, run) for kind in self._instance.card_kinds]
        model = max([ONE, *(factor for _, factor in run.models)])
        slow = min((run.speed(tasks) for tasks in range(*_span(one))), default=ONE)
        most = (
            1000 * run.seconds * max(run.levels) * model * max([ONE, *shared]) * max(ONE, run.numa) * max(ONE, run.nic)
        )
        return math.ceil(most / slow) + max((max(copy.fetch) for copy in run.data), default=0)

    def _find(self, one: JobClass) -> tuple[Mode, ...]:
        if one.run is None:
            return (Mode(0, ()),)
        pools, mig = self._pools(one)
        counts = list(range(*_span(one))) if one.run.scaling else [_span(one)[0]]
        least = [self._units(one, count) for count in counts]
        found: dict[Mode, None] = {}
        factors = dict(one.run.models)
        everywhere = min([ONE, *(factors.get(model, ONE) for model in self._models)])
        bare = []
        by_pool: dict[int, list[tuple[int, int]]] = {pool: [] for pool in pools}
        for count, units in zip(counts, least, strict=True):
            level = min(one.run.levels[: self._narrowest(pools, units) + 1])
            if not units or not pools:
                bare.append(self._run(one, count, level, everywhere))
                continue
            for pool in pools:
                model = factors.get(self._models[pool], ONE)
                model = min(model, everywhere) if mig else model
                by_pool[pool].append((self._run(one, count, level, model), units))
        if bare:
            found[Mode(min(bare), ())] = None
        beside = self._halves(one, pools[0]) if len(pools) == 1 else ()
        for pool, pairs in by_pool.items():
            for run, units in _few(_best(pairs)):
                found[Mode(run, ((pool, units), *beside))] = None
        return tuple(found)

    def _halves(self, one: JobClass, pool: int) -> tuple[tuple[int, int], ...]:
        """Return the halves of nodes that a job takes at least which uses cards of one model alone."""
        taken = sum(
            tasks * self.halves.of(pool, self._instance.shapes[leaf.shape])
            for tasks, leaf in zip(_least(one), one.leaves, strict=True)
        )
        return ((self.halves.resource[pool], taken),) if taken else ()

    def _run(self, one: JobClass, count: int, level: Fraction, model: Fraction) -> int:
        run = one.run
        assert run is not None
        exactly = 1000 * run.seconds * level * model * self._shared(one, run) * min(ONE, run.numa) * min(ONE, run.nic)
        fetch = min((min(copy.fetch) for copy in run.data), default=0)
        return math.ceil(exactly / run.speed(count)) + fetch

    def _shared(self, one: JobClass, run: RunTime) -> Fraction:
        """Return the least factor for sharing."""
        parts = [parted(self._instance, leaf.shape) for leaf in one.leaves]
        if not any(parts):
            return ONE
        factors = [sharing_factor(kind, run) for kind in self._instance.card_kinds]
        return min([*factors, ONE] if not all(parts) else factors, default=ONE)

    def _pools(self, one: JobClass) -> tuple[list[int], bool]:
        """Return the models whose cards a job may take units of, and whether it takes MIG instances too."""
        admits: Bools = np.zeros(len(self._instance.card_kinds), dtype=np.bool_)
        mig = False
        for leaf in one.leaves:
            shape = self._instance.shapes[leaf.shape]
            if shape.profile >= 0:
                mig = True
            elif shape.gpus:
                admits |= self._instance.admits_card[leaf.shape]
        models = {kind.model for kind, may in zip(self._instance.card_kinds, admits.tolist(), strict=True) if may}
        return [pool for pool, model in enumerate(self._models) if model in models], mig

    def _of_task(self, leaf: Leaf) -> int:
        """Return the units that a task surely takes."""
        shape = self._instance.shapes[leaf.shape]
        if shape.profile >= 0 or (parted(self._instance, leaf.shape) and not self._instance.exact):
            return 0
        return shape.of_cards

    def _units(self, one: JobClass, count: int) -> int:
        """Return the fewest units with so many tasks placed."""
        least = _least(one)
        total = sum(tasks * self._of_task(leaf) for tasks, leaf in zip(least, one.leaves, strict=True))
        more = count - sum(least)
        for leaf in sorted(one.leaves, key=self._of_task):
            taken = min(more, leaf.count * leaf.copies - least[leaf.leaf])
            total, more = total + taken * self._of_task(leaf), more - taken
        return total

    def _narrowest(self, pools: Sequence[int], units: int) -> int:
        """Return the narrowest level of which some domain has so many units of some models together; 0 for none."""
        most = self._largest[:, pools, :].sum(axis=1).max(axis=1, initial=0) if pools else self._zeros
        return int(np.flatnonzero(most >= units)[-1]) if (most >= units).any() else 0

    @cached_property
    def _zeros(self) -> np.ndarray:
        return np.zeros(len(self._instance.levels), dtype=np.int64)

    @cached_property
    def _largest(self) -> np.ndarray:
        """Units of each level, model and domain."""
        instance = self._instance
        number = {model: pool for pool, model in enumerate(self._models)}
        of_class = np.zeros((len(instance.classes), max(1, len(self._models))), dtype=np.int64)
        for row, one in enumerate(instance.classes):
            for kind, free, _ in one.cards if one.slots < 0 else ():
                if instance.card_kinds[kind].healthy:
                    of_class[row, number[instance.card_kinds[kind].model]] += free
        of_node = of_class[instance.node_class]
        most = int(instance.domains.max(initial=0)) + 1
        found = np.zeros((len(instance.levels), of_class.shape[1], most), dtype=np.int64)
        for level, domain in enumerate(instance.domains):
            inside = domain >= 0
            for pool in range(of_class.shape[1]):
                np.add.at(found[level, pool], domain[inside], of_node[inside, pool])
        return found


def _least(one: JobClass) -> list[int]:
    """Return how many tasks of each leaf run at least; 0 where that is not plain to see."""
    flat = is_flat(one.root)
    return [leaf.minimum * leaf.copies if flat else 0 for leaf in one.leaves]


def _span(one: JobClass) -> tuple[int, int]:
    """Return the fewest tasks that may run and one more than the most."""
    return max(1, sum(_least(one))), sum(leaf.count * leaf.copies for leaf in one.leaves) + 1


def _best(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the pairs than which none is smaller in both."""
    found: list[tuple[int, int]] = []
    for run, units in sorted(pairs):
        if not found or units < found[-1][1]:
            found.append((run, units))
    return found


def _few(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return few pairs, with each one left out some that is no larger in either."""
    if len(pairs) <= MOST_MODES:
        return pairs
    edges = [len(pairs) * piece // MOST_MODES for piece in range(MOST_MODES + 1)]
    pieces = [pairs[a:b] for a, b in pairwise(edges)]
    return [(min(run for run, _ in piece), min(units for _, units in piece)) for piece in pieces]
