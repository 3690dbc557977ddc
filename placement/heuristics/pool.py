"""Nodes grouped by what is free on them, so that a cluster of equal nodes costs no more than one of them.

A greedy rule looks at what is free on a node and at nothing else, hence it scores kinds of nodes, not nodes. A kind
lives in a slot, a row of a `State`; when a task is placed its node moves to the slot of what is left of it. A slot
whose last node has left keeps its kind, which often comes back, until another kind needs the row. Which node of a slot
is taken is the tie rule: the first in a fixed order.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, replace

import numpy as np

from placement.instance import GPU, Bools, Instance, Ints
from placement.state import State

SCRATCH = 0
"""The row in which a node's next kind is worked out; it never has nodes."""

LEAST_ROWS = 1024
"""Rows at the start: looking through so many costs no more than the call that does it."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What makes two nodes equal to every rule: class, marks, and free amounts as the bytes of a state's row."""

    node_class: int
    marks: int
    free: bytes
    units: bytes
    memory: bytes


NO_KIND = Kind(-1, 0, b"", b"", b"")


@dataclass(frozen=True, slots=True)
class _Step:
    node: int
    before: Kind
    shape: int


class Pool:
    """The nodes of an instance by kind.

    Attributes
    ----------
    state : State
        Row s holds what is free on each node of slot s. Replaced when more rows are needed.
    slot_of : int array (N,)
        Slot of each node.
    size : int array
        Nodes in each slot.
    first : int array
        Lowest rank of a node in each slot; the number of nodes where there is none.
    version : int array
        Changes when a slot gets another kind, so that what was computed for the old one is not used.
    marks : int array
        Bits a rule has left on the nodes of each slot.
    """

    def __init__(self, instance: Instance, order: Ints, marks: Ints | None = None) -> None:
        """Start from an instance's free nodes.

        Parameters
        ----------
        instance : Instance
        order : int array (N,)
            The nodes, first one first: among equally good nodes the first is taken.
        marks : int array (N,), optional
            Bits on each node at the start.
        """
        self.instance = instance
        self.order = order
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        self._rank: list[int] = rank.tolist()
        self._node_at: list[int] = order.tolist()
        self._use, self._counts_in = _limit_tables(instance)
        self._left = np.array([row.capacity for row in instance.limits], dtype=np.int64)
        self._journal: list[_Step] = []
        self._slots: dict[Kind, int] = {}
        self._after: dict[tuple[Kind, int, tuple[int, ...]], Kind] = {}
        self._fill(marks if marks is not None else np.zeros(len(order), dtype=np.int64))

    def _fill(self, marks: Ints) -> None:
        """Give every node its slot."""
        instance, count = self.instance, len(self.order)
        pairs = np.stack([instance.node_class, marks], axis=1)
        kinds, slot_of = np.unique(pairs, axis=0, return_inverse=True)
        slot_of = slot_of.reshape(-1) + 1  # row 0 is the scratch row
        used = len(kinds) + 1
        self.capacity = max(LEAST_ROWS, 2 * used)
        self.node_class = np.zeros(self.capacity, dtype=np.int64)
        self.node_class[1:used] = kinds[:, 0]
        self.marks: Ints = np.zeros(self.capacity, dtype=np.int64)
        self.marks[1:used] = kinds[:, 1]
        self.state = self._rows()
        self.version: Ints = np.ones(self.capacity, dtype=np.int64)
        self.size: Ints = np.bincount(slot_of, minlength=self.capacity).astype(np.int64)
        self.first: Ints = np.full(self.capacity, count, dtype=np.int64)
        self._heaps: list[list[int]] = [[] for _ in range(self.capacity)]
        self._kinds: list[Kind] = [NO_KIND] * self.capacity
        # ranks are appended in ascending order, and an ascending list is a heap
        for rank, slot in enumerate(slot_of[self.order].tolist()):
            self._heaps[slot].append(rank)
        for slot in range(1, used):
            self.first[slot] = self._heaps[slot][0]
            self._kinds[slot] = self._kind(slot)
            self._slots[self._kinds[slot]] = slot
        self.slot_of: Ints = slot_of.astype(np.int64)
        self._vacant = deque(range(used, self.capacity))

    def _rows(self) -> State:
        """Return a state with one row per slot; domain limits span slots, so they are kept here instead."""
        classes = tuple(replace(node_class, limits=()) for node_class in self.instance.classes)
        return State(replace(self.instance, node_class=self.node_class, classes=classes, limits=()))

    # --- looking -------------------------------------------------------------------------------------------------

    def within_limits(self, shape: int) -> Bools | None:
        """Return the slots whose domain limits leave room for one more task; None when no limit is in the way."""
        full = self._use[shape] > self._left
        if not full.any():
            return None
        blocked = np.asarray(self._counts_in[:, full].any(axis=1))
        return ~blocked[self.node_class]

    def nodes(self, slot: int) -> Ints:
        """Return the nodes of a slot, ascending."""
        return np.flatnonzero(self.slot_of == slot)

    def first_node(self, slot: int) -> int:
        """Return the node of a slot that comes first in the fixed order."""
        return self._node_at[int(self.first[slot])]

    # --- placing -------------------------------------------------------------------------------------------------

    def place(self, shape: int, node: int, cards: tuple[int, ...], marks: int = 0) -> None:
        """Place one task of a shape on a node and leave marks on it."""
        slot = int(self.slot_of[node])
        before = self._kinds[slot]
        after = self._after.get((before, shape, cards))
        if after is None:
            after = self._after[before, shape, cards] = self._kind_after(slot, shape, cards, marks)
        if len(self._left):
            self._left -= self._use[shape] * self._counts_in[before.node_class]
        self._move(node, after)
        self._journal.append(_Step(node, before, shape))

    def mark(self) -> int:
        """Return the present point in time, for `undo`."""
        return len(self._journal)

    def undo(self, mark: int) -> None:
        """Take back everything placed since a point in time."""
        while len(self._journal) > mark:
            step = self._journal.pop()
            if len(self._left):
                self._left += self._use[step.shape] * self._counts_in[step.before.node_class]
            self._move(step.node, step.before)

    def commit(self) -> None:
        """Make everything placed so far final."""
        self._journal.clear()

    def _kind_after(self, slot: int, shape: int, cards: tuple[int, ...], marks: int) -> Kind:
        """Return what is left of a node of a slot after a task, worked out in the scratch row."""
        state = self.state
        self.node_class[SCRATCH] = self.node_class[slot]
        self.marks[SCRATCH] = self.marks[slot] | marks
        for table in (state.free, state.units, state.memory, state.kind):
            table[SCRATCH] = table[slot]
        state.place(shape, SCRATCH, cards)
        return self._kind(SCRATCH)

    def _kind(self, slot: int) -> Kind:
        state = self.state
        return Kind(
            int(self.node_class[slot]),
            int(self.marks[slot]),
            state.free[slot].tobytes(),
            state.units[slot].tobytes(),
            state.memory[slot].tobytes(),
        )

    def _move(self, node: int, kind: Kind) -> None:
        rank, old = self._rank[node], int(self.slot_of[node])
        new = self._slots.get(kind)
        if new is None:
            new = self._new_slot(kind)
        self.slot_of[node] = new
        self.size[new] += 1
        heapq.heappush(self._heaps[new], rank)
        self.first[new] = min(int(self.first[new]), rank)
        self.size[old] -= 1
        if not self.size[old]:
            self._heaps[old] = []
            self.first[old] = len(self.order)
            self._vacant.append(old)
        elif self.first[old] == rank:
            heap = self._heaps[old]
            while self.slot_of[self._node_at[heap[0]]] != old:  # nodes that have left are still in the heap
                heapq.heappop(heap)
            self.first[old] = heap[0]

    def _new_slot(self, kind: Kind) -> int:
        slot, state = self._vacant_slot(), self.state
        self._slots.pop(self._kinds[slot], None)
        self.node_class[slot] = kind.node_class
        self.marks[slot] = kind.marks
        state.free[slot] = np.frombuffer(kind.free, dtype=np.int64)
        state.units[slot] = np.frombuffer(kind.units, dtype=np.int64)
        state.memory[slot] = np.frombuffer(kind.memory, dtype=np.int64)
        cards = self.instance.classes[kind.node_class].cards
        state.kind[slot] = -1
        state.kind[slot, : len(cards)] = [card[0] for card in cards]
        self.version[slot] += 1
        self._kinds[slot] = kind
        self._slots[kind] = slot
        return slot

    def _vacant_slot(self) -> int:
        """Return the slot that has been without nodes for longest."""
        while self._vacant:
            slot = self._vacant.popleft()
            if not self.size[slot]:  # else its kind came back
                return slot
        self._grow()
        return self._vacant.popleft()

    def _grow(self) -> None:
        old, state = self.capacity, self.state
        self.capacity *= 2
        self.node_class = np.concatenate([self.node_class, np.zeros(old, dtype=np.int64)])
        self.marks = np.concatenate([self.marks, np.zeros(old, dtype=np.int64)])
        self.size = np.concatenate([self.size, np.zeros(old, dtype=np.int64)])
        self.version = np.concatenate([self.version, np.ones(old, dtype=np.int64)])
        self.first = np.concatenate([self.first, np.full(old, len(self.order), dtype=np.int64)])
        self._heaps += [[] for _ in range(old)]
        self._kinds += [NO_KIND] * old
        self.state = self._rows()
        self.state.free[:old] = state.free
        self.state.units[:old] = state.units
        self.state.memory[:old] = state.memory
        self.state.kind[:old] = state.kind
        self._vacant.extend(range(old, self.capacity))


def _limit_tables(instance: Instance) -> tuple[Ints, Bools]:
    """Return what a task of each shape takes of each limit row, and which rows each node class counts in."""
    use = np.zeros((len(instance.shapes), len(instance.limits)), dtype=np.int64)
    for s, shape in enumerate(instance.shapes):
        for row, limit in enumerate(instance.limits):
            use[s, row] = shape.gpus * shape.units if limit.resource == GPU else shape.demand[limit.resource]
    counts_in = np.zeros((len(instance.classes), len(instance.limits)), dtype=np.bool_)
    for k, node_class in enumerate(instance.classes):
        counts_in[k, list(node_class.limits)] = True
    return use, counts_in
