"""HiveD's buddy cells: a task takes part of the smallest free cell that is large enough, so large cells stay free."""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar

import numpy as np

from placement.heuristics.nodes import Nodes
from placement.heuristics.ranking import Ranking
from placement.heuristics.rule import MOST, Finder, Rule
from placement.instance import Bools, Instance, Ints


class HivedBuddy(Rule):
    """The node with the smallest free cell that has as many cards as the task asks for, and the first such cards of it.

    The cards of a node, by device index, are cells of 1, 2, 4, 8, …, each of which is halved into two of the next
    smaller size, what is missing in the last ones aside; all cards of a node are a cell, and so are those of each
    domain from the narrowest level to the widest. A cell is free if all cards in it are and no larger cell that holds
    it is. The free cell with the fewest cards is halved until it is as small as the task allows. Where no free
    cell is large enough, the task takes free cards that lie in a cell as small as may be, of the first node with room.
    A group that is tied to a domain goes to that with the fewest idle cards that holds it.

    Source: ``buddyAlloc`` and ``getLowestFreeCellLevel`` in ``pkg/algorithm/cell_allocation.go`` and, where no cell is
    free, ``findGpusInNode`` in ``pkg/algorithm/topology_aware_scheduler.go`` of HiveD (microsoft/hivedscheduler).
    Differs from the source in: there cell types are configured, here they are halves and levels; the whole cluster is
    one virtual cluster, so no cell is reserved and none is safe from others; priorities stop nobody, and work that may
    be stopped is not kept apart; cells are compared by their cards, not by their level; a share of a card goes
    to the card with least room left, one in use before a cell is broken; tasks without cards take the first node; tasks
    bound to NUMA zones get the cards with least room in them; and cards may be exchanged for alike ones when a plan is
    named, if the node lists paths between them (`placement.links`).
    """

    name: ClassVar[str] = "hived-buddy"

    def __init__(self, nodes: Nodes, rng: np.random.Generator) -> None:
        super().__init__(nodes, rng)
        orders = _orders(nodes.instance)
        most = nodes.state.units.shape[1]
        width = 1 << max(0, most - 1).bit_length()
        self.has_small_scores = most < MOST
        self.no_cell = -max(MOST, most + 1)
        """Score of a node without a free cell that is large enough."""
        self._by_device: Ints = np.full((len(orders), width), most, dtype=np.int64)
        """Canonical position of each device, for each way to order a node's cards; `most` for none."""
        for number, devices in enumerate(orders):
            known = np.argsort(devices) if devices else np.arange(most)
            self._by_device[number, : len(known)] = known

    @classmethod
    def first_marks(cls, instance: Instance) -> Ints:
        """Return a number for the order of each node's cards: what is free decides a cell's worth only with it."""
        number = {devices: index for index, devices in enumerate(_orders(instance))}
        return np.array([number[instance.node_cards.get(node, ())] for node in range(instance.nodes)], dtype=np.int64)

    def finder(self) -> Finder:
        """Return what finds the node with the smallest free cell, which may be a whole domain."""
        return _Cells(self)

    def scores(self, shape: int, rows: Ints) -> Ints:
        """Return the cards of the smallest free cell in each node that is large enough, negative."""
        task = self.shapes[shape]
        if not task.gpus:
            return np.zeros(len(rows), dtype=np.int64)
        usable, free, present = self._masks(shape, rows)
        if task.units < self.card_units:
            # a card in use comes before any cell
            in_use = (usable & ~free).sum(axis=1) >= task.gpus
            return np.where(in_use, 0, self._smallest(usable & free, present, task.gpus))
        return self._smallest(usable & free, present, task.gpus)

    def cards(self, shape: int, row: int) -> tuple[int, ...]:
        """Return the first cards of the smallest free cell, halved as often as may be."""
        task = self.shapes[shape]
        if not task.gpus or task.units < self.card_units or self.nodes.instance.zone_sets:
            return super().cards(shape, row)
        usable, free, present = (mask[0] for mask in self._masks(shape, np.array([row])))
        inside = self._cell(usable & free, present, task.gpus)
        size = 1
        while True:
            cells = inside.reshape(-1, size)
            enough = np.flatnonzero(cells.sum(axis=1) >= task.gpus)
            if len(enough):
                start = int(enough[0]) * size
                chosen = start + np.flatnonzero(inside[start : start + size])[: task.gpus]
                return tuple(sorted(self._by_device[self.nodes.marks[row], chosen].tolist()))
            size *= 2

    def is_idle(self, rows: Ints) -> Bools:
        """Return whether the nodes of some rows have cards and all of them are free."""
        units, healthy = self.nodes.state.units[rows], self.healthy[self.nodes.state.kind[rows]]
        present = self.nodes.state.kind[rows] >= 0
        idle: Bools = ((units == self.card_units) & healthy | ~present).all(axis=1) & present.any(axis=1)
        return idle

    def _masks(self, shape: int, rows: Ints) -> tuple[Bools, Bools, Bools]:
        """Return by row and device index which cards the task may use, which are free and which there are."""
        state, order = self.nodes.state, self._by_device[self.nodes.marks[rows]]
        present = state.kind[rows] >= 0
        free = (state.units[rows] == self.card_units) & self.healthy[state.kind[rows]]
        none = np.zeros((len(rows), 1), dtype=np.bool_)
        usable, free, present = (
            np.take_along_axis(np.concatenate([mask, none], axis=1), order, axis=1)
            for mask in (state.usable(shape, rows), free, present)
        )
        return usable, free, present

    def _smallest(self, free: Bools, present: Bools, cards: int) -> Ints:
        """Return the cards of the smallest free cell of each row with so many at least, negative."""
        found: Ints = np.full(len(free), self.no_cell, dtype=np.int64)
        for whole, count in reversed(list(_levels(free, present))):
            size = np.where(whole & (count >= cards), count, MOST_IN_CELL).min(axis=1)
            found = np.where(size < MOST_IN_CELL, -size, found)
        return found

    def _cell(self, free: Bools, present: Bools, cards: int) -> Bools:
        """Return the free cards of one row in its first smallest free cell; all of them where none is large enough."""
        for whole, count in _levels(free[None], present[None]):
            enough = np.flatnonzero(whole[0] & (count[0] >= cards))
            if len(enough):
                size = len(free) // whole.shape[1]
                inside = np.arange(len(free)) // size == enough[np.argmin(count[0][enough])]
                found: Bools = free & inside
                return found
        return free


