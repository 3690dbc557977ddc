"""Starting a gang all or nothing, and growing it beyond its minimum."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from placement.gang import Branch, Group, Leaf
from placement.instance import Bools, JobClass

Spot = tuple[int, tuple[int, ...]]
"""Node and cards of a task."""

Placed = tuple[int, int, Spot]
"""Leaf, number of the task within the leaf, and where it is."""


class Places(Protocol):
    """Where tasks go, with a way back."""

    def place(self, shape: int, within: Bools | None = None) -> Spot | None:
        """Place one task, on some rows if `within` is given, and return where, or None when there is no room."""
        ...

    def mark(self) -> int:
        """Return the present point in time."""
        ...

    def undo(self, mark: int) -> None:
        """Take back everything placed since a point in time."""
        ...


class Gang:
    """The tasks of one job, placed one at a time.

    Copies of a group are numbered as in `placement.gang.runs`: the outermost copy counts slowest.
    """

    def __init__(self, job_class: JobClass, places: Places) -> None:
        self._root = job_class.root
        self._leaves = job_class.leaves
        self._places = places
        self._tasks: list[tuple[int, int, Spot]] = []
        self._placed = [[0] * leaf.copies for leaf in job_class.leaves]

    def __len__(self) -> int:
        return len(self._tasks)

    def resume(self, tasks: Sequence[Placed]) -> None:
        """Take over tasks that are placed already."""
        for leaf, number, spot in tasks:
            self._record(leaf, number // self._leaves[leaf].count, spot)

    def start(self) -> bool:
        """Place what the job needs to run, or nothing."""
        return self._start(self._root, 0)

    def grow(self) -> None:
        """Place as many more tasks of a job that runs as there is room for."""
        self._grow(self._root, 0)

    def tasks(self) -> Iterator[Placed]:
        """Yield every placed task; numbers follow the order of placing within each copy."""
        following = [[copy * leaf.count for copy in range(leaf.copies)] for leaf in self._leaves]
        for leaf, copy, spot in self._tasks:
            yield leaf, following[leaf][copy], spot
            following[leaf][copy] += 1

    def _start(self, group: Group, copy: int) -> bool:
        if isinstance(group, Leaf):
            return self._all_or_nothing(lambda: all(self._one(group, copy) for _ in range(group.minimum)))
        members = range(copy * group.count, copy * group.count + group.minimum)
        return self._all_or_nothing(lambda: all(self._start_member(group, member) for member in members))

    def _start_member(self, group: Branch, member: int) -> bool:
        def enough() -> bool:
            started = 0
            for child in group.children:
                if started == group.min_groups:
                    break
                started += self._start(child, member)
            return started == group.min_groups

        return self._all_or_nothing(enough)

    def _grow(self, group: Group, copy: int) -> None:
        if isinstance(group, Leaf):
            while self._placed[group.leaf][copy] < group.count and self._one(group, copy):
                pass
            return
        room = True
        for member in range(copy * group.count, (copy + 1) * group.count):
            if not any(self._active(child, member) for child in group.children):
                # copies are identical: where one found no room the next finds none
                room = room and self._start_member(group, member)
                if not room:
                    continue
            for child in group.children:
                if self._active(child, member) or self._start(child, member):
                    self._grow(child, member)

    def _active(self, group: Group, copy: int) -> bool:
        """Return whether a copy of a group has a placed task."""
        if isinstance(group, Leaf):
            return self._placed[group.leaf][copy] > 0
        members = range(copy * group.count, (copy + 1) * group.count)
        return any(self._active(child, member) for member in members for child in group.children)

    def _one(self, leaf: Leaf, copy: int) -> bool:
        spot = self._places.place(leaf.shape)
        if spot is None:
            return False
        self._record(leaf.leaf, copy, spot)
        return True

    def _record(self, leaf: int, copy: int, spot: Spot) -> None:
        self._tasks.append((leaf, copy, spot))
        self._placed[leaf][copy] += 1

    def _all_or_nothing(self, attempt: Callable[[], bool]) -> bool:
        mark, kept = self._places.mark(), len(self._tasks)
        if attempt():
            return True
        self._places.undo(mark)
        while len(self._tasks) > kept:
            self._forget(*self._tasks.pop())
        return False

    def _forget(self, leaf: int, copy: int, spot: Spot) -> None:
        self._placed[leaf][copy] -= 1
