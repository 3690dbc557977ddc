"""The future of a cluster: which places running jobs and reservations take, and until when."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from placement.heuristics.gangs import Placed
from placement.instance import Ints
from placement.scheduling.desk import Desk
from placement.scheduling.room import Room
from placement.scheduling.work import NEVER


@dataclass(frozen=True, slots=True)
class Reserved:
    """Places that a job is to have for a time.

    Attributes
    ----------
    start, end : int
    tasks : tuple of Placed
    """

    start: int
    end: int
    tasks: tuple[Placed, ...]


Fit = Callable[[int], tuple[Placed, ...] | None]
"""Places a job that waits, and returns where; None where it does not fit."""

MayFit = Callable[[int, int], bool]
"""Returns False for a time for all of which a job surely finds no places."""


class Profile:
    """What is taken from now on, by running jobs as they are expected to end and by reservations.

    How many card units are free says at once of most moments that a job does not fit then; of the others it is tried
    out with what is taken held on its places.

    Parameters
    ----------
    desk : Desk
    reserved : mapping of int to Reserved
        By job; none of them runs.
    """

    def __init__(self, desk: Desk, reserved: Mapping[int, Reserved]) -> None:
        self._desk, self._reserved = desk, dict(reserved)
        self._ending = sorted((live.expected, job) for job, live in desk.live.items())
        """The jobs that run, by when they are expected to end."""
        self._lifted = 0
        """How many of them are lifted, the first ones."""
        self._held: set[int] = set()
        self._trying = False
        self._room = Room(desk)
        """What is free now."""
        self._come = sorted((one.start, job) for job, one in reserved.items())
        self._go = sorted((one.end, job) for job, one in reserved.items())
        """When reservations begin, and when they end, and their jobs."""
        spells = [(desk.now, live.expected, live.units) for live in desk.live.values()]
        spells += [(one.start, one.end, desk.units_of(job, one.tasks)) for job, one in reserved.items()]
        start, end, units = np.array(spells, dtype=np.int64).reshape(-1, 3).T
        windows = [window.end for window in desk.work.windows if window.end > desk.now]
        moments = np.unique(np.concatenate([start, end, np.array([desk.now, *windows], dtype=np.int64)]))
        self._moments = moments[moments < NEVER]
        change = np.zeros(len(self._moments) + 1, dtype=np.int64)
        change[0] = desk.all_units
        np.subtract.at(change, np.searchsorted(self._moments, start), units)
        np.add.at(change, np.searchsorted(self._moments, end), units)
        self._free = np.cumsum(change)[:-1]

    def add(self, job: int, reserved: Reserved) -> None:
        """Take a reservation into account."""
        self._reserved[job] = reserved
        insort(self._come, (reserved.start, job))
        insort(self._go, (reserved.end, job))
        for moment in (reserved.start, reserved.end):
            place = int(np.searchsorted(self._moments, moment))
            if place == len(self._moments) or self._moments[place] != moment:
                self._moments = np.insert(self._moments, place, moment)
                self._free = np.insert(self._free, place, self._free[place - 1])
        first, last = np.searchsorted(self._moments, (reserved.start, reserved.end))
        self._free[first:last] -= self._desk.units_of(job, reserved.tasks)

    def earliest(
        self,
        job: int,
        since: int = 0,
        length: int | None = None,
        fit: Fit | None = None,
        may_fit: MayFit | None = None,
    ) -> Reserved | None:
        """Return the first time in which a job fits beside all that is taken; None where that is never.

        Parameters
        ----------
        job : int
        since : int
            When it may first start.
        length : int, optional
            Least time that it runs; `Desk.length` if absent, which is what it runs where it is placed first.
        fit : callable, optional
            Places the job at the time of the desk; `Desk.fit` if absent.
        may_fit : callable, optional
            Spares trials.
        """
        least = self._desk.least_units(job)
        length = self._desk.length(job) if length is None else length
        since = max(since, self._desk.now)
        starts = self._starts(least, length, since).tolist()
        counted = fit is None and self._desk.least_tasks(job) is not None
        ahead = _Ahead(self, max(length, 1)) if counted else None
        with self.trials():
            for start in starts:
                if may_fit is not None and not may_fit(start, start + max(length, 1)):
                    continue
                if ahead is not None and not ahead.may_hold(job, start):
                    continue
                found = self._fits_at(job, start, length, fit or self._desk.fit)
                if found is not None:
                    return found
        return None

    def _starts(self, least: int, length: int, since: int) -> Ints:
        """Return a time and the moments after it, those from which on enough card units are free for long enough."""
        moments = self._moments
        begin = np.concatenate([[since], moments[np.searchsorted(moments, since, side="right") :]])
        if not self._desk.counts:
            return begin
        short = np.append(np.flatnonzero(self._free < least), len(moments))
        following = short[np.searchsorted(short, np.searchsorted(moments, begin, side="right") - 1)]
        found: Ints = begin[following >= np.searchsorted(moments, begin + max(length, 1))]
        return found

    def _fits_at(self, job: int, start: int, length: int, fit: Fit) -> Reserved | None:
        """Return a reservation from a moment on, for as long as the job runs where it then is."""
        desk = self._desk
        while True:
            self._show(start, start + max(length, 1))
            with desk.at(start):
                tasks = fit(job)
                if tasks is None:
                    return None
                desk.withdraw(job, tasks)
                restart, work, _ = desk.spell(job, tasks)
            if restart + work <= length:
                return Reserved(start, start + restart + work, tasks)
            length = restart + work  # it runs longer there, and may come to meet others

    # --- what if -------------------------------------------------------------------------------------------------

    @contextmanager
    def trials(self) -> Iterator[None]:
        """Try out other times, for one job or for several in turn, and come back to the present at the end."""
        inner, self._trying = self._trying, True
        try:
            yield
        finally:
            self._trying = inner
            if not inner:
                self._change(0, set())

    def _show(self, start: int, end: int) -> None:
        """Hold on the nodes what is taken at some time in a span."""
        self._change(
            bisect_right(self._ending, (start, NEVER)),
            {job for job, one in self._reserved.items() if one.start < end and one.end > start},
        )

    def _change(self, lifted: int, held: set[int]) -> None:
        """Go from what is shown to what is to be, by no more than the difference."""
        desk, reserved = self._desk, self._reserved
        ended = [job for _, job in self._ending[self._lifted : lifted]]
        again = [job for _, job in self._ending[lifted : self._lifted]]
        desk.exchange(
            [(job, reserved[job].tasks) for job in sorted(self._held - held)],
            [(job, reserved[job].tasks) for job in sorted(held - self._held)],
        )
        desk.lift_all(ended)
        desk.put_all_back(again)
        self._lifted, self._held = lifted, held


class _Ahead:
    """What counts of free cards say of spans of one length, each of which begins no sooner than the one before.

    Parameters
    ----------
    profile : Profile
    length : int
    """

    def __init__(self, profile: Profile, length: int) -> None:
        self._profile, self._room, self._length = profile, profile._room.copy(), length
        self._gone = self._came = self._went = 0
        """How many running jobs are over when the span begins, reservations begin before its end, and are over."""

    def may_hold(self, job: int, start: int) -> bool:
        """Return False if a job surely does not fit beside all that is taken at some time in a span."""
        of = self._profile
        gone = bisect_right(of._ending, (start, NEVER))
        came, went = bisect_left(of._come, (start + self._length,)), bisect_right(of._go, (start, NEVER))
        ended = [of._desk.load(one, of._desk.live[one].tasks) for _, one in of._ending[self._gone : gone]]
        begun = [of._desk.load(one, of._reserved[one].tasks) for _, one in of._come[self._came : came]]
        over = [of._desk.load(one, of._reserved[one].tasks) for _, one in of._go[self._went : went]]
        self._room.exchange([*ended, *over, *begun], [-1] * (len(ended) + len(over)) + [1] * len(begun))
        self._gone, self._came, self._went = gone, came, went
        return self._room.may_hold(job)
