"""GPU packing: a shared card first, then a free card of a used node, then a free node."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from placement.heuristics.rule import MOST, Rule
from placement.instance import Ints


class GpuPacking(Rule):
    """Keep free cards free, and free nodes free even more.

    The cards a task would take are the tightest ones. With percentages of a card rounded down,

    - only cards in use: ``100 - (free percent on them) // 10``, at least 50;
    - some free card, on a node whose cards are not all free: ``50 - (free cards taken)``, at least 33;
    - a node whose cards are all free: ``33 - (cards of the node)``, at least the number of cards;
    - a task without cards: 0 everywhere, so the tie rule decides.

    Source: ``gpu_packing_score.go`` of the simulator of FGD (Weng et al., ATC'23).
    """

    name: ClassVar[str] = "gpu-packing"

    def scores(self, shape: int, rows: Ints) -> Ints:
        """Return the score above."""
        task = self.shapes[shape]
        if not task.gpus:
            return np.zeros(len(rows), dtype=np.int64)
        state, whole = self.nodes.state, self.card_units
        units = state.units.T.take(rows, axis=1)  # cards first, as they are stored
        taken = np.sort(np.where(state.within_reach(shape, rows).T, units, whole + 1), axis=0)[: task.gpus]
        free_taken = (taken == whole).sum(axis=0)
        percent = (taken * 100 // whole).sum(axis=0)
        used_node = np.where(
            free_taken > 0, np.maximum(MOST // 2 - free_taken, MOST // 3), np.maximum(MOST - percent // 10, MOST // 2)
        )
        healthy = self.healthy.take(state.kind.T.take(rows, axis=1))
        free = (healthy & (units == whole)).sum(axis=0)
        score: Ints = np.where(free == healthy.sum(axis=0), np.maximum(MOST // 3 - free, free), used_node)
        return score
