"""Least attained service in discrete queues, as in Tiresias."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from placement.instance import Ints
from placement.scheduling.desk import NEVER, Desk, Live
from placement.scheduling.policies import evicting

LIMITS = (3_250_000, 7_200_000)
"""Card milliseconds of service after which a job goes down from each queue to the next."""

_Rank = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class TiresiasLas:
    """The less a job has been served, cards times time, the sooner it is served; in queues, first come first served.

    A job goes down to the next queue when its service comes to a limit. Jobs of upper queues come first; within a
    queue those that started earlier, then those that never did, as they came. Each starts if it fits when jobs that
    come after it are stopped, those that come last first and no more than must be. Estimates of run times and
    priorities play no part.

    Source: 2D-LAS of Gu and others, Tiresias (NSDI 2019), with the queues and limits of its simulator
    (SymbioticLab/Tiresias), where jobs are not promoted for waiting long unless that is asked for.
    """

    name: str = "tiresias-las"
    period: int = 0
    limits: tuple[int, ...] = LIMITS

    def decide(self, desk: Desk) -> None:
        """Start what comes first, and stop for it what comes later."""
        service = desk.memory.get(self.name) or desk.memory.setdefault(self.name, _Service(desk, self.limits))
        service.renew(desk)
        victims = _Victims(desk, service)
        evicting.serve(desk, service.rank, lambda desk, job: victims.choose(desk, job, service.rank(desk, job)))
        service.note_started(desk)
        if desk.waiting:
            desk.again = min(desk.again, service.next_fall(desk))


class _Victims:
    """Jobs that may be stopped for those that come before them.

    Parameters
    ----------
    desk : Desk
    service : _Service
    """

    def __init__(self, desk: Desk, service: _Service) -> None:
        self._ranked = service.stoppable(desk)
        self._count(desk)

    def _count(self, desk: Desk) -> None:
        """Add up the card units of each and of those that come after it."""
        units = [desk.live[job].units for _, job in reversed(self._ranked)]
        self._units = list(accumulate(units, initial=0))[::-1]

    def choose(self, desk: Desk, job: int, rank: _Rank) -> tuple[list[int], Ints | None] | None:
        """Return the jobs to stop for one that waits; see `placement.scheduling.policies.evicting`."""
        place = bisect_right(self._ranked, (rank, job))
        if not desk.may_fit(job, self._units[place]):
            return None
        victims = evicting.fewest(desk, job, [other for _, other in reversed(self._ranked[place:])])
        if victims is None:
            return None
        self._ranked = [one for one in self._ranked if one[1] not in victims]
        self._count(desk)
        return victims, None


class _Service:
    """What jobs were served in stretches that are over, in card units times milliseconds, and when each began."""

    def __init__(self, desk: Desk, limits: Sequence[int]) -> None:
        self._limits = tuple(limit * desk.work.instance.card_units for limit in limits)
        self._submit: list[int] = desk.work.submit.tolist()
        self._seen = 0
        self._past: dict[int, int] = defaultdict(int)
        self._first: dict[int, int] = {}
        self._stays: dict[int, tuple[Live, int, int]] = {}
        """The queue of a job that runs, and until when it stays there, in the stretch of which that is known."""
        self._noted: dict[int, Live] = {}
        self._falls: list[tuple[int, int]] = []
        """When jobs go down; of stretches that are over too."""
        self._fresh: list[int] = []
        """Jobs that had not yet run for any time when they were last seen."""
        for job, ongoing in desk.work.ongoing.items():
            self._first[job] = ongoing.since
            self._past[job] = -ongoing.since * desk.units_of(job, ongoing.tasks)

    def rank(self, desk: Desk, job: int) -> _Rank:
        """Return what a job is ordered by: its queue, when it first began and when it came."""
        self._catch_up(desk)
        live = desk.live.get(job)
        queue = bisect_right(self._limits, self._past[job]) if live is None else self._stay(desk, job, live)[1]
        return queue, self._first.get(job, NEVER), self._submit[job]

    def stoppable(self, desk: Desk) -> list[tuple[_Rank, int]]:
        """Return the jobs that run and may be stopped now, and what they are ordered by, in that order."""
        self._catch_up(desk)
        first, submit = self._first, self._submit
        return sorted(
            [
                ((self._stay(desk, job, live)[1], first.get(job, NEVER), submit[job]), job)
                for job, live in desk.live.items()
                if desk.may_stop(job)
            ]
        )

    def _stay(self, desk: Desk, job: int, live: Live) -> tuple[Live, int, int]:
        known = self._stays.get(job)
        if known is None or known[0] is not live or known[2] <= desk.now:
            past, until = self._past[job], NEVER
            queue = bisect_right(self._limits, past + (desk.now - live.start) * live.units)
            if live.units and queue < len(self._limits):
                until = live.start - (past - self._limits[queue]) // live.units
            known = self._stays[job] = live, queue, until
        return known

    def note_started(self, desk: Desk) -> None:
        """Note when jobs go down that were started now."""
        self._catch_up(desk)
        for job in reversed(desk.live):
            live = desk.live[job]
            if self._noted.get(job) is live:
                break  # those that were started last come last
            self._noted[job] = live
            self._fresh.append(job)
            heapq.heappush(self._falls, (self._stay(desk, job, live)[2], job))

    def next_fall(self, desk: Desk) -> int:
        """Return when a job that runs and may be stopped goes down to the next queue; `NEVER` where none does."""
        while self._falls and self._falls[0][0] < NEVER:
            moment, job = self._falls[0]
            live = desk.live.get(job)
            until = NEVER if live is None or desk.stoppable_from(job) >= NEVER else self._stay(desk, job, live)[2]
            if until == moment:
                return moment
            heapq.heapreplace(self._falls, (until, job))
        return NEVER

    def renew(self, desk: Desk) -> None:
        """Take into account what has happened since."""
        self._catch_up(desk)
        still = []
        for job in self._fresh:
            live = desk.live.get(job)
            if live is not None and live.start < desk.now:
                self._first.setdefault(job, live.start)
            elif live is not None:
                still.append(job)
        self._fresh = still

    def _catch_up(self, desk: Desk) -> None:
        if self._seen == len(desk.stretches):
            return
        for stretch in desk.stretches[self._seen :]:
            self._first.setdefault(stretch.job, stretch.start)
            self._past[stretch.job] += (stretch.end - stretch.start) * desk.units_of(stretch.job, stretch.tasks)
        self._seen = len(desk.stretches)
