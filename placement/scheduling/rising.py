"""What is free at a moment that only moves on, where cards are only ever given back by what has started.

Then what fits now fits for as long as it likes, and nothing has to be known of later moments. Where a window takes
cards later on, a `Profile` is needed.
"""

from __future__ import annotations

import heapq

import numpy as np

from placement.instance import Ints
from placement.scheduling.counts import Counted, Nodes, Profile, Small, best_fit


class Rising:
    """Free cards of every node at the present moment.

    Moments that are asked for, and those of starts, may never go back.

    Parameters
    ----------
    work : Counted
    base : Profile
        One in which no node ever has fewer free cards than before; see `rises`.
    """

    def __init__(self, work: Counted, base: Profile) -> None:
        self._work = work
        later = base.free()
        self._free: Small = later[0].copy()
        self._total: Small = self._free @ work.member
        # what is given back when: nodes and cards of each
        self._back: list[tuple[int, int, Ints, Small]] = []
        for number, time in enumerate(base.times()[1:], start=1):
            more = later[number] - later[number - 1]
            nodes = np.flatnonzero(more)
            self._back.append((time, number, nodes, more[nodes]))
        heapq.heapify(self._back)
        self._count = len(self._back)

    def most(self, now: int) -> int:
        """Return how many cards are free at a moment, in the pool that has most of them."""
        self._move(now)
        return int(self._total.max(initial=0))

    def now(self, job: int, now: int) -> tuple[int, Nodes] | None:
        """Return when a job would end if it started now, and on which nodes; None where it does not fit."""
        self._move(now)
        gang = self._work.gangs[self._work.job_class[job]]
        for kind in gang.kinds:
            if self._total[kind.pool] < gang.tasks * gang.cards:
                continue
            nodes = best_fit(self._free[kind.nodes], kind.nodes, gang)
            if nodes is not None:
                return now + self._work.run(job, kind, nodes), nodes
        return None

    def take(self, nodes: Nodes, cards: int, start: int, end: int) -> None:
        """Hold cards for each task on some nodes from now, a moment that was asked for last, to an end."""
        if end <= start:
            return
        places = np.array([node for node, _ in nodes], dtype=np.int64)
        taken = np.array([tasks * cards for _, tasks in nodes], dtype=np.int32)
        self._free[places] -= taken
        self._total -= taken @ self._work.member[places]
        self._count += 1
        heapq.heappush(self._back, (end, self._count, places, taken))

    def _move(self, now: int) -> None:
        while self._back and self._back[0][0] <= now:
            _, _, places, given = heapq.heappop(self._back)
            self._free[places] += given
            self._total += given @ self._work.member[places]


def rises(base: Profile) -> bool:
    """Return whether no node of a profile ever has fewer free cards than before."""
    free = base.free()
    return bool((free[1:] >= free[:-1]).all())
