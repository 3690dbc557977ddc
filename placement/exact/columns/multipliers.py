"""Prices of a node's room from the linear relaxation of what it can hold, for many nodes at once."""

from __future__ import annotations

import numpy as np

from placement.exact.milp.arrays import Floats

PIVOTS = 40
"""Most pivots; prices that have not settled by then are used all the same."""


def multipliers(prices: Floats, need: Floats, room: Floats) -> Floats:
    r"""Return for every node the prices of its room, shape (K, Q).

    They are the duals of an unbounded knapsack, :math:`\max\, p_k^\top a` over :math:`A^\top a \le f_k,\ a \ge 0` with
    the needs as rows of *A*, by the primal simplex method on the tableaus of all nodes together. Whoever uses them may
    not rely on their being optimal, or feasible.

    Parameters
    ----------
    prices : float array (K, S)
        At most 0 for tasks that a node cannot take.
    need : float array (S, Q)
    room : float array (K, Q)
    """
    nodes, tasks = prices.shape
    kinds = need.shape[1]
    unit = np.maximum(room, 1.0)
    # rows in a node's own room, so that all right-hand sides are 1 or 0
    table = np.zeros((nodes, kinds + 1, tasks + kinds + 1))
    table[:, :kinds, :tasks] = need.T[None] / unit[:, :, None]
    table[:, range(kinds), range(tasks, tasks + kinds)] = 1.0
    table[:, :kinds, -1] = room / unit
    table[:, kinds, :tasks] = -np.maximum(prices, 0.0)
    scale = prices.max(axis=1, initial=1e-300)
    active = np.arange(nodes)
    for _ in range(PIVOTS):
        last = table[active, kinds, :-1]
        enter = last.argmin(axis=1)
        going = last[np.arange(len(active)), enter] < -1e-9 * scale[active]
        active, enter = active[going], enter[going]
        if not len(active):
            break
        _pivot(table, active, enter)
    dual = np.nan_to_num(table[:, kinds, tasks : tasks + kinds], nan=0.0, posinf=0.0, neginf=0.0)
    return np.asarray(np.maximum(dual, 0.0) / unit)


def _pivot(table: Floats, active: np.ndarray, enter: np.ndarray) -> None:
    """Bring one column of each active tableau into its basis."""
    column = table[active, :, enter]
    usable = column[:, :-1] > 1e-12
    ratio = np.where(usable, table[active, :-1, -1] / np.where(usable, column[:, :-1], 1.0), np.inf)
    leave = ratio.argmin(axis=1)
    each = np.arange(len(active))
    pivot = table[active, leave] / np.where(usable[each, leave], column[each, leave], 1.0)[:, None]
    some = table[active] - column[:, :, None] * pivot[:, None, :]
    some[each, leave] = pivot
    table[active] = some
