"""Assignment to plan: names for indices, values recomputed from the snapshot, reasons for what waits."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Literal

import msgspec

from placement.check import objective, usage
from placement.errors import PlanError, Problem
from placement.evaluate import SENSE, demand
from placement.instance import Assignment, Instance
from placement.pending import pending
from placement.plan import Phase, Plan, Provenance, Tasks
from placement.snapshot.strict import decode
from placement.solver import Bound, Result, Stop

TOLERANCE = 1e-6
"""Relative error granted to a bound that a floating-point solver computed."""


def plan_of(
    instance: Instance,
    result: Result,
    bounds: Sequence[Bound],
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
    bounds : sequence of Bound
        From any method; the best valid one of each phase is kept.
    objectives : tuple of str
    provenance : Provenance
    snapshot_digest : str
    notes : sequence of str
    """
    tasks = name_tasks(instance, result.assignment)
    scores = objective(instance.snapshot, tasks, objectives)
    phases = _phases(instance, scores, bounds)
    proven = all(phase.bound == phase.value for phase in phases)
    status: Literal["proven", "bounded", "feasible"]
    status = "proven" if proven else "bounded" if phases and phases[0].bound is not None else "feasible"
    return Plan(
        snapshot=snapshot_digest,
        status=status,
        stop=_stop(result.stop, proven).value,
        reproducible=result.stop not in (Stop.TIME, Stop.FAILED),
        phases=phases,
        tasks=tasks,
        pending=pending(instance, result.assignment),
        usage=usage(instance.snapshot, tasks),
        notes=list(notes),
        provenance=provenance,
        checked=False,
    )


def _stop(stop: Stop, proven: bool) -> Stop:
    """Return why the search stopped in words that agree with what was proven."""
    if proven:
        return Stop.OPTIMAL
    return Stop.COMPLETE if stop is Stop.OPTIMAL else stop


def name_tasks(instance: Instance, assignment: Assignment) -> Tasks:
    """Return the placed tasks by name, in the order of the snapshot."""
    job_names = {job: instance.job_name(job) for job in set(assignment.job.tolist())}
    node_names = {node: instance.node_name(node) for node in set(assignment.node.tolist())}
    devices = {node: instance.device_indices(node) for node in node_names}
    paths = [[leaf.path for leaf in job_class.leaves] for job_class in instance.job_classes]
    classes = instance.job_class[assignment.job].tolist()
    nodes, cards, offset = assignment.node.tolist(), assignment.cards.tolist(), assignment.offset.tolist()
    return Tasks(
        job=[job_names[job] for job in assignment.job.tolist()],
        group=[paths[number][leaf] for number, leaf in zip(classes, assignment.leaf.tolist(), strict=True)],
        index=assignment.task.tolist(),
        node=[node_names[node] for node in nodes],
        gpus=[
            sorted(devices[node][card] for card in cards[offset[row] : offset[row + 1]])
            for row, node in enumerate(nodes)
        ],
    )


# --- bounds --------------------------------------------------------------------------------------------------


def _phases(
    instance: Instance, scores: Sequence[tuple[str, int | None, Fraction]], bounds: Sequence[Bound]
) -> list[Phase]:
    phases: list[Phase] = []
    for name, priority, value in scores:
        sense = SENSE[name]
        best, conditional = _best_bound(instance, (name, priority), bounds if instance.exact else (), phases)
        if best is not None and best * sense < value * sense:
            # further off than floating point explains: whatever claimed it is wrong
            best = value if abs(best - value) <= Fraction(TOLERANCE) * max(Fraction(1), abs(value)) else None
        phases.append(
            Phase(
                objective=name,
                priority=priority,
                sense="max" if sense > 0 else "min",
                value=float(value),
                bound=None if best is None else float(best),
                gap=None if best is None else gap(float(value), float(best)),
                conditional=conditional and best is not None,
            )
        )
    return phases


def _best_bound(
    instance: Instance, phase: tuple[str, int | None], bounds: Sequence[Bound], before: Sequence[Phase]
) -> tuple[Fraction | None, bool]:
    """Return the best valid bound of a phase, and whether it takes the phases before as given."""
    sense = SENSE[phase[0]]
    best, conditional = _limit(instance, *phase), False
    for bound in bounds:
        if (bound.objective, bound.priority) != phase or bound.value is None or not _holds(bound, before):
            continue
        rounded = _round(instance, bound.objective, bound.value, sense)
        if best is None or rounded * sense < best * sense:
            best, conditional = rounded, bool(bound.held)
    return best, conditional


def gap(value: float, bound: float) -> float | None:
    """Return ``|value - bound| / |value|``; 0 where they are equal, None where only the value is 0."""
    if value == bound:
        return 0.0
    return abs(value - bound) / abs(value) if value else None


def _holds(bound: Bound, before: Sequence[Phase]) -> bool:
    """Return whether a bound that takes earlier values as given is valid for a plan with these earlier phases.

    It is where the plan's earlier values are at least as good: such plans are among those the bound speaks of.
    """
    if not bound.held:
        return True
    return len(bound.held) == len(before) and all(
        (phase.value - held) * SENSE[phase.objective] >= -TOLERANCE * max(1.0, abs(held))
        for held, phase in zip(bound.held, before, strict=True)
    )


def _step(instance: Instance, objective: str) -> Fraction:
    """Return the amount of which every value of an objective is a multiple."""
    if objective == "value":
        return instance.value_unit
    if objective == "fragmentation":
        return Fraction(1000, max(1, int(demand(instance).sum())) * instance.card_units)
    return Fraction(1)


def _round(instance: Instance, objective: str, bound: float, sense: int) -> Fraction:
    """Move a bound to the nearest value that a plan can have, on the safe side of the solver's tolerance."""
    step = _step(instance, objective)
    slack = Fraction(TOLERANCE) * max(Fraction(1), abs(Fraction(bound)))
    steps = (Fraction(bound) + sense * slack) / step
    return (math.floor(steps) if sense > 0 else math.ceil(steps)) * step


def _limit(instance: Instance, name: str, priority: int | None) -> Fraction | None:
    """Return what no plan can exceed whatever it does: all that is wanted, or zero."""
    wanted = [
        (job_class.priority, job_class.size * leaf.count * leaf.copies, leaf.value)
        for job_class in instance.job_classes
        for leaf in job_class.leaves
    ]
    if name == "value":
        return (
            sum((count * value for tier, count, value in wanted if tier == priority), Fraction(0)) * instance.value_unit
        )
    if name == "tasks":
        return Fraction(sum(count for _, count, _ in wanted))
    if name == "whole_nodes":
        return Fraction(instance.nodes)
    if name == "nodes":
        return Fraction(sum(node_class.size for node_class in instance.classes if node_class.in_use))
    return Fraction(0) if name == "fragmentation" else None


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
