"""Bounds from duals, recomputed so that they hold whatever the solver did."""

from __future__ import annotations

import math

import numpy as np

from placement.exact.milp.arrays import Floats, Program
from placement.instance import Bools


def safe_lp_bound(program: Program, row_duals: Floats) -> float | None:
    r"""Return a bound on a program from any row duals, valid whatever made them.

    For :math:`\min c^\top x` over :math:`L \le Ax \le U,\ l \le x \le u` and any :math:`y`,

    .. math:: \min_x c^\top x \ge \sum_i (y_i > 0 ? y_i L_i : y_i U_i) + \sum_j \min(d_j l_j, d_j u_j),
        \quad d = c - A^\top y.

    A dual of the wrong sign for a one-sided row is set to 0 first. Columns without a bound get the one that some
    row implies. What the sums can lose to rounding in double precision is taken off.

    Parameters
    ----------
    program : Program
    row_duals : float array (m,)
        As in `Solved.row_duals`, for the program's own sense.

    Returns
    -------
    float or None
        None where these duals prove nothing.
    """
    cost = program.sense * program.cost
    duals = program.sense * np.nan_to_num(np.asarray(row_duals, dtype=np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    side = np.where(duals > 0, program.row_lower, program.row_upper)
    duals = np.where(np.isfinite(side), duals, 0.0)
    row_terms = duals * np.where(np.isfinite(side), side, 0.0)
    products = program.value * duals[program.row_of]
    count = len(cost)
    reduced = cost - np.bincount(program.index, products, minlength=count)
    terms = 2 + np.bincount(program.index, minlength=count)
    size = np.abs(cost) + np.bincount(program.index, np.abs(products), minlength=count)
    error = 2.3e-16 * terms * size
    low, high = reduced - error, reduced + error  # between these the true reduced cost lies
    at_lower, at_upper = high > 0, low < 0  # where the least of d x may lie
    lower, upper = _with_implied_bounds(program, at_lower, at_upper)
    if np.isinf(lower[at_lower]).any() or np.isinf(upper[at_upper]).any():
        return None
    column_terms = np.full(count, np.inf)
    for used, bound in ((at_lower, lower), (at_upper, upper)):
        least = np.minimum(low[used] * bound[used], high[used] * bound[used])
        column_terms[used] = np.minimum(column_terms[used], least)
    column_terms[~at_lower & ~at_upper] = 0.0
    total = math.fsum(row_terms.tolist()) + math.fsum(column_terms.tolist())
    total -= 1e-15 * (float(np.abs(row_terms).sum()) + float(np.abs(column_terms).sum()))
    return program.sense * total + program.offset if math.isfinite(total) else None


def _with_implied_bounds(program: Program, need_lower: Bools, need_upper: Bools) -> tuple[Floats, Floats]:
    """Return the column bounds; where one is needed and missing, the best that a single row implies."""
    lower, upper = program.lower.copy(), program.upper.copy()
    need_lower, need_upper = need_lower & np.isinf(lower), need_upper & np.isinf(upper)
    if not (need_lower.any() or need_upper.any()):
        return lower, upper
    rows = len(program.row_lower)
    for sign, row_bound in ((1.0, program.row_upper), (-1.0, -program.row_lower)):
        value = sign * program.value  # each row as value * x <= row_bound
        at_least = np.where(value > 0, program.lower[program.index], program.upper[program.index])
        open_ = np.isinf(at_least)
        least = np.where(open_, 0.0, value * np.where(open_, 0.0, at_least))
        total = np.bincount(program.row_of, least, minlength=rows)
        opens = np.bincount(program.row_of, open_, minlength=rows)
        size = np.bincount(program.row_of, np.abs(least), minlength=rows) + np.abs(row_bound)
        known = np.isfinite(row_bound[program.row_of]) & (opens[program.row_of] - open_ == 0)
        with np.errstate(invalid="ignore", divide="ignore"):
            slack = row_bound[program.row_of] - (total[program.row_of] - least)
            slack += 1e-12 * size[program.row_of]
            implied = slack / value
        up, down = known & (value > 0), known & (value < 0)
        np.minimum.at(upper, program.index[up], implied[up])
        np.maximum.at(lower, program.index[down], implied[down])
    return np.where(need_lower, lower, program.lower), np.where(need_upper, upper, program.upper)
