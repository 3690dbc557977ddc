"""Dot product: the node whose free amounts are least aligned with the request."""

from __future__ import annotations

from typing import ClassVar

from placement.heuristics.rule import MOST, Rule
from placement.instance import Ints


class DotProduct(Rule):
    r"""Smallest dot product of free amounts and request, both in fractions of the largest node.

    .. math:: \lfloor 100\,(1 - (c\,c' + u\,u')/2) \rfloor

    with CPU :math:`c, c'` and card units, merged over the cards of a node, :math:`u, u'`. A small product is taken as
    a good match, so full nodes come first; Tetris (Grandl et al., SIGCOMM'14), where the rule comes from, prefers the
    large one. Source: ``dot_product_score.go`` of the simulator of FGD (Weng et al., ATC'23), merged GPU dimension.
    """

    name: ClassVar[str] = "dot-product"

    def scores(self, shape: int, rows: Ints) -> Ints:
        """Return the score above."""
        gpu_asked = self.asked_units(shape) / self.most_units
        product = self.cpu_free(rows) * self.cpu_asked(shape) + self.gpu_free(rows) * gpu_asked
        return self.whole_scores(MOST * (1.0 - product / 2.0))
