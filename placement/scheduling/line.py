"""Jobs that wait, in the order of a key, kept from one decision to the next."""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Hashable
from typing import Any

Ranked = tuple[tuple[float, ...] | float, int]
"""What a job is ordered by, and the job: ties come in the order of the snapshot."""

Rank = Callable[[int], tuple[float, ...] | float]
"""Of a job; the smallest comes first."""

Group = Callable[[int], Hashable]
"""Of a job: what it shares with others of which none fits, once one did not; None for one that shares nothing."""


class Waiting(dict[int, int]):
    """Jobs that wait, by the time at which each came to wait, the last to come last, and which came or went so far.

    Attributes
    ----------
    changed : list of int
        A job each time that it came or went.
    """

    def __init__(self) -> None:
        super().__init__()
        self.changed: list[int] = []

    def __setitem__(self, job: int, came: int) -> None:
        super().__setitem__(job, came)
        self.changed.append(job)

    def __delitem__(self, job: int) -> None:
        super().__delitem__(job)
        self.changed.append(job)

    def pop(self, job: int, *default: Any) -> Any:
        """Return when a job came, which waits no longer."""
        self.changed.append(job)
        return super().pop(job, *default)


class Line:
    """The jobs that wait by a key that stays the same while a job waits, ties in the order of the snapshot.

    A few of thousands come or go between two decisions, so they are put in their places instead of sorting all again.

    Parameters
    ----------
    waiting : Waiting
        It changes between calls.
    rank : callable
    group : callable, optional
        Needed for `turns`; it stays the same for a job.
    """

    def __init__(self, waiting: Waiting, rank: Rank, group: Group = lambda job: None) -> None:
        self._waiting, self._rank, self._group = waiting, rank, group
        self._seen = 0
        self._place: dict[int, tuple[Ranked, list[Ranked]]] = {}
        """Of each job what it is ordered by, and the list that it is in."""
        self._orders: dict[Hashable, list[Ranked]] = {}

    def jobs(self) -> list[int]:
        """Return the jobs that wait now."""
        self._catch_up()
        orders = list(self._orders.values())
        return [job for _, job in (orders[0] if len(orders) == 1 else heapq.merge(*orders))]

    def turns(self) -> Turns:
        """Return the jobs that wait now, to be tried one by one."""
        self._catch_up()
        return Turns(self._orders, self._group)

    def _catch_up(self) -> None:
        changed, waiting = self._waiting.changed, self._waiting
        new = list(waiting) if not self._seen else set(changed[self._seen :])
        self._seen = len(changed)
        for job in new:
            if job in self._place:
                one, order = self._place.pop(job)
                del order[bisect_left(order, one)]
            if job in waiting:
                one, order = (self._rank(job), job), self._orders.setdefault(self._group(job), [])
                insort(order, one)
                self._place[job] = one, order


class Turns:
    """Jobs that wait, one after the other, without those that share a group with one that was refused.

    Parameters
    ----------
    orders : dict of list of Ranked
        The jobs of each group in their order.
    group : callable
    """

    def __init__(self, orders: dict[Hashable, list[Ranked]], group: Group) -> None:
        self._orders, self._group = orders, group
        self._heads = [(order[0], number, 0, name) for number, (name, order) in enumerate(orders.items()) if order]
        """The next job of each group, with a number that no other group has, its place, and the group."""
        heapq.heapify(self._heads)
        self._refused: set[Hashable] = set()

    def head(self) -> Ranked | None:
        """Return the next job and what it is ordered by; None where none is left."""
        while self._heads and self._heads[0][3] in self._refused:
            heapq.heappop(self._heads)
        return self._heads[0][0] if self._heads else None

    def take(self) -> int:
        """Return the next job, which has had its turn then; there must be one."""
        (_, job), number, place, name = self._heads[0]
        order = self._orders[name]
        if place + 1 < len(order):
            heapq.heapreplace(self._heads, (order[place + 1], number, place + 1, name))
        else:
            heapq.heappop(self._heads)
        return job

    def refuse(self, job: int) -> None:
        """Leave out what shares a group with a job."""
        group = self._group(job)
        if group is not None:
            self._refused.add(group)

    def is_refused(self, job: int) -> bool:
        """Return whether a job is left out."""
        return self._group(job) in self._refused

    def readmit(self, after: Ranked) -> None:
        """Leave out nothing any longer of what comes after some place in the order, for something has come free."""
        kept = [head for head in self._heads if head[3] not in self._refused]
        numbers = {name: number for number, name in enumerate(self._orders)}
        for name in self._refused:
            order = self._orders.get(name, [])
            place = bisect_right(order, after)
            if place < len(order):
                kept.append((order[place], numbers[name], place, name))
        heapq.heapify(kept)
        self._heads = kept
        self._refused.clear()
