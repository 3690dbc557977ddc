"""Policies that try all waiting jobs in some order, and start each one that fits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from placement.scheduling.desk import Desk

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
        """Start what fits."""
        for job in sorted(desk.waiting, key=lambda one: (self.key(desk, one), one)):
            if not desk.start(job) and self.strict:
                return


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
