"""What is free now: arrays by node and card that placing and removing tasks change.

How cards are shared is stated here once for all methods that build a placement: a task takes `gpus` distinct
cards that admit it, `units` of each, and its device memory fits what is left on each. Shares on two cards are not
a card: 0.4 free here and 0.4 free there hold no task of 0.8.
"""

from __future__ import annotations

import numpy as np

from placement.instance import GPU, Assignment, Bools, Instance, Ints


class State:
    """Free amounts of every node and card of an instance.

    Attributes
    ----------
    free : int array (N, R)
        Free amount of each resource.
    units, memory, kind : int arrays (N, C)
        Free units, free device memory and kind of each card in canonical order; C is the most cards in a node, and
        absent cards have 0 units, 0 memory and kind -1.
    limits : int array (L,)
        What is left of each limit row.
    """

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        widest = max((len(c.cards) for c in instance.classes), default=0)
        count, resources = len(instance.classes), len(instance.resources)
        free = np.array([c.free for c in instance.classes], dtype=np.int64).reshape(count, resources)
        cards = np.zeros((count, widest, 3), dtype=np.int64)
        cards[:, :, 0] = -1
        for k, node_class in enumerate(instance.classes):
            if node_class.cards:
                cards[k, : len(node_class.cards)] = node_class.cards
        of_node = instance.node_class
        self.free: Ints = free[of_node]
        self.kind: Ints = cards[of_node, :, 0]
        self.units: Ints = cards[of_node, :, 1]
        self.memory: Ints = cards[of_node, :, 2]
        self.limits: Ints = np.array([row.capacity for row in instance.limits], dtype=np.int64)
        self.demand: Ints = np.array([s.demand for s in instance.shapes], dtype=np.int64).reshape(
            len(instance.shapes), resources
        )
        kinds = len(instance.card_kinds)
        # one more column, so that kind -1 (no card) looks up False
        self.admits_card: Bools = np.zeros((len(instance.shapes), kinds + 1), dtype=np.bool_)
        self.admits_card[:, :kinds] = instance.admits_card

    def usable(self, shape: int, nodes: Ints) -> Bools:
        """Return which cards of some nodes have room for one task's share, as a (nodes, C) mask."""
        task = self.instance.shapes[shape]
        room: Bools = self.admits_card[shape][self.kind[nodes]]
        room &= self.units[nodes] >= task.units
        room &= self.memory[nodes] >= task.memory
        return room

    def fits(self, shape: int, nodes: Ints) -> Bools:
        """Return which of some nodes can take one more task of a shape; domain limits included."""
        task = self.instance.shapes[shape]
        ok: Bools = self.instance.admits_node[shape][self.instance.node_class[nodes]]
        ok = ok & (self.free[nodes] >= self.demand[shape]).all(axis=1)
        if task.gpus:
            ok &= self.usable(shape, nodes).sum(axis=1) >= task.gpus
        if len(self.limits):
            ok &= self._within_limits(shape, nodes)
        return ok

    def _within_limits(self, shape: int, nodes: Ints) -> Bools:
        full = np.array([self.limit_use(shape, row) > self.limits[row] for row in range(len(self.limits))])
        blocked = np.array([bool(full[list(c.limits)].any()) for c in self.instance.classes], dtype=np.bool_)
        return ~blocked[self.instance.node_class[nodes]]

    def limit_use(self, shape: int, row: int) -> int:
        """Return what one task of a shape takes of a limit row, on a node that counts in it."""
        task = self.instance.shapes[shape]
        resource = self.instance.limits[row].resource
        return task.gpus * task.units if resource == GPU else task.demand[resource]

    def tightest(self, shape: int, node: int) -> tuple[int, ...] | None:
        """Return the cards with least room that can take one task, or None; ties go to the lowest position."""
        task = self.instance.shapes[shape]
        if not task.gpus:
            return ()
        positions = np.flatnonzero(self.usable(shape, np.array([node]))[0])
        if len(positions) < task.gpus:
            return None
        order = np.lexsort((positions, self.memory[node, positions], self.units[node, positions]))
        return tuple(sorted(int(p) for p in positions[order[: task.gpus]]))

    def place(self, shape: int, node: int, cards: tuple[int, ...], sign: int = 1) -> None:
        """Take what one task needs of a node and its cards; with ``sign=-1`` give it back."""
        task = self.instance.shapes[shape]
        self.free[node] -= sign * self.demand[shape]
        for card in cards:
            self.units[node, card] -= sign * task.units
            self.memory[node, card] -= sign * task.memory
        for row in self.instance.classes[self.instance.node_class[node]].limits:
            self.limits[row] -= sign * self.limit_use(shape, row)

    def remove(self, shape: int, node: int, cards: tuple[int, ...]) -> None:
        """Give back what one task took."""
        self.place(shape, node, cards, sign=-1)

    def apply(self, assignment: Assignment) -> None:
        """Place every task of an assignment."""
        instance = self.instance
        for row in range(len(assignment)):
            job_class = instance.job_classes[instance.job_class[assignment.job[row]]]
            shape = job_class.leaves[assignment.leaf[row]].shape
            cards = assignment.cards[assignment.offset[row] : assignment.offset[row + 1]]
            self.place(shape, int(assignment.node[row]), tuple(cards.tolist()))
