"""Linear relaxations of masters in the solver, while columns are added: what all of them do, and that over pools."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping

import numpy as np

from placement.exact.milp import highs
from placement.exact.milp.arrays import Floats, Program
from placement.exact.timing import Timing
from placement.instance import Ints
from placement.models.pooled_cards import row_numbers
from placement.models.pools import Pattern, Pooling


class Relaxation:
    """A linear program that grows by columns without cost.

    Parameters
    ----------
    arrays : Program
        With the columns known at first.
    seed : int
    timing : Timing
    options : mapping of str to value, optional
        Of the solver.

    Attributes
    ----------
    row_number : dict of str to int
        Rows by name. Taken down at once, for a program no longer knows the names when its model is gone.
    """

    def __init__(self, arrays: Program, seed: int, timing: Timing, options: Mapping[str, object] | None = None) -> None:
        self.timing = timing
        began = time.perf_counter()
        self._session = highs.Session(arrays, seed=seed, options=options)
        timing.add("handover", time.perf_counter() - began)
        self.row_number = {arrays.rows(row): row for row in range(arrays.size[0])}

    def rows_of(self, family: str, count: int) -> Ints:
        """Return the rows of a family of constraints by index; -1 for those that are empty, which are skipped."""
        return np.array([self.row_number.get(f"{family}[{i}]", -1) for i in range(count)], dtype=np.int64)

    def duals_named(self, duals: Mapping[str, float]) -> Floats:
        """Return duals of all rows: those given by name, of the rows that are there, and 0 for all others."""
        found = np.zeros(len(self.row_number))
        for name, dual in duals.items():
            if name in self.row_number:
                found[self.row_number[name]] = dual
        return found

    def solve(self, time_limit: float) -> highs.Solved:
        """Solve from the last basis."""
        solved = self._session.solve(time_limit=time_limit)
        self.timing.add("solve", solved.seconds)
        return solved

    def bound(self, duals: Floats) -> float:
        """Return the bound that duals of the rows prove, infinite if they prove none."""
        bound = highs.safe_lp_bound(self._session.program, duals)
        return math.inf if bound is None else bound

    def add_columns(self, upper: list[float], start: list[int], index: list[int], value: list[float]) -> None:
        """Add columns from 0 up to bounds; column j has rows ``index[start[j]:start[j + 1]]``."""
        nothing = np.zeros(len(upper))
        self._session.add_columns(
            cost=nothing,
            lower=nothing,
            upper=np.array(upper),
            start=np.array(start, dtype=np.int32),
            index=np.array(index, dtype=np.int32),
            value=np.array(value),
        )


Missing = Callable[[list[Floats], Floats], tuple[list[Pattern], Floats]]
"""See `placement.exact.pools.master.Master.missing`."""


class PoolRelaxation(Relaxation):
    """The relaxation over pools, while patterns are added.

    Parameters
    ----------
    view : Pooling
    arrays : Program
    seed : int
    timing : Timing
    missing : callable
        What prices patterns.

    Attributes
    ----------
    room : float array
        By pair of the view, in the latest solution.
    duals : float array
        By row, those that prove the latest bound.
    """

    def __init__(self, view: Pooling, arrays: Program, seed: int, timing: Timing, missing: Missing) -> None:
        super().__init__(arrays, seed, timing)
        self._view, self._missing = view, missing
        self._first_slot, self._first_card = row_numbers(view)
        self._slot_row = self.rows_of("slots", self._first_slot[-1])
        self._card_row = self.rows_of("cards", self._first_card[-1])
        self.room: Floats = np.zeros(0)
        self.duals: Floats = np.zeros(0)

    def priced(self, time_limit: float) -> tuple[float, float, list[Pattern]] | None:
        """Return the value over the present patterns, a bound over all of them, and patterns that are missing."""
        solved = self.solve(time_limit)
        if solved.row_duals is None or solved.objective is None or solved.x is None:
            return None
        self.room = solved.x[: len(self._view.shape)]
        began = time.perf_counter()
        duals = np.maximum(solved.row_duals, 0.0)
        slot_price = self._at(duals, self._slot_row)
        first = self._first_slot
        prices = [slot_price[first[k] : first[k + 1]] for k in range(len(self._view.pools))]
        missing, true_price = self._missing(prices, self._at(duals, self._card_row))
        # with every card at its true price no pattern, known or not, has anything to add to the bound
        present = self._card_row >= 0
        duals[self._card_row[present]] = true_price[present] * (1 + 1e-12)
        bound = self.bound(duals)
        self.duals = duals
        self.timing.add("price", time.perf_counter() - began)
        return solved.objective, bound, missing

    @staticmethod
    def _at(duals: Floats, rows: Ints) -> Floats:
        return np.where(rows >= 0, duals[rows], 0.0) if len(rows) else np.zeros(0)

    def add(self, patterns: list[Pattern]) -> None:
        """Add the columns of new patterns."""
        start, index, value, upper = [0], [], [], []
        for pattern in patterns:
            index.append(int(self._card_row[self._first_card[pattern.pool] + pattern.group]))
            value.append(1.0)
            for slot, parts in enumerate(pattern.parts):
                if parts:
                    index.append(int(self._slot_row[self._first_slot[pattern.pool] + slot]))
                    value.append(-float(parts))
            upper.append(float(self._view.pools[pattern.pool].groups[pattern.group].count))
            start.append(len(index))
        self.add_columns(upper, start, index, value)
