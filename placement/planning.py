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
from placement.plan import Plan, Provenance
from placement.snapshot.strict import decode
from placement.solver import Bound, Result, Stop


@collector_paused()
def plan_of(
    instance: Instance,
    result: Result,
    bounds: Mapping[str, Sequence[Bound]],
    objectives: tuple[str, ...],
    provenance: Provenance,
    snapshot_digest: str,
    notes: Sequence[str] = (),
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
    """
    tasks = name_tasks(instance, result.assignment)
    scores, figures, locality, run = worth(instance.snapshot, tasks, objectives)
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
        notes=[*notes, *doubts, *running_notes(instance.snapshot)],
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


def load_plan(source: str | Path) -> Plan:
    """Read a plan from a file, or from standard input for ``-``.

    Raises
    ------
    PlanError
        If the file cannot be read or is no plan.
    """
    name = str(source)
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(source).read_bytes()
    except OSError as error:
        raise PlanError([Problem("", f"cannot be read ({error.strerror})", "name a plan file")], name) from None
    return decode(data, Plan, source=name, error=PlanError)
