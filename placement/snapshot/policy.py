"""What a good plan is: the objectives in order, and how much of today may be disturbed."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

ObjectiveName = Literal[
    "value",
    "tasks",
    "locality",
    "run_time",
    "fragmentation",
    "whole_nodes",
    "nodes",
    "mig_cards",
    "completion_time",
    "finish_time_fairness",
]
"""Name of an objective.

``value``
    Most value of started work, priority by priority.
``tasks``
    Most started tasks.
``locality``
    Fewest levels by which copies of groups lie wider than the level they prefer, summed over all copies: one that lies
    in two blocks and prefers one rack lies two levels wider. Added to the end of the list where a pending job prefers a
    level and neither the policy nor the caller says anything else than ``value`` and ``tasks``.
``run_time``
    Least weighted run time: the sum over pending jobs with placed tasks of `Job.weight` times the seconds that the job
    runs where it is placed (`Duration`), and those in which its data are fetched (`DataLocality`). A job without a
    duration runs for no time. Added to the end of the list, after ``locality``, where a pending job states a duration
    or data and neither the policy nor the caller says anything else than ``value`` and ``tasks``.
``fragmentation``
    Least idle GPU that the snapshot's own jobs could not use (the measure of FGD, Weng et al., ATC'23).
``whole_nodes``
    Most nodes with cards that are left wholly free.
``nodes``
    Fewest nodes in use.
``mig_cards``
    Fewest MIG cards in use: cards on which MIG is on and some task, running or new, has an instance.
``completion_time``
    Least weighted completion time, in a schedule.
``finish_time_fairness``
    In a schedule, the least sum over jobs of `Job.weight` times the time that the job takes over the one that it would
    take alone with its part of the cluster (Mahajan et al., Themis, NSDI'20); see `placement.scheduling.weights`.
"""

OBJECTIVES: tuple[str, ...] = get_args(ObjectiveName)
IN_SCHEDULES = ("completion_time", "finish_time_fairness")
"""Those of schedules; the others are of plans."""

Shares = Literal["quota", "fair_share", "dominant_share"]
SHARES: tuple[str, ...] = get_args(Shares)


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, gc=False):
    """What to optimise.

    Attributes
    ----------
    objectives : tuple of str
        In order: each is held while the next is improved. See `ObjectiveName`.
    max_moves : int, optional
        Most running tasks that a plan may move.
    max_preemptions : int, optional
        Most running jobs that a plan may stop.
    max_wait_seconds : float, optional
        After how long a wait, in seconds, a job comes before all others that wait; None for never.
    tenants_apart : str
        Within what tasks of different tenants (`Job.tenant`) may not be together at a time: ``"gpu"``, ``"node"`` or a
        level of `Snapshot.topology`; empty where they may. Jobs without a tenant are together one. A node in no domain
        of the level is one by itself. Between cards only tasks that could share one count, on MIG cards too. Running
        work of several tenants that is together stays, and nothing may join it.
    shares : str
        What queues may take: as much as their quotas allow, or no more than their share too, by weight
        (``"fair_share"``) or by the model of which it is largest (``"dominant_share"``); see
        `placement.entitlement`. Shares are of one moment, so that plans keep to them and schedules do not.
    """

    objectives: tuple[ObjectiveName, ...] = ("value", "tasks")
    max_moves: int | None = None
    max_preemptions: int | None = None
    max_wait_seconds: float | None = None
    tenants_apart: str = ""
    shares: Shares = "quota"
