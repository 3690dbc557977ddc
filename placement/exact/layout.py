"""A placement under construction: which tasks lie on which node and cards, without saying whose they are.

Tasks of one shape are interchangeable, so jobs are named last (see `placement.exact.gangs`). A layout may take more
of a node's resources than there is while it is being made; cards and blocks of cards are never over-full.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from placement.instance import Assignment, Instance, Ints
from placement.state import State

Spot = tuple[int, tuple[int, ...]]
"""A task's shape and cards on some node."""


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
        return np.flatnonzero((self.state.free < 0).any(axis=1))

    def copy(self) -> Layout:
        """Return an independent copy."""
        twin = Layout.__new__(Layout)
        twin.instance = self.instance
        twin.state = State(self.instance)
        for name in ("free", "units", "memory", "limits"):
            setattr(twin.state, name, getattr(self.state, name).copy())
        twin.tasks = [list(spots) for spots in self.tasks]
        twin.count = self.count.copy()
        return twin

    @classmethod
    def of(cls, instance: Instance, assignment: Assignment) -> Layout:
        """Return the layout of an assignment."""
        layout = cls(instance)
        class_of = instance.job_class[assignment.job].tolist()
        offset, cards = assignment.offset.tolist(), assignment.cards.tolist()
        for row, (number, leaf, node) in enumerate(
            zip(class_of, assignment.leaf.tolist(), assignment.node.tolist(), strict=True)
        ):
            shape = instance.job_classes[number].leaves[leaf].shape
            layout.place(shape, node, tuple(cards[offset[row] : offset[row + 1]]))
        return layout
