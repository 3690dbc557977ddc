"""Timetable to schedule: names for indices, seconds for milliseconds, the parts of every job's completion time."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from placement.empty import EmptyCluster
from placement.figures import figures
from placement.instance import ANY, Assignment, Instance
from placement.naming import job_names, name_tasks
from placement.numa import without_zones
from placement.plan import Provenance, Tasks
from placement.scheduling.timing import Stretch, Timetable
from placement.scheduling.work import Work
from placement.snapshot import Snapshot
from placement.solver import Stop
from placement.timetable import JobTimes, LeftOut, Schedule, Stretches, StretchTasks

CONTRADICTED = "the schedule contradicts the bound that was found, so no bound is used"
MOST_NOTED = 10
"""Most jobs that are noted one by one to run longer than estimated."""


def schedule_of(
    work: Work,
    table: Timetable,
    bound: int | None,
    stop: Stop,
    provenance: Provenance,
    mark: str,
    notes: Sequence[str],
    snapshot: Snapshot,
) -> Schedule:
    """Return the schedule of a timetable, not yet checked.

    Parameters
    ----------
    work : Work
    table : Timetable
    bound : int, optional
        On `Timetable.value`.
    stop : Stop
    provenance : Provenance
    mark : str
        Digest of the snapshot.
    notes : sequence of str
    snapshot : Snapshot
        With what runs, for the figures.
    """
    value = table.value(work)
    contradicted = bound is not None and bound > value
    least = None if contradicted else bound
    shown = None if least is None else _shown(least, value)
    status: Literal["proven", "bounded", "feasible"]
    status = "feasible" if least is None else "proven" if least == value and not table.late else "bounded"
    jobs = job_times(work, [one for one in table.stretches if work.counts(one.job)])
    stretches, tasks = _stretches(work.instance, table.stretches)
    return Schedule(
        snapshot=mark,
        status=status,
        stop=(Stop.OPTIMAL if status == "proven" else Stop.COMPLETE if stop is Stop.OPTIMAL else stop).value,
        reproducible=stop not in (Stop.TIME, Stop.FAILED),
        value=value / 1000,
        bound=shown,
        gap=None if shown is None else _gap(value / 1000, shown),
        jobs=jobs,
        stretches=stretches,
        tasks=tasks,
        left_out=_left_out(work, table),
        figures=figures(snapshot, jobs, stretches, tasks),
        notes=[*notes, *([CONTRADICTED] if contradicted else []), *_overruns(work), *_held_back(work, table)],
        provenance=provenance,
        checked=False,
    )


def _shown(bound: int, value: int) -> float:
    """Return a bound in seconds: no more than it is, and less than the value where it is less, if doubles have gaps."""
    found = bound / 1000
    while bound < value and (round(found * 1000) > bound or found >= value / 1000):
        found = math.nextafter(found, 0)
    return found


def _gap(value: float, bound: float) -> float:
    whole = round(value * 1000)
    return (whole - round(bound * 1000)) / whole if whole else 0.0


def job_times(work: Work, stretches: Sequence[Stretch]) -> JobTimes:
    """Return what becomes of the jobs that have some of these stretches, which all count."""
    of_job: dict[int, list[Stretch]] = defaultdict(list)
    for one in stretches:
        of_job[one.job].append(one)
    found = JobTimes(job=job_names(work.instance, np.array(sorted(of_job), dtype=np.int64)))
    for job in sorted(of_job):
        mine = of_job[job]
        release, end = int(work.release[job]), max(one.end for one in mine)
        held = sum(one.end - one.start for one in mine)
        restart = sum(one.restart + one.lost for one in mine)
        found.queue.append(work.queue[job])
        found.priority.append(int(work.priority[job]))
        found.weight.append(int(work.weight[job]))
        found.release.append(release / 1000)
        found.start.append(min(one.start for one in mine) / 1000)
        found.end.append(end / 1000)
        found.queued.append((end - release - held) / 1000)
        found.run.append((held - restart) / 1000)
        found.restart.append(restart / 1000)
        found.waited.append(0.0 if job in work.ongoing else max(0, -int(work.submit[job])) / 1000)
    return found


def _stretches(instance: Instance, shown: Sequence[Stretch]) -> tuple[Stretches, StretchTasks]:
    stretches = Stretches(
        job=job_names(instance, np.array([one.job for one in shown], dtype=np.int64)),
        start=[one.start / 1000 for one in shown],
        end=[one.end / 1000 for one in shown],
        restart=[one.restart / 1000 for one in shown],
        lost=[one.lost / 1000 for one in shown],
    )
    tasks = StretchTasks()
    bound: list[list[int]] = []
    slots: list[list[int]] = []
    # what zones give a task depends on who else is in the assignment, so there each stretch is one by itself
    zoned = any(node.zones for node in instance.snapshot.nodes)
    every = range(len(shown))
    for numbers in [(number,) for number in every] if zoned or not shown else [every]:
        rows: list[tuple[int, int, int, int, tuple[int, ...]]] = []
        for number in numbers:
            job = shown[number].job
            rows += sorted((job, leaf, task, node, cards) for leaf, task, (node, cards) in shown[number].tasks)
            tasks.stretch += [number] * len(shown[number].tasks)
        assignment = Assignment.listed(rows)
        named = name_tasks(instance, assignment, settle=False)
        tasks.group += named.group
        tasks.index += named.index
        tasks.node += named.node
        tasks.gpus += named.gpus
        bound += _bound_zones(instance, assignment, named)
        slots += [[]] * len(named) if isinstance(named.mig_starts, msgspec.UnsetType) else named.mig_starts
    tasks.zones = bound if any(bound) else msgspec.UNSET
    tasks.mig_starts = slots if any(slots) else msgspec.UNSET
    return stretches, tasks


def _bound_zones(instance: Instance, assignment: Assignment, named: Tasks) -> list[list[int]]:
    """Return the zones of each task; of one that is bound to none they would be said as if nothing else was there."""
    zones = [[]] * len(named) if isinstance(named.zones, msgspec.UnsetType) else named.zones
    ties = without_zones(instance, assignment)[1].tolist()
    rows = zip(zones, ties, assignment.job.tolist(), assignment.leaf.tolist(), strict=True)
    found = []
    for listed, tied, job, leaf in rows:
        shape = instance.job_classes[instance.job_class[job]].leaves[leaf].shape
        found.append(listed if tied and instance.shapes[shape].numa != ANY else [])
    return found


def _left_out(work: Work, table: Timetable) -> list[LeftOut]:
    empty = EmptyCluster(work.instance)
    names = job_names(work.instance, np.arange(work.jobs))
    found = []
    for job in sorted(table.never | table.late | table.quota.keys()):
        reason: Literal["never", "late", "quota"]
        reason = "late" if job in table.late else "quota" if job in table.quota else "never"
        why = "it would end after its deadline" if reason == "late" else f"it asks for {table.quota.get(job)}"
        if reason == "never":
            never = empty.never(int(work.instance.job_class[job]))
            why = never or "a job that it comes after has no end, or nothing it could use comes free"
        found.append(LeftOut(job=names[job], reason=reason, detail=why))
    return found


def _overruns(work: Work) -> list[str]:
    """Return which running jobs have run for longer than estimated, and when they are expected to end now."""
    over = [job for job, ongoing in work.ongoing.items() if ongoing.overrun is not None]
    names = job_names(work.instance, np.array(over[:MOST_NOTED], dtype=np.int64))
    found = [
        f"{name} has run {(work.ongoing[job].overrun or 0) / 1000:g} s longer than estimated and is expected to end in "
        f"{(work.ongoing[job].left or 0) / 1000:g} s"
        for name, job in zip(names, over, strict=False)
    ]
    more = len(over) - len(found)
    return [*found, *([f"and {more} more jobs have run longer than estimated"] if more else [])]


def _held_back(work: Work, table: Timetable) -> list[str]:
    names = job_names(work.instance, np.arange(work.jobs))
    return [
        f"{names[job]} of queue {work.queue[job]} waits for quota, though devices are free: it asks for {short}"
        for job, short in sorted(table.held_back.items())
    ]
