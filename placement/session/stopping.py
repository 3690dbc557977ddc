"""Whom a schedule stops now: jobs that run and do not go on in it where they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

import msgspec

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
    stretches = schedule.stretches
    places = _places(schedule)
    first = {
        name: places.get(number, set())
        for number, name in enumerate(stretches.job)
        if stretches.start[number] == 0 and stretches.restart[number] == 0 and name in running
    }
    found = []
    for name, job in running.items():
        if job.preemptible and job.duration is not None and job.running is not None and job.running.tasks:
            now = {_place(one.group, one.index, one.node, one.gpus, one.mig_starts) for one in job.running.tasks}
            if first.get(name) != now:
                found.append(name)
    return found


_Place = tuple[str, int, str, tuple[int, ...], tuple[int, ...]]
"""Group, index, node, cards in order, and slots of a task."""


def _place(group: str, index: int, node: str, gpus: Iterable[int], slots: Iterable[int]) -> _Place:
    return group, index, node, tuple(sorted(gpus)), tuple(slots)


def _places(schedule: Schedule) -> dict[int, set[_Place]]:
    """Return where each stretch has its tasks."""
    tasks = schedule.tasks
    slots = [[]] * len(tasks.stretch) if isinstance(tasks.mig_starts, msgspec.UnsetType) else tasks.mig_starts
    found: dict[int, set[_Place]] = defaultdict(set)
    for stretch, *place in zip(tasks.stretch, tasks.group, tasks.index, tasks.node, tasks.gpus, slots, strict=True):
        found[stretch].add(_place(*place))
    return found
