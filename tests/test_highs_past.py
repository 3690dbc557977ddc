"""Models on which a release of the solver gave a wrong answer, kept so that none does so unseen again."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from programs import program_of_rows

from placement.exact.milp import highs
from placement.exact.milp.arrays import Program
from placement.exact.milp.highs import Why

INF = math.inf


def best_by_enumeration(p: Program, ranges: dict[int, range]) -> float:
    """Optimum over whole values of some columns, each time with the rest of the columns by an LP without presolve."""
    best = None
    for values in itertools.product(*ranges.values()):
        lower, upper = p.lower.copy(), p.upper.copy()
        for column, value in zip(ranges, values, strict=True):
            lower[column] = upper[column] = value
        fixed = Program(
            p.sense, p.cost, lower, upper, np.zeros_like(p.integer), p.start, p.index, p.value, p.row_lower, p.row_upper
        )
        solved = highs.solve(fixed, options={"presolve": "off"})
        if solved.objective is not None and (best is None or p.sense * (solved.objective - best) < 0):
            best = solved.objective
    assert best is not None
    return best


PAST: dict[str, tuple[Program, dict[int, range], float]] = {
    "2957": (
        # x whole, y real: x + y >= 20.1. y must be at least 8.1 at x = 12: 12 + 16.2
        program_of_rows(
            sense=1, cost=[1, 2], lower=[0, 8], upper=[20, 20], integer=[True, False], rows=[(20.1, {0: 1, 1: 1}, INF)]
        ),
        {0: range(21)},
        28.2,
    ),
    "3002": (
        # z whole, z - y = 7.5 leaves (z, y) = (7, -0.5) or (8, 0.5); x + z >= 10: 3 - 2 + 63 or 2 + 2 + 72
        program_of_rows(
            sense=1,
            cost=[1, 4, 9],
            lower=[0, -1, 0],
            upper=[4, 1, INF],
            integer=[False, False, True],
            rows=[(-INF, {0: 1, 1: 1}, 5), (10, {0: 1, 2: 1}, INF), (7.5, {1: -1, 2: 1}, 7.5)],
        ),
        {2: range(12)},
        64,
    ),
    "3043": (
        # z whole and dearer than x: x alone covers 4.5
        program_of_rows(
            sense=1, cost=[2, 3], lower=[0, 0], upper=[10, 10], integer=[False, True], rows=[(4.5, {0: 1, 1: 1}, INF)]
        ),
        {1: range(11)},
        9,
    ),
    "3073": (
        # x whole in [0.45, 3], gap = 3 - x costs 100, t >= |x| costs 0.01: x = 3
        program_of_rows(
            sense=1,
            cost=[100, 0.01, 0],
            lower=[0, -INF, 0],
            upper=[INF, INF, INF],
            integer=[False, False, True],
            rows=[
                (3, {0: 1, 2: 1}, 3),
                (-INF, {1: -1, 2: 1}, 0),
                (-INF, {1: -1, 2: -1}, 0),
                (-INF, {2: 1}, 3),
                (-INF, {2: -1}, -0.45),
            ],
        ),
        {2: range(4)},
        0.03,
    ),
    "3094": (
        # two links with a big M and one switch: serving the side that costs 10 leaves 8 * 1000
        program_of_rows(
            sense=1,
            cost=[0, 0, 0, 0, 10, 8],
            lower=[0] * 6,
            upper=[1, 1, 1000, 1000, 1000, 1000],
            integer=[True, True, False, False, False, False],
            rows=[
                (-INF, {2: 1, 0: -1000}, 0),
                (-INF, {3: 1, 1: -1000}, 0),
                (1000, {2: 1, 4: 1}, 1000),
                (1000, {3: 1, 5: 1}, 1000),
                (-INF, {0: 1, 1: 1}, 1),
            ],
        ),
        {0: range(2), 1: range(2)},
        8000,
    ),
}


@pytest.mark.parametrize("name", PAST)
def test_wrong_optima_of_highs_1_14(name: str) -> None:
    """Models on which HiGHS 1.14.0 called a worse point optimal.

    They are those of the public reports in ERGO-Code/HiGHS with these numbers, written down again as data; the
    arithmetic beside each and the enumeration here prove the optimum.
    """
    p, ranges, optimum = PAST[name]
    assert best_by_enumeration(p, ranges) == pytest.approx(optimum)
    solved = highs.solve(p)
    assert solved.why is Why.OPTIMAL
    assert solved.objective == pytest.approx(optimum)
    assert solved.bound == pytest.approx(optimum)


def test_whole_data_is_not_exceeded_by_a_tolerance() -> None:
    """With the solver's own tolerance of 1e-6, 1000 y <= z and z <= 1999.999 would let y = 1.9999990 pass as 2."""
    p = program_of_rows(
        sense=-1,
        cost=[1, 0],
        lower=[0, 0],
        upper=[5, 1999.999],
        integer=[True, False],
        rows=[(-INF, {0: 1000, 1: -1}, 0)],
    )
    solved = highs.solve(p)
    assert solved.objective == 1
    loose = highs.solve(p, options={"mip_feasibility_tolerance": 1e-6})
    assert loose.x is None or p.violation(loose.x) is None


