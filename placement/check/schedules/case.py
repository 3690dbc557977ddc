"""A schedule before the judge: every stretch as a job of its own that waits, and times in whole milliseconds.

So the rules that judge the tasks of a plan judge those of a stretch. Running jobs that are in none get one too, behind
those of the schedule: one that never ends if they have no end, and else one of no length, for they are stopped at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import Any

import msgspec
import numpy as np

from placement.check.case.case import Placed
from placement.check.case.identity import resolve
from placement.check.exact import Bools, Ints
from placement.check.facts.facts import Facts
from placement.check.facts.names import Names, name_of
from placement.check.facts.uses import Rows
from placement.check.schedules.weights import weights_of
from placement.check.values.run_time import found_of
from placement.plan import Tasks
from placement.snapshot import Job, RunningTask, Snapshot
from placement.timetable import Schedule

NEVER = 1 << 60
"""When running jobs without an end end, in milliseconds."""


def milli(seconds: float) -> int:
    """Return the milliseconds nearest to some seconds."""
    return round(seconds * 1000)


def seconds(time: int) -> str:
    """Return milliseconds as text.

    Examples
    --------
    >>> seconds(1500), seconds(2000)
    ('1.5 s', '2 s')
    """
    whole, rest = divmod(time, 1000)
    return f"{whole} s" if not rest else f"{time / 1000!r} s"


def has_end(job: Job) -> bool:
    """Return whether a running job ends at some time."""
    return job.running is None or (job.duration is not None and bool(job.running.tasks))


def counts(job: Job) -> bool:
    """Return whether what becomes of a job counts: it waits, or could be stopped and has an end."""
    return job.running is None or (job.preemptible and has_end(job))


@dataclass(frozen=True, slots=True)
class Time:
    """A stretch in milliseconds.

    Attributes
    ----------
    number : int
        In the schedule.
    start, end, restart, lost : int
    carried : bool
        Whether it is one in which a job that runs now just goes on.
    """

    number: int
    start: int
    end: int
    restart: int
    lost: int
    carried: bool


class Timed:
    """A schedule of which all names and columns are right; see `placement.check.schedules.names`.

    Attributes
    ----------
    snapshot : Snapshot
        After the fields left out on request were taken out.
    schedule : Schedule
    jobs : Names
    job : list of (int, int)
        Entry of each stretch's job, and number within it.
    tasks : Tasks
        Of the schedule, and then of what runs now and is in no stretch of it; the job of each is its stretch.
    carried : list of bool
        By stretch: whether a job that runs now just goes on in it.
    present : dict of int to int
        By entry of a running job that is in no such stretch of the schedule, the one that was added.
    places : dict of (int, str, int) to RunningTask
        Running tasks by stretch, group and index, of the stretches that are carried.
    facts : Facts
        Of the snapshot of which each job is a stretch; behind them the jobs that are left out.
    unknown : list of Violation
        What `placement.check.case.identity` says of the tasks.
    weights : list of int
        What jobs of each entry count for in the value.
    kept : dict of str to object
        What a rule has worked out and others need, by its name.
    """

    def __init__(self, snapshot: Snapshot, schedule: Schedule) -> None:
        self.snapshot, self.schedule = snapshot, schedule
        self.jobs = Names(snapshot.jobs)
        found = [self.jobs.find(name) for name in schedule.stretches.job]
        self.job = [(0, 0) if one is None else one for one in found]
        own = _own(schedule)
        self.carried: list[bool] = []
        self.places: dict[tuple[int, str, int], RunningTask] = {}
        listed = _spots(
            schedule, {n for n, (spec, _) in enumerate(self.job) if snapshot.jobs[spec].running is not None}
        )
        for number, (spec, _) in enumerate(self.job):
            self._carry(number, snapshot.jobs[spec], listed[number])
        self.tasks = own
        self.present: dict[int, int] = {}
        self._add_rest()
        self.kept: dict[str, Any] = {}
        self.weights = weights_of(snapshot, schedule)
        self.left = [self.jobs.find(one.job) or (0, 0) for one in schedule.left_out]
        self.facts = Facts(msgspec.structs.replace(snapshot, jobs=tuple(self._as_jobs())))
        self.rows, self.unknown = resolve(self.facts, self.tasks)

    def _carry(self, number: int, job: Job, listed: set[_Spot]) -> None:
        """Note whether a stretch is one in which a job that runs now just goes on."""
        times = self.schedule.stretches
        present = [] if job.running is None else [(task, _spot(task)) for task in job.running.tasks]
        carried = bool(present) and {spot for _, spot in present} == listed
        carried = carried and milli(times.start[number]) == 0 and milli(times.restart[number]) == 0
        self.carried.append(carried)
        if carried:
            self.places |= {(number, task.group, task.index): task for task, _ in present}

    def _add_rest(self) -> None:
        """Add what runs now and is in no stretch: jobs without an end, and those that are stopped at once."""
        tasks = self.tasks
        there = {place for place, carried in zip(self.job, self.carried, strict=True) if carried}
        for spec, job in enumerate(self.snapshot.jobs):
            if job.running is None or (spec, 0) in there:
                continue
            number = self.present[spec] = len(self.job)
            self.job.append((spec, 0))
            self.carried.append(True)
            for task in job.running.tasks:
                self.places[number, task.group, task.index] = task
                group, index, node, gpus, starts = _spot(task)
                tasks.job.append(self.name(number))
                tasks.group.append(group)
                tasks.index.append(index)
                tasks.node.append(node)
                tasks.gpus.append(list(gpus))
                if starts and not isinstance(tasks.mig_starts, list):
                    tasks.mig_starts = [[]] * (len(tasks) - 1)
                if isinstance(tasks.mig_starts, list):
                    tasks.mig_starts.append(list(starts))

    def _as_jobs(self) -> Iterator[Job]:
        for number, (spec, _) in enumerate([*self.job, *self.left]):
            name = self.name(number) if number < len(self.job) else f"{number}"
            yield msgspec.structs.replace(self.snapshot.jobs[spec], name=name, count=1, running=None)

    # --- names ---------------------------------------------------------------------------------------------------

    def name(self, number: int) -> str:
        """Return what a stretch is called."""
        return _name(self.schedule, number) if number < len(self.schedule.stretches) else f"running {number}"

    def job_of(self, number: int) -> Job:
        """Return the entry of a stretch's job."""
        return self.snapshot.jobs[self.job[number][0]]

    def number_of(self, place: tuple[int, int]) -> int:
        """Return the number of a job, by its entry and number within it, where all are numbered in order."""
        return int(self.jobs.first[place[0]]) + place[1]

    def name_of(self, place: tuple[int, int]) -> str:
        """Return the name of a job."""
        return name_of(self.snapshot.jobs[place[0]], place[1])

    # --- times ---------------------------------------------------------------------------------------------------

    @cached_property
    def times(self) -> list[Time]:
        """The stretches of the schedule, and of what runs now and is in none: without an end, or of no length."""
        stretches = self.schedule.stretches
        columns = (stretches.start, stretches.end, stretches.restart, stretches.lost, self.carried)
        found = [
            Time(number, milli(start), milli(end), milli(restart), milli(lost), carried)
            for number, (start, end, restart, lost, carried) in enumerate(zip(*columns, strict=False))
        ]
        rest = range(len(found), len(self.job))
        return found + [Time(number, 0, 0 if has_end(self.job_of(number)) else NEVER, 0, 0, True) for number in rest]

    @cached_property
    def by_job(self) -> dict[tuple[int, int], list[Time]]:
        """The stretches of each job that has some in the schedule, by start."""
        found: dict[tuple[int, int], list[Time]] = defaultdict(list)
        for time in self.times[: len(self.schedule.stretches)]:
            found[self.job[time.number]].append(time)
        return {place: sorted(times, key=lambda one: (one.start, one.end)) for place, times in sorted(found.items())}

    def moment(self, seconds: float) -> int:
        """Return a moment on the snapshot's clock, rounded up."""
        return ceil(1000 * (Fraction(str(seconds)) - Fraction(str(self.snapshot.time))))

    # --- tasks ---------------------------------------------------------------------------------------------------

    @cached_property
    def fresh(self) -> Bools:
        """Which rows are of stretches that are not carried."""
        return ~np.array([*self.carried, *(False for _ in self.left)], dtype=np.bool_)[self.rows.job]

    @cached_property
    def new(self) -> Placed:
        """The tasks of stretches that are not carried."""
        return Placed(self.facts, picked(self.rows, np.flatnonzero(self.fresh)), self.tasks)

    @cached_property
    def full(self) -> dict[int, int]:
        """How long all of its job's work takes where a stretch has it, in milliseconds."""
        every = Placed(self.facts, self.rows, self.tasks)
        return {int(self.rows.job[one.row]): int(1000 * (one.run + one.fetch)) for one in found_of(every)}

    @cached_property
    def begin(self) -> Ints:
        """When the stretch of each row starts."""
        return np.array([time.start for time in self.times], dtype=np.int64)[self.rows.job]

    @cached_property
    def end(self) -> Ints:
        """When the stretch of each row ends."""
        return np.array([time.end for time in self.times], dtype=np.int64)[self.rows.job]


