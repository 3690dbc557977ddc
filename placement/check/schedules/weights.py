"""Weights: what each job counts for in the value of a schedule, by the objective that the schedule says it is for."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from placement.check.violation import Violation, show
from placement.snapshot import IN_SCHEDULES, Job, Snapshot, TaskGroup
from placement.timetable import Schedule
from placement.units import exact

RULE = "objectives"
MOST = 10**12


def judge(schedule: Schedule) -> Iterator[Violation]:
    """Yield where a schedule does not say one objective of schedules."""
    named = schedule.provenance.objectives
    if len(named) > 1 or not set(named) <= set(IN_SCHEDULES):
        known = " or ".join(IN_SCHEDULES)
        yield Violation(RULE, "provenance.objectives", f"{show(', '.join(named))} is said, expected {known}")


def weights_of(snapshot: Snapshot, schedule: Schedule) -> list[int]:
    """Return the weight of the jobs of each entry.

    With finish-time fairness, a job weighs in inverse proportion to how long it would take alone with one part in as
    many as there are queues with jobs: 1000 times its weight where no job takes longer.
    """
    named = schedule.provenance.objectives or snapshot.policy.objectives
    if next((name for name in named if name in IN_SCHEDULES), "") != "finish_time_fairness":
        return [job.weight for job in snapshot.jobs]
    cards = [gpu.count * node.count for node in snapshot.nodes for gpu in node.gpus if gpu.health == "healthy"]
    part = Fraction(max(1, sum(cards)), len({job.queue for job in snapshot.jobs}) or 1)
    seconds = [0 if job.duration is None else exact(job.duration.seconds) for job in snapshot.jobs]
    taken = [_cards(job) for job in snapshot.jobs]
    alone = [run * have / part if have > part else run for run, have in zip(seconds, taken, strict=True)]
    longest = max(alone, default=0)
    found = []
    for job, one in zip(snapshot.jobs, alone, strict=True):
        if one == 0 or job.weight == 0:
            found.append(job.weight)
        else:
            found.append(max(1, min(MOST, round(1000 * job.weight * longest / one))))
    return found


def _cards(job: Job) -> Fraction:
    """Return the cards that all tasks of a job ask for, parts of cards as parts."""
    found, open_groups = Fraction(0), [(group, 1) for group in job.groups]
    while open_groups:
        group, times = open_groups.pop()
        found += times * group.count * _of_task(group)
        open_groups += [(inner, times * group.count) for inner in group.groups]
    return found


def _of_task(group: TaskGroup) -> Fraction:
    if group.task is None:
        return Fraction(0)
    return group.task.gpus * (exact(group.task.gpu_share) if group.task.gpu_share is not None else Fraction(1))
