"""The plan in an answer: made of an assignment that a decision has found, and checked like every other."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

from placement.check import check
from placement.errors import SolverError
from placement.instance import Instance
from placement.plan import Plan, Provenance
from placement.planning import plan_of
from placement.snapshot import Snapshot
from placement.snapshot.read import digest
from placement.solver import Result
from placement.version import VERSION


def answered(
    snapshot: Snapshot,
    instance: Instance,
    result: Result,
    by: str,
    objectives: tuple[str, ...],
    seed: int,
    time_limit: float | None,
    without: Sequence[str],
    gap: float = 0.0,
) -> Plan:
    """Return the checked plan of what starts.

    Parameters
    ----------
    snapshot : Snapshot
        As it is once everything has moved or left.
    instance : Instance
        Compiled from it.
    result : Result
    by : str
        Name of the decision.
    objectives : tuple of str
        What the plan is measured by.
    seed, time_limit, without, gap
        What was asked for.

    Raises
    ------
    SolverError
        If the check refuses it.
    """
    provenance = Provenance(
        version=VERSION,
        solver=by,
        solver_version=version("highspy"),
        method=by,
        objectives=objectives,
        seed=seed,
        gap=gap,
        time_limit=time_limit,
        without=tuple(without),
    )
    plan = plan_of(instance, result, {}, objectives, provenance, digest(snapshot))
    violations = check(snapshot, plan)
    if violations:
        raise SolverError(f"the answer was refused by the check ({violations[0]})")
    plan.checked = True
    return plan
