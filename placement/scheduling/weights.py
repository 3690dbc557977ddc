r"""What jobs weigh in the sum that a schedule makes least.

For the least weighted completion time that is `Job.weight`. For finish-time fairness (Mahajan et al., Themis, NSDI'20)
what counts of a job is :math:`\rho_j = T_j / A_j`, the time it takes over the time that it would take alone with its
part of the cluster. With *n* queues that have jobs in the snapshot (jobs in no queue are together one), :math:`g_j` of
the *C* healthy cards asked for at the full count and a run time of :math:`r_j` as stated,

.. math:: A_j = r_j \cdot \max(1,\; n\, g_j / C).

A sum of :math:`w_j \rho_j` is one of weights times T. So that they are whole numbers, as all weights are, they are
taken :math:`10^3 \max_i A_i` times as large, and rounded:

.. math:: W_j = \min(10^{12}, \max(1, \mathrm{round}(10^3\, w_j \max_i A_i / A_j))), \quad W_j = 0 \text{ for } w_j = 0.

A job that takes no time, or has no end, keeps its own weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import msgspec

from placement import units
from placement.snapshot import IN_SCHEDULES, Job, Policy, Snapshot, Task, TaskGroup
from placement.snapshot.fields import MOST_WORTH

COMPLETION_TIME = IN_SCHEDULES[0]
PARTS = 1000
"""Least weight of a job of weight 1, so that rounding changes none by more than half of a thousandth."""


def aim_of(policy: Policy) -> str:
    """Return the objective of a schedule under a policy: the first that it names, of those there are."""
    return next((name for name in policy.objectives if name in IN_SCHEDULES), COMPLETION_TIME)


def with_aim(snapshot: Snapshot, aim: str) -> Snapshot:
    """Return a snapshot whose policy names an objective of schedules; the same one where that changes nothing."""
    if aim_of(snapshot.policy) == aim:
        return snapshot
    policy = msgspec.structs.replace(snapshot.policy, objectives=(aim,))
    return msgspec.structs.replace(snapshot, policy=policy)


def weights(snapshot: Snapshot) -> list[int]:
    """Return what each job of an entry of a snapshot weighs, by entry."""
    if aim_of(snapshot.policy) == COMPLETION_TIME:
        return [job.weight for job in snapshot.jobs]
    queues = len({job.queue for job in snapshot.jobs})
    there = sum(node.count * gpu.count for node in snapshot.nodes for gpu in node.gpus if gpu.health == "healthy")
    alone = [_alone(job, Fraction(queues, max(1, there))) for job in snapshot.jobs]
    longest = max((one for one in alone if one is not None), default=Fraction(1))
    return [_weight(job, longest, one) for job, one in zip(snapshot.jobs, alone, strict=True)]


def _alone(job: Job, of_card: Fraction) -> Fraction | None:
    """Return the seconds that a job takes alone with its part of the cluster; None where it has no end."""
    if job.duration is None:
        return None
    return units.exact(job.duration.seconds) * max(Fraction(1), _cards(job.groups) * of_card)


def _weight(job: Job, longest: Fraction, alone: Fraction | None) -> int:
    if not job.weight or not alone:
        return job.weight
    return min(MOST_WORTH, max(1, round(PARTS * job.weight * longest / alone)))


def _cards(groups: Sequence[TaskGroup]) -> Fraction:
    return sum((group.count * _of_member(group) for group in groups), Fraction(0))


def _of_member(group: TaskGroup) -> Fraction:
    return _cards(group.groups) if group.task is None else _of_task(group.task)


def _of_task(task: Task) -> Fraction:
    """Return the cards that a task asks for: of MIG instances none, and of a card of which it wants memory all."""
    return Fraction(task.gpus) * (Fraction(1) if task.gpu_share is None else units.exact(task.gpu_share))
