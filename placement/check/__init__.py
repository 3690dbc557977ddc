"""The independent judge of plans: a file for each rule, in rooms by subject; whole numbers alone, and no solver.

Every resource of every node and card, every gang, every objective and every figure is recomputed from the snapshot
and the plan's tasks, never from a compiled instance. What running work breaks by itself is no violation; what new work
adds to it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from placement.check import admission, origin
from placement.check.case import filtered, identity
from placement.check.case.case import Case, Judge
from placement.check.converted import converted
from placement.check.facts.facts import facts_of
from placement.check.groups import affinity, gang, topology
from placement.check.in_nodes import cpuset, links, mig, nics, numa
from placement.check.loads import capacity, clients, device_memory, limits, shares, tenants
from placement.check.queues import queue_shares
from placement.check.running import notes
from placement.check.running.overfull import RUNNING as RUNNING
from placement.check.running.overfull import overfull as overfull
from placement.check.running.overfull import running_notes as running_notes
from placement.check.schedules.judge import SCHEDULE_RULES as SCHEDULE_RULES
from placement.check.schedules.judge import check_schedule as check_schedule
from placement.check.values import bounds, localities, objectives, run_time, usage_figures
from placement.check.values.localities import locality as locality
from placement.check.values.objectives import objective as objective
from placement.check.values.usage_figures import usage as usage
from placement.check.values.usage_figures import worth as worth
from placement.check.violation import Violation as Violation
from placement.check.waiting import pending
from placement.collector import collector_paused
from placement.errors import InputError, PlanError, Problem
from placement.honoured import refuse_unhonoured_in_plan
from placement.plan import Plan, Tasks
from placement.snapshot import Snapshot
from placement.snapshot.read import verified
from placement.timetable import Schedule
from placement.units import Quantity

_JUDGES: tuple[Judge, ...] = (
    admission.judge,
    capacity.judge,
    limits.judge,
    shares.judge,
    clients.judge,
    device_memory.judge,
    mig.judge,
    numa.judge,
    nics.judge,
    gang.judge,
    topology.judge,
    affinity.judge,
    tenants.judge,
    queue_shares.judge,
    objectives.judge,
    bounds.judge,
    pending.judge,
    usage_figures.judge,
    localities.judge,
    run_time.judge,
    links.judge,
    cpuset.judge,
    notes.judge,
)

RULES: tuple[str, ...] = (
    origin.RULE,
    identity.RULE,
    *filtered.NODE_RULES,
    *filtered.CARD_RULES,
    *filtered.CARD_ON_NODE_RULES,
    capacity.RULE,
    limits.RULE,
    shares.RULE,
    clients.RULE,
    device_memory.RULE,
    numa.RULE,
    nics.RULE,
    gang.RULE,
    topology.RULE,
    affinity.RULE,
    tenants.RULE,
    queue_shares.RULE,
    objectives.RULE,
    bounds.RULE,
    pending.RULE,
    usage_figures.RULE,
    localities.RULE,
    run_time.RULE,
    links.RULE,
    cpuset.RULE,
    notes.RULE,
)
"""Name of every rule, in the order in which violations are listed (those of the filters by task).

``"mig"`` is a filter, and also the name of what `placement.check.in_nodes.mig` finds, behind ``"device_memory"``.
"""


@collector_paused()
def check(snapshot: Snapshot, plan: Plan | Schedule, without: Sequence[str] | None = None) -> list[Violation]:
    """Judge a plan or a schedule against the snapshot it was made for.

    Parameters
    ----------
    snapshot : Snapshot
        As read, with every field still there.
    plan : Plan or Schedule
        From `placement.solve` or `placement.schedule`, or from a file that may have been edited.
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
    PlanError
        If the plan was built in Python and a field of it has the wrong type.
    UsageError
        If `without` names what is no field.
    """
    if isinstance(plan, Schedule):
        return check_schedule(snapshot, plan, without)
    snapshot, plan = verified(snapshot), _converted(plan)
    found = origin.judge(snapshot, plan)
    try:
        honoured = refuse_unhonoured_in_plan(snapshot, plan.provenance.without if without is None else without)
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


def _converted(plan: Plan) -> Plan:
    """Return the plan as if it had been read from a file; raise what reading it would raise."""
    if not isinstance(plan, Plan):
        what = f"found {type(plan).__name__}, expected a Plan"
        raise PlanError([Problem("", what, "read a file with placement.load_plan")])
    return plan if _well_typed(plan) else converted(plan, Plan)


_COLUMNS = tuple[list[str], list[str], list[int], list[str], list[tuple[int, ...]]]
"""Types of the columns of tasks; cards in tuples, which cost the collector of cycles nothing."""

_LYING: dict[str, object] = {
    "zones": list[tuple[int, ...]],
    "cpu": list[tuple[Quantity, ...]],
    "memory": list[tuple[Quantity, ...]],
    "nics": list[tuple[str, ...]],
    "cpus": list[str],
    "mig_starts": list[tuple[int, ...]],
}
"""Types of the columns that say where in its node or on its card a task lies, each of which may be absent."""


def _well_typed(plan: Plan) -> bool:
    """Return whether a plan has the right types already, in a fraction of the time that converting it takes."""
    try:
        tasks = plan.tasks
        msgspec.convert((tasks.job, tasks.group, tasks.index, tasks.node, tasks.gpus), _COLUMNS)
        for name, kind in _LYING.items():
            if getattr(tasks, name) is not msgspec.UNSET:
                msgspec.convert(getattr(tasks, name), kind)
        msgspec.convert(msgspec.to_builtins(msgspec.structs.replace(plan, tasks=Tasks(links=tasks.links))), Plan)
    except (msgspec.ValidationError, TypeError, ValueError, AttributeError, RecursionError):
        return False
    return isinstance(tasks, Tasks)
