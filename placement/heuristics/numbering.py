"""Numbers of the tasks within one copy of a group: member after member, and in each its groups in their order."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from placement.gang import Branch, Group, Leaf


@dataclass(frozen=True, slots=True)
class _Step:
    """One branch above a leaf: its members, the tasks of one, and those of a member that come before."""

    members: int
    tasks: int
    before: int


class Numbering:
    """Numbers of the tasks of one group.

    Attributes
    ----------
    group : Group
    size : int
        Tasks that one copy wants.
    copies : dict of int to int
        For each leaf in it, how many copies of the leaf one copy of the group has.
    """

    def __init__(self, group: Group) -> None:
        self.group = group
        self.size = _size(group)
        self._steps = dict(_steps(group, ()))
        self.copies = {leaf: int(np.prod([s.members for s in steps])) for leaf, steps in self._steps.items()}

    def index(self, leaf: int, copy: int, number: int) -> int:
        """Return the number within its copy of the group of a task that a copy of a leaf numbers."""
        for step in self._steps[leaf]:
            copy, member = divmod(copy, step.members)
            number += step.before + member * step.tasks
        return number

    def inside(self, copy: int) -> Iterator[tuple[int, int]]:
        """Yield each leaf and copy of it that a copy of the group has."""
        for leaf, copies in self.copies.items():
            for inside in range(copy * copies, (copy + 1) * copies):
                yield leaf, inside


def parts(ends: Sequence[int], start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield where each slice starts and ends that has some of the numbers from a start to an end."""
    low = bisect_right(ends, start)
    for number in range(low, min(bisect_left(ends, end) + 1, len(ends))):
        yield ends[number - 1] if number else 0, ends[number]


def _size(group: Group) -> int:
    if isinstance(group, Leaf):
        return group.count
    return group.count * sum(map(_size, group.children))


def _steps(group: Group, outer: tuple[_Step, ...]) -> Iterator[tuple[int, tuple[_Step, ...]]]:
    """Yield each leaf with the branches above it, the nearest one first."""
    if isinstance(group, Leaf):
        yield group.leaf, outer
        return
    assert isinstance(group, Branch)
    tasks, before = _size(group) // group.count, 0
    for child in group.children:
        yield from _steps(child, (_Step(group.count, tasks, before), *outer))
        before += _size(child)
