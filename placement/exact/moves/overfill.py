"""Give idle cards tasks for which the rest of their node does not suffice, for exchanges to make room afterwards.

A node whose cores are used up by demanding tasks while some of its cards are idle, beside one that has cores to spare:
neither can take another task, but if the first one takes one all the same and then changes a demanding task for a
modest one of the other's, both come out right. `placement.exact.moves.repair` finds those exchanges.
"""

from __future__ import annotations

import numpy as np

from placement.exact.layouts.layout import Layout
from placement.exact.milp.arrays import Floats
from placement.exact.moves.repair import relieve
from placement.exact.packing.pack import Batch, pack
from placement.instance import Bools, Ints
from placement.solver import Limits

TOGETHER, PARTNERS = 64, 448
"""Over-full nodes to relieve at once, and the nodes with most to spare that they may exchange tasks with."""


class Overfull(Batch):
    """Chooses for idle cards what exceeds the node's other resources least.

    Tasks that are bound to NUMA zones are not among it: exchanges relieve nodes, and do not know of zones.
    """

    def __init__(self, layout: Layout, nodes: Ints, shapes: Ints, worth: Floats) -> None:
        super().__init__(layout, nodes, shapes, worth)
        instance = layout.instance
        before = [instance.classes[k].free for k in instance.node_class[nodes].tolist()]
        self.capacity: Ints = np.array(before, dtype=np.int64).reshape(len(nodes), len(instance.resources))
        self.unit = np.maximum(self.capacity.mean(axis=0), 1.0)

    def _fits(self, some: Ints, active: Ints) -> Bools:
        alone = (self.demand[some][None] <= self.capacity[active][:, None]).all(axis=2)
        if self.zones is not None:
            alone &= self.zones.binds(0, some, active)
        return np.asarray(alone & (self.gpus[some] > 0))

    def _score(
        self, some: Ints, active: Ints, usable: Bools, free: Ints | None = None, idle: Ints | None = None
    ) -> Floats:
        free = np.maximum(self.free[active], 0)
        over = np.maximum(self.demand[some][None] - free[:, None], 0) / self.unit
        return np.asarray(-over.sum(axis=2) / np.maximum(self.size[some], 1.0) + 1e-9 * self.worth[some])


def overfill(layout: Layout, nodes: Ints, waiting: Ints, worth: Floats, loose: Bools, limits: Limits) -> int:
    """Put waiting tasks on the idle cards of a pool and exchange tasks until no node is over-full, or as few as may be.

    Parameters
    ----------
    layout : Layout
        Changed in place; some of its nodes may come out over-full.
    nodes : int array
        Nodes of one pool.
    waiting : int array (S,)
        Tasks of each shape that wait; kept up to date.
    worth : float array (S,)
    loose : bool array (S,)
        Shapes whose tasks may change places with waiting ones.
    limits : Limits

    Returns
    -------
    int
        Tasks put on idle cards.
    """
    state = layout.state
    idle = nodes[(state.units[nodes] > 0).any(axis=1)]
    forced = pack(layout, idle, waiting, worth, limits, Overfull)
    if not forced:
        return 0
    over = nodes[(state.free[nodes] < 0).any(axis=1)]
    scale = np.maximum(np.maximum(state.free[nodes], 0).mean(axis=0), 1.0)
    others = np.setdiff1d(nodes, over)
    spare = (state.free[others] / scale).sum(axis=1)
    others = others[np.argsort(-spare, kind="stable")]
    for number, first in enumerate(range(0, len(over), TOGETHER)):
        if limits.left <= 0:
            break
        start = number * PARTNERS % max(1, len(others))
        partners = np.roll(others, -start)[:PARTNERS]
        among = np.sort(np.concatenate([over[first : first + TOGETHER], partners]))
        relieve(layout, waiting, limits, among, loose)
    return forced
