r"""What jobs that have not started yet cost at least, by prices of cards and of inequalities, from each moment on.

At each moment what jobs pay (see `placement.scheduling.bounds.tolls`) is no more than what all there is is worth. That
holds of the time after a moment :math:`m` alone too, so with the jobs R that run at m, and those N that start at m or
later,

.. math:: \sum_{j \in N} w_j T_j \ge \sum_{j \in N} \min_{s \ge m} \Big( w_j (s + p_j - r_j) + \int_m^\infty \pi_j(s)
    \Big) + \sum_{j \in R} \int_m^\infty \pi_j(s_j) - \int_m^\infty G ,

where :math:`\pi_j(s)` is what job j pays when it starts at s, and G what all there is is worth. What was not used
before m is lost, which the same bound for all of the time does not see.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from placement.instance import Ints
from placement.scheduling.bounds.modes import Kind, Relaxation, in_windows
from placement.scheduling.bounds.tolls import Tolls

MOST_CELLS = 4_000_000
"""Pairs of a moment and a start that are looked at, for all jobs together."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job: its number, when it may start and how long it runs in some unit, its weight, and its tasks' cards."""

    job: int
    release: int
    length: int
    weight: int
    cards: int
    tasks: int


@dataclass(frozen=True, slots=True)
class Ends:
    """What is proven of when jobs end.

    Attributes
    ----------
    within : mapping of int to (int, int)
        By job, the first and the last end that it has in any schedule that is no worse than one that is known.
    relaxed : Relaxation
        Of single jobs.
    tolls : Tolls
    moments : int array
        Between which prices are constant.
    """

    within: Mapping[int, tuple[int, int]]
    relaxed: Relaxation
    tolls: Tolls
    moments: Ints


class Remaining:
    """What the rest costs.

    Parameters
    ----------
    jobs : sequence of Job
    tables : sequence of tuple
        Of each job, what it pays from 0 until each moment wherever it runs; what it pays where it runs on for a
        length, until each moment and until so much before it; and by moment the least it costs if it starts then or
        later. All in parts of the unit of time times weight.
    worth : sequence of int
        By moment, what all there is from then on is worth.
    parts : int
        Of the unit of time.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        tables: Sequence[tuple[list[int], list[tuple[list[int], list[int]]], list[int]]],
        worth: Sequence[int],
        parts: int,
    ) -> None:
        self._every = range(len(jobs))
        self._tables, self._worth, self._parts = tables, worth, parts
        self._known: dict[tuple[int, int, int], int] = {}

    @classmethod
    def of(
        cls, ends: Ends, jobs: Sequence[Job], first: Sequence[int], last: Sequence[int], unit: int
    ) -> Remaining | None:
        """Return what the rest of some jobs costs, or None where that cannot be told.

        Parameters
        ----------
        ends : Ends
        jobs : sequence of Job
            All that are to start.
        first, last : sequence of int
            Starts between which each of them starts.
        unit : int
            Milliseconds of the unit of time.
        """
        tolls, kinds = ends.tolls, {kind.jobs[0]: (number, kind) for number, kind in enumerate(ends.relaxed.kinds)}
        # what else counts, or might run in another way, is not told apart
        if not tolls.steps or kinds.keys() != {one.job for one in jobs} or not all(map(_plain, ends.relaxed.kinds)):
            return None
        horizon = 1 + max(one.length + end for one, end in zip(jobs, last, strict=True))
        if horizon * sum(end + 1 - begin for begin, end in zip(first, last, strict=True)) > MOST_CELLS:
            return None
        times = np.arange(horizon + 1) * unit
        tables = []
        for one, begin, end in zip(jobs, first, last, strict=True):
            number, kind = kinds[one.job]
            plain, through, anytime = tolls.tables(number, kind.modes[0])
            always = tolls.until(plain, times)
            running = [
                (tolls.until(paid, times), tolls.until(paid, np.maximum(times - length, 0))) for length, paid in through
            ]
            early = [
                (tolls.until(paid, np.maximum(times - length, 0)), tolls.until(paid, times)) for length, paid in anytime
            ]
            start = np.arange(begin, end + 1)
            stop = start + one.length
            cost = always[stop] - always[start] + tolls.steps * unit * one.weight * (stop - one.release)
            for now, before in running:
                cost += np.maximum(0, before[stop] - now[start])
            # what it pays before it starts, as far as that is not over
            cells = np.where(start >= np.arange(horizon + 1)[:, None], cost, np.iinfo(np.int64).max // 2)
            for before, now in early:
                cells += now[stop] - np.maximum(before[start], now[:, None])
            for _, now in early:
                always = always + now
            pairs = [(now.tolist(), before.tolist()) for now, before in running]
            tables.append((always.tolist(), pairs, cells.min(axis=1).tolist()))
        worth, edges = tolls.worth(), ends.moments
        place = np.minimum(np.searchsorted(edges, times, side="right") - 1, len(edges) - 2).tolist()
        found = []
        for time, row in zip(np.minimum(times, edges[-1]).tolist(), place, strict=True):
            begin, end = int(edges[row]), int(edges[row + 1])
            found.append(worth[-1] - worth[row] - (worth[row + 1] - worth[row]) // (end - begin) * (time - begin))
        return cls(jobs, tables, found, tolls.steps * unit)

    def least(self, moment: int, running: Sequence[tuple[int, int]], done: int) -> int:
        """Return what jobs cost at least that start at a moment or later; no less than 0.

        Parameters
        ----------
        moment : int
        running : sequence of (int, int)
            When jobs end that have started, and their numbers.
        done : int
            The bits of all that have started.
        """
        tables = self._tables
        total = sum([tables[number][2][moment] for number in self._every if not done >> number & 1])
        known = self._known
        for end, number in running:
            key = moment, end, number
            if key not in known:
                known[key] = self._pays(*key)
            total += known[key]
        return max(0, -((self._worth[moment] - total) // self._parts))

    def _pays(self, moment: int, end: int, number: int) -> int:
        """Return what a job that runs pays from a moment until its end."""
        always, through, _ = self._tables[number]
        return always[end] - always[moment] + sum(max(0, before[end] - now[moment]) for now, before in through)


def _plain(kind: Kind) -> bool:
    return in_windows(kind) and len(kind.modes) == 1
