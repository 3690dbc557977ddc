"""First fit: the first node in the fixed order that has room."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from placement.heuristics.frontier import Frontier
from placement.heuristics.nodes import Nodes
from placement.heuristics.rule import Finder, Rule
from placement.instance import Ints


class FirstFit(Rule):
    """Every node with room is as good as any other, so the tie rule decides.

    Source: the oldest rule of bin packing (Johnson, "Near-Optimal Bin Packing Algorithms", 1973).
    """

    name: ClassVar[str] = "first-fit"

    def __init__(self, nodes: Nodes, rng: np.random.Generator) -> None:
        super().__init__(nodes, rng)
        self._frontier = Frontier(nodes)

    def scores(self, shape: int, rows: Ints) -> Ints:
        """Return 0 for every row."""
        return np.zeros(len(rows), dtype=np.int64)

    def finder(self) -> Finder:
        """Return what finds the first node with room without scoring the others."""
        return self._frontier

    def cards(self, shape: int, row: int) -> tuple[int, ...]:
        """Return the cards for a task on the node found last: those with least room left."""
        cards = self._frontier.cards
        assert cards is not None
        return cards
