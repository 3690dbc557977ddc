"""Confined units: the parts of jobs that one domain has to hold, and what lies inside what.

A group with a required level, two groups that belong together, and a slice are all of one kind: tasks of a job that lie
in one domain of a level. A unit may hold smaller units: a group in one block whose slices lie in one rack each. Every
other tie (balance, spread, groups apart, preferences, one node) says nothing here; so whatever counts units alone is a
relaxation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from placement.gang import Branch, Group, Leaf, Ties
from placement.instance import Affinity, Instance, Ints, JobClass

Slices = tuple[tuple[int, tuple[int, ...]], ...]
"""Level and sizes of slices, from wide to narrow."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Tasks of a job that lie in one domain.

    Attributes
    ----------
    job_class : int
    inside : int
        Number of the unit that holds it, -1 for none.
    level : int
        Index into `Instance.levels`.
    times : int
        How many of them there are in the unit that holds it, or in a job, when all of it runs.
    tasks : tuple of (int, int)
        Leaf and number of tasks, of those tasks that lie in no smaller unit.
    rigid : bool
        Whether a job that runs has exactly so many units with exactly so many tasks.
    """

    job_class: int
    inside: int
    level: int
    times: int
    tasks: tuple[tuple[int, int], ...]
    rigid: bool


def wider(instance: Instance, narrow: int, wide: int) -> Ints:
    """Return for each domain of a level the domain of a wider level that its first node lies in, -1 for none."""
    numbers = instance.domains[narrow]
    inside = np.flatnonzero(numbers >= 0)[::-1]
    above = np.full(int(numbers.max(initial=-1)) + 1, -1, dtype=np.int64)
    above[numbers[inside]] = instance.domains[wide, inside]
    return above


def lies_within(instance: Instance, narrow: int, wide: int) -> bool:
    """Return whether every domain of a level lies in one of a wider level; what lies in none may be in some of them."""
    return not ((instance.domains[narrow] >= 0) & (instance.domains[wide] < 0)).any()


def usable_slices(leaf: Leaf, level: int, node: int) -> Slices:
    """Return the slices of a leaf that count as units within one of a level; none where the level of nodes is reached.

    These are the slices from the widest on, as long as finer ones are of one dividing size.
    """
    usable: list[tuple[int, tuple[int, ...]]] = []
    for narrower, sizes in leaf.ties.slices if leaf.ties else ():
        outer = usable[-1][1] if usable else (leaf.count,)
        divides = len(sizes) == 1 and all(size % sizes[0] == 0 for size in outer)
        listed = not usable and sum(sizes) == leaf.count
        if not level < narrower < node:
            continue  # what holds the leaf lies in one domain of it, or nodes are left out
        if not (divides or listed):
            break
        usable.append((narrower, sizes))
        level = narrower
    return tuple(usable)


def confined(instance: Instance) -> list[Unit]:
    """Return the units of all job classes; one that holds others comes before them."""
    found: list[Unit] = []
    narrowest = len(instance.levels) - 1
    for number, job_class in enumerate(instance.job_classes):
        if job_class.tied:
            _Walk(number, job_class, narrowest, found).run()
    return found


class _Walk:
    """Collects the units of one job class."""

    def __init__(self, number: int, job_class: JobClass, narrowest: int, found: list[Unit]) -> None:
        self.number, self.job_class, self.narrowest, self.found = number, job_class, narrowest, found
        self.together = [one for one in job_class.affinity if one.together and 0 < one.level < narrowest]

    def run(self) -> None:
        self._branch(self.job_class.root, -1, 1, True)

    def _branch(self, branch: Branch, inside: int, times: int, rigid: bool) -> None:
        """Collect from the children of a branch that has some copies in the unit it lies in."""
        rigid = rigid and branch.min_groups == len(branch.children)
        for level, groups in _companies(branch, self.together):
            if not self._is_unit(level, self._level(inside)):
                for group in groups:
                    self._group(group, inside, times, rigid)
                continue
            tasks = Counter[int]()
            unit = self._add(inside, level, times, rigid and all(map(is_rigid, groups)))
            for group in groups:
                self._group(group, unit, 1, rigid)
                tasks.update(dict(self._loose(group, level)))
            self._fill(unit, tasks)

    def _group(self, group: Group, inside: int, times: int, rigid: bool) -> None:
        """Collect from one group, of which there are some copies."""
        rigid = rigid and group.minimum == group.count
        level = (group.ties or Ties()).required
        if self._is_unit(level, self._level(inside)):
            unit = self._add(inside, level, times, rigid and is_rigid(group))
            self._inner(group, unit, 1, rigid)
            self._fill(unit, Counter(dict(self._own(group, level))))
        else:
            self._inner(group, inside, times, rigid)

    def _inner(self, group: Group, inside: int, times: int, rigid: bool) -> None:
        if isinstance(group, Leaf):
            self._slices(group, inside, times, rigid)
        else:
            self._branch(group, inside, times * group.count, rigid)

    def _slices(self, leaf: Leaf, inside: int, times: int, rigid: bool) -> None:
        """Collect the slices of a leaf, each kind of size one unit; nested ones inside."""
        slices = usable_slices(leaf, self._level(inside), self.narrowest)
        if not slices:
            return
        (level, sizes), finer = slices[0], slices[1:]
        whole = sizes if len(sizes) > 1 else sizes * (leaf.count // sizes[0])
        for size, number in sorted(Counter(whole).items(), reverse=True):
            last = self._add(inside, level, times * number, rigid)
            held = size
            for inner_level, inner in finer:
                last = self._add(last, inner_level, held // inner[0], rigid)
                held = inner[0]
            self._fill(last, Counter({leaf.leaf: held}))

    def _own(self, group: Group, level: int) -> Iterator[tuple[int, int]]:
        """Yield leaf and tasks in one copy of a group, of those that no unit narrower than a level takes."""
        if isinstance(group, Leaf):
            if not usable_slices(group, level, self.narrowest):
                yield group.leaf, group.count
            return
        for shared, groups in _companies(group, self.together):
            if not self._is_unit(shared, level):
                for child in groups:
                    yield from ((leaf, tasks * group.count) for leaf, tasks in self._loose(child, level))

    def _loose(self, group: Group, level: int) -> Iterator[tuple[int, int]]:
        """Yield the same for a group that may be a unit itself."""
        if not self._is_unit((group.ties or Ties()).required, level):
            yield from self._own(group, level)

    def _level(self, unit: int) -> int:
        return self.found[unit].level if unit >= 0 else 0

    def _is_unit(self, level: int, outer: int) -> bool:
        """Return whether a level makes a unit of its own within one of another level."""
        return outer < level < self.narrowest

    def _add(self, inside: int, level: int, times: int, rigid: bool) -> int:
        self.found.append(Unit(self.number, inside, level, times, (), rigid))
        return len(self.found) - 1

    def _fill(self, unit: int, tasks: Counter[int]) -> None:
        self.found[unit] = replace(self.found[unit], tasks=tuple(sorted(tasks.items())))


def is_rigid(group: Group) -> bool:
    """Return whether a copy of a group runs in full or not at all."""
    if isinstance(group, Leaf):
        return group.minimum == group.count
    whole = group.minimum == group.count and group.min_groups == len(group.children)
    return whole and all(is_rigid(child) for child in group.children)


def _companies(branch: Branch, together: Sequence[Affinity]) -> list[tuple[int, list[Group]]]:
    """Return the children of a branch as sets that belong together, each with its level; -1 for a child alone.

    Where groups may be absent, three are not one set: the one in the middle may not run.
    """
    pairs_only = branch.min_groups < len(branch.children)
    level = {child.path: -1 for child in branch.children}
    root = {child.path: child.path for child in branch.children}
    for one in together:
        if one.a in root and one.b in root:
            a, b = root[one.a], root[one.b]
            if pairs_only and a != b and (level[a] >= 0 or level[b] >= 0):
                continue
            # all of them share the wider of two domains; what more is asked is left out
            both = [x for x in (level[a], level[b], one.level) if x >= 0]
            root = {path: a if of == b else of for path, of in root.items()}
            level[a] = min(both)
    sets: dict[str, list[Group]] = {}
    for child in branch.children:
        sets.setdefault(root[child.path], []).append(child)
    return [(level[path], groups) for path, groups in sets.items()]
