"""Jobs that wait, in the order of a key, kept from one decision to the next."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable

Rank = Callable[[int], tuple[float, ...] | float]
"""Of a job; the smallest comes first."""


class Line:
    """The jobs that wait by a key that stays the same while a job waits, ties in the order of the snapshot.

    A few of thousands come or go between two decisions, so they are put in their places instead of sorting all again.

    Parameters
    ----------
    waiting : dict of int to int
        Jobs that wait, by the time at which each came to wait, the last to come last; it changes between calls.
    rank : callable
    """

    def __init__(self, waiting: dict[int, int], rank: Rank) -> None:
        self._waiting, self._rank = waiting, rank
        self._came: dict[int, int] = {}
        self._order: list[tuple[tuple[float, ...] | float, int]] = []

    def jobs(self) -> list[int]:
        """Return the jobs that wait now."""
        waiting, came = self._waiting, self._came
        new = []
        for job in reversed(waiting):
            if came.get(job) == waiting[job]:
                break
            new.append(job)
        again = {job for job in new if job in came}
        self._order = [one for one in self._order if one[1] in waiting and one[1] not in again]
        if len(self._order) + len(new) != len(waiting):
            # one was stopped at the very time at which it had come to wait, and hid those before it
            self._order, new = [], list(waiting)
        for job in new:
            insort(self._order, (self._rank(job), job))
        self._came = dict(waiting)
        return [job for _, job in self._order]
