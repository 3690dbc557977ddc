"""Random fit: any node with room, any card with room."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from placement.heuristics.rule import Rule
from placement.instance import Ints


class RandomFit(Rule):
    """A node drawn uniformly from those with room, and for a share a card drawn uniformly from those with room.

    Source: ``random_score.go`` and the random card selection of the simulator of FGD (Weng et al., ATC'23). Whole
    cards are taken from the first position on.
    """

    name: ClassVar[str] = "random"
    draws_cards: ClassVar[bool] = True

    def scores(self, shape: int, slots: Ints) -> Ints:
        """Return 0 for every slot."""
        return np.zeros(len(slots), dtype=np.int64)

    def choose(self, candidates: Ints, score: Ints) -> int:
        """Return a node drawn uniformly from all nodes of the candidates."""
        size = self.pool.size[candidates]
        drawn = int(self.rng.integers(size.sum()))
        slot = int(np.searchsorted(np.cumsum(size), drawn, side="right"))
        within = drawn - int(size[:slot].sum())
        return int(self.pool.nodes(int(candidates[slot]))[within])

    def cards(self, shape: int, node: int) -> tuple[int, ...]:
        """Return a random card for a share of one card, the tightest cards otherwise."""
        task = self.shapes[shape]
        if task.gpus != 1 or task.units == self.card_units:
            return super().cards(shape, node)
        usable = np.flatnonzero(self.pool.state.usable(shape, self.pool.slot_of[node : node + 1])[0])
        return (int(usable[self.rng.integers(len(usable))]),)
