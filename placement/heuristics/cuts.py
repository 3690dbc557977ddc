"""Slices of groups that hold other groups: in which domain each of them lies already, and what it still needs."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from placement.gang import Branch, leaves, slice_ends
from placement.heuristics.domains import Need
from placement.heuristics.numbering import Numbering


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
        part = bisect_right(self.ends, self.numbering.index(leaf, copy, number))
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
        where = scope, bisect_right(self.ends, inside * tasks)
        return where, bool(self.nodes.get(where))


class Cuts:
    """All slices of the groups of a job that hold other groups.

    Parameters
    ----------
    numberings : iterable of Numbering
    """

    def __init__(self, numberings: Iterable[Numbering]) -> None:
        self._by_leaf: dict[int, list[Cut]] = {}
        self._whole: dict[str, list[Cut]] = {}
        for numbering in numberings:
            group = numbering.group
            if isinstance(group, Branch) and group.ties is not None:
                for level, sizes in group.ties.slices:
                    self._add_cut(Cut(numbering, level, slice_ends(sizes, numbering.size)), group)

    def _add_cut(self, cut: Cut, group: Branch) -> None:
        for leaf in cut.numbering.copies:
            self._by_leaf.setdefault(leaf, []).append(cut)
        tasks = cut.numbering.size // group.count
        if all(end % tasks == 0 for end in cut.ends):
            self._whole.setdefault(group.path, []).append(cut)

    def around(self, leaf: int, copy: int, number: int) -> Iterator[tuple[Cut, tuple[int, int]]]:
        """Yield each slice that a task is in, from wide to narrow in each group."""
        for cut in self._by_leaf.get(leaf, ()):
            yield cut, cut.slice_of(leaf, copy, number)

    def whole_members(self, path: str) -> list[Cut]:
        """Return the slices of a group that are made of whole members."""
        return self._whole.get(path, [])

    def add(self, leaf: int, copy: int, number: int, node: int) -> None:
        """Count a task that was placed."""
        for cut, where in self.around(leaf, copy, number):
            cut.nodes.setdefault(where, []).append(node)

    def remove(self, leaf: int, copy: int, number: int) -> None:
        """Count no more the task that was placed last."""
        for cut, where in self.around(leaf, copy, number):
            cut.nodes[where].pop()
