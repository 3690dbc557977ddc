"""Small steps between lists of kinds and arrays of things."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from placement.instance import Ints


def expand(counts: list[int]) -> tuple[Ints, Ints]:
    """Return the entry and the number within it of each of ``sum(counts)`` things."""
    array = np.array(counts, dtype=np.int64)
    spec = np.repeat(np.arange(len(array), dtype=np.int64), array)
    first = np.cumsum(array) - array
    return spec, np.arange(len(spec), dtype=np.int64) - np.repeat(first, array)


def members(index: Ints, count: int) -> list[Ints]:
    """Return, for each of `count` classes, the positions in `index` that name it, ascending."""
    order = np.argsort(index, kind="stable")
    return np.split(order, np.cumsum(np.bincount(index, minlength=count))[:-1]) if count else []


def spread(spec: Ints, copy: Ints) -> npt.NDArray[np.float64]:
    """Return a position in (0, 1) for each copy of each counted entry: ``(2 copy + 1) / (2 count)``.

    Sorting by it spreads the copies of every entry evenly over the whole, in the order of the file where they tie.
    A file of kinds says nothing of the order of things, and runs of equal things are the least likely order of all.
    """
    count = np.bincount(spec)
    return np.asarray((2 * copy + 1) / (2 * count[spec]))
