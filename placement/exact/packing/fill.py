"""Put waiting tasks where there is room, without moving any: the quick step between and after the exact ones."""

from __future__ import annotations

import numpy as np

from placement.exact.layouts.layout import Layout
from placement.exact.milp.arrays import Floats
from placement.instance import Ints


def fill(layout: Layout, waiting: Ints, worth: Floats) -> int:
    """Place waiting tasks, most worth per need first, each where it leaves least behind; return how many.

    Parameters
    ----------
    layout : Layout
        Changed in place.
    waiting : int array (S,)
        Tasks of each shape to place; kept up to date.
    worth : float array (S,)
        Worth of one task of each shape.
    """
    shapes = layout.instance.shapes
    size = np.array([s.gpus * s.units for s in shapes], dtype=np.float64)
    order = np.lexsort((np.arange(len(shapes)), -size, -worth / np.maximum(size, 1.0)))
    everywhere = np.arange(layout.instance.nodes)
    placed = 0
    for shape in order[waiting[order] > 0].tolist():
        nodes = everywhere[layout.state.fits(shape, everywhere)]
        while waiting[shape] and len(nodes):
            node = int(nodes[_tightest(layout, shape, nodes)])
            cards = layout.state.tightest(shape, node)
            if cards is None:
                nodes = nodes[nodes != node]
                continue
            layout.place(shape, node, cards)
            waiting[shape] -= 1
            placed += 1
            if len(layout.state.limits):
                nodes = nodes[layout.state.fits(shape, nodes)]
            elif not layout.state.fits(shape, np.array([node]))[0]:
                nodes = nodes[nodes != node]
    return placed


def _tightest(layout: Layout, shape: int, nodes: Ints) -> int:
    """Return the position of the node on whose cards least is left; for tasks without cards, with least idle cards."""
    state, task = layout.state, layout.instance.shapes[shape]
    if task.gpus:
        units = np.where(state.usable(shape, nodes), state.units[nodes], np.iinfo(np.int64).max)
        room = np.partition(units, task.gpus - 1, axis=1)[:, task.gpus - 1]
    else:
        room = state.units[nodes].sum(axis=1)
    scale = np.maximum(state.free.max(axis=0), 1)
    slack = (state.free[nodes] / scale).min(axis=1)
    return int(np.lexsort((slack, room))[0])
