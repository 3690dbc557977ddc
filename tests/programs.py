"""Programs written by hand. Import it as ``programs``."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from placement.exact.milp.arrays import Program


def program_of_rows(
    *,
    sense: int,
    cost: Iterable[float],
    lower: Iterable[float],
    upper: Iterable[float],
    integer: Iterable[bool],
    rows: Iterable[tuple[float, dict[int, float], float]],
) -> Program:
    """Return the program of (lower, {column: coefficient}, upper) rows."""
    parts = list(rows)
    return Program(
        sense=sense,
        cost=np.array(list(cost), dtype=np.float64),
        lower=np.array(list(lower), dtype=np.float64),
        upper=np.array(list(upper), dtype=np.float64),
        integer=np.array(list(integer), dtype=np.bool_),
        start=np.cumsum([0, *(len(terms) for _, terms, _ in parts)], dtype=np.int32),
        index=np.array([column for _, terms, _ in parts for column in terms], dtype=np.int32),
        value=np.array([coefficient for _, terms, _ in parts for coefficient in terms.values()], dtype=np.float64),
        row_lower=np.array([low for low, _, _ in parts], dtype=np.float64),
        row_upper=np.array([high for _, _, high in parts], dtype=np.float64),
    )
