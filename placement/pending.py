"""Why a job stays pending."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from placement.collector import collector_paused
from placement.empty import EmptyCluster
from placement.entitlement.beyond import beyond, beyond_one_more
from placement.instance import Assignment, Instance
from placement.naming import job_names
from placement.plan import Pending
from placement.shortage import shortages
from placement.snapshot import Job, TaskGroup

Reason = tuple[Literal["never", "not_wanted", "no_room"], str]
"""The reason and its detail."""

PARTLY: Reason = (
    "no_room",
    "runs with fewer tasks than it wants: there is no room for more beside the other work of this plan",
)
BESIDE: Reason = (
    "no_room",
    "every task fits on a node without work, but not all it needs beside the other work of this plan",
)
LYING: Reason = (
    "no_room",
    "every task fits on a node without work, but not all it needs, lying as it must, beside the other work",
)
LYING_PARTLY: Reason = (
    "no_room",
    "runs with fewer tasks than it wants: there is no room for more, lying as they must, beside the other work",
)
_NO_ROOM = (PARTLY, LYING_PARTLY)
ONE_MORE = "runs with fewer tasks than it wants: beside the other work of this plan one more asks for"


@collector_paused()
def pending(instance: Instance, assignment: Assignment, objectives: Sequence[str] | None = None) -> list[Pending]:
    """Return the jobs that do not run with all their tasks, in the order of the snapshot.

    Parameters
    ----------
    instance : Instance
    assignment : Assignment
    objectives : sequence of str, optional
        Of the plan; those of the snapshot's policy if absent.
    """
    chosen = instance.snapshot.policy.objectives if objectives is None else objectives
    placed = np.bincount(assignment.job, minlength=instance.jobs)
    wanted = np.array(
        [sum(leaf.count * leaf.copies for leaf in job_class.leaves) for job_class in instance.job_classes],
        dtype=np.int64,
    )[instance.job_class]
    jobs = np.flatnonzero(placed < wanted)
    number = instance.job_class[jobs]
    some = placed[jobs].tolist()
    why = _reasons(instance, np.unique(number[placed[jobs] == 0]).tolist(), chosen)
    over = beyond(instance, assignment, [kind for kind, reason in why.items() if reason in (BESIDE, LYING)])
    why |= {kind: ("no_room", f"beside the other work of this plan it asks for {one}") for kind, one in over.items()}
    short = shortages(instance, assignment, [kind for kind, reason in why.items() if reason == BESIDE])
    why |= {kind: ("no_room", f"{BESIDE[1]} ({text})") for kind, text in short.items()}
    partly = {kind: _partly(instance, kind, chosen) for kind in np.unique(number[placed[jobs] > 0]).tolist()}
    lacking = {kind: leaves for kind, leaves in _lacking(instance, assignment).items() if partly[kind] in _NO_ROOM}
    over = beyond_one_more(instance, assignment, lacking)
    partly |= {kind: ("no_room", f"{ONE_MORE} {one}") for kind, one in over.items()}
    reasons = [partly[kind] if tasks else why[kind] for tasks, kind in zip(some, number.tolist(), strict=True)]
    rows = zip(job_names(instance, jobs), some, wanted[jobs].tolist(), reasons, strict=True)
    return [
        Pending(job=name, placed=tasks, wanted=all_tasks, reason=reason, detail=detail)
        for name, tasks, all_tasks, (reason, detail) in rows
    ]


def _reasons(instance: Instance, classes: list[int], objectives: Sequence[str]) -> dict[int, Reason]:
    """Return why jobs of some classes have no task at all."""
    empty = EmptyCluster(instance)
    why: dict[int, Reason] = {}
    for number in classes:
        never = empty.never(number)
        unwanted = _unwanted(_job(instance, number), objectives)
        if never is not None:
            why[number] = "never", never
        elif unwanted is not None:
            why[number] = "not_wanted", f"left out: {unwanted}"
        else:
            why[number] = LYING if instance.job_classes[number].tied else BESIDE
    return why


def _partly(instance: Instance, number: int, objectives: Sequence[str]) -> Reason:
    """Return why jobs of a class run with fewer tasks than they want."""
    unwanted = _unwanted(_job(instance, number), objectives)
    if unwanted is not None:
        return "not_wanted", f"runs with fewer tasks than it wants: {unwanted}"
    return LYING_PARTLY if instance.job_classes[number].tied else PARTLY


def _lacking(instance: Instance, assignment: Assignment) -> dict[int, list[int]]:
    """Return for classes of jobs that run with fewer tasks than they want of which leaves some of them want more."""
    width = max((len(one.leaves) for one in instance.job_classes), default=0)
    wanted = np.zeros((len(instance.job_classes), width), dtype=np.int64)
    for number, one in enumerate(instance.job_classes):
        wanted[number, : len(one.leaves)] = [leaf.count * leaf.copies for leaf in one.leaves]
    jobs, row = np.unique(assignment.job, return_inverse=True)
    placed = np.bincount(row * width + assignment.leaf, minlength=len(jobs) * width).reshape(-1, max(width, 1))
    job, leaf = np.nonzero(placed < wanted[instance.job_class[jobs]])
    found: dict[int, list[int]] = {}
    for number, which in np.unique(np.stack([instance.job_class[jobs[job]], leaf]), axis=1).T.tolist():
        found.setdefault(number, []).append(which)
    return found


def _job(instance: Instance, number: int) -> Job:
    return instance.snapshot.jobs[int(instance.job_spec[instance.job_classes[number].jobs[0]])]


def _unwanted(job: Job, objectives: Sequence[str]) -> str | None:
    """Return which objective comes before all that tasks of a job serve, or that none does; None if one comes first."""
    groups = list(_all(job.groups))
    for name in objectives:
        if name == "tasks":
            return None
        if name == "value":
            cards = any(group.task is not None and group.task.gpus for group in groups)
            if job.value or (job.value is None and job.weight and cards):
                return None
        elif name == "run_time":
            if job.duration is not None or job.data:
                return f"the plan's objectives put {name} before what its tasks serve"
        elif name == "mig_cards":
            if any(group.task is not None and group.task.mig_profile for group in groups):
                return f"the plan's objectives put {name} before what its tasks serve"
        elif name != "locality" or any(group.topology is not None and group.topology.preferred for group in groups):
            return f"the plan's objectives put {name} before what its tasks serve"
    return "none of the plan's objectives is served by its tasks"


def _all(groups: Iterable[TaskGroup]) -> Iterable[TaskGroup]:
    for group in groups:
        yield group
        yield from _all(group.groups)
