"""Assignment to plan: names for indices, values recomputed from the snapshot, reasons for what waits."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from placement.check import running_notes, worth
from placement.collector import collector_paused
from placement.errors import PlanError, Problem
from placement.instance import Instance
from placement.naming import name_tasks as name_tasks
from placement.pending import pending
from placement.phases import gap as gap
from placement.phases import phases_of
from placement.plan import FORMAT as PLAN
from placement.plan import Plan, Provenance
from placement.snapshot import Snapshot
from placement.snapshot.report import show
from placement.snapshot.strict import FORMATS, decode, family_of, format_of
from placement.solver import Bound, Result, Stop
from placement.timetable import FORMAT as SCHEDULE
from placement.timetable import Schedule


@collector_paused()
def plan_of(
    instance: Instance,
    result: Result,
    bounds: Mapping[str, Sequence[Bound]],
    objectives: tuple[str, ...],
    provenance: Provenance,
    snapshot_digest: str,
    notes: Sequence[str] = (),
    snapshot: Snapshot | None = None,
) -> Plan:
    """Return the plan of an assignment, not yet checked.

    Parameters
    ----------
    instance : Instance
    result : Result
        Whose assignment and stop the plan takes.
    bounds : mapping of str to sequence of Bound
        By the method that gave them; the best valid one of each phase is kept.
    objectives : tuple of str
    provenance : Provenance
    snapshot_digest : str
    notes : sequence of str
        What methods said; what running work breaks is added.
    snapshot : Snapshot, optional
        From which values and figures are worked out, where that of the instance has more in it.
    """
    tasks = name_tasks(instance, result.assignment)
    stated = instance.snapshot if snapshot is None else snapshot
    scores, figures, locality, run = worth(stated, tasks, objectives)
    phases, proven, doubts = phases_of(instance, scores, bounds)
    status: Literal["proven", "bounded", "feasible"]
    status = "proven" if proven else "bounded" if phases and phases[0].bound is not None else "feasible"
    return Plan(
        snapshot=snapshot_digest,
        status=status,
        stop=_stop(result.stop, proven).value,
        reproducible=result.stop not in (Stop.TIME, Stop.FAILED),
        phases=phases,
        tasks=tasks,
        pending=pending(instance, result.assignment, objectives),
        usage=figures,
        notes=[*notes, *doubts, *running_notes(stated)],
        provenance=provenance,
        checked=False,
        locality=locality,
        run=run,
    )


def _stop(stop: Stop, proven: bool) -> Stop:
    """Return why the search stopped in words that agree with what was proven."""
    if proven:
        return Stop.OPTIMAL
    return Stop.COMPLETE if stop is Stop.OPTIMAL else stop


# --- bytes ---------------------------------------------------------------------------------------------------


def dump_plan(plan: Plan) -> bytes:
    """Return the plan as JSON, one line; equal plans give equal bytes."""
    return msgspec.json.encode(plan) + b"\n"


def dump_schedule(schedule: Schedule) -> bytes:
    """Return the schedule as JSON, one line; equal schedules give equal bytes."""
    return msgspec.json.encode(schedule) + b"\n"


def load_plan(source: str | Path) -> Plan:
    """Read a plan from a file, or from standard input for ``-``.

    Raises
    ------
    PlanError
        If the file cannot be read or is no plan.
    """
    return decode(_bytes(source, "plan"), Plan, source=str(source), error=PlanError)


def load_schedule(source: str | Path) -> Schedule:
    """Read a schedule from a file, or from standard input for ``-``.

    Raises
    ------
    PlanError
        If the file cannot be read or is no schedule.
    """
    return decode(_bytes(source, "schedule"), Schedule, source=str(source), error=PlanError)


def load_plan_or_schedule(source: str | Path) -> Plan | Schedule:
    """Read a plan or a schedule, whichever a file says that it is, or from standard input for ``-``.

    Raises
    ------
    PlanError
        If the file cannot be read or is neither.
    """
    data, name = _bytes(source, "plan or schedule"), str(source)
    given = format_of(data)
    if given is None or family_of(given) == family_of(PLAN):
        return decode(data, Plan, source=name, error=PlanError)
    if family_of(given) == family_of(SCHEDULE):
        return decode(data, Schedule, source=name, error=PlanError)
    what = f"this is {FORMATS.get(family_of(given), 'something else')} ({show(given)}), expected a plan or a schedule"
    raise PlanError([Problem("format", what, "name the right file")], name)


def _bytes(source: str | Path, what: str) -> bytes:
    name = str(source)
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(source).read_bytes()
    except OSError as error:
        raise PlanError([Problem("", f"cannot be read ({error.strerror})", f"name a {what} file")], name) from None
