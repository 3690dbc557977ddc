"""Cards for starts by counts: each task keeps those that it gets for the whole of its time."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from placement.heuristics.gangs import Placed
from placement.scheduling.counts import Counted
from placement.scheduling.passes import Start
from placement.scheduling.timing import Stretch
from placement.scheduling.work import NEVER


def stretches_of(work: Counted, starts: Sequence[Start]) -> list[Stretch]:
    """Return the stretches of all jobs that have an end, running ones among them, by start."""
    free = [set(range(count)) for count in work.free.tolist()]
    ends: list[tuple[int, int, list[tuple[int, tuple[int, ...]]]]] = []
    found = []
    for job, ongoing in work.work.ongoing.items():
        for _, _, (node, cards) in ongoing.tasks:
            free[node] -= set(cards)
        if ongoing.left is not None:
            found.append(Stretch(job, 0, ongoing.left, 0, 0, ongoing.tasks))
        end = NEVER if ongoing.left is None else ongoing.left
        heapq.heappush(ends, (end, job, [spot for _, _, spot in ongoing.tasks]))
    for job, start, end, nodes in sorted(starts, key=lambda one: (one[1], one[0])):
        while ends and ends[0][0] <= start:
            for node, cards in heapq.heappop(ends)[2]:
                free[node] |= set(cards)
        gang = work.gangs[work.job_class[job]]
        tasks: list[Placed] = []
        for node, count in nodes:
            if start == end:
                # what takes no time may pass between others
                tasks += [(0, len(tasks) + k, (node, tuple(range(gang.cards)))) for k in range(count)]
                continue
            for _ in range(count):
                cards = tuple(sorted(free[node])[: gang.cards])
                free[node] -= set(cards)
                tasks.append((0, len(tasks), (node, cards)))
        if end > start:
            heapq.heappush(ends, (end, job, [spot for _, _, spot in tasks]))
        found.append(Stretch(job, start, end, 0, 0, tuple(tasks)))
    return sorted(found, key=lambda one: (one.start, one.job))
