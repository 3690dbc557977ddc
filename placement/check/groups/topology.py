"""Topology: in every copy of a group, its placed tasks lie relative to one another as the group says.

All of them lie in one domain of the ``required`` level, and those of a slice in one of the slice's. Over the domains
that they use, ``balanced`` lets their numbers differ by one, or by one slice where the group is cut into slices that
lie within such a domain; ``spread`` says how many tasks a domain may hold and how many domains are used at least.
A task on a node that is in no domain of the level keeps none of this. ``preferred`` is a wish.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from placement.check.case.case import Placed
from placement.check.exact import LARGEST, Bools, Ints, numbered, starts
from placement.check.facts.facts import Facts, states
from placement.check.groups.ties import Bond, Group, Tied, groups_of, scattered, tallies
from placement.check.violation import Violation, integer, many
from placement.snapshot import Slice, Spread, Topology

RULE = "topology"


@dataclass(frozen=True, slots=True, eq=False)
class _Stated:
    """Placed tasks of groups with a topology, and what each of the groups states."""

    tied: Tied
    bonds: list[Bond]
    topologies: list[Topology]
    levels: list[str]

    def at(self, level: str, stated: Callable[[Topology], str]) -> Ints:
        """Return the entries whose group states a level."""
        return self.tied.under([stated(topology) == level for topology in self.topologies])

    def says(self, unit: int, end: str, what: str) -> Violation:
        """Return what is wrong with one copy of a group."""
        bond = self.bonds[self.bond_of(unit)]
        path = self.tied.path(unit, f"{bond.sides[0].where}.topology.{end}")
        return Violation(RULE, path, f"{self.tied.name(unit, bond)} {what}")

    def bond_of(self, unit: int) -> int:
        """Return the number of a unit's bond."""
        return int(self.tied.bond[self.tied.first[unit]])


def judge(case: Placed) -> Iterator[Violation]:
    """Yield every copy of a group that lies as its topology forbids, once for each thing it states."""
    bonds = [bond(group) for gang in case.facts.tied for group in groups_of(gang) if states(group.group)]
    if not bonds:
        return
    topologies = [topology for one in bonds if (topology := one.sides[0].group.topology) is not None]
    stated = _Stated(Tied(case, bonds), bonds, topologies, levels_of(case.facts))
    for rule in (_required, _slices, _balanced, _spread):
        yield from rule(stated)


def bond(group: Group) -> Bond:
    """Return what ties the tasks of each copy of a group."""
    return Bond(group.copies, (group,))


def levels_of(facts: Facts) -> list[str]:
    """Return the levels that tasks may be tied at, from wide to narrow."""
    return [*facts.snapshot.topology, "node"]


def _required(stated: _Stated) -> Iterator[Violation]:
    tied = stated.tied
    for level in stated.levels:
        some = stated.at(level, lambda topology: topology.required)
        for unit in scattered(tied.unit[some], tied.domains(level)[some]).tolist():
            places = tied.places(tied.of(unit), level)
            what = f"lies at level {level} in {places}; one domain must hold all of it"
            yield stated.says(unit, "required", what)


# --- slices --------------------------------------------------------------------------------------------------


def _slices(stated: _Stated) -> Iterator[Violation]:
    for index in range(max(len(topology.slices) for topology in stated.topologies)):
        parts = [dict(enumerate(topology.slices)).get(index) for topology in stated.topologies]
        for level in stated.levels:
            chosen = [part if part is not None and part.level == level else None for part in parts]
            yield from _slices_at(stated, level, index, chosen)


def _slices_at(stated: _Stated, level: str, index: int, parts: list[Slice | None]) -> Iterator[Violation]:
    tied = stated.tied
    some = tied.under([part is not None for part in parts])
    number = _numbers([() if part is None else part.sizes for part in parts], tied.bond[some], tied.position[some])
    both, first = numbered([tied.unit[some], number])
    wrong = first[scattered(both, tied.domains(level)[some])]
    units, begin, broken = np.unique(tied.unit[some][wrong], return_index=True, return_counts=True)
    for unit, place, count in zip(units.tolist(), begin.tolist(), broken.tolist(), strict=True):
        part = parts[stated.bond_of(unit)]
        assert part is not None
        which = int(number[wrong[place]])
        low, high = _bounds(part.sizes, which)
        inside = [entry for entry in tied.of(unit) if low <= tied.position[entry] < high]
        what = (
            f"has its slice {integer(which)} (tasks {integer(low)} to {integer(high - 1)}) at level {level} in "
            f"{tied.places(inside, level)}; one domain must hold a slice"
        )
        more = f"; the same goes for {many(count - 1, 'more slice')}" if count > 1 else ""
        yield stated.says(unit, f"slices[{index}]", what + more)


