"""Few jobs, solved to the end by their starts alone: where their tasks lie is settled afterwards.

Sorted by start, each job of some best schedule starts when it may first, when the one before does, or when another one
ends, for else it could start sooner on its nodes. All such starts are looked at, depth first, but for those after which
what is left costs too much (`placement.scheduling.bounds.remaining`). One arrangement on nodes is kept along the way;
where the next job has no room in it, all others are tried. That is a search over nodes with all starts fixed, which is
easier by far than one over starts and nodes at once: many arrangements of the same starts differ in nothing that
matters.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from placement.scheduling.bounds.remaining import Job, Remaining

MOST_LOOKED, MOST_ARRANGED = 20_000, 2_000
"""Beginnings of schedules after which it is given up, and steps after which it is for the nodes of one of them."""


Held = tuple[int, int]
"""When a task ends, and its cards."""
Nodes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Placed:
    """A job by its place among the jobs, its start, and a node for each of its tasks."""

    number: int
    start: int
    nodes: Nodes


class OutOfStepsError(Exception):
    """It took too long."""


class Arranged:
    """The search.

    Parameters
    ----------
    jobs : sequence of Job
        Tasks of gangs of several take whole nodes.
    within : (sequence of int, sequence of int)
        First and last starts, of each job.
    size : int
        Cards of a node.
    running : sequence of sequence of Held
        What runs on each node.
    remaining : Remaining
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        within: tuple[Sequence[int], Sequence[int]],
        size: int,
        running: Sequence[Sequence[Held]],
        remaining: Remaining,
    ) -> None:
        self._jobs, self._size, self._begin, self._remaining = jobs, size, [tuple(node) for node in running], remaining
        self._first, self._last = within
        self._ends = tuple(sorted({end for node in running for end, _ in node}))
        self._best: tuple[Placed, ...] = ()
        self._most = self._left = self._steps = 0
        self._deadline = 0.0

    def run(self, most: int, looked: int, deadline: float) -> tuple[int, tuple[Placed, ...]] | None:
        """Return the least cost below so much, or that where there is none, and the jobs by start; empty for none.

        None where more than so many beginnings would have to be looked at, or the deadline on the clock of
        `time.monotonic` passes.
        """
        self._most, self._left, self._best, self._deadline = most, looked, (), deadline
        try:
            self._follow(0, 0, 0, (), ())
        except OutOfStepsError:
            return None
        return self._most, self._best

    def _follow(
        self, done: int, moment: int, cost: int, running: tuple[tuple[int, int], ...], placed: tuple[Placed, ...]
    ) -> None:
        """Look at all that begins with some starts."""
        self._left -= 1
        if not self._left or (not self._left % 64 and time.monotonic() > self._deadline):
            raise OutOfStepsError
        if len(placed) == len(self._jobs):
            self._most, self._best = cost, placed
            return
        ends = *(end for end, _ in running), *self._ends
        for number, one in enumerate(self._jobs):
            if done >> number & 1:
                continue
            soonest, now = max(moment, self._first[number]), done | 1 << number
            for start in sorted({soonest, *(end for end in ends if end > soonest)}):
                # of jobs that start at one moment the order does not matter
                together = placed and start == moment and number < placed[-1].number
                if start > self._last[number] or together:
                    continue
                left = *(held for held in running if held[0] > start), (start + one.length, number)
                then = cost + one.weight * (start + one.length - one.release)
                if then + self._remaining.least(start, left, now) >= self._most:
                    continue
                found = self._extended(placed, number, start)
                if found:
                    self._follow(now, start, then, left, found)

    # --- nodes ---------------------------------------------------------------------------------------------------

    def _extended(self, placed: tuple[Placed, ...], number: int, start: int) -> tuple[Placed, ...]:
        """Return the jobs so far with one more that starts then, perhaps on other nodes; none where it cannot be."""
        one, state = self._jobs[number], list(self._begin)
        for other in placed:
            self._take(state, other)
        free = [node for node, held in enumerate(state) if self._used(held, start) + one.cards <= self._size]
        if len(free) >= one.tasks:
            free.sort(key=lambda node: -self._used(state[node], start))
            return *placed, Placed(number, start, tuple(free[: one.tasks]))
        if sum(self._used(held, start) for held in state) + one.tasks * one.cards > self._size * len(state):
            return ()
        self._steps = MOST_ARRANGED
        starts = [*((other.number, other.start) for other in placed), (number, start)]
        return self._arrange(starts, 0, list(self._begin), ())

    def _arrange(
        self, starts: Sequence[tuple[int, int]], at: int, state: list[tuple[Held, ...]], placed: tuple[Placed, ...]
    ) -> tuple[Placed, ...]:
        """Return nodes for all jobs from a place on; none where there are no such."""
        if at == len(starts):
            return placed
        self._steps -= 1
        if not self._steps:
            raise OutOfStepsError
        number, start = starts[at]
        one = self._jobs[number]
        state = [tuple(sorted(held for held in node if held[0] > start)) for node in state]
        free = [node for node, held in enumerate(state) if self._used(held, start) + one.cards <= self._size]
        seen = set()
        for some in combinations(free, one.tasks):
            alike = tuple(sorted(state[node] for node in some))
            if alike not in seen:
                seen.add(alike)
                following = state.copy()
                self._take(following, Placed(number, start, some))
                found = self._arrange(starts, at + 1, following, (*placed, Placed(number, start, some)))
                if found:
                    return found
        return ()

    def _take(self, state: list[tuple[Held, ...]], one: Placed) -> None:
        job = self._jobs[one.number]
        for node in one.nodes:
            state[node] = (*state[node], (one.start + job.length, job.cards))

    @staticmethod
    def _used(held: Sequence[Held], moment: int) -> int:
        return sum([cards for end, cards in held if end > moment])
