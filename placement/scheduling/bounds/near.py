"""Which starts of a finer grid are worth having: those that cost little more than the best, at prices of a coarser one.

Most starts are far too late, or on the wrong cards, at any prices that are nearly right. Without them a program is a
small part of the whole, and its duals are as good: what they prove is proven of all starts (`placement.scheduling.
prices`), also of those that were left out.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from placement.exact.milp.arrays import Floats
from placement.instance import Bools, Ints
from placement.scheduling.bounds.modes import Relaxation, in_windows
from placement.scheduling.bounds.prices import Paid, Prices, steps_of

NEAR, COARSE = 0.3, 6.0
"""How much more than the best start of its job one may cost at least, as a part of what jobs cost on average; and how
many times the part by which slots of the coarse grid grow, where that is more."""
THIN = 16
"""Of how many moments one is a start whatever it costs, so that there is a schedule."""


def near(
    relaxed: Relaxation,
    prices: Prices,
    growth: float,
    moments: Ints,
    kind: Ints,
    part: Ints,
    begin: Ints,
    end: Ints,
    cost: Floats,
) -> Bools:
    """Return which starts are worth having; all of jobs that do not run at a stretch.

    Parameters
    ----------
    relaxed : Relaxation
    prices : Prices
    growth : float
        By what part of it each moment of the grid of the prices is later than the one before.
    moments : int array
        Of the grid of these starts.
    kind, part, begin, end, cost
        Of each start, as in `placement.scheduling.bounds.columns.Columns`; all of a kind in one mode side by side.
    """
    steps = steps_of(relaxed, prices)
    if not steps:
        return np.ones(len(kind), dtype=np.bool_)
    paid = Paid(prices, steps)
    whole = np.array([in_windows(one) for one in relaxed.kinds])[kind]
    total = cost.copy()
    edges = np.flatnonzero((np.diff(kind, prepend=-1) != 0) | (np.diff(part, prepend=-1) != 0))
    for first, last in pairwise([*edges.tolist(), len(kind)]):
        if whole[first]:
            held = paid.of(relaxed.kinds[kind[first]].parts[part[first]].uses)
            total[first:last] += (held.until(end[first:last]) - held.until(begin[first:last])) / steps
    least = np.full(len(relaxed.kinds), np.inf)
    np.minimum.at(least, kind, total)
    few = total <= least[kind] + max(NEAR, COARSE * growth) * max(0.0, float(least.mean()))
    last_of_kind = np.diff(kind, append=-1) != 0
    found: Bools = few | ~whole | last_of_kind | np.isin(begin, moments[::THIN])
    return found
