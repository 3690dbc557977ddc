"""KAI's bin packing: shares go onto cards in use, whole cards where few are idle, instances where they exist."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from placement.heuristics.mig_parted_fixed import MigPartedFixed
from placement.heuristics.nodes import Nodes
from placement.heuristics.rule import LIMIT
from placement.instance import Ints


class KaiFractions(MigPartedFixed):
    """Shares of cards to a node that has room on a card in use; else, and among these, to that with fewest idle cards.

    On the node it is the card of which most is used. Whole cards come from the node with the fewest idle ones, tasks
    without cards go to a node that has none, then to that with least free CPU. Instances of MIG cards are handed out in
    order, wherever they exist; packing them is not supported.

    Source: of kai-scheduler/KAI-Scheduler ``gpuOrderFn`` in ``pkg/scheduler/plugins/gpupack/gpupack.go`` (at 30fd2db8),
    ``nodeOrderFn`` in ``plugins/gpusharingorder/gpusharingorder.go`` (at 213516a2) and in
    ``plugins/resourcetype/resourcetype.go`` (at 521a99aa), and ``getScoreOfCurrentNode`` in
    ``plugins/nodeplacement/pack.go`` (at 34e11ef3), the weights in ``plugins/scores/scores.go``.
    Differs from the source in: used shares are those of compute, which there follow from memory; queues, what is being
    released and the scores of Kubernetes' own plugins have no counterpart; and since it creates no instances, cards
    that are not static are cut up as by `placement.heuristics.mig_parted_fixed`.
    """

    name: ClassVar[str] = "kai-fractions"

    def __init__(self, nodes: Nodes, rng: np.random.Generator) -> None:
        super().__init__(nodes, rng)
        self.has_small_scores = False

    def others(self, shape: int, rows: Ints) -> Ints:
        """Return the scores of nodes for a task without a profile."""
        state, task = self.nodes.state, self.shapes[shape]
        if not task.gpus:
            return self._without_cards(rows)
        found: Ints = -(self.idle(rows) == self.card_units).sum(axis=1)
        if task.units < self.card_units:
            in_use = state.usable(shape, rows) & (self.card_units > state.units.T.take(rows, axis=1).T)
            # more than there can be idle cards
            found += in_use.any(axis=1) * (state.units.shape[1] + 1)
        return found

    def _without_cards(self, rows: Ints) -> Ints:
        state, most = self.nodes.state, int(LIMIT)
        found: Ints = np.where((state.kind[rows] < 0).all(axis=1), most, 0)
        if "cpu" in self.nodes.instance.resources:
            free = state.free[:, self.nodes.instance.resources.index("cpu")][rows]
            found -= np.minimum(free, most - 1)
        return found
