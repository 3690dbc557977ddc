"""Large-neighbourhood search: free a few nodes and place them, and what waits, again by an exact model.

A better answer replaces the old one; an equal one does too, for from there other neighbourhoods may lead further.
"""

from __future__ import annotations

import numpy as np

from placement.evaluate import demand
from placement.exact.layouts.standing import Standing
from placement.exact.milp import highs
from placement.exact.milp.arrays import Floats
from placement.exact.neighbourhoods.neighbourhood import Neighbourhood
from placement.exact.timing import Timing
from placement.instance import Bools, Instance, Ints
from placement.solver import Limits
from placement.state import State

PAIRS, MOST_PAIRS = 120, 480
"""Pairs of shape and node that a neighbourhood should have, at first and at most."""
LEAST = 2
"""Fewest nodes of a neighbourhood, once there have been more."""
STALLED = 30
"""Rounds without an improvement after which neighbourhoods get twice as large."""
AIMED = 0.75
"""How often a neighbourhood is chosen around a waiting task."""
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
    price : float array (K,), optional
        What an idle card of each node class may be worth; where it is nothing, idle cards cannot be helped.
    """

    def __init__(
        self, standing: Standing, focus: int, limits: Limits, seed: int, timing: Timing, price: Floats | None = None
    ) -> None:
        self.standing, self.focus, self.limits, self.seed, self.timing = standing, focus, limits, seed, timing
        self.instance = standing.layout.instance
        self.rng = np.random.default_rng(seed)
        self.wanted = demand(self.instance)
        self.size = min(8, self.instance.nodes)
        self.most = self.instance.nodes
        """Most nodes of a neighbourhood."""
        self.pairs = PAIRS
        self.idle = 0
        self.counts_tasks = standing.goals.targets[focus][0] == "tasks"
        shapes = self.instance.shapes
        cards = np.array([max(1, s.gpus * s.units) for s in shapes]) / self.instance.card_units
        self.largest = np.maximum(State(self.instance).free.max(axis=0, initial=1), 1)
        demand_of = standing.layout.state.demand / self.largest
        self.need: Floats = demand_of.max(axis=1, initial=0.0) if self.counts_tasks else cards
        """What one task of each shape takes of what `_idle` measures."""
        self.price = np.ones(len(self.instance.classes)) if price is None else price / max(1e-12, float(price.max()))
        self.could = _could_take(self.instance)
        self.bound: int | None = None
        """A bound on the target, once a neighbourhood was the whole instance."""
        self.exhausted = False
        """Whether more rounds would only repeat the last one, which was about the whole instance."""

    def round(self) -> bool:
        """Try one neighbourhood; return whether the standing got better."""
        nodes = self._choose()
        before = self.standing.ranks
        realised = False
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
            realised = model.realise(solved)
            if realised:
                break
            model.restore()
            if not model.has_split or not self.limits.left:
                break
        self._resize(solved.why, len(model.view.shape), self.standing.ranks > before)
        self.exhausted = everything and (solved.why is highs.Why.OPTIMAL or self.standing.ranks == before)
        if everything and not realised and self.instance.zoned and self.most > LEAST:
            # the model does not know all that zones do; what fails on all nodes may come out on some
            self.exhausted = False
            self.most = max(LEAST, self.most // 2)
            self.size = min(self.size, self.most)
        return self.standing.ranks > before

    def _resize(self, why: highs.Why, pairs: int, better: bool) -> None:
        """Take more nodes where models are solved with ease or nothing is found, fewer where they are hard."""
        self.idle = 0 if better else self.idle + 1
        if self.idle and not self.idle % STALLED:
            self.pairs = min(2 * self.pairs, MOST_PAIRS)
        if why is highs.Why.NODES or pairs > 1.5 * self.pairs:
            self.size = max(LEAST, self.size - 1)
        elif pairs < self.pairs and self.size < self.most:
            self.size += 1

    def _choose(self) -> Ints:
        """Return nodes that could take a waiting task, or that have idle cards, and as many at random."""
        count = min(self.size, self.instance.nodes)
        idle = self._idle()
        weight = idle + 0.02
        shape = self._waiting_shape(idle)
        if shape is not None and self.rng.random() < AIMED:
            weight = weight * self.could[shape][self.instance.node_class]
        likely = np.flatnonzero(weight)
        share = weight[likely] / weight.sum()
        first = self.rng.choice(likely, size=min(len(likely), (count + 1) // 2), replace=False, p=share)
        others = np.setdiff1d(np.arange(self.instance.nodes), first)
        rest = self.rng.choice(others, size=min(len(others), count - len(first)), replace=False)
        return np.sort(np.concatenate([first, rest])).astype(np.int64)

    def _idle(self) -> Floats:
        """Return how much of each node is idle: cards, or where tasks count, its scarcest resource."""
        state = self.standing.layout.state
        if self.counts_tasks:
            return np.asarray((state.free / self.largest).min(axis=1, initial=1.0))
        price = self.price[self.instance.node_class]
        return np.asarray(state.units.sum(axis=1) * price / self.instance.card_units)

    def _waiting_shape(self, idle: Floats) -> int | None:
        """Return a shape with waiting tasks, likely one with much waiting and much idle where it could run."""
        waiting = self.wanted - self.standing.layout.count
        by_class = np.bincount(self.instance.node_class, idle, minlength=len(self.instance.classes))
        weight = np.minimum(waiting * self.need, self.could @ by_class)
        if not weight.any():
            return None
        return int(self.rng.choice(len(weight), p=weight / weight.sum()))


def _could_take(instance: Instance) -> Bools:
    """Return on which node classes one task of each shape has room if nothing new is there, shape (S, K)."""
    state = State(instance)
    first = np.array([c.nodes[0] for c in instance.classes], dtype=np.int64)
    rows = [state.fits(shape, first) for shape in range(len(instance.shapes))]
    return np.array(rows, dtype=np.bool_).reshape(len(instance.shapes), len(first))