def test_a_better_point_found_from_the_start_is_not_lost() -> None:
    """HiGHS 1.16.0 names the objective 2 here and hands back the start, which has 0, as optimal."""
    p = program_of_rows(
        sense=-1,
        cost=[1, 0, 0, 0, 0, 0, 0, 0, 0],
        lower=[0] * 9,
        upper=[2, 2, 1, 1, 1, 2, 2, 1, 1],
        integer=[True] * 9,
        rows=[
            (0, {0: 1, 1: -1}, INF),
            (-INF, {0: 1, 1: -1}, 0),
            (1, {2: 1, 3: 1, 4: 1}, 1),
            (2, {5: 1, 6: 1}, 2),
            (1, {7: 1, 8: 1}, 1),
            (0, {0: 1, 3: -1, 4: -2, 6: -1, 8: -1}, 0),
            (0, {3: 1, 4: 2, 8: 1}, 4),
        ],
    )
    solved = highs.solve(p, start=np.array([0, 0, 1, 0, 0, 2, 0, 1, 0], dtype=np.float64))
    assert (solved.why, solved.objective, solved.bound) == (Why.OPTIMAL, 2, 2)


def test_magnitudes_that_differ_much_change_no_answer() -> None:
    """Kinds of reports in ERGO-Code/HiGHS: 1721, 1527, 2271 and 1100."""
    # three of 10^9 and 100 in binaries are never 999,999,998, though a ten millionth of one of them would do
    mixed = program_of_rows(
        sense=1,
        cost=[0] * 4,
        lower=[0] * 4,
        upper=[1] * 4,
        integer=[True] * 4,
        rows=[(999_999_998, {0: 1e9, 1: 1e9, 2: 1e9, 3: 100}, 999_999_998)],
    )
    assert highs.solve(mixed).why is Why.INFEASIBLE
    # y >= 50 is nothing without its switch, x >= 10^-8 y
    switch = program_of_rows(
        sense=1, cost=[1, 0], lower=[0, 50], upper=[1, 1e8], integer=[True, False], rows=[(-INF, {0: -1, 1: 1e-8}, 0)]
    )
    assert highs.solve(switch).objective == 1
    # 4 * 10^-5 x + 10^9 y >= 2 * 10^9, and no more of x than of y: feasible, y = 2
    ranges = program_of_rows(
        sense=1,
        cost=[1, 1],
        lower=[0, 0],
        upper=[INF, INF],
        integer=[False, True],
        rows=[(2e9, {0: 4e-5, 1: 1e9}, INF), (-INF, {0: 4e-5, 1: -1e9}, 0)],
    )
    assert highs.solve(ranges).objective == 2
    # costs m and 15 m of two binaries of which both fit: -16 m
    for scale in (1, 10, 100, 1000, 10_000):
        scaled = program_of_rows(
            sense=1,
            cost=[-scale, -15 * scale],
            lower=[0, 0],
            upper=[1, 1],
            integer=[True, True],
            rows=[(-INF, {0: 1, 1: 1}, 2)],
        )
        assert highs.solve(scaled).objective == -16 * scale
