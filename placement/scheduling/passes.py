"""Passes over counted work: each job of an order gets the first place that there is for it.

A serial pass gives each job in turn its earliest start among those before it, which none of them loses by (the serial
schedule generation scheme of project scheduling, Kolisch 1996): some order gives an optimal schedule. A parallel pass
goes through time and starts what fits, in the order.
"""

from __future__ import annotations

import heapq
import math
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from placement.heuristics.filling import OutOfTimeError
from placement.heuristics.gangs import Placed
from placement.scheduling import orders
from placement.scheduling.counts import Counted, Nodes, Profile
from placement.scheduling.desk import NEVER, Desk
from placement.scheduling.rising import Rising, rises

Start = tuple[int, int, int, Nodes]
"""Job, start, end and nodes."""


@dataclass(slots=True)
class Pass:
    """What a pass gives.

    Attributes
    ----------
    starts : list of Start
    value : int
        Weighted completion time of these, in milliseconds times weight.
    late : list of int
        Jobs that would end after a hard deadline.
    """

    starts: list[Start]
    value: int
    late: list[int]

    def rank(self, work: Counted) -> tuple[int, int]:
        """Return how bad it is: the weight of what it leaves out for deadlines, then its value."""
        return sum(work.weight[job] for job in self.late), self.value


FIRST = (orders.by_weighted_area, orders.by_weighted_length, orders.by_length, orders.by_arrival)
"""Orders of the first passes; where there is time for one alone, the first is good."""


def ordered(jobs: Sequence[int], key: orders.Key, desk: Desk) -> list[int]:
    """Return jobs by a key, ties in the order of the snapshot."""
    return sorted(jobs, key=lambda job: (key(desk, job), job))


Held = tuple[int, Sequence[Placed]]
"""When a job that runs ends, and its tasks."""


def present(work: Counted) -> Profile:
    """Return what is free as what runs now comes to its end and windows pass."""
    ongoing = work.work.ongoing.values()
    return free_from(work, [(NEVER if one.left is None else one.left, one.tasks) for one in ongoing])


def free_from(work: Counted, running: Iterable[Held], now: int = 0) -> Profile:
    """Return what is free from a moment on, as what runs comes to its end and windows pass.

    Parameters
    ----------
    work : Counted
    running : iterable of Held
        Ends are milliseconds after the moment.
    now : int
        The moment.
    """
    held = []
    for end, tasks in running:
        of_node: Counter[int] = Counter()
        for _, _, (node, cards) in tasks:
            of_node[node] += len(cards)
        if end > 0:
            held.append((end, tuple(of_node.items())))
    profile = Profile.as_ends(work, held)
    for window in work.work.windows:
        if window.end > now:
            for node in window.nodes.tolist():
                # nobody can use what is not free then anyway
                profile.take(((node, int(work.free[node])),), 1, max(0, window.start - now), window.end - now)
    return profile


def serial(
    work: Counted,
    order: Sequence[int],
    base: Profile,
    deadline: float = math.inf,
    runs: Mapping[int, int] | None = None,
) -> Pass:
    """Return the serial pass over all jobs of an order, in which those that others come after stand before these.

    Parameters
    ----------
    work : Counted
    order : sequence of int
    base : Profile
    deadline : float
        Moment of the monotonic clock.
    runs : mapping of int to int, optional
        Jobs that are to run on the cards on which they run for so long, if there are such.

    Raises
    ------
    OutOfTimeError
        If the deadline passes.
    """
    profile = base.copy()
    starts: list[Start] = []
    ends: dict[int, int] = {}
    value, late = 0, []
    after = work.work.after
    for job in order:
        if time.monotonic() > deadline:
            raise OutOfTimeError
        before = [ends.get(other, end_of(work, other)) for other in after[job]]
        kinds = work.gangs[work.job_class[job]].kinds
        among = [kind for kind in kinds if kind.least == runs.get(job)] if runs else None
        found = profile.earliest(job, max([work.release[job], *before]), among or None)
        assert found is not None
        start, end, nodes = found
        if work.deadline[job] < end:
            late.append(job)
        if work.deadline[job] < end or end >= NEVER:
            ends[job] = NEVER
            continue
        profile.take(nodes, work.gangs[work.job_class[job]].cards, start, end)
        starts.append((job, start, end, nodes))
        ends[job] = end
        value += work.weight[job] * (end - work.release[job])
    return Pass(starts, value, late)


