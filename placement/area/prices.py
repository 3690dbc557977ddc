r"""The best bound that prices on the rows of `placement.area.rows` prove.

For any prices :math:`\pi \ge 0`, every plan is worth at most

.. math:: \sum_{cm} \pi_{cm}\,b_{cm}
   + \sum_i n_i \max\bigl(0,\ v_i - \min_{c \in A(s_i)} \sum_m a_{s_i m} \pi_{cm}\bigr):

what its tasks are worth is what they pay in the cells where they run, plus the rest, and nobody pays for more than
there is (weak duality). So prices need not be good for the bound to be true, and no linear program is solved.

The search starts from the best single measure, whose optimal price is the critical density of a fractional knapsack
(Dantzig 1957). Then it takes one row at a time, a measure in a set of cells: first where there is a price but enough
for all who may come, then where there is less than is asked for by those who cannot go elsewhere. It sets the price
that is best while all others stay: a knapsack again, with what a task gains there over what it gains elsewhere. So the
bound never rises on the way.
"""

from __future__ import annotations

import numpy as np

from placement.area.rows import Floats, Rows
from placement.instance import Bools, Ints

SEARCHES = 32
"""Prices set at most; each takes some tens of microseconds."""

MOST_SETS = 64
"""Sets of cells that are looked at."""


def best_bound(rows: Rows, place: Ints, count: Floats, value: Floats) -> float:
    """Return a bound on the worth of items: the place of their shape in the rows, how many, and the worth of one."""
    market = _Market(rows, place, count, value)
    scarce = market.scarce()
    if not scarce:
        return market.bound()  # of nothing there is too little: all tasks count
    best, left = market.start(), SEARCHES
    while left > 0:
        for cells, row in (market.plentiful() + scarce)[:left]:
            market.set_price(cells, row)
            left -= 1
        found = market.bound()
        if found > best * (1 - 1e-5):
            return min(best, found)
        best = found
    return best


class _Market:
    """Items and prices: by cell and measure (A, M), the domain limits being measures that are free in no cell."""

    def __init__(self, rows: Rows, place: Ints, count: Floats, value: Floats) -> None:
        self._rows = rows
        self._place = place
        self._count = count
        self._value = value
        self._refused: Floats = np.where(rows.admits, 0.0, np.inf)
        self._tasks: Floats = np.bincount(place, weights=count, minlength=len(rows.admits)).astype(np.float64)
        self._wanted = rows.use * self._tasks[:, None]
        self._sets = _sets(rows.admits)
        self.prices: Floats = np.zeros_like(rows.free)
        self._limit_prices: Floats = np.zeros_like(rows.limit_free)

    def bound(self) -> float:
        """Return the bound of the module's text."""
        gain = self._value - self._cost().min(axis=1)[self._place]
        paid = float((self.prices * self._rows.free).sum() + self._limit_prices @ self._rows.limit_free)
        return paid + float(self._count @ np.maximum(gain, 0.0))

    def start(self) -> float:
        """Set the price of the one measure that is best alone, the same in all cells, and return the bound."""
        best, prices = self.bound(), self.prices
        everywhere = np.ones(len(prices), dtype=np.bool_)
        amount = (self._rows.use[self._place] * self._count[:, None]).sum(axis=0)
        for measure in np.flatnonzero(amount > self._rows.free.sum(axis=0)).tolist():
            self.prices = np.zeros_like(prices)
            self.set_price(everywhere, measure)
            found = self.bound()
            if found < best:
                best, prices = found, self.prices
        self.prices = prices
        return best

    def scarce(self) -> list[tuple[Bools, int]]:
        """Return the rows, as cells and measure or limit, of which more is wanted than there is, scarcest first.

        Limits follow the measures in number.
        """
        rows, measures = self._rows, self.prices.shape[1]
        confined = (rows.admits @ ~self._sets.T) == 0
        asked, free = confined.T @ self._wanted, self._sets @ rows.free
        found = [(asked[q, m] / max(free[q, m], 1e-9), self._sets[q], int(m)) for q, m in np.argwhere(asked > free)]
        for limit, cells in enumerate(rows.limit_cells):
            inside = ~(rows.admits & ~cells).any(axis=1)
            asked_here = float((rows.limit_use[inside, limit] * self._tasks[inside]).sum())
            if asked_here > rows.limit_free[limit]:
                found.append((asked_here / max(rows.limit_free[limit], 1e-9), cells, measures + limit))
        found.sort(key=lambda entry: -entry[0])
        return [(cells, row) for _, cells, row in found]

    def plentiful(self) -> list[tuple[Bools, int]]:
        """Return the cells and measures that have a price although all who may come ask for less than there is."""
        coming = (self._rows.admits @ self._sets.T).astype(np.float64)
        spare = (coming.T @ self._wanted < self._sets @ self._rows.free) & (self._sets @ self.prices > 0)
        return [(self._sets[q], int(m)) for q, m in np.argwhere(spare)]

    def set_price(self, cells: Bools, row: int) -> None:
        """Add to the prices of one row, the same in all its cells, what is best, be it negative."""
        rows, measures = self._rows, self.prices.shape[1]
        if row < measures:
            now = self.prices[cells, row]
            self.prices[cells, row] = now - now.min()
            use, free = rows.use[:, row], float(rows.free[cells, row].sum())
            self.prices[cells, row] += self._critical(cells, use, free)
        else:
            limit = row - measures
            self._limit_prices[limit] = 0.0
            self._limit_prices[limit] = self._critical(cells, rows.limit_use[:, limit], float(rows.limit_free[limit]))

    def _critical(self, cells: Bools, use: Floats, free: float) -> float:
        """Return the best price of a row on top of all others: that at which what is wanted of it just fits.

        A task wants to be in these cells up to the price at which it would rather be elsewhere, or not run at all.
        """
        cost = self._cost()
        here = cost[:, cells].min(axis=1)[self._place]
        elsewhere = cost[:, ~cells].min(axis=1, initial=np.inf)[self._place]
        use = use[self._place]
        pays = (use > 0) & (here < np.minimum(self._value, elsewhere))
        most = (np.minimum(self._value, elsewhere)[pays] - here[pays]) / use[pays]
        order = np.argsort(-most, kind="stable")
        over = np.flatnonzero(np.cumsum((self._count[pays] * use[pays])[order]) > free)
        return float(most[order[over[0]]]) if len(over) else 0.0

    def _cost(self) -> Floats:
        """Return what a task of each shape pays in each cell (S, A), infinite where it is not admitted."""
        cost: Floats = self._rows.use @ self.prices.T
        if len(self._limit_prices):
            cost += (self._rows.limit_use * self._limit_prices) @ self._rows.limit_cells
        cost += self._refused
        return cost


def _sets(admits: Bools) -> Bools:
    """Return sets of cells (Q, A): all, those that some shape is confined to, and unions of two of them."""
    own = list({cells.tobytes(): cells for cells in (admits.any(axis=0), *admits)}.values())
    unions = {cells.tobytes(): cells for cells in own[:MOST_SETS]}
    for number, cells in enumerate(own):
        if len(unions) >= MOST_SETS:
            break
        unions.update({both.tobytes(): both for both in (cells | other for other in own[:number])})
    return np.array(list(unions.values())[:MOST_SETS], dtype=np.bool_).reshape(-1, admits.shape[1])
