"""Better and better passes over devices, each a little different from one before, by late acceptance.

What is no worse than what was there some steps ago is gone on from (Burke and Bykov, European Journal of Operational
Research 258, 2017). What differs is the order of jobs, which running jobs are stopped now, with how many tasks a gang
runs, to which nodes a job keeps, or whether jobs go back into gaps.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from placement.scheduling.desk import NEVER
from placement.scheduling.on_devices.passing import ANY_WAY, Bench, Choice, Way
from placement.scheduling.timing import Timetable

MEMORY = 20
"""Steps after which a schedule that is no worse is gone on from."""
NEAR = 3
"""How many places a job is moved at most at the end; at the beginning as far as there are jobs."""
STOPS, WAYS, GAPS = 0.2, 0.25, 0.03
"""How often it is tried to stop other jobs, to run a job in another way, and to use gaps or not."""
MOST_STOPS_TRIED = 0.3
"""Part of the work after which running jobs are not tried in turn any more."""

Score = tuple[int, int, int]
"""Weight of jobs left out for their deadlines, how many never start for other reasons, and weighted completion time."""
WORST: Score = (NEVER, NEVER, 1 << 200)


@dataclass(frozen=True, slots=True)
class Climbing:
    """What a climb tells and asks.

    Attributes
    ----------
    take : callable
        Is given every timetable, and returns its score.
    gone : callable
        Given how many passes were made, which part of the time or of the work is over; at 1 the climb ends.
    """

    take: Callable[[Timetable], Score]
    gone: Callable[[int], float]


class Climb:
    """One climb over the passes of a bench.

    Attributes
    ----------
    passes : int
        How many were made.
    """

    def __init__(self, bench: Bench, climbing: Climbing, most_stopped: int, seed: int) -> None:
        self._bench, self._climbing, self._most_stopped = bench, climbing, most_stopped
        self._random = random.Random(seed)
        self._stoppable = bench.stoppable()
        self._elastic = [job for job in (*bench.waiting, *self._stoppable) if bench.exactly(job)]
        self.passes = 0
        self._at, self._score = Choice(()), WORST

    @property
    def _part(self) -> float:
        return self._climbing.gone(self.passes)

    def begin(self, orders: Sequence[Sequence[int]], stops: Sequence[frozenset[int]]) -> None:
        """Make passes in some orders of all jobs, with some sets of jobs stopped if that may be."""
        for stopped in stops:
            if len(stopped) <= self._most_stopped and stopped <= set(self._stoppable):
                for order in orders:
                    mine = tuple(job for job in order if job in stopped or job in set(self._bench.waiting))
                    for strict in (False, True):
                        if self._part >= 1:
                            return
                        self._go(Choice(mine, stopped, strict=strict), WORST if not self.passes else self._score)

    def run(self) -> None:
        """Stop running jobs in turn if that is for the better; then climb until it is time to end."""
        for job in sorted(self._stoppable, key=self._loss):
            if self._part >= MOST_STOPS_TRIED:
                break
            self._go(self._toggled(self._at, job), self._score)
        memory = [self._score] * MEMORY
        step = 0
        while (part := self._part) < 1:
            before = memory[step % MEMORY]
            self._go(self._changed(self._at, part), max(before, self._score))
            memory[step % MEMORY] = min(before, self._score)
            step += 1

    def _go(self, choice: Choice, limit: Score) -> None:
        """Make a pass, and go on from it if it is no worse than a limit."""
        self.passes += 1
        table = self._bench.run(choice)
        if table is None:
            return
        score = self._climbing.take(table)
        if score <= limit:
            self._at, self._score = choice, score
            self._bench.keep()

    # --- changes -------------------------------------------------------------------------------------------------

    def _changed(self, at: Choice, part: float) -> Choice:
        kind = self._random.random()
        if kind < STOPS:
            if self._stoppable:
                return self._toggled(at, self._random.choice(self._stoppable))
        elif kind < STOPS + WAYS:
            return replace(at, ways=self._other_ways(at))
        elif kind < STOPS + WAYS + GAPS:
            return replace(at, strict=not at.strict)
        return replace(at, order=self._moved(at.order, part))

    def _moved(self, order: tuple[int, ...], part: float) -> tuple[int, ...]:
        """Move a job to another place, at most so far as is tried at this part of the search."""
        if len(order) < 2:
            return order
        far = max(NEAR, math.ceil(len(order) * (1 - part)))
        place = self._random.randrange(len(order))
        first, last = max(0, place - far), min(len(order) - 1, place + far)
        to = self._random.choice([other for other in range(first, last + 1) if other != place])
        moved = list(order)
        moved.insert(to, moved.pop(place))
        return tuple(moved)

    def _toggled(self, at: Choice, job: int) -> Choice:
        """Stop a job, or one instead of another if it would be too many; or do not stop it."""
        if job in at.stopped:
            return replace(at, order=tuple(one for one in at.order if one != job), stopped=at.stopped - {job})
        if not self._most_stopped:
            return at
        if len(at.stopped) >= self._most_stopped:
            at = self._toggled(at, self._random.choice(sorted(at.stopped)))
        ratio = self._ratio(job)
        place = next((number for number, one in enumerate(at.order) if self._ratio(one) > ratio), len(at.order))
        return replace(at, order=(*at.order[:place], job, *at.order[place:]), stopped=at.stopped | {job})

    def _other_ways(self, at: Choice) -> dict[int, Way]:
        """Let a job run with another number of tasks, or keep to other nodes."""
        ways = dict(at.ways)
        elastic = [job for job in self._elastic if job in at.order]
        if elastic and (not self._bench.within or self._random.random() < 0.5):
            job = self._random.choice(elastic)
            exactly = self._random.choice(self._bench.exactly(job))
            chosen = self._random.choice([exactly, Way(exactly.least), ANY_WAY])
            ways[job] = replace(chosen, within=ways.get(job, ANY_WAY).within)
        elif self._bench.within and at.order:
            job = self._random.choice(at.order)
            number = self._random.choice([-1, *range(len(self._bench.within))])
            ways[job] = replace(ways.get(job, ANY_WAY), within=number)
        return ways

    def _ratio(self, job: int) -> float:
        """Return card time over weight, as in Smith's rule for parallel jobs."""
        desk = self._bench.desk
        length = desk.live[job].end if job in desk.live else desk.length(job)
        return length * max(desk.cards(job), 1) / max(int(self._bench.work.weight[job]), 1e-9)

    def _loss(self, job: int) -> tuple[int, float, int]:
        """Order first what is of the least worth for the cards that it takes."""
        return int(self._bench.work.priority[job]), -self._ratio(job), job
