"""Why a job stays pending."""

from __future__ import annotations

from typing import Literal

import numpy as np

from placement.collector import collector_paused
from placement.empty import EmptyCluster
from placement.instance import Assignment, Instance
from placement.naming import job_names
from placement.plan import Pending

Reason = tuple[Literal["never", "no_room"], str]
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


@collector_paused()
def pending(instance: Instance, assignment: Assignment) -> list[Pending]:
    """Return the jobs that do not run with all their tasks, in the order of the snapshot."""
    placed = np.bincount(assignment.job, minlength=instance.jobs)
    wanted = np.array(
        [sum(leaf.count * leaf.copies for leaf in job_class.leaves) for job_class in instance.job_classes],
        dtype=np.int64,
    )[instance.job_class]
    jobs = np.flatnonzero(placed < wanted)
    number = instance.job_class[jobs]
    some = placed[jobs].tolist()
    why = _reasons(instance, np.unique(number[placed[jobs] == 0]).tolist())
    partly = [LYING_PARTLY if job_class.tied else PARTLY for job_class in instance.job_classes]
    reasons = [partly[kind] if tasks else why[kind] for tasks, kind in zip(some, number.tolist(), strict=True)]
    rows = zip(job_names(instance, jobs), some, wanted[jobs].tolist(), reasons, strict=True)
    return [
        Pending(job=name, placed=tasks, wanted=all_tasks, reason=reason, detail=detail)
        for name, tasks, all_tasks, (reason, detail) in rows
    ]


def _reasons(instance: Instance, classes: list[int]) -> dict[int, Reason]:
    """Return why jobs of some classes have no task at all."""
    empty = EmptyCluster(instance)
    why: dict[int, Reason] = {}
    for number in classes:
        never = empty.never(number)
        beside = LYING if instance.job_classes[number].tied else BESIDE
        why[number] = beside if never is None else ("never", never)
    return why
