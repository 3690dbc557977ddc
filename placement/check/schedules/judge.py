"""The judge of schedules: every stretch, every node at every moment, every number; no compiled instance.

What running work breaks by itself is no violation; what new work adds to it is. Where names or columns are wrong,
nothing else can be judged, and where anything is, the value is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from placement.check import admission, origin
from placement.check.case import filtered, identity
from placement.check.converted import converted
from placement.check.groups import affinity, gang, topology
from placement.check.in_nodes import numa
from placement.check.loads import capacity, clients, device_memory, limits, shares, tenants
from placement.check.queues import quota
from placement.check.running import notes
from placement.check.schedules import domains, jobs, left_out, moments, names, starts, value, weights, work, zones
from placement.check.schedules.case import Timed
from placement.check.violation import Violation
from placement.collector import collector_paused
from placement.errors import InputError, PlanError, Problem
from placement.honoured import refuse_unhonoured_in_time
from placement.snapshot import Snapshot
from placement.snapshot.read import digest, verified
from placement.timetable import Schedule

Judge = Callable[[Timed], Iterator[Violation]]
"""A rule over time: looks at a case and yields what breaks it."""

_JUDGES: tuple[Judge, ...] = (
    jobs.judge,
    work.judge,
    starts.judge,
    moments.judge,
    domains.judge,
    zones.judge,
    left_out.judge,
)
"""Rules that look at all stretches; that of quotas goes by the schedule alone."""

_ONE_STRETCH = (admission.judge, gang.judge, topology.judge, affinity.judge)
"""Rules that look at the tasks of one stretch, as if they were a plan."""

SCHEDULE_RULES: tuple[str, ...] = (
    origin.RULE,
    identity.RULE,
    *filtered.NODE_RULES,
    *filtered.CARD_RULES,
    *filtered.CARD_ON_NODE_RULES,
    gang.RULE,
    topology.RULE,
    affinity.RULE,
    weights.RULE,
    jobs.RULE,
    work.LENGTH,
    work.STOPS,
    starts.RELEASE,
    starts.ORDER,
    starts.DEADLINE,
    starts.WINDOWS,
    capacity.RULE,
    shares.RULE,
    clients.RULE,
    device_memory.RULE,
    limits.RULE,
    tenants.RULE,
    numa.RULE,
    quota.RULE,
    left_out.RULE,
    notes.RULE,
    value.VALUE,
    value.BOUNDS,
    value.FIGURES,
)
"""Name of every rule of schedules, in the order in which violations are listed."""


@collector_paused()
def check_schedule(snapshot: Snapshot, schedule: Schedule, without: Sequence[str] | None = None) -> list[Violation]:
    """Judge a schedule against the snapshot it was made for.

    Parameters
    ----------
    snapshot : Snapshot
        As read, with every field still there.
    schedule : Schedule
        From `placement.schedule`, or from a file that may have been edited.
    without : sequence of str, optional
        Fields of the snapshot to leave out of account; by default those that the schedule says it left out.

    Returns
    -------
    list of Violation
        Empty if the schedule keeps every rule, its times, value and figures are right, and no bound contradicts its
        value. That a bound is true cannot be seen without solving.

    Raises
    ------
    SnapshotError
        If the snapshot is wrong.
    PlanError
        If the schedule was built in Python and a field of it has the wrong type.
    UsageError
        If `without` names what is no field.
    """
    if not isinstance(schedule, Schedule):
        what = f"found {type(schedule).__name__}, expected a Schedule"
        raise PlanError([Problem("", what, "read a file with placement.load_schedule")])
    snapshot, schedule = verified(snapshot), converted(schedule, Schedule)
    found = [*_origin(snapshot, schedule), *weights.judge(schedule)]
    try:
        honoured = refuse_unhonoured_in_time(snapshot, schedule.provenance.without if without is None else without)
    except InputError as error:
        if without is not None:
            raise
        # the schedule's own words, so the schedule is what is wrong
        return [*found, *origin.fields(error)]
    unnamed = names.columns(schedule) or list(names.names(honoured, schedule))
    if unnamed:
        return found + unnamed
    case = Timed(honoured, schedule)
    found += case.unknown
    if case.unknown:
        return found
    for rule in _ONE_STRETCH:
        found += map(_of_stretch, rule(case.new))
    for judge in _JUDGES:
        found += judge(case)
    found += quota.judge(honoured, schedule)
    found += notes.untrue(honoured, schedule.notes)
    return found or list(value.judge(case))


def _origin(snapshot: Snapshot, schedule: Schedule) -> list[Violation]:
    """Return a violation if the schedule was made for another snapshot."""
    due = digest(snapshot)
    if schedule.snapshot == due:
        return []
    return [Violation(origin.RULE, "snapshot", f"the schedule is for another snapshot, this one is {due}")]


def _of_stretch(violation: Violation) -> Violation:
    """Return a violation of a job that stands for a stretch as one of the stretch."""
    if not violation.path.startswith("jobs["):
        return violation
    return Violation(violation.rule, f"stretches[{violation.path[len('jobs[') :]}", violation.what)
