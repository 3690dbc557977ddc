"""Empty nodes and pack them again, many at a time and each for itself: it may use its own tasks and those that wait.

Each choice is disturbed a little, so that another try may end elsewhere. A node that comes out worse stays as it was.
"""

from __future__ import annotations

import numpy as np

from placement.exact.layouts.layout import Layout, Spot
from placement.exact.milp.arrays import Floats
from placement.exact.packing.pack import Batch
from placement.instance import Bools, Ints
from placement.solver import Limits

TOGETHER = 256
NOISE = 0.4
"""Standard deviation of what disturbs a choice, in doublings of worth."""


class Repack(Batch):
    """Chooses among the tasks that a node had and those that wait.

    Parameters
    ----------
    own : int array (nodes, shapes)
        Tasks that each node had; nobody else gets these.
    noise : random generator
    """

    def __init__(
        self, layout: Layout, nodes: Ints, shapes: Ints, worth: Floats, own: Ints, noise: np.random.Generator
    ) -> None:
        super().__init__(layout, nodes, shapes, worth)
        self.own, self.noise = own, noise

    def _offered(self, active: Ints, supply: Ints) -> Bools:
        return np.asarray((self.own[active] > 0) | (supply[self.shapes] > 0)[None])

    def _score(
        self, some: Ints, active: Ints, usable: Bools, free: Ints | None = None, idle: Ints | None = None
    ) -> Floats:
        score = super()._score(some, active, usable, free, idle)
        return np.asarray(score + NOISE * self.noise.standard_normal(score.shape))

    def _supplied(self, rows: Ints, shape: Ints, supply: Ints) -> Bools:
        mine = self.own[rows, shape] > 0
        supplied = mine.copy()
        supplied[~mine] = super()._supplied(rows[~mine], shape[~mine], supply)
        return supplied

    def _charge(self, rows: Ints, shape: Ints, supply: Ints) -> None:
        mine = self.own[rows, shape] > 0
        self.own[rows[mine], shape[mine]] -= 1
        super()._charge(rows[~mine], shape[~mine], supply)


def repack(
    layout: Layout,
    nodes: Ints,
    waiting: Ints,
    worth: Floats,
    loose: Bools,
    noise: np.random.Generator,
    limits: Limits,
) -> int:
    """Pack nodes that have idle cards again; return how many came out better.

    Parameters
    ----------
    layout : Layout
        Changed in place.
    nodes : int array
        Nodes that admit the same shapes and count in the same domain limits.
    waiting : int array (S,)
        Tasks of each shape that may be placed; kept up to date.
    worth : float array (S,)
        Worth of one task of each shape.
    loose : bool array (S,)
        Shapes of which any single task may go, because no other task depends on it; the others stay.
    noise : random generator
    limits : Limits
    """
    all_loose = np.where(loose, waiting + layout.count, 0)
    idle = nodes[(layout.state.units[nodes] > 0).any(axis=1)]
    better = 0
    for first in range(0, len(idle), TOGETHER):
        if limits.left <= 0:
            break
        better += _try(layout, idle[first : first + TOGETHER], waiting, worth, loose, noise)
        waiting[:] = np.where(loose, all_loose - layout.count, waiting)
    return better


def _try(layout: Layout, nodes: Ints, waiting: Ints, worth: Floats, loose: Bools, noise: np.random.Generator) -> int:
    instance = layout.instance
    admitted = instance.admits_node[:, instance.node_class[nodes[0]]]
    before = [list(layout.tasks[node]) for node in nodes.tolist()]
    had = np.zeros((len(nodes), len(waiting)), dtype=np.int64)
    for row, node in enumerate(nodes.tolist()):
        for shape, _ in _take_off(layout, node, loose):
            had[row, shape] += 1
    shapes = np.flatnonzero(admitted & loose & ((waiting > 0) | had.any(axis=0)))
    Repack(layout, nodes, shapes, worth[shapes], had[:, shapes], noise).run(waiting)
    better = 0
    for row, node in enumerate(nodes.tolist()):
        new = sum(float(worth[shape]) for shape, _ in layout.tasks[node] if loose[shape])
        old = float(had[row] @ worth)
        better += new > old + 1e-12
        if new < old:
            _put_back(layout, node, before[row], loose)
    rows = list(instance.classes[instance.node_class[nodes[0]]].limits)
    if (layout.state.limits[rows] < 0).any():
        # what one node got back another has used up by now
        for row, node in enumerate(nodes.tolist()):
            _put_back(layout, node, before[row], loose)
        return 0
    return better


def _put_back(layout: Layout, node: int, tasks: list[Spot], loose: Bools) -> None:
    """Give a node the tasks of loose shapes that it had, in place of those it has."""
    _take_off(layout, node, loose)
    for shape, cards in tasks:
        if loose[shape]:
            layout.place(shape, node, cards)


def _take_off(layout: Layout, node: int, loose: Bools) -> list[Spot]:
    """Take the tasks of loose shapes off a node and return them."""
    positions = [i for i, (shape, _) in enumerate(layout.tasks[node]) if loose[shape]]
    return [layout.remove(node, position) for position in reversed(positions)]
