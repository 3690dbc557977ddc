"""Quota: at every moment queues use no more than they may, but for what was in use before.

Judged by the recursive definition that `docs/methods.md` gives, whole trees at a time: what a queue lends is worked out
from the leaves up, and so is what counts of its usage above it. At a moment at which jobs start, each row
may hold at most the larger of its limit and of what those hold in it that go on from before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from fractions import Fraction

from placement.check.queues.held_cards import Amounts, HeldCards, add
from placement.check.violation import Violation, decimal, show
from placement.snapshot import Queue, Snapshot
from placement.timetable import Schedule
from placement.units import exact

RULE = "quota"

ALL = "*"

Row = tuple[int, str]
"""Number of the queue at the top of a tree, and card model or `ALL`."""


def judge(snapshot: Snapshot, schedule: Schedule) -> Iterator[Violation]:
    """Yield the moments at which jobs start that their queue's quota, or one above it, does not admit.

    Parameters
    ----------
    snapshot : Snapshot
    schedule : Schedule
        Stretches with their tasks; those that name nothing there is are judged elsewhere.
    """
    if not snapshot.queues:
        return
    trees = _Trees(snapshot.queues)
    held = HeldCards(snapshot)
    used: dict[str, Amounts] = defaultdict(lambda: defaultdict(Fraction))
    running = dict[str, Amounts]()
    for job, amounts in held.of_running():
        running[job.name] = amounts
        add(used[job.queue], amounts)
    taken = held.of_stretches(schedule)
    starts: dict[int, list[int]] = defaultdict(list)
    ends: dict[int, list[tuple[str, Amounts]]] = defaultdict(list)
    gone = dict[str, int]()
    for number, name in enumerate(schedule.stretches.job):
        start, end = (round(1000 * side[number]) for side in (schedule.stretches.start, schedule.stretches.end))
        if name in running and name not in gone and start == 0 and taken[number] == running[name]:
            gone[name] = end  # it goes on
        elif start < end:
            gone.setdefault(name, 0)
            starts[start].append(number)
            ends[end].append((held.queue(name), taken[number]))
    for name, end in gone.items():
        if name in running:
            ends[end].append((held.queue(name), running[name]))
    for moment in sorted({*starts, *ends}):
        for queue, amounts in ends[moment]:
            add(used[queue], amounts, -1)
        if starts[moment]:
            new = [(held.queue(schedule.stretches.job[number]), taken[number]) for number in starts[moment]]
            yield from _judge_starts(trees, used, new, f"stretches[{starts[moment][0]}]", moment / 1000)


def exceeded(
    queues: tuple[Queue, ...], old: Mapping[str, Amounts], now: Mapping[str, Amounts]
) -> Iterator[tuple[str, str, Fraction, Fraction]]:
    """Yield queue, model or `ALL`, usage and limit wherever new work exceeds one.

    Parameters
    ----------
    queues : tuple of Queue
    old, now : mapping of str to mapping of str to Fraction
        What running work takes, and what new work takes with it, by queue and model.
    """
    trees = _Trees(queues)
    for row in sorted({row for queue, amounts in now.items() for row in trees.rows(queue, amounts)}):
        before, after = trees.usage(*row, old), trees.usage(*row, now)
        for number, limit in trees.limits(*row).items():
            if after[number] > max(limit, before[number]):
                yield trees.name(number), row[1], after[number], limit


def _judge_starts(
    trees: _Trees, used: Mapping[str, Amounts], new: list[tuple[str, Amounts]], path: str, at: float
) -> Iterator[Violation]:
    """Add what starts at one moment to what is used, and yield where that is too much."""
    rows = {(root, model) for queue, amounts in new for root, model in trees.rows(queue, amounts)}
    before = {row: trees.usage(*row, used) for row in rows}
    for queue, amounts in new:
        add(used[queue], amounts)
    for row in sorted(rows):
        after = trees.usage(*row, used)
        for number, limit in trees.limits(*row).items():
            if after[number] > max(limit, before[row][number]):
                yield _violation(trees.name(number), row[1], after[number], limit, path, at)


class _Trees:
    """The trees of queues."""

    def __init__(self, queues: tuple[Queue, ...]) -> None:
        self._queues = queues
        number = {queue.name: index for index, queue in enumerate(queues)}
        self._below: dict[int, list[int]] = defaultdict(list)
        self._root: dict[str, int] = {}
        for index, queue in enumerate(queues):
            way = [index]
            while queues[way[-1]].parent:
                way.append(number[queues[way[-1]].parent])
            if len(way) > 1:
                self._below[way[1]].append(index)
            if any(_stated(queues[one]) for one in way):
                self._root[queue.name] = way[-1]
        parents = {number[queue.parent] for queue in queues if queue.parent}
        for above, below in self._below.items():
            self._below[above] = [one for one in below if one in parents or queues[one].name in self._root]
        self._leaf = [index not in parents for index in range(len(queues))]
        self._limits: dict[Row, dict[int, Fraction]] = {}
        self._keeps: dict[Row, dict[int, Fraction]] = {}

    def name(self, number: int) -> str:
        """Return the name of a queue."""
        return self._queues[number].name

    def rows(self, queue: str, amounts: Amounts) -> Iterator[Row]:
        """Yield the tops of trees and the models in which some cards of a queue count; nothing if it is not limited."""
        root = self._root.get(queue)
        if root is not None:
            stated = set().union(*(_stated(self._queues[number]) for number in self._members(root)))
            if stated != {ALL}:
                yield from ((root, model) for model, amount in amounts.items() if amount)
            if ALL in stated:
                yield root, ALL

    def _members(self, number: int) -> Iterator[int]:
        yield number
        for child in self._below.get(number, ()):
            yield from self._members(child)

    def limits(self, root: int, model: str) -> dict[int, Fraction]:
        """Return the most that each queue of a tree may use, of those that have a limit."""
        self._compile(root, model)
        return self._limits[root, model]

    def _compile(self, root: int, model: str) -> dict[int, Fraction]:
        """Return what each queue of a tree never lends, and know it and the limits from then on."""
        if (root, model) not in self._keeps:
            self._limits[root, model], self._keeps[root, model] = {}, {}
            self._lends(root, model, self._limits[root, model], self._keeps[root, model])
        return self._keeps[root, model]

    def _lends(self, number: int, model: str, limits: dict[int, Fraction], keeps: dict[int, Fraction]) -> Fraction:
        """Return what a queue lends, and note its limit and what it keeps."""
        queue = self._queues[number]
        subtree = _quota(queue, model)
        for child in self._below.get(number, ()):
            subtree += self._lends(child, model, limits, keeps)
        if not queue.parent:
            limits[number] = subtree
        elif model in queue.borrowing_limit:
            limits[number] = subtree + exact(queue.borrowing_limit[model])
        lends = min(subtree, exact(queue.lending_limit[model])) if model in queue.lending_limit else subtree
        keeps[number] = subtree - lends
        return lends

    def usage(self, root: int, model: str, used: Mapping[str, Amounts]) -> dict[int, Fraction]:
        """Return what counts as used by each queue of a tree."""
        found: dict[int, Fraction] = {}
        self._counted(root, model, used, self._compile(root, model), found)
        return found

    def _counted(
        self,
        number: int,
        model: str,
        used: Mapping[str, Amounts],
        keeps: dict[int, Fraction],
        found: dict[int, Fraction],
    ) -> Fraction:
        """Return how much of a queue's usage counts above it, and note all of it."""
        mine = used.get(self._queues[number].name, {}) if self._leaf[number] else {}
        found[number] = sum(mine.values(), Fraction(0)) if model == ALL else mine.get(model, Fraction(0))
        for child in self._below.get(number, ()):
            found[number] += self._counted(child, model, used, keeps, found)
        return max(Fraction(0), found[number] - keeps[number])


def _stated(queue: Queue) -> set[str]:
    return {*queue.quota, *queue.borrowing_limit, *queue.lending_limit}


def _quota(queue: Queue, model: str) -> Fraction:
    """Return a queue's quota: as stated, else a model's is that of all models, and that of all the sum of them."""
    if model in queue.quota:
        return exact(queue.quota[model])
    if model == ALL:
        return sum(map(exact, queue.quota.values()), Fraction(0))
    return exact(queue.quota[ALL]) if ALL in queue.quota else Fraction(0)


def _violation(queue: str, model: str, used: Fraction, limit: Fraction, path: str, at: float) -> Violation:
    kind = "all models" if model == ALL else show(model)
    what = f"at {at:g} s queue {show(queue)} uses {decimal(used)} cards of {kind}, at most {decimal(limit)}"
    return Violation(RULE, path, what)
