"""Few jobs, solved to the end: all orders of starts, less those that others make needless.

Sorted by start, each job of some best schedule starts as soon as its nodes let it, and no sooner than the one before.
A label is what such a beginning leaves: which jobs have started, when the last one did, and when the cards in use on
each node come free. Of two labels with the same jobs one makes the other needless if it costs no more and leaves every
node as free from the other's moment on. So do prices of cards over time: whatever they are, what the rest costs at
least at these prices is a bound on what it costs (Lagrange), and the best of them come from a linear program.
"""

from __future__ import annotations

import math
import time
from bisect import insort
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations

from placement.scheduling.bounds.remaining import Ends, Job, Remaining
from placement.scheduling.counts import Counted
from placement.scheduling.few.arranged import MOST_LOOKED, Arranged
from placement.scheduling.few.jobs import jobs_of, running_of
from placement.scheduling.few.measures import MEASURES, Node, horizon_of, measures, prices_of
from placement.scheduling.passes import Pass

MOST_SLOTS = 20_000
"""Starts of all jobs together up to which this is tried."""
MOST_HELD = 16_000_000
"""Slots of time in which these jobs hold cards, of all starts together, times measures: what prices are made from."""
MOST_UNPRICED = 8
"""Jobs up to which this is tried without prices, where they last for so many slots that these would take too long."""
MOST_LABELS, MOST_FIRST, MOST_APART = 50_000, 3_000, 25_000
"""Labels after which it is given up: with nodes taken together, told apart, and that with what is proven of starts."""
ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class _Label:
    moment: int
    cost: int
    nodes: tuple[Node, ...]
    before: _Label | None
    job: int
    start: int
    running: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Settled:
    """What is known of the best schedule of few jobs.

    Attributes
    ----------
    order : tuple of int
        Jobs by start, of a schedule that may be better than what was known; empty where there is none.
    bound : int
        No schedule is better.
    """

    order: tuple[int, ...]
    bound: int


