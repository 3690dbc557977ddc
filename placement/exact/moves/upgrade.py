"""Replace placed tasks by waiting ones that are worth more and fit in their place, many nodes at a time.

What is left on a card is often too little for any task, but not for the difference between two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placement.exact.layouts.layout import Layout
from placement.exact.layouts.within import bound_on, cards_of
from placement.exact.milp.arrays import Floats
from placement.instance import Bools, Ints
from placement.solver import Limits

PASSES = 12
"""Each pass replaces at most one task of a node."""
ROWS = 4096
"""Tasks looked at together."""


def upgrade(layout: Layout, nodes: Ints, waiting: Ints, worth: Floats, loose: Bools, limits: Limits) -> int:
    """Replace tasks until no replacement is worth more; return how many were made.

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
        Shapes of which any single task may be taken away or added, because no other task depends on it.
    limits : Limits
    """
    made = 0
    state = layout.state
    for _ in range(PASSES):
        idle = nodes[(state.units[nodes] > 0).any(axis=1)]
        before = made
        for first in range(0, len(idle), ROWS // 8):
            if limits.left <= 0:
                return made
            made += _pass(layout, idle[first : first + ROWS // 8], waiting, worth, loose)
        if made == before:
            break
    return made


@dataclass(frozen=True, slots=True)
class _Rows:
    """Placed tasks: node, position in the node's list, shape; kind of the cards and the least room left on one."""

    node: Ints
    position: Ints
    shape: Ints
    kind: Ints
    units: Ints
    memory: Ints


def _rows(layout: Layout, nodes: Ints, loose: Bools) -> _Rows:
    state = layout.state
    found: list[tuple[int, int, int, int, int, int]] = []
    for node in nodes.tolist():
        units, memory, kind = state.units[node].tolist(), state.memory[node].tolist(), state.kind[node].tolist()
        for position, (shape, taken) in enumerate(layout.tasks[node]):
            cards = cards_of(layout.instance, taken)
            if loose[shape] and cards and len({kind[c] for c in cards}) == 1:
                left = min(units[c] for c in cards), min(memory[c] for c in cards)
                found.append((node, position, shape, kind[cards[0]], *left))
    table = np.array(found, dtype=np.int64).reshape(-1, 6)
    return _Rows(*table.T)


def _pass(layout: Layout, nodes: Ints, waiting: Ints, worth: Floats, loose: Bools) -> int:
    """Make the best replacement on each of some nodes, as far as the waiting tasks go."""
    instance, state = layout.instance, layout.state
    admitted = instance.admits_node[:, instance.node_class[nodes[0]]]
    shapes = np.flatnonzero(admitted & loose & (waiting > 0))
    rows = _rows(layout, nodes, loose)
    if not len(shapes) or not len(rows.node):
        return 0
    tasks = instance.shapes
    gpus = np.array([s.gpus for s in tasks], dtype=np.int64)
    units = np.array([s.units for s in tasks], dtype=np.int64)
    memory = np.array([s.memory for s in tasks], dtype=np.int64)
    old = rows.shape
    ok: Bools = gpus[shapes][None] == gpus[old][:, None]
    ok &= units[shapes][None] <= (units[old] + rows.units)[:, None]
    ok &= memory[shapes][None] <= (memory[old] + rows.memory)[:, None]
    ok &= state.admits_card[shapes][:, rows.kind].T
    room = state.free[rows.node] + state.demand[old]
    ok &= (state.demand[shapes][None] <= room[:, None]).all(axis=2)
    gain = np.where(ok, worth[shapes][None] - worth[old][:, None], 0.0)
    best = gain.argmax(axis=1)
    most = gain[np.arange(len(old)), best]
    made = 0
    done: set[int] = set()
    for row in np.argsort(-most, kind="stable").tolist():
        if most[row] <= 1e-12:
            break
        node, new = int(rows.node[row]), int(shapes[best[row]])
        if node in done or not waiting[new] or not _within_limits(layout, node, int(old[row]), new):
            continue
        _, taken = layout.remove(node, int(rows.position[row]))
        spot = bound_on(layout, new, node, cards_of(instance, taken))
        if spot is None:  # the node has room and the zones of these cards have not
            layout.place(int(old[row]), node, taken)
            # the positions of the node's other tasks have changed
            done.add(node)
            continue
        layout.place(new, node, spot)
        waiting[old[row]] += 1
        waiting[new] -= 1
        done.add(node)
        made += 1
    return made


def _within_limits(layout: Layout, node: int, old: int, new: int) -> bool:
    state = layout.state
    rows = layout.instance.classes[layout.instance.node_class[node]].limits
    return all(state.limit_use(new, row) - state.limit_use(old, row) <= state.limits[row] for row in rows)
