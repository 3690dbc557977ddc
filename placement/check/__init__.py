"""The independent judge of plans: one file per rule, whole numbers only, no solver and no compiled instance.

Every resource of every node and card, every gang, every objective and every figure is recomputed from the snapshot
and the plan's tasks. What running work breaks by itself is no violation; what new work adds to it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from placement.check import (
    admission,
    bounds,
    capacity,
    device_memory,
    filters,
    gang,
    identity,
    limits,
    objectives,
    origin,
    pending,
    shares,
    usage_figures,
)
from placement.check.case import Case, Judge
from placement.check.facts import facts_of
from placement.check.objectives import objective as objective
from placement.check.overfull import overfull as overfull
from placement.check.usage_figures import usage as usage
from placement.check.violation import Violation as Violation
from placement.errors import InputError
from placement.honoured import refuse_unhonoured
from placement.plan import Plan
from placement.snapshot import Snapshot
from placement.snapshot.read import verified

_JUDGES: tuple[Judge, ...] = (
    admission.judge,
    capacity.judge,
    limits.judge,
    shares.judge,
    device_memory.judge,
    gang.judge,
    objectives.judge,
    bounds.judge,
    pending.judge,
    usage_figures.judge,
)

RULES: tuple[str, ...] = (
    origin.RULE,
    identity.RULE,
    *filters.NODE_RULES,
    *filters.CARD_RULES,
    capacity.RULE,
    limits.RULE,
    shares.RULE,
    device_memory.RULE,
    gang.RULE,
    objectives.RULE,
    bounds.RULE,
    pending.RULE,
    usage_figures.RULE,
)
"""Name of every rule, in the order in which violations are listed (those of the filters by task)."""


def check(snapshot: Snapshot, plan: Plan, without: Sequence[str] | None = None) -> list[Violation]:
    """Judge a plan against the snapshot it was made for.

    Parameters
    ----------
    snapshot : Snapshot
        As read, with every field still there.
    plan : Plan
        From `placement.solve`, or from a file that may have been edited.
    without : sequence of str, optional
        Fields of the snapshot to leave out of account; by default those that the plan says it left out.

    Returns
    -------
    list of Violation
        Empty if the plan keeps every rule, its values and figures are right, and no bound contradicts its value. That
        a bound is true cannot be seen without solving.

    Raises
    ------
    SnapshotError
        If the snapshot is wrong.
    UsageError
        If `without` names what is no field.
    """
    snapshot = verified(snapshot)
    found = origin.judge(snapshot, plan)
    try:
        honoured = refuse_unhonoured(snapshot, plan.provenance.without if without is None else without)
    except InputError as error:
        if without is not None:
            raise
        # the plan's own words, so the plan is what is wrong
        return [*found, *origin.fields(error)]
    uneven = identity.columns(plan.tasks)
    if uneven is not None:
        return [*found, uneven]
    case = Case(facts_of(honoured), plan)
    found += case.unknown
    for judge in _JUDGES:
        found += judge(case)
    return found
