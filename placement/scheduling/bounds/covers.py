r"""Cover inequalities: of jobs that do not fit together, one at least does not run.

While it runs, job k holds :math:`u_k` of :math:`U` units. A cover is a set C of jobs with :math:`\sum_{k \in C} u_k >
U`, so with :math:`y_k = 1` for those that run at a moment

.. math:: \sum_{k \in C} y_k \le |C| - 1 .

Units alone do not say so: three halves of jobs that each take all there is fit, one after another in the mean, beside
three quarters of what else there is. Jobs outside C get the largest coefficients with which the inequality still holds,
one after another (sequential lifting; Balas, Mathematical Programming 8, 1975, and Wolsey, ibid.). As units are whole
numbers, both the cover that is broken most and each coefficient come from a knapsack by dynamic programming.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from placement.exact.milp.arrays import Floats
from placement.instance import Bools, Ints

BROKEN = 5e-3
"""By how much an inequality is broken at least."""
MOST_CELLS = 20_000_000
"""Of the table of one dynamic program, each of a byte."""


@dataclass(frozen=True, slots=True)
class Cover:
    """An inequality: the sum of coefficients of jobs that run at one moment is no more than `most`.

    Attributes
    ----------
    column : int
        In which of the given columns it is broken.
    coefficient : int array
        By job, not negative.
    most : int
    broken : float
        By how much.
    """

    column: int
    coefficient: Ints
    most: int
    broken: float


def covers(running: Floats, units: Sequence[int], room: int) -> list[Cover]:
    """Return lifted cover inequalities that are broken, at most one for each column.

    Parameters
    ----------
    running : float array (jobs, columns)
        Which part of each job runs, in [0, 1].
    units : sequence of int
        What each job holds while it runs; 0 for jobs that are left out of account.
    room : int
        Units that there are.
    """
    some = np.flatnonzero((running > 0).any(axis=1) & (np.asarray(units) > 0))
    mine = [units[job] for job in some.tolist()]
    found = []
    for first, chosen in _chosen(running[some], mine, room):
        for column, members in zip(first.tolist(), chosen.T, strict=True):
            part = running[:, column]
            coefficient, most = lifted(some[members], part, units, room)
            broken = float(coefficient @ part) - most
            if broken > BROKEN:
                found.append(Cover(column, coefficient, most, broken))
    return found


def overfull(running: Floats, units: Sequence[int], room: int) -> list[Cover]:
    """Return for each column in which more is held than there is that it is not, in the form of `covers`."""
    held = np.array(units, dtype=np.int64)
    broken = (held @ running - room) / max(1, int(held.max(initial=1)))
    return [Cover(column, held, room, float(broken[column])) for column in np.flatnonzero(broken > BROKEN).tolist()]


def _chosen(running: Floats, units: Sequence[int], room: int) -> Iterator[tuple[Ints, Bools]]:
    """Yield columns and members of the covers that are broken most, with columns side by side.

    A cover is broken by 1 less the sum of 1 - y over its members, so this is a knapsack that has to be overfull.
    """
    step = max(1, MOST_CELLS // ((room + 2) * max(1, len(units))))
    need = np.arange(room + 2)
    for begin in range(0, running.shape[1], step):
        part = running[:, begin : begin + step]
        least = np.full((room + 2, part.shape[1]), np.inf)
        least[0] = 0.0
        taken = np.zeros((len(units), *least.shape), dtype=np.bool_)
        for row, held in enumerate(units):
            with_it = (1 - part[row]) + least[np.maximum(0, need - held)]
            taken[row] = with_it < least - 1e-12
            least = np.minimum(with_it, least)
        good = np.flatnonzero(least[-1] < 1 - BROKEN)
        left = np.full(len(good), room + 1)
        members = np.zeros((len(units), len(good)), dtype=np.bool_)
        for row in range(len(units) - 1, -1, -1):
            members[row] = taken[row, left, good]
            left = np.where(members[row], np.maximum(0, left - units[row]), left)
        yield begin + good, members


def lifted(members: Ints, part: Floats, units: Sequence[int], room: int) -> tuple[Ints, int]:
    """Return coefficients of all jobs and the right-hand side, from a cover that is made minimal first.

    Parameters
    ----------
    members : int array
        Jobs of the cover.
    part : float array
        Which part of each job runs: those that run most stay in the cover, and get coefficients first.
    units : sequence of int
    room : int

    Returns
    -------
    (int array, int)
    """
    cover = members.tolist()
    over = sum(units[job] for job in cover) - room
    for job in sorted(cover, key=lambda job: (part[job], job)):
        if units[job] < over:
            cover.remove(job)
            over -= units[job]
    coefficient = np.zeros(len(units), dtype=np.int64)
    most = len(cover) - 1
    best = np.zeros(room + 1, dtype=np.int64)  # the largest sum of coefficients in so many units
    for job in cover:
        coefficient[job] = 1
        _one_more(best, units[job], 1)
    inside = set(cover)
    rest = [job for job in range(len(units)) if units[job] and job not in inside]
    for job in sorted(rest, key=lambda job: (-part[job], -units[job], job)):
        # if it runs, no more than this can be had from the others
        beside = int(best[room - units[job]]) if units[job] <= room else -1
        gain = most - beside if beside >= 0 else 1
        if gain > 0:
            coefficient[job] = gain
            _one_more(best, units[job], gain)
    return coefficient, most


def _one_more(best: Ints, units: int, gain: int) -> None:
    """Let one more job into a table of the largest sums."""
    if units <= len(best) - 1:
        best[units:] = np.maximum(best[units:], best[: len(best) - units] + gain)
