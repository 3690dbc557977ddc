"""The nodes of a cluster in a fixed order while a greedy rule fills them, with a way back.

Row r is the node that comes r-th in the order, so the first of equally good nodes is the one in the lowest row. After
the nodes come the kinds that they start as, one row each, which never change: what holds of a kind at the start holds
of all its nodes, and what a kind never had room for none of its nodes ever will, since placing only takes away and
undoing gives back what was placed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from placement.heuristics.load import Load, together
from placement.instance import GPU, Apart, Bools, Instance, Ints
from placement.state import State

_Kept = tuple[Ints, Ints, Ints, int]
"""What is free on a node that is shut: resources, units and memory of cards, and the state of a MIG card."""
LEAST_CHANGES = 1024
"""Room for so many changes at the start."""


class Nodes:
    """What is free on every node, and which nodes have changed.

    Attributes
    ----------
    count : int
        Number of nodes.
    state : State
        What is free, by row; it knows no domain limits, which span rows.
    marks : int array
        Bits a rule has left on the node of each row, or the sum of what it has.
    row_class : int array
        Node class of each row.
    kind_row : int array (N,)
        Row of the kind that each node starts as.
    kinds : int array
        Rows of the kinds.
    version : int array
        Changes when the row does.
    changes : int
        Placed tasks, less those taken back; one that is placed where nodes share what is free counts for each of them,
        and one that makes its domain a tenant's for each node in it.
    """

    def __init__(self, instance: Instance, order: Ints, marks: Ints | None = None, add: bool = False) -> None:
        """Start from an instance's free nodes.

        Parameters
        ----------
        instance : Instance
        order : int array (N,)
            The nodes, first one first: among equally good nodes the first is taken.
        marks : int array (N,), optional
            Those of each node at the start.
        add : bool
            Whether marks are added up.
        """
        self.instance = instance
        self.count = len(order)
        self._add = add
        self._node_at: list[int] = order.tolist()
        of_node = instance.node_class[order]
        if marks is None:
            kind_class, kind_of = np.arange(len(instance.classes)), of_node
            self.marks: Ints = np.zeros(self.count + len(kind_class), dtype=np.int64)
        else:
            pairs, kind_of = np.unique(np.stack([of_node, marks[order]], axis=1), axis=0, return_inverse=True)
            kind_class, kind_of = pairs[:, 0], kind_of.reshape(-1)
            self.marks = np.concatenate([marks[order], pairs[:, 1]])
        self.kind_row: Ints = kind_of + self.count
        self.kinds: Ints = np.arange(self.count, self.count + len(kind_class))
        self.row_class = np.concatenate([of_node, kind_class])
        rows = _without_limits(instance, self.row_class)
        self.state = State(replace(rows, apart=_by_row(instance, order, kind_class)))
        self.state.mates = self._mates()
        self._together: tuple[Ints, Ints, Ints] | None = None
        self._use, self._counts_in = _limit_tables(instance)
        self._left = np.array([row.capacity for row in instance.limits], dtype=np.int64)
        self._journal: list[tuple[int, int, tuple[int, ...], int]] = []
        self._changed: Ints = np.zeros(LEAST_CHANGES, dtype=np.int64)
        self._first = 0
        self.version: Ints = np.ones(self.count + len(kind_class), dtype=np.int64)
        self.changes = 0
        self._shut: dict[int, _Kept] = {}

    def _mates(self) -> dict[int, Ints]:
        """Return the rows that share what is free with each row that shares it; see `Instance.mates`."""
        if not self.instance.mates:
            return {}
        row_of = np.empty(self.count, dtype=np.int64)
        row_of[self._node_at] = np.arange(self.count)
        known: dict[int, Ints] = {}
        rows = {}
        for node, mates in self.instance.mates.items():
            rows[int(row_of[node])] = known.setdefault(id(mates), row_of[mates])
        return rows

    # --- looking -------------------------------------------------------------------------------------------------

    def node(self, row: int) -> int:
        """Return the node of a row."""
        return self._node_at[row]

    def changed(self, since: int) -> Ints:
        """Return the rows that changed since there were so many changes, a row perhaps more than once."""
        if self.changes - since > self.count:
            return np.arange(self.count)
        return self._changed[since - self._first : self.changes - self._first]

    def within_limits(self, shape: int) -> Bools | None:
        """Return the nodes whose domain limits leave room for one more task; None when no limit is in the way."""
        if not len(self._left):
            return None
        full = self._use[shape] > self._left
        if not full.any():
            return None
        blocked = np.asarray(self._counts_in[:, full].any(axis=1))
        within: Bools = ~blocked[self.row_class[: self.count]]
        return within

    # --- placing -------------------------------------------------------------------------------------------------

    def place(self, shape: int, row: int, cards: tuple[int, ...], marks: int = 0) -> list[int]:
        """Place one task of a shape on the node of a row and leave marks on it; return the rows that change."""
        self._journal.append((shape, row, cards, int(self.marks[row])))
        rows = self._change(shape, row, cards, 1)
        self.marks[row] = self.marks[row] + marks if self._add else self.marks[row] | marks
        self._note(rows)
        return rows

    def _note(self, rows: list[int]) -> None:
        """Remember that some rows have changed."""
        at = self.changes - self._first
        if at + len(rows) > len(self._changed):
            self._changed = np.concatenate([self._changed, np.zeros(len(self._changed) + len(rows), dtype=np.int64)])
        self._changed[at : at + len(rows)] = rows
        self.changes += len(rows)

    def alter(self, shape: int, row: int, cards: tuple[int, ...], sign: int) -> list[int]:
        """Take what one task takes for good, or with ``sign=-1`` give it back; return the rows that change.

        There must be nothing to take back.
        """
        assert not self._journal
        shut = [one for one in self._beside(row) if one in self._shut] if self._shut else []
        for one in shut:
            self._give_back(one)
        rows = self._change(shape, row, cards, sign)
        for one in shut:
            self._take_all(one)
        self._note_for_good(rows)
        return rows

    def counts_by_row(self) -> bool:
        """Return whether a task takes units of its cards and amounts of its row, and nothing else changes with it."""
        state = self.state
        return not (state.mates or len(self._left) or self._shut or state.owners is not None)

    def alter_all(self, loads: Sequence[Load], signs: Sequence[int]) -> list[int]:
        """Do what `alter` does for some plain loads, with a sign for each; return the rows that change.

        That is where `counts_by_row` is true.
        """
        assert not self._journal
        state, width = self.state, self.state.units.shape[1]
        rows, shapes = np.concatenate([one.tasks for one in loads], axis=1)
        of_tasks = np.repeat(signs, [one.tasks.shape[1] for one in loads])
        np.subtract.at(state.free, rows, of_tasks[:, np.newaxis] * state.demand[shapes])
        cards, units = together(loads, signs)
        np.subtract.at(state.units, (cards // width, cards % width), units)
        changed = np.unique(rows)
        self.version[changed] += 1
        found: list[int] = changed.tolist()
        self._note_for_good(found)
        return found

    def _note_for_good(self, rows: list[int]) -> None:
        """Remember that some rows have changed, without a way back."""
        if self.changes - self._first > self.count + LEAST_CHANGES:
            # whoever has not looked for so long has to look at all rows
            self._changed = self._changed[self.changes - self._first - self.count :].copy()
            self._first = self.changes - self.count
        self._note(rows)

    # --- shutting ------------------------------------------------------------------------------------------------

    def shut(self, rows: list[int]) -> list[int]:
        """Leave nothing free on the nodes of some rows, MIG cards included; return the rows that change."""
        return self._shift(rows, False)

    def reopen(self, rows: list[int]) -> list[int]:
        """Make free again what is not taken on the nodes of some rows that were shut; return the rows that change."""
        return self._shift(rows, True)

    def resume_from(self, other: Nodes) -> list[int]:
        """Take over what is free and what is shut from the same nodes; return the rows that change.

        These have no MIG cards, zones, limits or owners.
        """
        rows = np.flatnonzero(other.version[: self.count] != 1)
        for mine, theirs in zip(self._amounts(), other._amounts(), strict=True):
            mine[rows] = theirs[rows]
        self._shut = {
            row: (free.copy(), units.copy(), memory.copy(), slots)
            for row, (free, units, memory, slots) in other._shut.items()
        }
        self.version[rows] += 1
        changed: list[int] = rows.tolist()
        self._note_for_good(changed)
        return changed

    def _amounts(self) -> tuple[Ints, Ints, Ints]:
        return self.state.free, self.state.units, self.state.memory

    def shut_rows(self) -> list[int]:
        """Return the rows that are shut."""
        return sorted(self._shut)

    def _shift(self, rows: list[int], open_: bool) -> list[int]:
        assert not self._journal
        changed = sorted({one for row in rows for one in self._beside(row) if (one in self._shut) is open_})
        for one in changed:
            if open_:
                self._give_back(one)
            else:
                self._take_all(one)
            self.version[one] += 1
        self._note_for_good(changed)
        return changed

    def _beside(self, row: int) -> list[int]:
        """Return the rows that share what is free with a row, itself among them."""
        mates = self.state.mates.get(row)
        return [row] if mates is None else mates.tolist()

    def _take_all(self, row: int) -> None:
        state = self.state
        slots = int(state.slots[row]) if len(state.slots) else -1
        self._shut[row] = state.free[row].copy(), state.units[row].copy(), state.memory[row].copy(), slots
        state.free[row] = state.units[row] = state.memory[row] = 0
        if slots >= 0:
            state.slots[row] = -1  # as of what is no MIG card, which takes no instance

    def _give_back(self, row: int) -> None:
        state = self.state
        state.free[row], state.units[row], state.memory[row], slots = self._shut.pop(row)
        if slots >= 0:
            state.slots[row] = slots

    def mark(self) -> int:
        """Return the present point in time, for `undo`."""
        return len(self._journal)

    def undo(self, mark: int) -> Ints:
        """Take back everything placed since a point in time and return the rows that this changes."""
        undone: list[int] = []
        while len(self._journal) > mark:
            shape, row, cards, marks = self._journal.pop()
            rows = self._change(shape, row, cards, -1)
            self.marks[row] = marks
            self.changes -= len(rows)
            undone += rows
        return np.array(undone, dtype=np.int64)

    def commit(self) -> None:
        """Make everything placed so far final."""
        self._journal.clear()

    def _change(self, shape: int, row: int, cards: tuple[int, ...], sign: int) -> list[int]:
        """Place a task or take it back, and return the rows that this changes."""
        owners = self.state.owners
        owner = None if owners is None else owners.of(row)
        self.state.place(shape, row, cards, sign)
        changed: int | Ints = self.state.mates.get(row, row)
        if owners is not None and owners.of(row) != owner:
            changed = self._of_domain(row)
        self.version[changed] += 1
        if len(self._left):
            self._left -= sign * self._use[shape] * self._counts_in[self.row_class[row]]
        return [row] if isinstance(changed, int) else changed.tolist()

    def _of_domain(self, row: int) -> Ints:
        """Return all rows in the domain of a row in which tenants are kept apart."""
        apart = self.state.instance.apart
        assert apart is not None
        if self._together is None:
            domain = apart.domain[: self.count]
            order = np.argsort(domain, kind="stable")
            self._together = domain, order, np.searchsorted(domain[order], np.arange(len(apart.owner) + 1))
        domain, order, first = self._together
        return order[first[domain[row]] : first[domain[row] + 1]]


def _by_row(instance: Instance, order: Ints, kind_class: Ints) -> Apart | None:
    """Return within what tenants are kept apart, by row; each kind is a domain of its own, owned as at the start."""
    apart = instance.apart
    if apart is None:
        return None
    first = np.array([one.nodes[0] if len(one.nodes) else 0 for one in instance.classes], dtype=np.int64)
    owner = np.concatenate([apart.owner, apart.owner[apart.domain[first[kind_class]]]])
    kinds = np.arange(len(apart.owner), len(owner))
    return Apart(apart.tenants, np.concatenate([apart.domain[order], kinds]), owner)


def _without_limits(instance: Instance, row_class: Ints) -> Instance:
    """Return an instance with a node per row and without domain limits."""
    if not instance.limits:
        return replace(instance, node_class=row_class)
    classes = tuple(replace(node_class, limits=()) for node_class in instance.classes)
    return replace(instance, node_class=row_class, classes=classes, limits=())


def _limit_tables(instance: Instance) -> tuple[Ints, Bools]:
    """Return what a task of each shape takes of each limit row, and which rows each node class counts in."""
    use = np.zeros((len(instance.shapes), len(instance.limits)), dtype=np.int64)
    counts_in = np.zeros((len(instance.classes), len(instance.limits)), dtype=np.bool_)
    if not instance.limits:
        return use, counts_in
    for s, shape in enumerate(instance.shapes):
        for row, limit in enumerate(instance.limits):
            use[s, row] = shape.of_cards if limit.resource == GPU else shape.demand[limit.resource]
    for k, node_class in enumerate(instance.classes):
        counts_in[k, list(node_class.limits)] = True
    return use, counts_in
