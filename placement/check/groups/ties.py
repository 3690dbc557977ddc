"""Which placed tasks are judged together, in columns: those of a copy of a group, or of two groups of one copy.

Only tasks of jobs that state a topology or an affinity are looked at. The tasks of a copy are numbered from 0: member
after member, and within a member group after group, in the order of the file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from placement.check.case.case import Placed
from placement.check.exact import Ints, numbered, starts
from placement.check.facts.kinds import Gang
from placement.check.violation import integer, many, show
from placement.snapshot import TaskGroup

_SHOWN = 5

Step = tuple[int, int, int]
"""On the way from a group to a leaf: tasks of the leaf and all tasks in one member, and all tasks before the leaf's."""


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """A group of a gang.

    Attributes
    ----------
    path : str
        Names from the top group down, joined by ``/``.
    where : str
        Its place in the snapshot, from the job on.
    group : TaskGroup
    copies : int
        How many there are of it in a job.
    tasks : int
        In one copy.
    leaves : tuple of (int, tuple of Step)
        Numbers of the leaves in it, and the way to each.
    """

    path: str
    where: str
    group: TaskGroup
    copies: int
    tasks: int
    leaves: tuple[tuple[int, tuple[Step, ...]], ...]


def groups_of(gang: Gang) -> Iterator[Group]:
    """Yield every group of a gang, before the groups in it."""
    return _walk(gang, gang.job.groups, "", "", 1)


def _walk(gang: Gang, groups: tuple[TaskGroup, ...], above: str, where: str, copies: int) -> Iterator[Group]:
    for number, group in enumerate(groups):
        path, place = f"{above}{group.name}", f"{where}.groups[{number}]"
        if group.task is not None:
            yield Group(path, place, group, copies, group.count, ((gang.leaves[path].number, ()),))
            continue
        below = list(_walk(gang, group.groups, f"{path}/", place, copies * group.count))
        children = [child for child in below if child.path.count("/") == path.count("/") + 1]
        member = sum(child.tasks for child in children)
        leaves, before = [], 0
        for child in children:
            for leaf, steps in child.leaves:
                # of the leaf in one copy of the child: as many members as the child has, and what is in each
                inside = child.group.count * steps[0][0] if steps else child.tasks
                leaves.append((leaf, ((inside, member, before), *steps)))
            before += child.tasks
        yield Group(path, place, group, copies, group.count * member, tuple(leaves))
        yield from below


@dataclass(frozen=True, slots=True, eq=False)
class Bond:
    """Tasks that are judged together: those of one copy of a group, or of two groups of one copy.

    Attributes
    ----------
    copies : int
        How often there are such tasks in a job.
    sides : tuple of Group
        One group or two.
    """

    copies: int
    sides: tuple[Group, ...]


