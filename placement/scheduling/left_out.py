"""Jobs that get no start since others do not, and those of which a bound may say nothing for that."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from placement.scheduling.work import Work


def perhaps_left_out(work: Work, never: Collection[int], weight: int) -> frozenset[int]:
    """Return all jobs that some timetable leaves out that leaves out no more weight for deadlines.

    These are jobs with a hard deadline of no more weight, and whatever comes after jobs that are left out.

    Parameters
    ----------
    work : Work
    never : collection of int
        Jobs that no timetable starts.
    weight : int
        See `placement.scheduling.timing.Timetable.left_out`.
    """
    light = [job for job in range(work.jobs) if work.hard[job] and int(work.weight[job]) <= weight]
    return frozenset(with_all_after(work, [*never, *light]))


def with_all_after(work: Work, jobs: Iterable[int]) -> set[int]:
    """Return some jobs and all that wait for them to end, one way or another; what runs waits for nothing."""
    then: list[list[int]] = [[] for _ in range(work.jobs)]
    for job, before in enumerate(work.after):
        for other in before if job not in work.ongoing else ():
            then[other].append(job)
    pending, found = list(jobs), set[int]()
    while pending:
        job = pending.pop()
        if job not in found:
            found.add(job)
            pending += then[job]
    return found
