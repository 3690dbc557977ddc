"""A linear program in the solver that grows by rows and by columns, and starts again from any basis it had."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np

from placement.exact.milp.arrays import Floats
from placement.exact.milp.interface import open_solver, run, set_time_limit
from placement.instance import Bools, Ints

BASIC = highspy.HighsBasisStatus.kBasic
"""Of a row: not tight."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An optimal point of the program; nothing here is proven, so whoever needs a bound makes it from the duals.

    Attributes
    ----------
    value : float
    x : float array
    duals : float array
        By row; never above 0 but for rounding, except for rows with a lower side.
    """

    value: float
    x: Floats
    duals: Floats


@dataclass(frozen=True, slots=True)
class Basis:
    """Which columns and rows are at a side, and which are basic, in the solver's own words."""

    columns: list[Any]
    rows: list[Any]


class Growing:
    """Least cost of columns of at least 0, in rows with an upper side; the first rows have both sides alike.

    Parameters
    ----------
    equal : float array
        Sides of the first rows.
    most : float array
        Upper sides of those that follow.
    seed : int

    Attributes
    ----------
    columns, rows : int
        How many there are.
    """

    def __init__(self, equal: Floats, most: Floats, seed: int = 0) -> None:
        self._solver = open_solver(seed, {"presolve": "off"}, None)
        self.columns = self.rows = 0
        lower = np.concatenate([equal, np.full(len(most), -highspy.kHighsInf)])
        self._add_rows(lower, np.concatenate([equal, most]), np.zeros(0, dtype=np.int64), np.zeros((0, 2)))

    def add_rows(self, most: Floats, row: Ints, entry: Floats) -> None:
        """Add rows with upper sides.

        Parameters
        ----------
        most : float array
        row : int array
            Of each entry, among those that are added; ascending.
        entry : float array (entries, 2)
            Column and coefficient.

        Raises
        ------
        ValueError
            If a number is not finite, or too large for the solver.
        """
        self._add_rows(np.full(len(most), -highspy.kHighsInf), most, row, entry)

    def _add_rows(self, lower: Floats, upper: Floats, row: Ints, entry: Floats) -> None:
        begin = np.searchsorted(row, np.arange(len(upper))).astype(np.int32)
        index, value = entry[:, 0].astype(np.int32), np.ascontiguousarray(entry[:, 1])
        self._took(self._solver.addRows(len(upper), lower, upper, len(index), begin, index, value))
        self.rows += len(upper)

    def add_columns(self, cost: Floats, column: Ints, entry: Floats) -> None:
        """Add columns.

        Parameters
        ----------
        cost : float array
        column : int array
            Of each entry, among those that are added; ascending.
        entry : float array (entries, 2)
            Row and coefficient.

        Raises
        ------
        ValueError
            If a number is not finite, or too large for the solver.
        """
        count = len(cost)
        begin = np.searchsorted(column, np.arange(count)).astype(np.int32)
        index, value = entry[:, 0].astype(np.int32), np.ascontiguousarray(entry[:, 1])
        low, high = np.zeros(count), np.full(count, highspy.kHighsInf)
        self._took(self._solver.addCols(count, cost, low, high, len(index), begin, index, value))
        self.columns += count

    @staticmethod
    def _took(status: Any) -> None:
        if status == highspy.HighsStatus.kError:
            raise ValueError("the solver refuses what is added: a number is not finite or beyond 1e15")

    def allow(self, allowed: Bools) -> None:
        """Say which columns may be used."""
        every = np.arange(self.columns, dtype=np.int32)
        high = np.where(allowed, highspy.kHighsInf, 0.0)
        self._solver.changeColsBounds(self.columns, every, np.zeros(self.columns), high)

    def drop_rows(self, dropped: Ints) -> None:
        """Drop some rows; those after them move up.

        Parameters
        ----------
        dropped : int array
            Their numbers.
        """
        self._took(self._solver.deleteRows(len(dropped), dropped.astype(np.int32)))
        self.rows -= len(dropped)

    def basis(self) -> Basis:
        """Return the present basis."""
        held = self._solver.getBasis()
        return Basis(list(held.col_status), list(held.row_status))

    def restart(self, basis: Basis) -> None:
        """Go on from a basis: columns and rows that are new since then are at 0, and not tight."""
        held = highspy.HighsBasis()
        more, rows = self.columns - len(basis.columns), self.rows - len(basis.rows)
        held.col_status = basis.columns + [highspy.HighsBasisStatus.kLower] * more
        held.row_status = basis.rows + [BASIC] * rows
        held.valid = True
        self._solver.setBasis(held)

    def solve(self, time_limit: float) -> Answer | None:
        """Solve from the last basis; None where that did not come to an end.

        Parameters
        ----------
        time_limit : float
            Seconds.
        """
        set_time_limit(self._solver, time_limit)
        if run(self._solver) != highspy.HighsModelStatus.kOptimal:
            return None
        solution = self._solver.getSolution()
        return Answer(
            value=float(self._solver.getInfo().objective_function_value),
            x=np.array(solution.col_value, dtype=np.float64),
            duals=np.array(solution.row_dual, dtype=np.float64),
        )