class Tied:
    """The placed tasks under some bonds, once for each bond; an entry is one of them.

    Attributes
    ----------
    placed : Placed
    row : int array
        Of the task.
    bond, side, copy : int arrays
        Under which bond, in which of its groups, and in which copy.
    unit, first : int arrays
        Number of the job, bond and copy together, in this order; and an entry of each unit.
    """

    def __init__(self, placed: Placed, bonds: Sequence[Bond]) -> None:
        self.placed = placed
        leaves, rows = placed.facts.leaves, placed.rows
        strands = sorted(
            (leaf, bond, side, leaves[leaf].wanted // what.copies, steps)
            for bond, what in enumerate(bonds)
            for side, group in enumerate(what.sides)
            for leaf, steps in group.leaves
        )
        leaf, of_bond, of_side, inside = _columns([strand[:4] for strand in strands])
        self._steps = [strand[4] for strand in strands]
        times = np.bincount(leaf, minlength=len(leaves))[rows.leaf]
        self.row: Ints = np.repeat(np.arange(len(rows), dtype=np.int64), times)
        within = np.arange(len(self.row), dtype=np.int64) - np.repeat(starts(times)[:-1], times)
        self._strand: Ints = np.searchsorted(leaf, rows.leaf[self.row]) + within
        self.bond, self.side = of_bond[self._strand], of_side[self._strand]
        self.copy, self._rest = np.divmod(rows.index[self.row], inside[self._strand])
        self.unit, self.first = numbered([placed.job[self.row], self.bond, self.copy])
        self._domains: dict[str, Ints] = {}

    @cached_property
    def position(self) -> Ints:
        """Number of each task within its copy."""
        rest, total = self._rest.copy(), np.zeros(len(self.row), dtype=np.int64)
        for depth in range(max(map(len, self._steps), default=0)):
            # below its last step the rest is a task of the leaf itself: no member is whole
            steps = [way[depth] if depth < len(way) else (2**62, 0, 0) for way in self._steps]
            one, member, before = (column[self._strand] for column in _columns(steps, 3))
            number, rest = np.divmod(rest, one)
            total += number * member + before
        return total + rest

    def domains(self, level: str) -> Ints:
        """Return a number for the domain that each task is in; -1 where its node is in none of the level."""
        if level not in self._domains:
            facts, rows = self.placed.facts, self.placed.rows
            spec = rows.spec[self.row]
            if level == "node":
                self._domains[level] = facts.node_names.first[spec] + rows.copy[self.row]
            else:
                entries, place = np.unique(spec, return_inverse=True)
                names = [facts.snapshot.nodes[entry].domains.get(level) for entry in entries.tolist()]
                known = {name: number for number, name in enumerate(dict.fromkeys(names))}
                codes = np.array([-1 if name is None else known[name] for name in names], dtype=np.int64)
                self._domains[level] = codes[place.reshape(-1)]
        return self._domains[level]

    def under(self, chosen: Sequence[bool]) -> Ints:
        """Return the entries under some bonds."""
        return np.flatnonzero(np.array(chosen, dtype=np.bool_)[self.bond])

    # --- words -----------------------------------------------------------------------------------------------

    def path(self, unit: int, end: str) -> str:
        """Return the place in the snapshot of what a unit's job states."""
        return f"jobs[{self.placed.rows.job[self.row[self.first[unit]]]}]{end}"

    def name(self, unit: int, bond: Bond) -> str:
        """Return the name of a unit: its job, and its group or groups in a copy."""
        first = int(self.first[unit])
        groups = " and ".join(f"group {show(group.path)}" for group in bond.sides)
        which = f"copy {integer(int(self.copy[first]))} of " if bond.copies > 1 else ""
        return f"job {show(self.placed.job_name(int(self.row[first])))}: {which}{groups}"

    def places(self, entries: Iterable[int], level: str) -> str:
        """Return the domains that some tasks are in, and how many are in each."""
        found: Counter[str] = Counter()
        for entry in entries:
            row = int(self.row[entry])
            name = self.placed.facts.snapshot.nodes[int(self.placed.rows.spec[row])].domains.get(level)
            if level == "node":
                found[show(self.placed.node_name(row))] += 1
            else:
                found[f"no {show(level)}" if name is None else show(name)] += 1
        listed = [f"{name} ({many(number, 'task')})" for name, number in list(found.items())[:_SHOWN]]
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        return ", ".join(listed) + more

    def of(self, unit: int) -> list[int]:
        """Return the entries of a unit, in the order of the plan."""
        order, begin = self._order
        return sorted(order[begin[unit] : begin[unit + 1]].tolist())

    @cached_property
    def _order(self) -> tuple[Ints, Ints]:
        return np.argsort(self.unit, kind="stable"), starts(np.bincount(self.unit, minlength=len(self.first)))


def _columns(rows: Sequence[tuple[int, ...]], width: int = 4) -> Ints:
    return np.array(rows, dtype=np.int64).reshape(-1, width).T


def scattered(unit: Ints, domain: Ints) -> Ints:
    """Return the units, ascending, of which no one domain holds all tasks."""
    order = np.lexsort((domain, unit))
    of, where = unit[order], domain[order]
    apart = (of[1:] == of[:-1]) & (where[1:] != where[:-1])
    return np.unique(np.concatenate([of[1:][apart], of[where < 0]]))


def tallies(unit: Ints, domain: Ints) -> tuple[Ints, Ints]:
    """Return the unit and the number of tasks of every domain in which a unit has one."""
    inside = domain >= 0
    number, first = numbered([unit[inside], domain[inside]])
    return unit[inside][first], np.bincount(number)
