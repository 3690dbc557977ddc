"""Small steps between lists of kinds and arrays of things."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np
import numpy.typing as npt

from placement.instance import Ints

MOST = 2**62
"""Sums that may exceed this are made of Python's integers."""


def expand(counts: list[int]) -> tuple[Ints, Ints]:
    """Return the entry and the number within it of each of ``sum(counts)`` things."""
    array = np.array(counts, dtype=np.int64)
    spec = np.repeat(np.arange(len(array), dtype=np.int64), array)
    return spec, within(array)


def within(counts: Ints) -> Ints:
    """Return 0, 1, 2, … for each of some runs of these lengths, one run after the other."""
    first = np.cumsum(counts) - counts
    return np.arange(int(counts.sum()), dtype=np.int64) - np.repeat(first, counts)


def numbered(keys: Iterable[Hashable]) -> tuple[Ints, Ints]:
    """Return the number of each key, by first appearance, and where each number appears first.

    Examples
    --------
    >>> codes, first = numbered("abac")
    >>> codes.tolist(), first.tolist()
    ([0, 1, 0, 2], [0, 1, 3])
    """
    index: dict[Hashable, int] = {}
    codes = np.array([index.setdefault(key, len(index)) for key in keys], dtype=np.int64)
    return codes, np.flatnonzero(np.diff(np.maximum.accumulate(codes), prepend=-1)) if len(codes) else codes


def members(index: Ints, count: int) -> list[Ints]:
    """Return, for each of `count` classes, the positions in `index` that name it, ascending."""
    order = np.argsort(index, kind="stable")
    ends = np.cumsum(np.bincount(index, minlength=count)).tolist() if count else []
    return [order[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def integers(values: list[int], most: int) -> Ints:
    """Return integers as an array in which sums up to `most` are exact: of 64 bits, or of Python's own."""
    if abs(most) <= MOST:
        return np.array(values, dtype=np.int64)
    return np.array(values, dtype=object)


def spread(spec: Ints, copy: Ints) -> npt.NDArray[np.float64]:
    """Return a position in (0, 1) for each copy of each counted entry: ``(2 copy + 1) / (2 count)``.

    Sorting by it spreads the copies of every entry evenly over the whole, in the order of the file where they tie.
    A file of kinds says nothing of the order of things, and runs of equal things are the least likely order of all.
    """
    count = np.bincount(spec)
    return np.asarray((2 * copy + 1) / (2 * count[spec]))
