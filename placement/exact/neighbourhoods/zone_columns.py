r"""Which zone of a node holds its bound tasks: columns and rows beside those of the pooled model of single nodes.

For every node *i* of a neighbourhood and shape *s* that lies within one NUMA zone there, the :math:`n_{si}` tasks are
split over its zones, and no zone *z* holds more than it has, of cards, of units on them, and of every resource *r*:

.. math:: \sum_z y_{siz} = n_{si}, \qquad \sum_s d_{sr}\, y_{siz} \le f_{izr}, \qquad y_{siz} \in \mathbb{Z}_{\ge 0}.

What is not bound takes its share wherever the others leave it, so with whole cards that are alike this is all there is
to say. With shares of cards, and with tasks that lie within several zones, it is necessary and not sufficient.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from placement.exact.layouts.layout import Layout, Spot
from placement.exact.layouts.within import zones_of
from placement.exact.milp.arrays import Floats, Program
from placement.instance import Ints
from placement.models.pools import Pooling

BITS = 10
"""Rows are scaled by powers of two, so that their right-hand sides have about so many bits."""


class ZoneColumns:
    """The columns of some empty nodes.

    Parameters
    ----------
    layout : Layout
    nodes : int array
        The nodes of the pools of the view, one each.
    view : Pooling
    """

    def __init__(self, layout: Layout, nodes: Ints, view: Pooling) -> None:
        self.layout, self.nodes, self.view = layout, nodes, view
        self.columns: list[tuple[int, int]] = []
        """Pair of the view and zone."""
        if not layout.instance.zoned:
            return
        for pair, (k, shape) in enumerate(zip(view.pool.tolist(), view.shape.tolist(), strict=True)):
            node_class = layout.instance.node_class[nodes[k]]
            zones = layout.instance.classes[node_class].zones
            if zones is not None and layout.instance.bound[shape, node_class] == 1:
                self.columns += [(pair, zone) for zone in range(zones.count)]

    def added(self, program: Program) -> Program:
        """Return the program with these columns behind its own, and their rows behind its own."""
        if not self.columns:
            return program
        first = len(program.cost)
        entries: list[list[tuple[int, float]]] = []
        lower: list[float] = []
        upper: list[float] = []
        split: dict[int, list[int]] = defaultdict(list)
        inside: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        most: list[int] = self.view.most.tolist()
        for column, (pair, zone) in enumerate(self.columns, first):
            split[pair].append(column)
            inside[int(self.view.pool[pair]), zone].append((column, pair))
        for pair, columns in split.items():
            entries.append([(pair, -1.0), *((column, 1.0) for column in columns)])
            lower.append(0.0)
            upper.append(0.0)
        for (k, zone), held in inside.items():
            shapes = self.view.shape[[pair for _, pair in held]].tolist()
            for needs, room in self._rooms(int(self.nodes[k]), zone, shapes):
                if sum(need * most[pair] for (_, pair), need in zip(held, needs, strict=True)) > room:
                    unit = 2.0 ** -max(0, room.bit_length() - BITS)
                    row = [(column, need * unit) for (column, _), need in zip(held, needs, strict=True) if need]
                    entries.append(row)
                    lower.append(-np.inf)
                    upper.append(room * unit)
        return _with(program, len(self.columns), entries, lower, upper)

    def _rooms(self, node: int, zone: int, shapes: Sequence[int]) -> list[tuple[list[int], int]]:
        """Return of everything there is in a zone what one task of each shape takes, and what there is."""
        state, instance = self.layout.state, self.layout.instance
        tasks = [instance.shapes[s] for s in shapes]
        units = state.units[node][(state.zone[node] == zone) & (state.kind[node] >= 0)]
        free = int((units == instance.card_units).sum())
        slack = np.maximum(state.slack[node, instance.zone_sets.index(1 << zone)], 0).tolist()
        whole = [task.gpus if task.units == instance.card_units else 0 for task in tasks]
        return [
            (whole, free),
            ([task.gpus * task.units for task in tasks], int(units.sum())),
            *(([task.demand[r] for task in tasks], room) for r, room in enumerate(slack)),
        ]

    def present(self, taken: Sequence[tuple[int, list[Spot]]]) -> Floats:
        """Return the values of the columns for what lay on the nodes."""
        pair_of = {key: i for i, key in enumerate(zip(self.view.pool.tolist(), self.view.shape.tolist(), strict=True))}
        held: Counter[tuple[int, int]] = Counter()
        for k, (_, spots) in enumerate(taken):
            for shape, positions in spots:
                bits = zones_of(self.layout.instance, positions)
                held[pair_of[k, shape], bits.bit_length() - 1] += 1
        return np.array([held[column] for column in self.columns], dtype=np.float64)


def _with(
    program: Program,
    columns: int,
    entries: Sequence[Sequence[tuple[int, float]]],
    lower: Sequence[float],
    upper: Sequence[float],
) -> Program:
    """Return a program with whole columns and rows added, the rows given by their entries."""
    sizes = np.array([len(row) for row in entries], dtype=np.int32)
    none, one = np.zeros(columns), np.ones(columns, dtype=np.bool_)
    index = np.array([column for row in entries for column, _ in row], dtype=np.int32)
    value = np.array([amount for row in entries for _, amount in row], dtype=np.float64)
    return replace(
        program,
        cost=np.concatenate([program.cost, none]),
        lower=np.concatenate([program.lower, none]),
        upper=np.concatenate([program.upper, np.full(columns, np.inf)]),
        integer=np.concatenate([program.integer, one]),
        start=np.concatenate([program.start, program.start[-1] + np.cumsum(sizes, dtype=np.int32)]),
        index=np.concatenate([program.index, index]),
        value=np.concatenate([program.value, value]),
        row_lower=np.concatenate([program.row_lower, np.array(lower)]),
        row_upper=np.concatenate([program.row_upper, np.array(upper)]),
    )
