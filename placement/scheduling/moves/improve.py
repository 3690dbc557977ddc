"""Better orders for serial passes, found by moving jobs: one, a few neighbours together, or two that change places.

Whoever waits moves before one that started while it waited, or one that keeps others waiting moves behind some of them,
most often by few places; what comes out worse is accepted by chance, the less so the worse it is and the later
(simulated annealing, Kirkpatrick, Gelatt and Vecchi, Science 220, 1983). Neighbours that fill the time between two wide
gangs have to move together, for one by one each move is worse. Only what comes after the first changed place is passed
through again, and no further than the jobs so far have lost more than is accepted: what comes later seldom makes up for
it. Orders are not sorted by start in between: a job that fills a gap that others leave comes late in the order, and
moves with what makes the gap.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Callable, Sequence

import numpy as np

from placement.instance import Ints
from placement.scheduling.counts import Counted, Profile
from placement.scheduling.moves.lines import Line, Passed, Passing
from placement.scheduling.moves.switches import Losses, Switches
from placement.scheduling.passes import Pass, Start

HOT, MOST_HOT, COLD = 4000.0, 0.04, 0.005
"""By which part of its value a schedule may be worse at first on average, times the cube of the number of jobs, and at
most; and by which part of that at last. Found by trial on 30 to 200 jobs."""
SEVERAL_HOT, MOST_SEVERAL_HOT = 20.0, 0.02
"""The same where some jobs may run on cards of several models, times the square; by trial on 300."""
OTHER, BACKWARD, UNIFORM = 0.08, 0.4, 0.7
"""Part of the moves that go to cards of another model; and of the others those that go behind others, and those of any
job, where others are of jobs by their weight and wait."""
SEVERAL, MEAN, SWAPPED = 0.3, 6.0, 0.3
"""Part of the moves that are of several neighbours together, how many on average beyond two, and swaps."""
WORSE = 2.0
"""How many times as much worse than others moves to cards of another model may be: orders fit them only later."""
EXCHANGED, AROUND = 0.4, 8
"""Part of the moves to cards of another model in which another job comes back, and places there that it is within."""
FEW = 16
"""Jobs up to which all moves go to any place."""


class Improver:
    """A serial pass and the way to better ones.

    Parameters
    ----------
    work : Counted
    base : Profile
        What is free as what runs now comes to its end.
    starts : sequence of Start
        A schedule to begin with.
    seed : int
    losses : mapping of int to mapping of int to float, optional
        What jobs lose on cards of some models (`placement.scheduling.moves.switches`).
    """

    def __init__(
        self, work: Counted, base: Profile, starts: Sequence[Start], seed: int, losses: Losses | None = None
    ) -> None:
        self._work = work
        self._rng = random.Random(seed)
        self._ordered = any(work.work.after)
        order = [job for job, *_ in sorted(starts, key=lambda one: (one[1], one[0]))]
        self._kinds = {job: work.kind_of(job, nodes) for job, _, _, nodes in starts}
        self._several = [job for job in order if len(work.gangs[work.job_class[job]].kinds) > 1]
        self._cost = dict.fromkeys(order, 0)
        self._line_of_pool = _lines(work, self._ordered)
        makers = [Passing(work, len(order), nodes) for nodes in _nodes_of(work, self._line_of_pool)]
        self._lines = [Line(maker, maker.none(base)) for maker in makers]
        self._value = 0
        self.best = Pass([], 0, [])
        self.moves = 0
        self._first = order
        cost = sum(work.weight[job] * (end - work.release[job]) for job, _, end, _ in starts) / max(1, len(order))
        self._switches = Switches(work, self._several, losses or {}, cost)

    @classmethod
    def of(
        cls, work: Counted, base: Profile, starts: Sequence[Start], seed: int, losses: Losses | None = None
    ) -> Improver | None:
        """Return one that goes on from a schedule; None where its serial pass ends some job after a hard deadline."""
        found = cls(work, base, starts, seed, losses)
        for number, line in enumerate(found._lines):
            order = [job for job in found._first if found._line_of(job) == number]
            passed = found._again(line, order, (0, -1), None)
            if passed is None:
                return None
            found._set(line, passed)
        found._best()
        return found

    def run(self, done: Callable[[int], float], heat: float = 1.0) -> Pass:
        """Move jobs until all is done, of which a function tells the part after so many moves; return the best pass.

        Parameters
        ----------
        done : callable
        heat : float, optional
            How many times as much worse than usual a schedule may be.
        """
        jobs = max(1, len(self._cost))
        several = min(MOST_SEVERAL_HOT, heat * SEVERAL_HOT / jobs**2)
        hot = (several if self._several else min(MOST_HOT, heat * HOT / jobs**3)) * self._value
        while (part := done(self.moves)) < 1:
            self.moves += 1
            worse = hot * COLD**part * self._rng.expovariate(1)
            if self._several and self._rng.random() < OTHER:
                self._change(self._value + int(WORSE * worse))
            else:
                self._move(self._value + int(worse))
            if self._value < self.best.value:
                self._best()
        return self.best

    # --- moves ---------------------------------------------------------------------------------------------------

    def _change(self, limit: int) -> None:
        """Let some job run on cards of another model."""
        job, kind = self._switches.draw(self._kinds, self._rng)
        before, line = self._kinds[job], self._lines[self._line_of(job)]
        if self._rng.random() < EXCHANGED:
            self._exchange(job, kind, limit)
            return
        place = line.order.index(job)
        start = self._switches.start(job, line.passed.starts[place][1:3], kind, self._rng)
        self._kinds[job] = kind
        other = self._lines[self._line_of(job)]
        if other is line:
            passed = self._again(line, line.order, (place, place), limit)
            if passed is not None:
                self._set(line, passed)
                return
        elif self._cross(job, line, place, other, bisect_left(other.moments, start), limit):
            return
        self._kinds[job] = before

    def _cross(self, job: int, line: Line, place: int, other: Line, at: int, limit: int) -> bool:
        """Move a job from a place of a line to one of another; return whether that is accepted."""
        left = self._again(line, line.order[:place] + line.order[place + 1 :], (place, -1), None, -self._cost[job])
        if left is None:
            return False
        cost = self._cost[job]
        self._cost[job] = 0
        passed = self._again(
            other, [*other.order[:at], job, *other.order[at:]], (at, -1), limit, left.value - self._value
        )
        if passed is None:
            self._cost[job] = cost
            return False
        self._set(line, left)
        self._set(other, passed)
        return True

    def _exchange(self, job: int, kind: int, limit: int) -> None:
        """Let a job take the place of one that starts at about the same time on cards of another model, and that its.

        Parameters
        ----------
        job : int
        kind : int
            On which it is to run.
        limit : int
        """
        before, line = self._kinds[job], self._lines[self._line_of(job)]
        place = line.order.index(job)
        other = self._lines[self._line_of(job, kind)]
        at = bisect_left(other.moments, line.passed.starts[place][1])
        pairs = [
            (one, number)
            for one in other.order[max(0, at - AROUND) : at + AROUND]
            for number in range(len(self._work.gangs[self._work.job_class[one]].kinds))
            if self._lines[self._line_of(one, number)] is line
        ]
        if other is line or not pairs:
            return
        partner, back = self._switches.partner(pairs, self._rng)
        there = other.order.index(partner)
        here, cost = self._kinds[partner], (self._cost[job], self._cost[partner])
        self._kinds[job], self._kinds[partner] = kind, back
        # each costs in place of the other
        self._cost[job], self._cost[partner] = cost[1], cost[0]
        one, two = line.order.copy(), other.order.copy()
        one[place], two[there] = partner, job
        left = self._again(line, one, (place, -1), None)
        passed = None if left is None else self._again(other, two, (there, -1), limit, left.value - self._value)
        if left is None or passed is None:
            self._kinds[job], self._kinds[partner] = before, here
            self._cost[job], self._cost[partner] = cost
            return
        self._set(line, left)
        self._set(other, passed)

    def _move(self, limit: int) -> None:
        """Move a job in its line, or several."""
        line, place = self._chosen()
        rng, order = self._rng, line.order
        count = len(order)
        size = 1
        if rng.random() < SEVERAL:
            size = min(2 + int(rng.expovariate(1 / MEAN)), count - place)
        behind = rng.random() < BACKWARD
        if behind:
            end = line.passed.starts[place][2]
            most = (bisect_left(line.moments, end) if count > FEW else count) - size - place
        else:
            most = place - (bisect_left(line.moments, self._work.release[order[place]]) if count > FEW else 0)
        if most <= 0:
            return
        by = int((most + 1) ** rng.random())
        changed = order.copy()
        if rng.random() < SWAPPED:
            other = place + size - 1 + by if behind else place - by
            changed[place], changed[other] = changed[other], changed[place]
            span = min(place, other), max(place, other)
        else:
            target = place + by if behind else place - by
            del changed[place : place + size]
            changed[target:target] = order[place : place + size]
            span = min(place, target), max(place, target) + size - 1
        if self._ordered and not self._keeps_order(changed, *span):
            return
        passed = self._again(line, changed, span, limit)
        if passed is not None:
            self._set(line, passed)

    def _chosen(self) -> tuple[Line, int]:
        """Draw a job, all alike or by weight times wait; return its line and its place."""
        rng = self._rng
        waits = [line.sums[-1] if line.sums else 0 for line in self._lines]
        if rng.random() < UNIFORM or not any(waits):
            at = rng.randrange(len(self._cost))
            for line in self._lines:
                if at < len(line.order):
                    return line, at
                at -= len(line.order)
        share = rng.random() * sum(waits)
        for line, wait in zip(self._lines, waits, strict=True):
            if share < wait:
                return line, bisect_left(line.sums, share)
            share -= wait
        line = max(self._lines, key=lambda one: len(one.order))  # what rounding left
        return line, len(line.order) - 1

    def _keeps_order(self, order: Sequence[int], first: int, last: int) -> bool:
        seen: set[int] = set()
        among = set(order[first : last + 1])
        for job in order[first : last + 1]:
            if any(other in among and other not in seen for other in self._work.work.after[job]):
                return False
            seen.add(job)
        return True

    # --- passes --------------------------------------------------------------------------------------------------

    def _line_of(self, job: int, kind: int | None = None) -> int:
        """Return the number of the line of a job on nodes of a kind; of that on which it runs if absent."""
        number = self._kinds[job] if kind is None else kind
        return self._line_of_pool[self._work.gangs[self._work.job_class[job]].kinds[number].pool]

    def _again(
        self, line: Line, order: Sequence[int], changed: tuple[int, int], limit: int | None, more: int = 0
    ) -> Passed | None:
        """Return the pass over another order of a line, with what else changes added to the value before."""
        value, kinds = self._value + more, self._kinds.__getitem__
        return line.passing.again(line.passed, value, order, changed, kinds, self._cost, limit)

    def _set(self, line: Line, passed: Passed) -> None:
        self._value = passed.value
        line.set(passed, self._work, self._cost)

    def _best(self) -> None:
        starts = [start for line in self._lines for start in line.passed.starts]
        if len(self._lines) > 1:
            starts.sort(key=lambda one: (one[1], one[0]))
        self.best = Pass(starts, self._value, [])


def _nodes_of(work: Counted, line_of_pool: Sequence[int]) -> list[Ints]:
    """Return the nodes of each line, rising."""
    number = np.array(line_of_pool, dtype=np.int64)
    return [
        np.unique(np.concatenate([work.pools[pool] for pool in np.flatnonzero(number == line)]))
        for line in range(max(line_of_pool, default=-1) + 1)
    ]


def _lines(work: Counted, ordered: bool) -> list[int]:
    """Return the number of a line for each pool of nodes; pools that share nodes share one."""
    line = list(range(len(work.pools)))
    nodes = [frozenset(pool.tolist()) for pool in work.pools]
    for first in range(len(nodes)):
        for second in range(first):
            if line[first] != line[second] and (ordered or nodes[first] & nodes[second]):
                old, new = line[first], line[second]
                line = [new if one == old else one for one in line]
    number = {one: place for place, one in enumerate(dict.fromkeys(line))}
    return [number[one] for one in line]
