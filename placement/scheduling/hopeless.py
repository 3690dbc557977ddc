"""Jobs that are not late but never start: beside work that has no end they find no places, or no quota, at any time."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from placement.quota import Short
from placement.scheduling.desk import NEVER, Desk
from placement.scheduling.timing import Timetable
from placement.scheduling.work import Work


def hopeless(work: Work, jobs: Collection[int]) -> tuple[set[int], dict[int, Short]]:
    """Return which of some jobs that wait do not fit beside what runs and has no end, and those that lack quota there.

    Windows and deadlines are not looked at. Where all that runs has an end and there are no queues, no job is one.

    Parameters
    ----------
    work : Work
    jobs : collection of int

    Returns
    -------
    set of int, dict of int to Short
        Those that find no places, and what quota the others are short of.
    """
    endless = any(one.left is None for one in work.ongoing.values())
    if not jobs or not (endless or work.instance.snapshot.queues):
        return set(), {}
    desk = Desk(replace(work, hard=(False,) * work.jobs, windows=()))
    never, quota = set[int](), dict[int, Short]()
    with desk.without([job for job, live in desk.live.items() if live.end < NEVER]):
        for job in jobs:
            tasks = desk.fit(job)
            if tasks is not None:
                desk.withdraw(job, tasks)
            elif job in desk.short:
                quota[job] = desk.short[job]
            else:
                never.add(job)
    return never, quota


def told_apart(work: Work, table: Timetable) -> Timetable:
    """Return a timetable in which those of the late jobs that never start are not called late."""
    never, quota = hopeless(work, table.late)
    late = table.late - never - quota.keys()
    return replace(table, never=table.never | never, late=late, quota=table.quota | quota)
