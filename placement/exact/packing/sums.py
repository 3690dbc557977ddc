"""Sets of tasks whose sums are given: halves are listed, and two halves that complete each other are a set.

Meet in the middle (Horowitz and Sahni 1974): with *n* tasks the sets of four are found among the pairs, of which there
are n², not n⁴. Halves are sorted by a number made of all sums that have to come out exactly, so that the other half is
looked up; where nothing has to come out exactly, by the sum that may be off least.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from placement.instance import Bools, Ints

MOST_HALVES = 1_000_000
"""Halves up to which they are made larger by one task."""
MOST_MATCHES = 2_000_000
"""Pairs of halves for one sum; with more, the sums say too little."""
LARGEST_HALF = 3


class TooManyError(Exception):
    """More sets have the sum than are listed."""


class Sums:
    """Finds sets of tasks by their sums.

    Parameters
    ----------
    need : int array (S, Q)
        What one task of each shape takes of each kind of room; not negative.
    wanted : int array (S,)
        Tasks of each shape.
    most : int array (Q,)
        Sums beyond this are of no use.

    Attributes
    ----------
    halves : int
        How many there are.
    """

    def __init__(self, need: Ints, wanted: Ints, most: Ints) -> None:
        self.need, self.wanted = need, wanted
        odd = np.random.default_rng(0).integers(1, 2**62, size=need.shape[1:], dtype=np.int64)
        self._odd: npt.NDArray[np.uint64] = (2 * odd + 1).astype(np.uint64)
        shapes = np.flatnonzero((wanted > 0) & (need <= most).all(axis=1))
        self._halves = [shapes[:, None]]
        while len(self._halves) < LARGEST_HALF and len(self._halves[-1]) * len(shapes) <= MOST_HALVES:
            self._halves.append(self._larger(self._halves[-1], shapes, most))
        self.halves = sum(map(len, self._halves))
        self._sums = [need[half].sum(axis=1) for half in self._halves]

    def _larger(self, half: Ints, shapes: Ints, most: Ints) -> Ints:
        """Return the halves with one more task, none of a shape before the last one."""
        more = len(shapes) - np.searchsorted(shapes, half[:, -1])
        row = np.repeat(np.arange(len(half)), more)
        last = np.arange(len(row)) - np.repeat(np.cumsum(more) - len(shapes), more)
        grown = np.column_stack([half[row], shapes[last]])
        fits = (self.need[half].sum(axis=1)[row] + self.need[grown[:, -1]] <= most).all(axis=1)
        return self._supplied(grown[fits])

    def _supplied(self, rows: Ints) -> Ints:
        """Return the sets that take no more of a shape than there is."""
        times = (rows[:, :, None] == rows[:, None, :]).sum(axis=2)
        return np.asarray(rows[(times <= self.wanted[rows]).all(axis=1)])

    def sets(self, room: Ints, spare: Ints, allowed: Bools) -> Iterator[Ints]:
        """Yield sets of allowed shapes that leave at most `spare` of a room, as rows, by the number of tasks.

        Parameters
        ----------
        room, spare : int arrays (Q,)
        allowed : bool array (S,)

        Raises
        ------
        TooManyError
        """
        exact = spare == 0
        whole = int(self._mixed(room[None, exact], exact)[0]) if exact.any() else None
        least = int((spare / np.maximum(room, 1)).argmin())
        halves = []
        for rows, sums in zip(self._halves, self._sums, strict=True):
            fine = allowed[rows].all(axis=1) & (sums <= room).all(axis=1)
            rows, sums = rows[fine], sums[fine]
            key = sums[:, least] if whole is None else self._mixed(sums[:, exact], exact)
            # in order of what is looked up, too, so that looking up goes through memory once
            order = np.argsort(key, kind="stable")
            halves.append(_Half(rows[order], sums[order], key[order]))
        yield halves[0].rows[(room - halves[0].sums <= spare).all(axis=1)]
        for size, right in enumerate(halves):
            for left in halves[size : size + 2]:
                if whole is None:
                    ends = room[least] - spare[least] - left.key, room[least] - left.key
                else:
                    ends = np.uint64(whole) - left.key, np.uint64(whole) - left.key
                yield self._joined(left, right, *_between(right.key, *ends), room, spare)

    def _mixed(self, sums: Ints, which: Bools) -> npt.NDArray[np.uint64]:
        """Return one number for the sums of each row; those of two halves add up to that of both."""
        parts: npt.NDArray[np.uint64] = sums.astype(np.uint64) * self._odd[which]
        mixed: npt.NDArray[np.uint64] = np.add.reduce(parts, axis=1, dtype=np.uint64)
        return mixed

    def _joined(self, left: _Half, right: _Half, a: Ints, b: Ints, room: Ints, spare: Ints) -> Ints:
        """Return the sets made of pairs of halves, each set once."""
        once = left.rows[a, -1] <= right.rows[b, 0]
        a, b = a[once], b[once]
        rest = room - left.sums[a] - right.sums[b]
        fine = ((rest >= 0) & (rest <= spare)).all(axis=1)
        return self._supplied(np.column_stack([left.rows[a[fine]], right.rows[b[fine]]]))


@dataclass(frozen=True, slots=True)
class _Half:
    """Halves that may lie in a room: their shapes as rows, their sums, and what they are ordered by."""

    rows: Ints
    sums: Ints
    key: npt.NDArray[Any]


def _between(ordered: npt.NDArray[Any], low: npt.NDArray[Any], high: npt.NDArray[Any]) -> tuple[Ints, Ints]:
    """Return which rows have which values between their two ends."""
    first = np.searchsorted(ordered, low, side="left")
    count = np.searchsorted(ordered, high, side="right") - first
    total = int(count.sum())
    if total > MOST_MATCHES:
        raise TooManyError
    row = np.repeat(np.arange(len(low)), count)
    return row, np.arange(total) + np.repeat(first - np.cumsum(count) + count, count)
