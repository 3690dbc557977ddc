"""Cards that what is placed next may take, by card model: what a queue may use now, while one of its jobs is placed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from placement.instance import Bools, Ints
from placement.quota import ALL, Cards


class Allowance:
    """How many cards of each model, and of all, may be taken, less what has been.

    Parameters
    ----------
    room : mapping of str to int or Fraction
        Most cards by model, `placement.quota.ALL` for all together; what is not named has no limit.
    takes : mapping of int to int or Fraction
        Cards that a task of each shape that is placed takes.
    models : sequence of str
        All models.
    model : int array (N,)
        Index of the model of each row; -1 for none.
    """

    def __init__(
        self, room: Mapping[str, Cards], takes: Mapping[int, Cards], models: tuple[str, ...], model: Ints
    ) -> None:
        self._left = dict(room)
        self._takes = takes
        self._models = models
        self._model = model
        self._journal: list[tuple[str, Cards]] = []

    def rows(self, shape: int) -> Bools | None:
        """Return the rows where one more task may be; None for all."""
        takes = self._takes[shape]
        if ALL in self._left and takes > self._left[ALL]:
            return np.zeros(len(self._model), dtype=np.bool_)
        full = [number for number, one in enumerate(self._models) if one in self._left and takes > self._left[one]]
        if not full:
            return None
        found: Bools = ~np.isin(self._model, full)
        return found

    def take(self, shape: int, row: int) -> None:
        """Take what a task takes that is placed in a row."""
        model, takes = int(self._model[row]), self._takes[shape]
        self._journal.append((self._models[model] if model >= 0 else "", takes))
        self._add(-1, *self._journal[-1])

    def undo(self, mark: int) -> None:
        """Give back all but so many takings, the first ones."""
        while len(self._journal) > mark:
            self._add(1, *self._journal.pop())

    def _add(self, sign: int, model: str, amount: Cards) -> None:
        for one in (model, ALL):
            if one in self._left:
                self._left[one] += sign * amount