MOST_IN_CELL = 2**31
"""More cards than any cell has."""


def _levels(free: Bools, present: Bools) -> list[tuple[Bools, Ints]]:
    """Return for the cells of each size, smallest first, which are free and in no larger free one, and their cards."""
    sizes = [1 << power for power in range(free.shape[1].bit_length())]
    absent_or_free: Bools = free | ~present
    whole = [np.asarray(absent_or_free.reshape(len(free), -1, size).all(axis=2), dtype=np.bool_) for size in sizes]
    count: list[Ints] = [present.reshape(len(free), -1, size).sum(axis=2) for size in sizes]
    largest: list[Bools] = [one & ~np.repeat(above, 2, axis=1) for one, above in pairwise(whole)]
    return list(zip([*largest, whole[-1]], count, strict=True))


def _orders(instance: Instance) -> list[tuple[int, ...]]:
    """Return the ways in which the cards of nodes are ordered; an empty one for those in the order of the devices."""
    return list(dict.fromkeys([(), *instance.node_cards.values()]))


class _Cells:
    """Finds the node with the smallest free cell; a node that is wholly free may be part of a larger one."""

    def __init__(self, rule: HivedBuddy) -> None:
        self._rule, self._nodes = rule, rule.nodes
        self._ranking = Ranking(rule)
        nodes = rule.nodes
        order = np.array([nodes.node(row) for row in range(nodes.count)], dtype=np.int64)
        cards = (nodes.state.kind[: nodes.count] >= 0).sum(axis=1)
        self._of_row = nodes.instance.domains[1:-1, order]
        self._cards = cards
        self._size = [_sums(of_row, cards) for of_row in self._of_row]
        self._idle = rule.is_idle(np.arange(nodes.count))
        self._busy = [_sums(of_row, ~self._idle & (cards > 0)) for of_row in self._of_row]
        self._seen = nodes.version[: nodes.count].copy()

    def find(self, shape: int, within: Bools | None) -> int:
        """Return the row of the node for one task, among some if `within` is given; -1 where it fits nowhere."""
        score = self._ranking.of(shape)
        fits = score > self._ranking.no_room
        rows = np.flatnonzero(fits if within is None else fits & within)
        if not len(rows):
            return -1
        if not self._rule.shapes[shape].gpus:
            return int(rows[0])
        self._renew()
        size = score[rows].astype(np.int64)
        none = size == self._rule.no_cell
        whole = self._idle[rows] & (size == -self._cards[rows])
        for of_row, busy, cards in reversed(list(zip(self._of_row, self._busy, self._size, strict=True))):
            whole &= busy[of_row[rows]] == 0
            size = np.where(whole, -cards[of_row[rows]], size)
        return int(rows[np.argmax(np.where(none, np.iinfo(np.int64).min, size))])

    def undone(self, rows: Ints) -> None:
        """Take into account that tasks on some rows were taken back."""
        self._ranking.undone(rows)

    def commit(self) -> None:
        """Take what was placed so far as final."""
        self._ranking.commit()

    def _renew(self) -> None:
        """Look again at the nodes that have changed."""
        version = self._nodes.version[: self._nodes.count]
        changed = np.flatnonzero(version != self._seen)
        self._seen[changed] = version[changed]
        idle = self._rule.is_idle(changed)
        turned = idle != self._idle[changed]
        rows, idle = changed[turned], idle[turned]
        self._idle[rows] = idle
        for of_row, busy in zip(self._of_row, self._busy, strict=True):
            np.add.at(busy, of_row[rows], np.where(idle, -1, 1))
            busy[-1] = 1


def _sums(of_row: Ints, values: Ints | Bools) -> Ints:
    """Return the sum over the rows of each domain, and in the last place 1 for those in none, which is no cell."""
    sums = np.zeros(int(of_row.max(initial=-1)) + 2, dtype=np.int64)
    np.add.at(sums, of_row, values)
    sums[-1] = 1
    return sums