class Few:
    """Few jobs, of which much can be shown.

    Parameters
    ----------
    work : Counted
    jobs : sequence of Job
        Times in `unit`.
    unit : int
        Milliseconds that divide all times.
    running : sequence of Node
        What runs now, by node.

    Attributes
    ----------
    priced : bool
        Whether prices of cards tell what the rest costs at least; if not, only run times do.
    """

    def __init__(self, work: Counted, jobs: Sequence[Job], unit: int, running: Sequence[Node]) -> None:
        self._nodes, self._size = len(work.free), int(work.free[0])
        self._jobs, self._unit, self._running = jobs, unit, running
        self.priced = True

    @classmethod
    def of(cls, work: Counted, best: Pass) -> Few | None:
        """Return the jobs of a schedule, or None where they are not for this method."""
        size = int(work.free[0]) if len(work.free) else 0
        jobs = jobs_of(work, best, size)
        if jobs is None:
            return None
        times = [time for job in jobs for time in (job.length, job.release)]
        times += [ongoing.left for ongoing in work.work.ongoing.values() if ongoing.left is not None]
        unit = reduce(math.gcd, times, 0) or 1
        few = cls(
            work,
            [Job(one.job, one.release // unit, one.length // unit, one.weight, one.cards, one.tasks) for one in jobs],
            unit,
            running_of(work, unit),
        )
        last = few._last(best.value // unit)
        starts = [end - one.release + 1 for one, end in zip(few._jobs, last, strict=True)]
        held = sum(number * one.length for number, one in zip(starts, few._jobs, strict=True))
        horizon = horizon_of(few._jobs, last, few._running)
        few.priced = sum(starts) <= MOST_SLOTS and max(held, horizon) * (MEASURES + 1) <= MOST_HELD
        return few if few.priced or len(jobs) <= MOST_UNPRICED else None

    def settle(self, known: int, apart: bool, deadline: float = math.inf, proven: Ends | None = None) -> Settled | None:
        """Return what can be shown, given the value of a schedule; None where it takes too long.

        Parameters
        ----------
        known : int
        apart : bool
            Whether nodes are told apart. If not, they are taken together, by measures that tell much of how tasks fit
            on them: what is best then is a bound, and often as much as is known.
        deadline : float
            On the clock of `time.monotonic`.
        proven : Ends, optional
        """
        value = known // self._unit
        first, last = self._within(value, proven)
        if any(low > high for low, high in zip(first, last, strict=True)):
            return Settled((), known)
        prices = prices_of(self._jobs, last, self._size, self._running) if self.priced else None
        space = _apart(self._size, self._running) if apart else _together(self._size, self._running)
        most = MOST_LABELS if not apart else MOST_FIRST if proven is None else MOST_APART
        search = _Search(self._jobs, (first, last), prices, space, value)
        if proven is not None and self.priced:
            search.remaining = Remaining.of(proven, self._jobs, first, last, self._unit)
        label = search.run(most, deadline)
        return None if label is None else _settled(label, self._unit)

    def arrange(self, known: int, proven: Ends, deadline: float = math.inf) -> Pass | None:
        """Return the best schedule if it is better than the value of one that is known, without jobs if it is not.

        None where that takes too long.

        Parameters
        ----------
        known : int
        proven : Ends
        deadline : float
            On the clock of `time.monotonic`.
        """
        unit = self._unit
        value = -(-known // unit)
        first, last = self._within(value, proven)
        if any(low > high for low, high in zip(first, last, strict=True)):
            return Pass([], known, [])
        remaining = Remaining.of(proven, self._jobs, first, last, unit) if self.priced else None
        if remaining is None:
            return None
        running = [[(end, cards) for end, cards, _ in node] for node in self._running]
        search = Arranged(self._jobs, (first, last), self._size, running, remaining)
        found = search.run(value, MOST_LOOKED, deadline)
        if found is None:
            return None
        starts = []
        for one in found[1]:
            job, nodes = self._jobs[one.number], Counter(one.nodes)
            starts.append((job.job, one.start * unit, (one.start + job.length) * unit, tuple(sorted(nodes.items()))))
        return Pass(starts, min(known, found[0] * unit), [])

    def _within(self, value: int, proven: Ends | None) -> tuple[list[int], list[int]]:
        """Return first and last starts in schedules of a value or a better one."""
        first, last = [one.release for one in self._jobs], self._last(value)
        for number, one in enumerate(self._jobs):
            if proven is not None and one.job in proven.within:
                low, high = proven.within[one.job]
                first[number] = max(first[number], -(-low // self._unit) - one.length)
                last[number] = min(last[number], high // self._unit - one.length)
        return first, last

    def _last(self, value: int) -> list[int]:
        """Return the latest start of each job in a schedule of a value."""
        slack = value - sum(one.weight * one.length for one in self._jobs)
        # what does not count may start when all others have ended
        latest = max(one.release for one in self._jobs) + sum(one.length for one in self._jobs)
        return [one.release + slack // one.weight if one.weight else latest for one in self._jobs]


def _settled(label: _Label, unit: int) -> Settled:
    order: list[int] = []
    at: _Label | None = label
    while at is not None and at.job >= 0:
        order.append(at.job)
        at = at.before
    return Settled(tuple(order[::-1]), label.cost * unit)


@dataclass(frozen=True, slots=True)
class _Space:
    """What tasks are put on.

    Attributes
    ----------
    nodes : int
        Number of things that are alike.
    room : tuple of int
        What each has by each measure.
    tables : tuple of tuple of int
        What a task counts by its cards, for each measure.
    tasks : bool
        Whether all tasks of a job go to one thing.
    begin : tuple of Node
        What runs on each now.
    """

    nodes: int
    room: tuple[int, ...]
    tables: tuple[tuple[int, ...], ...]
    tasks: bool
    begin: tuple[Node, ...]


def _apart(size: int, running: Sequence[Node]) -> _Space:
    return _Space(len(running), (size,), (tuple(range(size + 1)),), False, tuple(sorted(running)))


def _together(size: int, running: Sequence[Node]) -> _Space:
    nodes = len(running)
    ways = measures(size) if nodes > 1 else measures(size)[:1]
    scale = reduce(math.lcm, (part.denominator for way in ways for part in way), 1)
    tables = tuple(tuple(int(part * scale) for part in way) for way in ways)
    begin = tuple(sorted(held for node in running for held in node))
    return _Space(1, (nodes * scale,) * len(ways), tables, True, (begin,))


class _Search:
    """Labels by the number of jobs that have started."""

    def __init__(
        self,
        jobs: Sequence[Job],
        within: tuple[Sequence[int], Sequence[int]],
        prices: tuple[list[list[float]], list[float]] | None,
        space: _Space,
        most: int,
    ) -> None:
        self._jobs, self._space, self._most = jobs, space, most
        self._first, self._last = within
        self._priced = prices is not None
        if prices is not None:
            self._paid, self._all = prices
            self._rest = [self._least(one, *times) for one, *times in zip(jobs, *within, strict=True)]
        self.remaining: Remaining | None = None

    def _least(self, one: Job, first: int, last: int) -> list[float]:
        """Return what a job costs at least with its cards paid for, by the moment from which on it may start."""
        paid = self._paid[one.cards]
        found = [math.inf] * len(paid)
        for start in range(last, first - 1, -1):
            price = one.tasks * (paid[start + one.length] - paid[start])
            found[start] = min(found[start + 1], one.weight * (start + one.length - one.release) + price)
        for start in range(first - 1, -1, -1):
            found[start] = found[first]
        return found

    def run(self, limit: int, deadline: float) -> _Label | None:
        """Return the best label of all jobs, one without jobs where it is no better than what is known.

        None where more labels would have to be looked at than the limit, or the deadline on the clock of
        `time.monotonic` passes.
        """
        layer: dict[int, list[_Label]] = {0: [_Label(0, 0, self._space.begin, None, -1, -1)]}
        seen = 0
        for _ in self._jobs:
            following: dict[int, list[_Label]] = {}
            for done, labels in layer.items():
                for label in labels:
                    self._follow(label, done, following)
                    seen += 1
                    if seen > limit or (not seen % 64 and time.monotonic() > deadline):
                        return None
            layer = following
        ends = [label for labels in layer.values() for label in labels]
        return min(ends, key=lambda one: one.cost, default=_Label(0, self._most, (), None, -1, -1))

    def _follow(self, label: _Label, done: int, following: dict[int, list[_Label]]) -> None:
        """Add all labels that come next after one, but for those that cannot become better than what is known."""
        for number, one in enumerate(self._jobs):
            if done >> number & 1:
                continue
            now = done | 1 << number
            for other in self._extended(label, number, self._first[number]):
                # of jobs that start at one moment the order does not matter
                together = other.start == label.start and one.job < label.job
                if not together and other.start <= self._last[number] and self._may(other, now):
                    self._keep(following.setdefault(now, []), other)

    def _may(self, label: _Label, done: int) -> bool:
        """Return whether a label may become better than what is known."""
        if self.remaining is None:
            return self._bound(label, done) < self._most
        return label.cost + self.remaining.least(label.moment, label.running, done) < self._most

    def _bound(self, label: _Label, done: int) -> float:
        """Return what all jobs cost at least, given how some begin; no less than is known where that is as much."""
        moment = label.moment
        if not self._priced:
            left = [one for one in enumerate(self._jobs) if not done >> one[0] & 1]
            ends = [(one, max(moment, self._first[number]) + one.length) for number, one in left]
            return label.cost + sum(one.weight * (end - one.release) for one, end in ends)
        rest = sum(self._rest[number][moment] for number in range(len(self._jobs)) if not done >> number & 1)
        if rest == math.inf:
            return math.inf
        taken = 0.0
        for node in label.nodes:
            for end, cards, tasks in node:
                paid = self._paid[cards]
                taken += tasks * (paid[end] - paid[moment])
        # costs are whole numbers
        return math.ceil(label.cost + rest - (self._all[-1] - self._all[moment] - taken) - ROUNDING)

    def _extended(self, label: _Label, number: int, first: int) -> list[_Label]:
        """Return the labels in which a job starts next."""
        one = self._jobs[number]
        after = max(label.moment, first)
        ready = [self._free_at(node, one, after) for node in label.nodes]
        count = 1 if self._space.tasks else one.tasks
        # nodes that are alike are one choice
        different = {
            tuple(sorted(label.nodes[place] for place in some)): some for some in combinations(range(len(ready)), count)
        }
        return [self._started(label, number, max(ready[place] for place in some), some) for some in different.values()]

    def _free_at(self, node: Node, one: Job, after: int) -> int:
        """Return when a node has room for a task of a job, or for all of them, at the earliest."""
        tasks = one.tasks if self._space.tasks else 1
        moment = after
        for room, table in zip(self._space.room, self._space.tables, strict=True):
            left = room - tasks * table[one.cards] - sum(many * table[held] for end, held, many in node if end > moment)
            if left < 0:
                for end, held, many in node:
                    if end > moment:
                        left += many * table[held]
                        if left >= 0:
                            moment = end
                            break
        return moment

    def _started(self, label: _Label, number: int, start: int, places: tuple[int, ...]) -> _Label:
        one = self._jobs[number]
        end, tasks = start + one.length, one.tasks if self._space.tasks else 1
        nodes = []
        for place, node in enumerate(label.nodes):
            left = [held for held in node if held[0] > start]
            if place in places and one.length:
                insort(left, (end, one.cards, tasks))
            nodes.append(tuple(left))
        cost = label.cost + one.weight * (end - one.release)
        running = *(held for held in label.running if held[0] > start), (end, number)
        return _Label(start, cost, tuple(sorted(nodes)), label, one.job, start, running)

    def _keep(self, labels: list[_Label], new: _Label) -> None:
        """Add a label to others with the same jobs, unless one of them makes it needless; drop those it does so to."""
        for label in labels:
            if self._needless(new, label):
                return
        labels[:] = [label for label in labels if not self._needless(label, new)]
        labels.append(new)

    def _needless(self, label: _Label, other: _Label) -> bool:
        """Return whether another label with the same jobs makes one needless, as far as it is looked for."""
        if other.cost > label.cost or other.moment > label.moment:
            return False
        pairs = zip(other.nodes, label.nodes, strict=True)
        return all(one == two or self._as_free(one, two, label.moment) for one, two in pairs)

    def _as_free(self, node: Node, other: Node, moment: int) -> bool:
        """Return whether a node is as free as another from a moment on."""
        moments = [moment, *(end for end, _, _ in other if end > moment)]
        for table in self._space.tables:
            for now in moments:
                mine = sum(many * table[held] for end, held, many in node if end > now)
                if mine > sum(many * table[held] for end, held, many in other if end > now):
                    return False
        return True
