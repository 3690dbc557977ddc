"""A placement under construction: which tasks lie on which node and cards, without saying whose they are.

Tasks of one shape are interchangeable, so jobs are named last (see `placement.exact.gangs`). A layout may take more
of a node's resources than there is while it is being made; cards and blocks of cards are never over-full.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np

from placement.collector import collector_paused
from placement.instance import Assignment, Instance, Ints
from placement.models.pools import leaf_rows, leaf_table
from placement.state import State

Spot = tuple[int, tuple[int, ...]]
"""A task's shape, and its cards and NUMA zones on some node; see `placement.instance.Assignment`."""


class Layout:
    """Tasks by node.

    Attributes
    ----------
    state : State
        What is left free; negative where a node is over-full.
    tasks : list of lists of (shape, cards)
        By node.
    count : int array (S,)
        Tasks of each shape.
    """

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.state = State(instance)
        self.tasks: list[list[Spot]] = [[] for _ in range(instance.nodes)]
        self.count: Ints = np.zeros(len(instance.shapes), dtype=np.int64)

    def place(self, shape: int, node: int, cards: tuple[int, ...]) -> None:
        """Put one task on a node."""
        self.state.place(shape, node, cards)
        self.tasks[node].append((shape, cards))
        self.count[shape] += 1

    def remove(self, node: int, position: int) -> Spot:
        """Take one task off a node, by its position in the node's list."""
        shape, cards = self.tasks[node].pop(position)
        self.state.remove(shape, node, cards)
        self.count[shape] -= 1
        return shape, cards

    def clear(self, nodes: Iterable[int]) -> list[tuple[int, list[Spot]]]:
        """Take all tasks off some nodes and return them."""
        taken = []
        for node in nodes:
            spots = self.tasks[node]
            for shape, cards in spots:
                self.state.remove(shape, node, cards)
                self.count[shape] -= 1
            self.tasks[node] = []
            taken.append((node, spots))
        return taken

    def restore(self, taken: Iterable[tuple[int, list[Spot]]]) -> None:
        """Put tasks back that `clear` returned."""
        for node, spots in taken:
            for shape, cards in spots:
                self.place(shape, node, cards)

    def over_full(self) -> Ints:
        """Return the nodes that take more than they have."""
        over = (self.state.free < 0).any(axis=1)
        return np.flatnonzero(over | (self.state.slack < 0).any(axis=(1, 2)))

    def copy(self) -> Layout:
        """Return an independent copy."""
        twin = Layout.__new__(Layout)
        twin.instance = self.instance
        twin.state = State(self.instance)
        for name in ("free", "units", "memory", "limits", "slack"):
            setattr(twin.state, name, getattr(self.state, name).copy())
        twin.tasks = [list(spots) for spots in self.tasks]
        twin.count = self.count.copy()
        return twin

    @classmethod
    def of_columns(cls, instance: Instance, shape: Ints, node: Ints, cards: Sequence[tuple[int, ...]]) -> Layout:
        """Return the layout of many tasks, in a few array operations.

        Parameters
        ----------
        instance : Instance
        shape, node : int arrays (T,)
        cards : sequence of tuples of int
            Cards of each task, by position in the node, and behind them the zones it is bound to.
        """
        layout = cls(instance)
        with collector_paused():
            for one, host, positions in zip(shape.tolist(), node.tolist(), cards, strict=True):
                layout.tasks[host].append((one, positions))
        layout.count += np.bincount(shape, minlength=len(layout.count))
        state = layout.state
        for r in np.flatnonzero(state.demand.any(axis=0)).tolist():
            np.subtract.at(state.free[:, r], node, state.demand[shape, r])
        lengths = np.fromiter(map(len, cards), dtype=np.int64, count=len(cards))
        card = np.fromiter(itertools.chain.from_iterable(cards), dtype=np.int64, count=int(lengths.sum()))
        row = np.repeat(np.arange(len(cards)), lengths)
        of_task = np.array([(task.units, task.memory) for task in instance.shapes], dtype=np.int64).reshape(-1, 2)[
            shape
        ]
        if instance.zoned:
            is_card = card < instance.widest
            _bind(layout, shape, node, row[~is_card], card[~is_card] - instance.widest)
            row, card = row[is_card], card[is_card]
        np.subtract.at(state.units, (node[row], card), of_task[row, 0])
        np.subtract.at(state.memory, (node[row], card), of_task[row, 1])
        _count_in_limits(layout, shape, node)
        return layout

    @classmethod
    def of(cls, instance: Instance, assignment: Assignment) -> Layout:
        """Return the layout of an assignment."""
        offset, flat = assignment.offset.tolist(), assignment.cards.tolist()
        cards = [tuple(flat[first:end]) for first, end in itertools.pairwise(offset)]
        shape = leaf_table(instance)[leaf_rows(instance, assignment), 2]
        return cls.of_columns(instance, shape, assignment.node, cards)


def _bind(layout: Layout, shape: Ints, node: Ints, row: Ints, zone: Ints) -> None:
    """Take what tasks demand of the NUMA zones they are bound to; each row is a task and one of its zones."""
    bits = np.zeros(len(shape), dtype=np.int64)
    np.bitwise_or.at(bits, row, 1 << zone)
    for some in np.unique(bits[bits > 0]).tolist():
        layout.state.bind(np.flatnonzero(bits == some), some, shape, node)


def _count_in_limits(layout: Layout, shape: Ints, node: Ints) -> None:
    """Take what tasks use of every limit row that their node counts in."""
    instance, limits = layout.instance, layout.state.limits
    if not len(limits):
        return
    shapes = len(instance.shapes)
    use = np.array([[layout.state.limit_use(s, q) for s in range(shapes)] for q in range(len(limits))], dtype=np.int64)
    pair, times = np.unique(instance.node_class[node] * shapes + shape, return_counts=True)
    for number, count in zip(pair.tolist(), times.tolist(), strict=True):
        rows = list(instance.classes[number // shapes].limits)
        limits[rows] -= count * use[rows, number % shapes]
