"""Policies that try all waiting jobs in some order, and start each one that fits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from placement.heuristics.gangs import Placed
from placement.scheduling.desk import Desk
from placement.scheduling.profile import Profile

Key = Callable[[Desk, int], tuple[float, ...] | float]
"""Of a job that waits; the smallest comes first."""


@dataclass(frozen=True, slots=True)
class ListPolicy:
    """Tries the jobs that wait by a key, ties in the order of the snapshot, and starts each one that fits.

    Graham's list scheduling: no device stays idle that some job could use now, and wide jobs may wait for long.

    Attributes
    ----------
    name : str
    key : callable
    strict : bool
        Whether to start no job before all that come before it have started.
    """

    name: str
    key: Key
    strict: bool = False
    period: int = 0

    def decide(self, desk: Desk) -> None:
        """Start what fits; where a job that is overdue does not, what follows may not delay it."""
        if desk.work.max_wait is not None:
            self._by_age(desk)
            return
        turns = desk.turns(self.key)
        while turns.head() is not None:
            job = turns.take()
            if desk.start(job):
                continue
            if self.strict:
                return
            turns.refuse(job)  # what is free only gets less from here on

    def _by_age(self, desk: Desk) -> None:
        key, held = aged(self.key), None
        for job in sorted(desk.waiting, key=lambda one: (key(desk, one), one)):
            if desk.start(job) if held is None else start_beside(desk, job, held):
                continue
            if self.strict:
                return
            if held is None and overdue(desk, job):
                held = held_for(desk, job)


Held = tuple[int, int, tuple[Placed, ...]]
"""A job that is overdue and does not fit, when it is expected to fit first, and where."""


def overdue(desk: Desk, job: int) -> bool:
    """Return whether a job has waited for longer than the policy of the snapshot allows."""
    limit = desk.work.max_wait
    return limit is not None and desk.waited(job) > limit


def held_for(desk: Desk, job: int) -> Held | None:
    """Return what is to be kept for a job that does not fit; None where it is not known when it will."""
    found = Profile(desk, {}).earliest(job)
    return None if found is None else (job, found.start, found.tasks)


def start_beside(desk: Desk, job: int, held: Held) -> bool:
    """Start a job if it fits, and ends in time or where nothing is kept for another (EASY; Lifka, JSSPP 1995)."""
    other, at, places = held
    tasks = desk.fit(job)
    if tasks is not None and desk.now + sum(desk.spell(job, tasks)[:2]) > at:
        desk.withdraw(job, tasks)
        with desk.beside([(other, places)]):
            tasks = desk.fit(job)
    if tasks is not None:
        desk.settle(job, tasks)
    return tasks is not None


def aged(key: Key) -> Key:
    """Return a key by which jobs that have waited for longer than the policy allows come first, longest first."""

    def by_age(desk: Desk, job: int) -> tuple[float, ...]:
        if overdue(desk, job):
            return 0, -desk.waited(job)
        found = key(desk, job)
        return (1, *found) if isinstance(found, tuple) else (1, found)

    return by_age


def by_arrival(desk: Desk, job: int) -> tuple[float, ...]:
    """Order by priority, then as jobs came: first in, first out."""
    return -int(desk.work.priority[job]), int(desk.work.submit[job])


def by_length(desk: Desk, job: int) -> float:
    """Order by run time: shortest job first (Smith, 1956, with equal weights)."""
    return desk.length(job)


def by_weighted_length(desk: Desk, job: int) -> float:
    """Order by run time over weight: Smith's rule (1956), the best on one machine."""
    return desk.length(job) / max(int(desk.work.weight[job]), 1e-9)


def by_weighted_area(desk: Desk, job: int) -> float:
    """Order by card seconds over weight: Smith's rule for parallel jobs (Turek and others, SPAA 1994)."""
    return desk.length(job) * max(desk.cards(job), 1) / max(int(desk.work.weight[job]), 1e-9)


def in_order(jobs: Sequence[int]) -> Key:
    """Order as some jobs are listed; all are."""
    place = {job: number for number, job in enumerate(jobs)}
    return lambda _, job: place[job]
