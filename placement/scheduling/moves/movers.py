"""When jobs are moved from which schedule, and for how long: by the search, and by a process beside it.

Few jobs are moved anew several times, each from the best until then; the process beside goes on with that while the
search proves bounds, and takes longer each time, for some schedules are found only so. Many jobs are moved once, from
what the process beside had found until then. Where jobs may run on several models, what differs most is who gets which
cards: they are moved several times from one schedule first, and then from the best of what that gave.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from placement.scheduling.counts import Counted, Profile
from placement.scheduling.moves.beside import Aside, Beside
from placement.scheduling.moves.moving import Movable, Turns, move
from placement.scheduling.moves.switches import Losses
from placement.scheduling.passes import Pass
from placement.solver import Limits

SCATTERED, FIRST_MOVES, MOVES = 5, 2000, 1_200_000
"""How often few jobs are moved anew before they are settled, and moves of each; and jobs times moves after which the
search ends where there is no clock."""
MOVED, MOVED_LONG = 300.0, 150.0
"""Jobs, by their square, that are moved for a second before they are moved anew from the best; here and beside.
By trial: what comes out differs as much from one time to the next as by how long it takes."""
LONG = 0.8
"""Part of the time for which the process beside moves few jobs, undisturbed."""
SCOUTS, SCOUTING, SCOUT_HEAT = 3, 0.5, 2.0
"""How often jobs that may run on several models are moved anew from one schedule before they are from the best of what
that gives, part of the time in which they are, and heat of these moves. What differs is mostly who gets which cards."""
SCOUT_SEED, OTHER_SEEDS = 100, 1000
"""How far the seeds of these, and of moves beside, are from those of other moves."""


@dataclass(frozen=True, slots=True)
class Known:
    """What a search knows, and is told.

    Attributes
    ----------
    best : callable
        Returns the best schedule.
    over : callable
        Returns whether the search is at its end.
    enough : callable
        Returns the value of a schedule that is good enough.
    offer : callable
        Takes a schedule that may be better.
    """

    best: Callable[[], Pass]
    over: Callable[[], bool]
    enough: Callable[[], int]
    offer: Callable[[Pass], None]


class Movers:
    """All that moves the jobs of one search.

    Parameters
    ----------
    work : Counted
    base : Profile
        What is free as what runs now comes to its end.
    limits : Limits
        Of the search.
    seed : int
    known : Known
    """

    def __init__(self, work: Counted, base: Profile, limits: Limits, seed: int, known: Known) -> None:
        self._what = Movable(work, base, {})
        self._limits, self._seed, self._known = limits, seed, known
        self._beside = Beside(limits)
        self._asked, self._few = 0, False

    def close(self) -> None:
        """Let go of the process beside."""
        self._beside.close()

    def learn(self, losses: Losses) -> None:
        """Take over what jobs lose on cards of some models."""
        self._what = replace(self._what, losses=losses)

    def scatter(self, found: Pass, first: int) -> None:
        """Move jobs from one schedule in several ways, since what is found for few jobs is to be the best."""
        self._here(Turns(found, first, SCATTERED, onward=False, most=FIRST_MOVES), self._limits)

    def meanwhile(self, limits: Limits) -> None:
        """Have jobs moved beside while the search does something else until the end of some limits."""
        self._few = self._few or self._times(self._limits) > 1
        if self._few:
            limits = self._limits.share(LONG)
        # seeds beyond those of moves here and beside at once
        self._asked += 1
        times = self._times(limits, MOVED_LONG)
        self._aside(Turns(self._known.best(), OTHER_SEEDS * (1 + self._asked), times), limits, self._few)

    def renew(self, limits: Limits) -> None:
        """Have few jobs moved beside once more, if they have been."""
        if self._few and self.join():
            self.meanwhile(limits)

    def run(self, limits: Limits) -> None:
        """Move jobs from the best schedule, here and beside."""
        known, clock = self._known, limits.deadline < math.inf
        times = self._times(limits)
        if times == 1 and self._what.losses and clock and not known.over():
            scouts = Turns(known.best(), SCOUT_SEED, SCOUTS, onward=False, heat=SCOUT_HEAT)
            self._both(scouts, limits.share(SCOUTING))
        most = math.inf if clock else max(FIRST_MOVES, MOVES // len(known.best().starts))
        for number in range(times):
            self.join()
            if known.over() or not limits.left:
                return
            self._both(Turns(known.best(), number, most=most), limits.share(1 / (times - number)))

    def join(self) -> bool:
        """Take what was found beside, unless there is to be more; return whether something else may be done there."""
        if not self._beside.ready:
            return False
        for found in self._beside.end(self._limits):
            self._known.offer(found)
        return self._beside.free

    def _times(self, limits: Limits, moved: float = MOVED) -> int:
        """Return how often jobs are to be moved anew."""
        jobs = max(1, len(self._known.best().starts))
        return max(1, int(limits.left * moved / jobs**2)) if limits.deadline < math.inf else 1

    def _both(self, turns: Turns, limits: Limits) -> None:
        self._aside(replace(turns, seed=turns.seed + OTHER_SEEDS), limits, False)
        self._here(turns, limits)
        self.join()

    def _here(self, turns: Turns, limits: Limits) -> None:
        turns = replace(turns, seed=self._seed + turns.seed)
        move(self._what, turns, limits, self._known.over, self._known.offer)

    def _aside(self, turns: Turns, limits: Limits, undisturbed: bool) -> None:
        # one job alone has nowhere to go
        if self.join() and len(turns.found.starts) > 1 and not self._known.over():
            turns = replace(turns, seed=self._seed + turns.seed)
            self._beside.begin(Aside(self._what.bare(), turns, limits, self._known.enough()), undisturbed)
