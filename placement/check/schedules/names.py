"""Names: columns of equal length, times in whole milliseconds, and jobs of the snapshot, each where it belongs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

import msgspec

from placement.check.case.identity import RULE
from placement.check.facts.names import Names
from placement.check.violation import Violation, show
from placement.snapshot import Snapshot
from placement.timetable import Schedule

LATEST = 2**52 / 1000
"""Times, in seconds, below which every millisecond can be told from the next."""

_TIMES = {
    "jobs": ("release", "start", "end", "queued", "run", "restart", "waited"),
    "stretches": ("start", "end", "restart", "lost"),
}


def columns(schedule: Schedule) -> list[Violation]:
    """Return what is wrong with the columns as such."""
    found = [one for name in ("jobs", "stretches", "tasks") for one in _uneven(schedule, name)]
    return found or [*_times(schedule), *_numbers(schedule)]


def _uneven(schedule: Schedule, name: str) -> Iterator[Violation]:
    table = getattr(schedule, name)
    listed = {column: getattr(table, column) for column in table.__struct_fields__}
    lengths = {column: len(values) for column, values in listed.items() if values is not msgspec.UNSET}
    if len(set(lengths.values())) > 1:
        words = ", ".join(f"{column} {length}" for column, length in lengths.items())
        yield Violation(RULE, name, f"the columns differ in length ({words}), they must be equal")


def _times(schedule: Schedule) -> Iterator[Violation]:
    for table, names in _TIMES.items():
        # that the parts of a job's time are no less than 0 follows from its stretches
        least = 0 if table == "stretches" else -LATEST
        for name in names:
            for number, value in enumerate(getattr(getattr(schedule, table), name)):
                if not (least <= value < LATEST and round(value * 1000) / 1000 == value):
                    what = f"{name} is {value!r}, expected seconds in whole milliseconds, and none before 0"
                    yield Violation(RULE, f"{table}[{number}].{name}", what)
    for number, (start, end) in enumerate(zip(schedule.stretches.start, schedule.stretches.end, strict=True)):
        if end < start:
            yield Violation(RULE, f"stretches[{number}]", f"it ends at {end!r} s, before it starts at {start!r} s")


def _numbers(schedule: Schedule) -> Iterator[Violation]:
    """Yield tasks of no stretch, tasks that are not by stretch, and stretches without tasks."""
    stretch, number_of = schedule.tasks.stretch, len(schedule.stretches)
    for row, number in enumerate(stretch):
        if not 0 <= number < number_of:
            what = f"there is no stretch {show(str(number))}, it has 0 to {number_of - 1}"
            yield Violation(RULE, f"tasks[{row}]", what)
    for row, (one, other) in enumerate(pairwise(stretch)):
        if other < one:
            yield Violation(RULE, f"tasks[{row + 1}]", "it comes after a task of a later stretch; list them by stretch")
            break
    for number in sorted(set(range(number_of)) - set(stretch)):
        yield Violation(RULE, f"stretches[{number}]", "it has no tasks, so it is none")


def names(snapshot: Snapshot, schedule: Schedule) -> Iterator[Violation]:
    """Yield jobs that are unknown, listed twice, or out of order; the columns are right."""
    jobs = Names(snapshot.jobs)
    lists = {"jobs": schedule.jobs.job, "stretches": schedule.stretches.job}
    lists["left_out"] = [one.job for one in schedule.left_out]
    unknown = False
    for table, listed in lists.items():
        for number, name in enumerate(listed):
            if jobs.find(name) is None:
                unknown = True
                what = f"no job is named {show(name)}, only jobs of the snapshot can be listed"
                yield Violation(RULE, f"{table}[{number}]", what)
    if unknown:
        return
    place = {name: jobs.find(name) or (0, 0) for listed in lists.values() for name in listed}
    for table in ("jobs", "left_out"):
        for name, times in Counter(lists[table]).items():
            if times > 1:
                yield Violation(RULE, table, f"job {show(name)} is listed {times} times, once is allowed")
        due = sorted(lists[table], key=place.__getitem__)
        if due != lists[table]:
            number = next(number for number, name in enumerate(lists[table]) if name != due[number])
            what = f"{show(lists[table][number])} is out of order, jobs are listed in the order of the snapshot"
            yield Violation(RULE, f"{table}[{number}]", what)
    order = [(start, place[job]) for start, job in zip(schedule.stretches.start, lists["stretches"], strict=True)]
    for number, (one, other) in enumerate(pairwise(order)):
        if other < one:
            what = "it comes too late, stretches are listed by start, and jobs in the order of the snapshot"
            yield Violation(RULE, f"stretches[{number + 1}]", what)
            break
