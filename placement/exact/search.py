"""Large-neighbourhood search: free a few nodes and place them, and what waits, again by an exact model.

A better answer replaces the old one; an equal one does too, for from there other neighbourhoods may lead further.
"""

from __future__ import annotations

import numpy as np

from placement.evaluate import demand
from placement.exact import highs
from placement.exact.arrays import Floats
from placement.exact.master import Timing
from placement.exact.neighbourhood import Neighbourhood
from placement.exact.standing import Standing
from placement.instance import Ints
from placement.solver import Limits

PAIRS = 120
"""Pairs of shape and node that a neighbourhood should have."""
GAP = 1e-4
NODES = 100
"""Most branch-and-bound nodes for a neighbourhood."""
NODES_FOR_ALL = 2000
"""The same where the neighbourhood is the whole instance, and its bound the instance's."""


class Search:
    """Improves a standing, one neighbourhood at a time.

    Parameters
    ----------
    standing : Standing
        Changed in place.
    focus : int
        Number of the target to improve; the earlier ones are held.
    limits : Limits
    seed : int
    timing : Timing
    """

    def __init__(self, standing: Standing, focus: int, limits: Limits, seed: int, timing: Timing) -> None:
        self.standing, self.focus, self.limits, self.seed, self.timing = standing, focus, limits, seed, timing
        self.instance = standing.layout.instance
        self.rng = np.random.default_rng(seed)
        self.wanted = demand(self.instance)
        self.size = min(8, self.instance.nodes)
        self.bound: int | None = None
        """A bound on the target, once a neighbourhood was the whole instance."""
        self.exhausted = False
        """Whether more rounds would only repeat the last one, which was about the whole instance."""

    def round(self) -> bool:
        """Try one neighbourhood; return whether the standing got better."""
        nodes = self._choose()
        before = self.standing.ranks
        for careful in (False, True):
            model = Neighbourhood(self.standing, nodes, self.wanted, self.focus, careful)
            everything = len(nodes) == self.instance.nodes
            solved = model.solve(
                gap=0.0 if everything else GAP,
                nodes=self.limits.nodes or (NODES_FOR_ALL if everything else NODES),
                time_limit=self.limits.left,
                seed=self.seed,
                timing=self.timing,
            )
            bound = model.bound(solved)
            if bound is not None:
                self.bound = bound if self.bound is None else min(bound, self.bound)
            if model.realise(solved):
                break
            model.restore()
            if not model.has_split or not self.limits.left:
                break
        self._resize(solved.why, len(model.view.shape))
        self.exhausted = everything and (solved.why is highs.Why.OPTIMAL or self.standing.ranks == before)
        return self.standing.ranks > before

    def _resize(self, why: highs.Why, pairs: int) -> None:
        """Take more nodes where models are solved with ease, fewer where they are not."""
        if why is highs.Why.NODES or pairs > 2 * PAIRS:
            self.size = max(2, self.size - 1)
        elif pairs < PAIRS and self.size < self.instance.nodes:
            self.size += 1

    def _choose(self) -> Ints:
        """Return nodes with idle cards or that could take a waiting task, and as many at random."""
        layout = self.standing.layout
        count = min(self.size, self.instance.nodes)
        waiting = np.flatnonzero(self.wanted > layout.count)
        weight = layout.state.units.sum(axis=1) / self.instance.card_units + 0.02
        if len(waiting) and self.rng.random() < 0.5:
            could = self._could_take(int(self.rng.choice(waiting)))
            weight = weight * could if could.any() else weight
        likely = np.flatnonzero(weight)
        share = weight[likely] / weight.sum()
        first = self.rng.choice(likely, size=min(len(likely), (count + 1) // 2), replace=False, p=share)
        others = np.setdiff1d(np.arange(self.instance.nodes), first)
        rest = self.rng.choice(others, size=min(len(others), count - len(first)), replace=False)
        return np.sort(np.concatenate([first, rest])).astype(np.int64)

    def _could_take(self, shape: int) -> Floats:
        """Return 1 for nodes that could take a task of a shape if nothing new were on them, else 0."""
        task = self.instance.shapes[shape]
        could = np.zeros(len(self.instance.classes))
        for k, node_class in enumerate(self.instance.classes):
            cards = [c for c in node_class.cards if self.instance.admits_card[shape, c[0]] and c[1] >= task.units]
            room = all(have >= need for have, need in zip(node_class.free, task.demand, strict=True))
            could[k] = self.instance.admits_node[shape, k] and room and len(cards) >= task.gpus
        return np.asarray(could[self.instance.node_class])