def end_of(work: Counted, job: int) -> int:
    """Return when a job ends that runs now; `NEVER` for others."""
    ongoing = work.work.ongoing.get(job)
    return NEVER if ongoing is None or ongoing.left is None else ongoing.left


def parallel(work: Counted, order: Sequence[int], base: Profile, deadline: float = math.inf) -> Pass:
    """Return the parallel pass over all jobs of an order; nobody is kept waiting for one that comes before.

    Raises
    ------
    OutOfTimeError
        If the deadline, a moment of the monotonic clock, passes.
    """
    return _Parallel(work, order, base).run(deadline)


class _Parallel:
    """One parallel pass.

    The profile holds what is taken from the present moment on, which only what runs then and windows change.
    """

    def __init__(self, work: Counted, order: Sequence[int], base: Profile) -> None:
        self._work, self._order = work, order
        self._profile = Rising(work, base) if rises(base) else base.copy()
        self._place = {job: number for number, job in enumerate(order)}
        self._ends: dict[int, int] = {}
        self._left = {job: sum(other in self._place for other in work.work.after[job]) for job in order}
        self._then: dict[int, list[int]] = defaultdict(list)
        for job in order:
            for other in work.work.after[job]:
                self._then[other].append(job)
        self._events = [(self._ready(job), self._place[job]) for job in order if not self._left[job]]
        self._events += [(change, -1) for change in base.times()]
        heapq.heapify(self._events)
        gangs = [work.gangs[work.job_class[job]] for job in order]
        self._need = [gang.tasks * gang.cards for gang in gangs]
        self._found = Pass([], 0, [])

    def run(self, deadline: float) -> Pass:
        """Let time pass."""
        waiting: list[int] = []
        while self._events:
            if time.monotonic() > deadline:
                raise OutOfTimeError
            now = self._events[0][0]
            while self._events and self._events[0][0] <= now:
                _, number = heapq.heappop(self._events)
                if number >= 0:
                    waiting.append(number)
            if waiting:
                waiting.sort()
                waiting = self._served(waiting, now)
        return self._found

    def _served(self, waiting: list[int], now: int) -> list[int]:
        """Start who fits, in the order; return who still waits."""
        refused: set[int] = set()
        left: list[int] = []
        free = self._profile.most(now)
        for number in waiting:
            if self._need[number] > free:
                left.append(number)
            elif self._start(self._order[number], now, refused):
                free = self._profile.most(now)
            else:
                left.append(number)
        return left

    def _ready(self, job: int) -> int:
        """Return when a job may start, given when those ended that it comes after."""
        work = self._work
        before = [self._ends.get(other, end_of(work, other)) for other in work.work.after[job]]
        return max([work.release[job], *before])

    def _start(self, job: int, now: int, refused: set[int]) -> bool:
        """Start a job if it fits now, or settle that it never will."""
        work = self._work
        number = work.job_class[job]
        if number in refused:
            return False
        found = self._profile.now(job, now)
        if found is None:
            refused.add(number)
            return False
        end, nodes = found
        if work.deadline[job] < end:
            self._found.late.append(job)
            return True
        self._profile.take(nodes, work.gangs[number].cards, now, end)
        self._found.starts.append((job, now, end, nodes))
        self._found.value += work.weight[job] * (end - work.release[job])
        self._ends[job] = end
        heapq.heappush(self._events, (end, -1))
        for other in self._then[job]:
            self._left[other] -= 1
            if not self._left[other]:
                heapq.heappush(self._events, (self._ready(other), self._place[other]))
        return True
