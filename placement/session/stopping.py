"""Whom a schedule stops now: jobs that run and do not go on in it where they are."""

from __future__ import annotations

from collections.abc import Mapping

from placement.snapshot import Job
from placement.timetable import Schedule


def stopping(schedule: Schedule, running: Mapping[str, Job]) -> list[str]:
    """Return the jobs that a schedule of the present state stops at once.

    They are those that may be stopped and have an end, and have no stretch that begins now, with nothing to be
    restored, on the places where they are.

    Parameters
    ----------
    schedule : Schedule
    running : mapping of str to Job
        What runs when the schedule was made and now.
    """
    stretches, tasks = schedule.stretches, schedule.tasks
    places: dict[int, set[tuple[str, int, str, tuple[int, ...]]]] = {}
    for stretch, group, index, node, gpus in zip(
        tasks.stretch, tasks.group, tasks.index, tasks.node, tasks.gpus, strict=True
    ):
        places.setdefault(stretch, set()).add((group, index, node, tuple(gpus)))
    first = {
        name: places.get(number, set())
        for number, name in enumerate(stretches.job)
        if stretches.start[number] == 0 and stretches.restart[number] == 0 and name in running
    }
    found = []
    for name, job in running.items():
        if job.preemptible and job.duration is not None and job.running is not None and job.running.tasks:
            now = {(task.group, task.index, task.node, tuple(task.gpus)) for task in job.running.tasks}
            if first.get(name) != now:
                found.append(name)
    return found
