"""What is free now: arrays by node and card that placing and removing tasks change.

How cards are shared is stated here once for all methods that build a placement: a task takes `gpus` distinct
cards that admit it, `units` of each, and its device memory fits what is left on each. Shares on two cards are not
a card: 0.4 free here and 0.4 free there hold no task of 0.8.
"""

from __future__ import annotations

from operator import gt

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
        # stored column by column, (R, N) and (C, N): what is done to many nodes at once then runs along memory, which
        # for sums and tests over the few columns is several times faster
        self.free: Ints = free.T.take(of_node, axis=1).T
        self.kind: Ints = cards[:, :, 0].T.take(of_node, axis=1).T
        self.units: Ints = cards[:, :, 1].T.take(of_node, axis=1).T
        self.memory: Ints = cards[:, :, 2].T.take(of_node, axis=1).T
        self.limits: Ints = np.array([row.capacity for row in instance.limits], dtype=np.int64)
        self.demand: Ints = np.array([s.demand for s in instance.shapes], dtype=np.int64).reshape(
            len(instance.shapes), resources
        )
        self._asked = list(self.demand[:, :, None])  # a column each, to compare many nodes with
        kinds = len(instance.card_kinds)
        # one more column, so that kind -1 (no card) looks up False
        self.admits_card: Bools = np.zeros((len(instance.shapes), kinds + 1), dtype=np.bool_)
        self.admits_card[:, :kinds] = instance.admits_card
        self._admits: list[list[bool]] = self.admits_card.tolist()

    def usable(self, shape: int, nodes: Ints) -> Bools:
        """Return which cards of some nodes have room for one task's share, as a (nodes, C) mask."""
        return self._usable(shape, nodes).T

    def _usable(self, shape: int, nodes: Ints) -> Bools:
        """Return the same with the cards first: (C, nodes)."""
        task = self.instance.shapes[shape]
        room: Bools = self.units.T.take(nodes, axis=1) >= task.units
        room &= self.admits_card[shape].take(self.kind.T.take(nodes, axis=1))
        if task.memory:
            room &= self.memory.T.take(nodes, axis=1) >= task.memory
        return room

    def has_room(self, shape: int, nodes: Ints) -> Bools:
        """Return which of some nodes have free what one more task takes; filters on nodes and limits aside."""
        task = self.instance.shapes[shape]
        ok: Bools = np.logical_and.reduce(self.free.T.take(nodes, axis=1) >= self._asked[shape])
        if task.gpus == 1:
            ok &= np.logical_or.reduce(self._usable(shape, nodes))
        elif task.gpus:
            ok &= self._usable(shape, nodes).sum(axis=0) >= task.gpus
        return ok

    def _with_room(self, shape: int, node: int) -> list[tuple[int, int, int]]:
        """Return free units, free memory and position of each card of a node with room for one task's share."""
        task, admits = self.instance.shapes[shape], self._admits[shape]
        asked_units, asked_memory = task.units, task.memory
        cards = zip(self.units[node].tolist(), self.memory[node].tolist(), self.kind[node].tolist(), strict=True)
        return [
            (free, memory, position)
            for position, (free, memory, kind) in enumerate(cards)
            if free >= asked_units and memory >= asked_memory and admits[kind]
        ]

    def fits(self, shape: int, nodes: Ints) -> Bools:
        """Return which of some nodes can take one more task of a shape; domain limits included."""
        ok: Bools = self.instance.admits_node[shape][self.instance.node_class[nodes]]
        ok = ok & self.has_room(shape, nodes)
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
        gpus = self.instance.shapes[shape].gpus
        if not gpus:
            return ()
        cards = self._with_room(shape, node)
        if len(cards) < gpus:
            return None
        if gpus == 1:
            return (min(cards)[2],)
        cards.sort()
        return tuple(sorted([position for _, _, position in cards[:gpus]]))

    def spot(self, shape: int, node: int) -> tuple[int, ...] | None:
        """Return the same, or None too if the node is short of a resource; filters on nodes and limits aside."""
        if any(map(gt, self.instance.shapes[shape].demand, self.free[node].tolist())):
            return None
        return self.tightest(shape, node)

    def place(self, shape: int, node: int, cards: tuple[int, ...], sign: int = 1) -> None:
        """Take what one task needs of a node and its cards; with ``sign=-1`` give it back."""
        task = self.instance.shapes[shape]
        self.free[node] -= sign * self.demand[shape]
        for card in cards:
            self.units[node, card] -= sign * task.units
            if task.memory:
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
