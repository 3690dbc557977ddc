"""Best fit: the node that has least left over."""

from __future__ import annotations

from typing import ClassVar

from placement.heuristics.rule import MOST, Rule
from placement.instance import Ints


class BestFit(Rule):
    r"""Least weighted rest, half CPU and half GPU.

    With free amounts :math:`c, u` and requests :math:`c', u'` of CPU and card units in fractions of the largest node,

    .. math:: \lfloor 100\,(1 - (c - c')/2 - (u - u')/2) \rfloor .

    Source: ``best_fit_score.go`` of the simulator of FGD (Weng et al., ATC'23). The simulator then stretches the
    scores of all nodes to 0 … 100, which keeps their order, so it is left out.
    """

    name: ClassVar[str] = "best-fit"

    def scores(self, shape: int, rows: Ints) -> Ints:
        """Return the score above."""
        cpu = self.cpu_free(rows) - self.cpu_asked(shape)
        gpu = self.gpu_free(rows) - self.asked_units(shape) / self.most_units
        return self.whole_scores((1.0 - (cpu * 0.5 + gpu * 0.5)) * MOST)
