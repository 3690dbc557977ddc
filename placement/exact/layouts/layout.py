"""A placement under construction: which tasks lie on which node and cards, without saying whose they are.

Tasks of one shape are interchangeable, so jobs are named last (see `placement.exact.layouts.gangs`). A layout may take
more of a node's resources than there is while it is being made; cards and blocks of cards are never over-full.
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
        for name in ("free", "units", "memory", "limits", "slack", "slots"):
            setattr(twin.state, name, getattr(self.state, name).copy())
        twin.state.owners = None if self.state.owners is None else self.state.owners.copy()
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
        layout.add(shape, node, cards)
        return layout

    def add(self, shape: Ints, node: Ints, cards: Sequence[tuple[int, ...]]) -> None:
        """Put many tasks on nodes, as `place` does one by one; see `of_columns`."""
        instance, state = self.instance, self.state
        with collector_paused():
            for one, host, positions in zip(shape.tolist(), node.tolist(), cards, strict=True):
                self.tasks[host].append((one, positions))
        self.count += np.bincount(shape, minlength=len(self.count))
        host = instance.hosts_of(node)
        for r in np.flatnonzero(state.demand.any(axis=0)).tolist():
            np.subtract.at(state.free[:, r], host, state.demand[shape, r])
        lengths = np.fromiter(map(len, cards), dtype=np.int64, count=len(cards))
        card = np.fromiter(itertools.chain.from_iterable(cards), dtype=np.int64, count=int(lengths.sum()))
        row = np.repeat(np.arange(len(cards)), lengths)
        of_task = np.array([(task.units, task.memory) for task in instance.shapes], dtype=np.int64).reshape(-1, 2)[
            shape
        ]
        if instance.slots is not None:
            state.free[instance.hosts :] = state.free[instance.host[instance.hosts :]]
            is_slot = card >= instance.slot_base
            _create(self, shape, node, row[is_slot], card[is_slot] - instance.slot_base)
            row, card = row[~is_slot], card[~is_slot]
        if instance.zoned:
            is_card = card < instance.widest
            _bind(self, shape, node, row[~is_card], card[~is_card] - instance.widest)
            row, card = row[is_card], card[is_card]
        np.subtract.at(state.units, (node[row], card), of_task[row, 0])
        np.subtract.at(state.memory, (node[row], card), of_task[row, 1])
        if len(state.limits):
            state.limits -= limit_use(self, shape, node)
        if state.owners is not None:
            for one, at, positions in zip(shape.tolist(), node.tolist(), cards, strict=True):
                tenant = instance.shapes[one].tenant
                if tenant >= 0:
                    state.owners.change(tenant, at, positions, 1)

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


def _create(layout: Layout, shape: Ints, node: Ints, row: Ints, start: Ints) -> None:
    """Put MIG instances on cards; each row is a task, and its instance starts at a slot."""
    slots, now = layout.instance.slots, layout.state.slots
    assert slots is not None
    profile = np.array([task.profile for task in layout.instance.shapes], dtype=np.int64)[shape[row]]
    for card, p, first in zip(node[row].tolist(), profile.tolist(), start.tolist(), strict=True):
        now[card] = slots.after[now[card], p, first]


def limit_use(layout: Layout, shape: Ints, node: Ints) -> Ints:
    """Return what some tasks use of every limit row that their node counts in."""
    instance, rows = layout.instance, len(layout.state.limits)
    total = np.zeros(rows, dtype=np.int64)
    if not rows:
        return total
    shapes = len(instance.shapes)
    use = np.array([[layout.state.limit_use(s, q) for s in range(shapes)] for q in range(rows)], dtype=np.int64)
    pair, times = np.unique(instance.node_class[node] * shapes + shape, return_counts=True)
    for number, count in zip(pair.tolist(), times.tolist(), strict=True):
        inside = list(instance.classes[number // shapes].limits)
        total[inside] += count * use[inside, number % shapes]
    return total
