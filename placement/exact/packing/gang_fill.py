"""Fill what is left with whole gangs, the largest first; what is not enough for one more gang is given back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placement.evaluate import demand
from placement.exact.layouts.layout import Layout
from placement.exact.milp.arrays import Floats
from placement.exact.packing.pack import pack
from placement.gang import Leaf
from placement.instance import Instance, Ints
from placement.solver import Limits


def gang_sizes(instance: Instance) -> Ints:
    """Return by shape how many of its tasks run together or not at all; 0 where that is not all there is to say.

    These are shapes of gangs with one kind of task and no smaller minimum, all of one size.
    """
    sizes = np.zeros(len(instance.shapes), dtype=np.int64)
    other = np.zeros(len(instance.shapes), dtype=np.bool_)
    for job_class in instance.job_classes:
        children = job_class.root.children
        for leaf in job_class.leaves:
            only = children[0] if len(children) == 1 else None
            if isinstance(only, Leaf) and only.minimum == only.count > 1 and sizes[leaf.shape] in (0, only.count):
                sizes[leaf.shape] = only.count
            else:
                other[leaf.shape] = True
    return np.where(other, 0, sizes)


def fill_gangs(layout: Layout, pools: Sequence[Ints], sizes: Ints, worth: Floats, limits: Limits) -> int:
    """Place waiting gangs on what is free; return how many tasks were placed.

    Parameters
    ----------
    layout : Layout
        Changed in place; it holds whole gangs of these shapes before and after.
    pools : sequence of int arrays
        Nodes that admit the same shapes and count in the same domain limits, together.
    sizes : int array (S,)
        See `gang_sizes`.
    worth : float array (S,)
        Worth of one task of each shape.
    limits : Limits
    """
    waiting = np.where(sizes > 0, demand(layout.instance) - layout.count, 0)
    placed = 0
    for shape in np.argsort(-sizes * worth, kind="stable").tolist():
        if not waiting[shape] or limits.left <= 0:
            continue
        supply = np.zeros_like(waiting)
        supply[shape] = waiting[shape]
        before = int(layout.count[shape])
        for pool in pools:
            pack(layout, _with_idle_cards(layout, pool), supply, worth, limits)
        _give_back(layout, pools, shape, (int(layout.count[shape]) - before) % int(sizes[shape]))
        placed += int(layout.count[shape]) - before
    return placed


def _with_idle_cards(layout: Layout, pool: Ints) -> Ints:
    return pool[(layout.state.units[pool] > 0).any(axis=1)]


def _give_back(layout: Layout, pools: Sequence[Ints], shape: int, extra: int) -> None:
    """Take the tasks off that were placed last."""
    for pool in reversed(pools):
        for node in reversed(pool.tolist()):
            if not extra:
                return
            spots = layout.tasks[node]
            while extra and spots and spots[-1][0] == shape:
                layout.remove(node, len(spots) - 1)
                extra -= 1
