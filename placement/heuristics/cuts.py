"""Slices of groups that hold other groups: in which domain each of them lies already, and what it still needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from placement.gang import Leaf, leaves
from placement.heuristics.domains import Need
from placement.heuristics.numbering import Numbering, bounds


@dataclass(slots=True)
class Cut:
    """Slices of one level, by scope, which is a copy of the group, and number of the slice."""

    numbering: Numbering
    level: int
    ends: list[int]
    nodes: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    needs: dict[int, list[Need]] = field(default_factory=dict)

    def slice_of(self, leaf: int, copy: int, number: int) -> tuple[int, int]:
        """Return the scope and the number of the slice that a task is in."""
        index = self.numbering.index(leaf, copy, number)
        part = int(np.searchsorted(self.ends, index, side="right"))
        return copy // self.numbering.copies[leaf], part

    def needed(self, part: int) -> list[Need]:
        """Return what a slice needs of its domain before any of it is placed."""
        if not self.needs:
            found: dict[int, Counter[int]] = {}
            for leaf in leaves(self.numbering.group):
                for copy in range(self.numbering.copies[leaf.leaf]):
                    for number in range(leaf.minimum):
                        where = self.slice_of(leaf.leaf, copy, number)[1]
                        found.setdefault(where, Counter())[leaf.shape] += 1
            self.needs = {where: [Need(*item) for item in tasks.items()] for where, tasks in found.items()}
        return self.needs.get(part, [])

    def begun(self, member: int, tasks: int) -> tuple[tuple[int, int], bool]:
        """Return the slice that a member of so many tasks lies in, and whether it has a placed task."""
        scope, inside = divmod(member, self.numbering.size // tasks)
        where = scope, int(np.searchsorted(self.ends, inside * tasks, side="right"))
        return where, bool(self.nodes.get(where))


class Cuts:
    """All slices of the groups of a job that hold other groups.

    Parameters
    ----------
    numberings : iterable of Numbering
    """

    def __init__(self, numberings: Iterable[Numbering]) -> None:
        self._cuts = [
            Cut(numbering, level, bounds(sizes, numbering.size).tolist())
            for numbering in numberings
            if not isinstance(numbering.group, Leaf) and numbering.group.ties is not None
            for level, sizes in numbering.group.ties.slices
        ]

    def around(self, leaf: int, copy: int, number: int) -> Iterator[tuple[Cut, tuple[int, int]]]:
        """Yield each slice that a task is in, from wide to narrow in each group."""
        for cut in self._cuts:
            if leaf in cut.numbering.copies:
                yield cut, cut.slice_of(leaf, copy, number)

    def whole_members(self, path: str, tasks: int) -> list[Cut]:
        """Return the slices of a group that are made of whole members of so many tasks."""
        cuts = [cut for cut in self._cuts if cut.numbering.group.path == path]
        return [cut for cut in cuts if all(end % tasks == 0 for end in cut.ends)]

    def add(self, leaf: int, copy: int, number: int, node: int) -> None:
        """Count a task that was placed."""
        for cut, where in self.around(leaf, copy, number):
            cut.nodes.setdefault(where, []).append(node)

    def remove(self, leaf: int, copy: int, number: int) -> None:
        """Count no more the task that was placed last."""
        for cut, where in self.around(leaf, copy, number):
            cut.nodes[where].pop()
