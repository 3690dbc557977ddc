"""Worst fit: the node that has most left over, which spreads work."""

from __future__ import annotations

from typing import ClassVar

from placement.heuristics.rule import MOST, Rule
from placement.instance import Ints


class WorstFit(Rule):
    r"""Most weighted rest, half CPU and half GPU: `placement.heuristics.best_fit.BestFit` turned round.

    .. math:: \lfloor 100\,((c - c')/2 + (u - u')/2) \rfloor .

    Source: ``worst_fit_score.go`` of the simulator of FGD (Weng et al., ATC'23); the same idea as kube-scheduler's
    ``LeastAllocated``. Within a node it packs shares on the tightest card, as the other rules do.
    """

    name: ClassVar[str] = "worst-fit"

    def scores(self, shape: int, rows: Ints) -> Ints:
        """Return the score above."""
        cpu = self.cpu_free(rows) - self.cpu_asked(shape)
        gpu = self.gpu_free(rows) - self.asked_units(shape) / self.most_units
        return self.whole_scores((cpu * 0.5 + gpu * 0.5) * MOST)
