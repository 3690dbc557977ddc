"""The domains of a cluster while a greedy rule fills it: which rows lie in one, and how many tasks each could take."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from placement.heuristics.nodes import Nodes
from placement.instance import ANY, NO_INTS, Bools, Instance, Ints, Shape
from placement.mig.slots import Slots

MOST_TABLES = 64
"""Tables kept; the one used least recently is given up for another."""
MOST_TOUCHED = 1 << 16
"""Changes that are remembered besides one for each node."""
IDLE = -1
"""Key of the table of idle card units; those from 0 on are shapes."""
MOST_TASKS = 1 << 31
"""Tasks that a node is taken to have room for, if what they ask for has no limit there."""


class Region:
    """Some rows, ascending, or all of them.

    Parameters
    ----------
    count : int
        Number of all rows.
    rows : int array, optional
    mask : bool array, optional
        The rows as a mask over all. Where neither is given, it is all rows.
    level : int
        Narrowest level of which the rows are known to lie in one domain.
    """

    def __init__(self, count: int, rows: Ints | None = None, mask: Bools | None = None, level: int = 0) -> None:
        self.level = level
        self.everything = rows is None and mask is None
        self._count, self._rows, self._mask = count, rows, mask

    @property
    def mask(self) -> Bools | None:
        """The rows as a mask over all, or None for all."""
        if self._mask is None and self._rows is not None:
            self._mask = np.zeros(self._count, dtype=np.bool_)
            self._mask[self._rows] = True
        return self._mask

    @property
    def rows(self) -> Ints:
        """The rows."""
        if self._rows is None:
            self._rows = np.arange(self._count) if self._mask is None else np.flatnonzero(self._mask)
        return self._rows

    def among(self, domain: Ints, chosen: Bools) -> Region:
        """Return the part whose rows lie in some domains, given the domain of each row of all, or the last for none."""
        if self._rows is not None and not self.everything:
            return Region(self._count, self._rows[chosen[domain[self._rows]]], level=self.level)
        mask = chosen[domain]
        return Region(self._count, mask=mask if self._mask is None else mask & self._mask, level=self.level)

    def meet(self, other: Region) -> Region:
        """Return what lies in both."""
        if self.everything or other.mask is None:
            return other if self.everything else self
        return Region(self._count, self.rows[other.mask[self.rows]], level=max(self.level, other.level))


@dataclass(frozen=True, slots=True)
class Need:
    """Tasks of one shape to be placed in one domain, cut into slices of one size each from wide to narrow."""

    shape: int
    tasks: int
    slices: tuple[tuple[int, int], ...] = ()


@dataclass(slots=True)
class _Table:
    values: Ints
    sums: dict[int, Ints]
    seen: int


def node_rows(instance: Instance, order: Ints) -> Ints:
    """Return the number of the node of each row, given what the rows are: that of its first row.

    Nodes are numbered by row, so that among equal ones the first in the fixed order is taken; MIG cards are rows of
    their own, and of one node with their host.
    """
    if instance.slots is None:
        return np.arange(len(order), dtype=np.int64)
    _, first, number = np.unique(instance.hosts_of(order), return_index=True, return_inverse=True)
    found: Ints = first[number.reshape(-1)]
    return found


def most_instances(slots: Slots) -> Ints:
    """Return how many instances of each profile a card in each state has room for, if there are no others.

    Returns
    -------
    int array (Z + 1, P)
        The last row, of what is no MIG card, is 0.
    """
    most = np.zeros((len(slots.cards) + 1, len(slots.profiles)), dtype=np.int64)
    # every instance takes a slot, so what a state leads to has more of them taken
    for state in sorted(range(len(slots.cards)), key=lambda z: -slots.cards[z].bits.bit_count()):
        for profile, leads_to in enumerate(slots.after[state]):
            reached = leads_to[leads_to >= 0]
            if len(reached):
                most[state, profile] = 1 + most[reached, profile].max()
    return most


class Domains:
    """What is known of every domain.

    Parameters
    ----------
    nodes : Nodes

    Attributes
    ----------
    of_row, of_node : int arrays (levels, N)
        Number of the domain of each row, and of each node; -1 for none.
    levels : int
        How many levels there are.
    everywhere, nowhere : Region
    """

    def __init__(self, nodes: Nodes) -> None:
        instance = nodes.instance
        self._nodes = nodes
        order = np.array([nodes.node(row) for row in range(nodes.count)], dtype=np.int64)
        self.of_row: Ints = instance.domains[:, order]
        self.of_row[-1] = node_rows(instance, order)
        self.of_node = np.empty_like(self.of_row)
        self.of_node[:, order] = self.of_row
        self.levels = len(instance.levels)
        self._counts: list[int] = (self.of_row.max(axis=1, initial=-1) + 1).tolist()
        self.everywhere = Region(nodes.count)
        self.nowhere = Region(nodes.count, np.zeros(0, dtype=np.int64))
        self._holds = NO_INTS if instance.slots is None else most_instances(instance.slots)
        self._healthy = np.array([kind.healthy for kind in instance.card_kinds] + [False], dtype=np.bool_)
        self._touched: list[int] = []
        self._tables: dict[int, _Table] = {}
        self._members: dict[int, tuple[Ints, Ints]] = {}

    def touch(self, rows: list[int]) -> None:
        """Take into account that tasks on some rows were placed or taken back."""
        if len(self._touched) > MOST_TOUCHED + self._nodes.count:
            # whoever has not looked for so long makes its table anew
            self._tables.clear()
            self._touched.clear()
        if self._tables:
            self._touched += rows

    def inside(self, level: int, domain: int, region: Region) -> Region:
        """Return the rows of a region that lie in a domain."""
        if not region.everything:
            rows = region.rows[self.of_row[level][region.rows] == domain]
            return Region(self._nodes.count, rows, level=max(level, region.level))
        if level not in self._members:
            order = np.argsort(self.of_row[level], kind="stable")
            first = np.searchsorted(self.of_row[level][order], np.arange(self._counts[level] + 1))
            self._members[level] = order, first
        order, first = self._members[level]
        return Region(self._nodes.count, order[first[domain] : first[domain + 1]], level=level)

    def within(self, level: int, domains: list[int], region: Region) -> Region:
        """Return the rows of a region that lie in one of some domains."""
        chosen = np.zeros(self._counts[level] + 1, dtype=np.bool_)
        chosen[domains] = True
        return region.among(self.of_row[level], chosen)

    def without(self, level: int, shut: Iterable[int], region: Region, *, others: bool = False) -> Region:
        """Return the rows of a region that lie in no domain of some, and in one at all unless `others` may be, too."""
        chosen = np.ones(self._counts[level] + 1, dtype=np.bool_)
        chosen[[*shut]] = False
        chosen[-1] = others
        return region.among(self.of_row[level], chosen)

    def all(self, level: int, region: Region) -> Ints:
        """Return the domains of a level in a region."""
        return self._by_domain(level, IDLE, region)[0]

    def room(self, level: int, need: Need, region: Region) -> tuple[Ints, Ints]:
        """Return the domains of a level in a region and how many tasks each could take, at most.

        Tasks that are cut into slices of narrower levels only count in whole slices.
        """
        slices = [part for part in need.slices if part[0] > level]
        levels = [level, *(inner for inner, _ in slices)]
        domains, room = self._by_domain(levels[-1], need.shape, region)
        for (inner, size), outer in reversed(list(zip(slices, levels, strict=False))):
            room = room // size * size
            above = self.of_row[outer][self._first_row(inner, domains, region)]
            domains, place = np.unique(above, return_inverse=True)
            room = np.bincount(place.reshape(-1), weights=room, minlength=len(domains)).astype(np.int64)
            domains, room = domains[domains >= 0], room[domains >= 0]
        return domains, room

    def idle(self, level: int, domains: Ints, region: Region) -> Ints:
        """Return the idle card units of some domains, as far as they lie in a region."""
        known, idle = self._by_domain(level, IDLE, region)
        found: Ints = idle[np.searchsorted(known, domains)]
        return found

    def _first_row(self, level: int, domains: Ints, region: Region) -> Ints:
        """Return a row of each domain that `_by_domain` has given."""
        if not region.everything:
            known, index = np.unique(self.of_row[level][region.rows], return_index=True)
            return region.rows[index[np.searchsorted(known, domains)]]
        self.inside(level, 0, region)
        order, first = self._members[level]
        return order[first[domains]]

    def _by_domain(self, level: int, key: int, region: Region) -> tuple[Ints, Ints]:
        """Return the domains of a level in a region, ascending, and the sum of a table over the rows of each."""
        table = self._table(key)
        if region.everything:
            if level not in table.sums:
                sums = np.zeros(self._counts[level] + 1, dtype=np.int64)
                np.add.at(sums, self.of_row[level], table.values)  # rows in no domain count in the last place
                table.sums[level] = sums
            return np.arange(len(table.sums[level]) - 1), table.sums[level][:-1]
        domains, place = np.unique(self.of_row[level][region.rows], return_inverse=True)
        sums = np.bincount(place.reshape(-1), weights=table.values[region.rows], minlength=len(domains))
        known = domains >= 0
        return domains[known], sums[known].astype(np.int64)

    def _table(self, key: int) -> _Table:
        """Return the table of a shape, or of idle card units, brought up to date."""
        table = self._tables.pop(key, None)
        if table is None:
            if len(self._tables) >= MOST_TABLES:
                del self._tables[next(iter(self._tables))]
            values = self._values(key, np.arange(self._nodes.count))
            table = _Table(values, {}, len(self._touched))
        elif table.seen < len(self._touched):
            rows = np.unique(np.array(self._touched[table.seen :], dtype=np.int64))
            values = self._values(key, rows)
            for level, sums in table.sums.items():
                np.add.at(sums, self.of_row[level][rows], values - table.values[rows])
            table.values[rows] = values
            table.seen = len(self._touched)
        self._tables[key] = table  # those used last come last
        return table

    def _values(self, key: int, rows: Ints) -> Ints:
        state = self._nodes.state
        if key == IDLE:
            idle: Ints = np.where(self._healthy[state.kind[rows]], state.units[rows], 0).sum(axis=1)
            return idle
        shape = self._nodes.instance.shapes[key]
        tasks = np.full(len(rows), MOST_TASKS, dtype=np.int64)
        for number, amount in enumerate(shape.demand):
            if amount:
                np.minimum(tasks, state.free[:, number][rows] // amount, out=tasks)
        if shape.gpus:
            usable = state.usable(key, rows)
            np.minimum(tasks, self._by_cards(shape, rows, usable).sum(axis=1) // shape.gpus, out=tasks)
        if shape.profile >= 0:
            np.minimum(tasks, self._holds[state.slots[rows], shape.profile], out=tasks)
        if shape.numa != ANY and state.instance.zone_sets:
            self._within_zones(key, shape, rows, tasks)
        tasks[~self._nodes.instance.admits_node[key][self._nodes.row_class[rows]]] = 0
        let_in = state.let_in(key, rows)
        if let_in is not None:
            tasks[~let_in] = 0
        np.maximum(tasks, 0, out=tasks)
        return tasks

    def _by_cards(self, shape: Shape, rows: Ints, usable: Bools) -> Ints:
        """Return how many shares of a task each usable card of each row has room for."""
        state = self._nodes.state
        shares: Ints = np.where(usable, state.units[rows] // shape.units, 0)
        if shape.memory:
            np.minimum(shares, state.memory[rows] // shape.memory, out=shares, where=usable)
        return shares

    def _within_zones(self, key: int, shape: Shape, rows: Ints, tasks: Ints) -> None:
        """Lower how many tasks fit where they are bound to NUMA zones, to what all sets of so many zones hold, at most.

        Every task lies in one of these sets.
        """
        state = self._nodes.state
        bound = state.instance.bound[key][self._nodes.row_class[rows]]
        some = np.flatnonzero(bound)
        within = np.zeros(len(some), dtype=np.int64)
        at = rows[some]
        shares = self._by_cards(shape, at, state.usable(key, at)) if shape.gpus else None
        for number, bits in enumerate(state.instance.zone_sets):
            fits = np.where(bound[some] == bits.bit_count(), tasks[some], 0)
            fits[bits >> state.zone_count(at) != 0] = 0
            if shares is not None:
                inside = (bits >> state.zone[at] & 1) * shares
                np.minimum(fits, inside.sum(axis=1) // shape.gpus, out=fits)
            for resource, amount in enumerate(shape.demand):
                if amount:
                    np.minimum(fits, state.slack[at, number, resource] // amount, out=fits)
            within += fits
        tasks[some] = np.minimum(tasks[some], within)