def _numbers(sizes: list[tuple[int, ...]], bond: Ints, position: Ints) -> Ints:
    """Return the slice that each task is in, by its bond's sizes; one size is repeated."""
    repeated = np.array([part[0] if len(part) == 1 else 0 for part in sizes], dtype=np.int64)[bond]
    # the slices of all lists end to end, so that one search finds every task's
    listed = [part if len(part) > 1 else () for part in sizes]
    base = starts(np.array([sum(part) for part in listed], dtype=np.int64))[bond]
    ends = np.cumsum(np.array([size for part in listed for size in part], dtype=np.int64))
    found = np.searchsorted(ends, base + position, side="right") - np.searchsorted(ends, base, side="right")
    return np.where(repeated > 0, position // np.maximum(repeated, 1), found)


def _bounds(sizes: tuple[int, ...], number: int) -> tuple[int, int]:
    """Return the first task of a slice, and the first after it."""
    if len(sizes) == 1:
        return number * sizes[0], (number + 1) * sizes[0]
    return sum(sizes[:number]), sum(sizes[: number + 1])


# --- numbers by domain ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Count:
    """How the tasks of units are divided over domains; 0 and False for units of other groups.

    Attributes
    ----------
    most, least, used : int arrays
        Tasks in the domain that holds most and in the one that holds fewest, and how many domains are used.
    outside : bool array
        Whether a task is in none.
    """

    most: Ints
    least: Ints
    used: Ints
    outside: Bools

    @classmethod
    def of(cls, tied: Tied, some: Ints, level: str) -> _Count:
        """Return the count of some entries."""
        number = len(tied.first)
        unit, domain = tied.unit[some], tied.domains(level)[some]
        units, tasks = tallies(unit, domain)
        most = np.zeros(number, dtype=np.int64)
        np.maximum.at(most, units, tasks)
        least = most.copy()
        np.minimum.at(least, units, tasks)
        outside = np.zeros(number, dtype=np.bool_)
        outside[unit[domain < 0]] = True
        return cls(most, least, np.bincount(units, minlength=number), outside)


def _balanced(stated: _Stated) -> Iterator[Violation]:
    tied = stated.tied
    for level in stated.levels:
        count = _Count.of(tied, stated.at(level, lambda topology: topology.balanced), level)
        inner = stated.levels[stated.levels.index(level) :]
        allowed = np.array([_uneven(topology, inner) for topology in stated.topologies], dtype=np.int64)
        uneven = count.most - count.least > allowed[tied.bond[tied.first]]
        for unit in np.flatnonzero(uneven | count.outside).tolist():
            may = integer(int(allowed[stated.bond_of(unit)]))
            due = [f"numbers may differ by {may} at most"] if uneven[unit] else []
            yield stated.says(unit, "balanced", _lies(tied, unit, level, due, count))


def _uneven(topology: Topology, inner: list[str]) -> int:
    """Return by how much the numbers of tasks in domains may differ, if slices cannot be cut at these levels."""
    return max((part.sizes[0] for part in topology.slices if part.level in inner and len(part.sizes) == 1), default=1)


def _spread(stated: _Stated) -> Iterator[Violation]:
    for index in range(max(len(topology.spread) for topology in stated.topologies)):
        parts = [dict(enumerate(topology.spread)).get(index) for topology in stated.topologies]
        for level in stated.levels:
            chosen = [part if part is not None and part.level == level else None for part in parts]
            yield from _spread_at(stated, level, index, chosen)


def _spread_at(stated: _Stated, level: str, index: int, parts: list[Spread | None]) -> Iterator[Violation]:
    tied = stated.tied
    count = _Count.of(tied, tied.under([part is not None for part in parts]), level)
    bounds = [(None, None) if part is None else (part.max_per_domain, part.min_domains) for part in parts]
    most = np.array([LARGEST if bound is None else bound for bound, _ in bounds], dtype=np.int64)
    fewest = np.array([bound or 0 for _, bound in bounds], dtype=np.int64)
    bond = tied.bond[tied.first]
    crowded, few = count.most > most[bond], count.used < fewest[bond]
    for unit in np.flatnonzero(crowded | few | count.outside).tolist():
        due = []
        if crowded[unit]:
            due.append(f"a domain may hold {many(int(most[bond[unit]]), 'task')} at most")
        if few[unit]:
            due.append(f"{many(int(fewest[bond[unit]]), 'domain')} must be used at least")
        yield stated.says(unit, f"spread[{index}]", _lies(tied, unit, level, due, count))


def _lies(tied: Tied, unit: int, level: str, due: list[str], count: _Count) -> str:
    """Return where a unit lies, and the rules that it breaks."""
    rules = [*due, *(["every task must lie in a domain"] if count.outside[unit] else [])]
    return f"lies at level {level} in {tied.places(tied.of(unit), level)}; {', and '.join(rules)}"