_Spot = tuple[str, int, str, tuple[int, ...], tuple[int, ...]]
"""Group, index, node, cards and slots of a task."""


def _spot(task: RunningTask) -> _Spot:
    return task.group, task.index, task.node, tuple(sorted(task.gpus)), task.mig_starts


def _spots(schedule: Schedule, numbers: set[int]) -> dict[int, set[_Spot]]:
    """Return where some stretches have their tasks."""
    found: dict[int, set[_Spot]] = defaultdict(set)
    tasks = schedule.tasks
    starts = tasks.mig_starts if isinstance(tasks.mig_starts, list) else [[]] * len(tasks)
    columns = (tasks.stretch, tasks.group, tasks.index, tasks.node, tasks.gpus, starts)
    for number, group, index, node, gpus, slots in zip(*columns, strict=True):
        if number in numbers:
            found[number].add((group, index, node, tuple(gpus), tuple(slots)))
    return found


def _name(schedule: Schedule, number: int) -> str:
    return f"{schedule.stretches.job[number]} (stretch {number})"


def _own(schedule: Schedule) -> Tasks:
    """Return the tasks of a schedule as those of a plan, of which each job is a stretch."""
    tasks = schedule.tasks
    names = [_name(schedule, number) for number in range(len(schedule.stretches))]
    return Tasks(
        job=[names[number] for number in tasks.stretch],
        group=list(tasks.group),
        index=list(tasks.index),
        node=list(tasks.node),
        gpus=list(tasks.gpus),
        mig_starts=list(tasks.mig_starts) if isinstance(tasks.mig_starts, list) else msgspec.UNSET,
    )


def picked(rows: Rows, which: Ints) -> Rows:
    """Return some rows, each as often as it is listed, in that order."""
    first, last = (np.searchsorted(rows.row, which + after) for after in (0, 1))
    lengths = last - first
    begin = np.cumsum(lengths) - lengths
    row = np.repeat(np.arange(len(which), dtype=np.int64), lengths)
    card = np.arange(len(row), dtype=np.int64) - begin[row] + first[row]
    return Rows(
        leaf=rows.leaf[which],
        spec=rows.spec[which],
        copy=rows.copy[which],
        device=rows.device[card],
        row=row,
        number=rows.number[which],
        job=rows.job[which],
        job_copy=rows.job_copy[which],
        index=rows.index[which],
    )
