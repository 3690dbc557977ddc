"""Random fit: any node with room, any card with room."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from placement.heuristics.ranking import Ranking, Scorer
from placement.heuristics.rule import Finder, Rule
from placement.instance import Bools, Ints


class RandomFit(Rule):
    """A node drawn uniformly from those with room, and for a share a card drawn uniformly from those with room.

    Source: ``random_score.go`` and the random card selection of the simulator of FGD (Weng et al., ATC'23). Whole
    cards are taken from the first position on.
    """

    name: ClassVar[str] = "random"

    def scores(self, shape: int, rows: Ints) -> Ints:
        """Return 0 for every row."""
        return np.zeros(len(rows), dtype=np.int64)

    def finder(self) -> Finder:
        """Return what draws a node."""
        return _Draw(self, self.rng)

    def cards(self, shape: int, row: int) -> tuple[int, ...]:
        """Return a random card for a share of one card, the tightest cards otherwise."""
        task = self.shapes[shape]
        if task.gpus != 1 or task.units == self.card_units:
            return super().cards(shape, row)
        state = self.nodes.state
        usable = np.flatnonzero(state.within_reach(shape, np.array([row]))[0])
        return state.on_card(shape, row, int(usable[self.rng.integers(len(usable))]))


class _Draw(Ranking):
    def __init__(self, rule: Scorer, rng: np.random.Generator) -> None:
        super().__init__(rule)
        self._rng = rng

    def find(self, shape: int, within: Bools | None) -> int:
        """Return the row of a node drawn uniformly from all nodes with room."""
        room = self.of(shape) > self.no_room
        rows = np.flatnonzero(room if within is None else room & within)
        return int(rows[self._rng.integers(len(rows))]) if len(rows) else -1
