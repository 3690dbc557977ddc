"""The greedy policies by name."""

from __future__ import annotations

import math

from placement.scheduling import orders
from placement.scheduling.desk import Desk
from placement.scheduling.drf import DominantResourceFairness
from placement.scheduling.found import Found
from placement.scheduling.hopeless import told_apart
from placement.scheduling.loop import Loop, Policy
from placement.scheduling.orders import ListPolicy
from placement.scheduling.policies.conservative_backfill import ConservativeBackfill
from placement.scheduling.policies.easy_backfill import EasyBackfill
from placement.scheduling.policies.gavel import Gavel
from placement.scheduling.policies.kueue_preemption import KueuePreemption
from placement.scheduling.policies.priority_preemptive import PriorityPreemptive
from placement.scheduling.policies.tiresias_las import TiresiasLas
from placement.scheduling.policies.volcano_gang_preempt import VolcanoGangPreempt
from placement.scheduling.work import Work
from placement.solver import Stop

BASELINES: dict[str, Policy] = {
    policy.name: policy
    for policy in (
        ListPolicy("fifo", orders.by_arrival, strict=True),
        ListPolicy("fifo-list", orders.by_arrival),
        ListPolicy("shortest-job-first", orders.by_length),
        ListPolicy("smith", orders.by_weighted_length),
        ListPolicy("smith-area", orders.by_weighted_area),
        EasyBackfill(),
        ConservativeBackfill(),
        PriorityPreemptive(),
        VolcanoGangPreempt(),
        KueuePreemption(),
        TiresiasLas(),
        Gavel(),
        DominantResourceFairness(),
    )
}
"""Every policy by its name."""


def baseline(work: Work, name: str, deadline: float = math.inf) -> Found:
    """Return the timetable of a policy, which proves nothing.

    Raises
    ------
    OutOfTimeError
        If it is not made by the deadline, on the clock of `time.monotonic`.
    """
    table = Loop(Desk(work, deadline=deadline), BASELINES[name]).run()
    return Found(name, told_apart(work, table), None, Stop.COMPLETE)
