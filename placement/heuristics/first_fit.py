"""First fit: the first node in the fixed order that has room."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from placement.heuristics.rule import Rule
from placement.instance import Ints


class FirstFit(Rule):
    """Every node with room is as good as any other, so the tie rule decides.

    Source: the oldest rule of bin packing (Johnson, "Near-Optimal Bin Packing Algorithms", 1973).
    """

    name: ClassVar[str] = "first-fit"

    def scores(self, shape: int, slots: Ints) -> Ints:
        """Return 0 for every slot."""
        return np.zeros(len(slots), dtype=np.int64)
