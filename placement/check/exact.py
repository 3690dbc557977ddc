"""Exact sums in columns: 64-bit whole numbers where nothing can overflow, Python's own everywhere else.

Which of the two a column holds is decided when it is made, from its largest entry and the number of entries that will
ever be added up. Both add, subtract and compare alike, so no rule has to know which it was given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Whole = npt.NDArray[Any]
"""Whole numbers, as int64 or as Python's own."""

LARGEST = 2**62
"""No sum that is held in 64 bits may reach this; one bit is left for the difference of two."""


def whole(values: Sequence[int], times: int, beside: int = 0) -> Whole:
    """Return a column of whole numbers of which sums of up to `times` entries are exact, also less `beside`.

    Examples
    --------
    >>> whole([1, 2], 10).dtype, whole([1, 2**60], 10).dtype
    (dtype('int64'), dtype('O'))
    """
    largest = max(max(values, default=0), -min(values, default=0))
    if max(largest * max(1, times), beside) < LARGEST:
        return np.array(values, dtype=np.int64)
    column = np.empty(len(values), dtype=object)
    column[:] = [int(value) for value in values]
    return column


def sums(places: Ints, amounts: Whole, length: int) -> Whole:
    """Return what amounts add up to at each of `length` places."""
    totals = np.zeros(length, dtype=amounts.dtype)
    np.add.at(totals, places, amounts)
    return totals


def at_least_zero(amounts: Whole) -> Whole:
    """Return amounts with 0 for what is negative."""
    return np.maximum(amounts, 0)


def codes(column: Whole) -> Ints:
    """Return a number for each entry, equal where the entries are."""
    return np.asarray(np.unique(column, return_inverse=True)[1], dtype=np.int64).reshape(-1)


def numbered(columns: Sequence[Whole]) -> tuple[Ints, Ints]:
    """Return a number for each row of some columns, equal where the rows are, and a row that has each number."""
    number = codes(columns[0])
    for column in columns[1:]:
        other = codes(column)
        number = codes(number * (int(other.max(initial=0)) + 1) + other)
    return number, np.asarray(np.unique(number, return_index=True)[1], dtype=np.int64)


def numbers(values: Sequence[int]) -> Ints:
    """Return indices that a plan names as a column; -1 for all that cannot be an index."""
    try:
        return np.array(values, dtype=np.int64)
    except OverflowError:
        return np.array([value if 0 <= value < 2**62 else -1 for value in values], dtype=np.int64)


def starts(lengths: Ints) -> Ints:
    """Return where each of some stretches begins that lie end to end, and last where they all end."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths, dtype=np.int64)])
