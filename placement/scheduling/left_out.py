"""Jobs that a timetable may leave out and still count as no worse: a bound may say nothing of these."""

from __future__ import annotations

from collections.abc import Collection

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
    then: list[list[int]] = [[] for _ in range(work.jobs)]
    for job, before in enumerate(work.after):
        for other in before:
            then[other].append(job)
    light = [job for job in range(work.jobs) if work.hard[job] and int(work.weight[job]) <= weight]
    pending = [*never, *light]
    found: set[int] = set()
    while pending:
        job = pending.pop()
        if job not in found:
            found.add(job)
            pending += then[job]
    return frozenset(found)
