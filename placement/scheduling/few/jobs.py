"""Few jobs as the search for their best schedule sees them, and what runs beside them."""

from __future__ import annotations

from placement.scheduling.bounds.remaining import Job
from placement.scheduling.counts import NO_DEADLINE, Counted
from placement.scheduling.few.measures import Node
from placement.scheduling.passes import Pass

MOST_JOBS, MOST_NODES = 16, 8
"""Up to which jobs are few."""


def running_of(work: Counted, unit: int) -> list[Node]:
    """Return what runs now on each node."""
    found: list[list[tuple[int, int, int]]] = [[] for _ in work.free]
    for ongoing in work.work.ongoing.values():
        if ongoing.left:
            for _, _, (node, cards) in ongoing.tasks:
                found[node].append((ongoing.left // unit, len(cards), 1))
    return [tuple(sorted(node)) for node in found]


def jobs_of(work: Counted, best: Pass, size: int) -> list[Job] | None:
    """Return the jobs, or None where they are too many or not alike enough."""
    many = len(best.starts) > MOST_JOBS or len(work.free) > MOST_NODES or best.late
    endless = any(ongoing.left is None for ongoing in work.work.ongoing.values())
    plain = not endless and not work.work.windows and not any(work.work.after)
    if many or not plain or len(set(work.free.tolist())) != 1 or any(end < NO_DEADLINE for end in work.deadline):
        return None
    found = []
    for job, *_ in best.starts:
        gang = work.gangs[work.job_class[job]]
        whole = gang.tasks == 1 or gang.cards == size
        if len(gang.kinds) != 1 or len(gang.kinds[0].nodes) != len(work.free) or not whole:
            return None
        if gang.tasks > 1 and len(work.work.instance.levels) > 2:
            return None
        # tasks that take whole nodes lie on as many
        nodes = tuple((node, 1) for node in gang.kinds[0].nodes[: gang.tasks].tolist())
        least = work.run(job, gang.kinds[0], nodes)
        found.append(Job(job, work.release[job], least, work.weight[job], gang.cards, gang.tasks))
    return found
