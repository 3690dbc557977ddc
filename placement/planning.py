"""Assignment to plan: names for indices, values recomputed from the snapshot, reasons for what waits."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
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

ROUNDING = 1e-11
"""Relative error of a number that was added up in double precision."""


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
    """
    tasks = name_tasks(instance, result.assignment)
    scores = objective(instance.snapshot, tasks, objectives)
    phases, proven, doubts = _phases(instance, scores, bounds)
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
        notes=[*notes, *doubts],
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

Reached = tuple[str, int | None, Fraction]
"""Objective, priority and value of a phase."""


def _phases(
    instance: Instance, reached: Sequence[Reached], bounds: Mapping[str, Sequence[Bound]]
) -> tuple[list[Phase], bool, list[str]]:
    """Return the phases, whether all of them are proven, and what is to be said about bounds that are wrong."""
    usable, notes = _trusted(instance, reached, bounds if instance.exact else {})
    phases, proven = [], True
    for number, (name, priority, value) in enumerate(reached):
        sense = SENSE[name]
        best, conditional = _best_bound(instance, reached[: number + 1], usable)
        proven = proven and best == value
        shown = None if best is None else float(value) if best == value else _outwards(best, sense, float(value))
        phases.append(
            Phase(
                objective=name,
                priority=priority,
                sense="max" if sense > 0 else "min",
                value=float(value),
                bound=shown,
                gap=None if shown is None else gap(float(value), shown),
                conditional=conditional,
            )
        )
    return phases, proven, notes


def _trusted(
    instance: Instance, reached: Sequence[Reached], bounds: Mapping[str, Sequence[Bound]]
) -> tuple[list[Bound], list[str]]:
    """Return the bounds of all methods but those of which the plan itself contradicts one."""
    usable: list[Bound] = []
    notes = []
    for source, given in bounds.items():
        contradicted = False
        for number, (name, _, value) in enumerate(reached):
            for bound in _valid(given, reached[: number + 1]):
                contradicted |= (_round(instance, bound) - value) * SENSE[name] < 0
        if contradicted:
            notes.append(f"{source}: the plan contradicts a bound it gave, so none of its bounds is used")
        else:
            usable += given
    return usable, notes


def _valid(bounds: Sequence[Bound], reached: Sequence[Reached]) -> Iterator[Bound]:
    """Yield the bounds on the last phase that hold for plans with these values of the phases before.

    A bound that takes earlier values as given speaks of all plans whose earlier values are at least as good.
    """
    *before, (name, priority, _) = reached
    for bound in bounds:
        if (bound.objective, bound.priority) != (name, priority) or bound.value is None:
            continue
        if not bound.held or (
            len(bound.held) == len(before)
            and all(
                (value - Fraction(held)) * SENSE[objective] >= -Fraction(ROUNDING) * abs(Fraction(held))
                for held, (objective, _, value) in zip(bound.held, before, strict=True)
            )
        ):
            yield bound


def _best_bound(
    instance: Instance, reached: Sequence[Reached], bounds: Sequence[Bound]
) -> tuple[Fraction | None, bool]:
    """Return the best bound on the last phase, and whether it takes the phases before as given."""
    name, priority, _ = reached[-1]
    best, conditional = _limit(instance, name, priority), False
    for bound in _valid(bounds, reached):
        rounded = _round(instance, bound)
        if best is None or (rounded - best) * SENSE[name] < 0:
            best, conditional = rounded, bool(bound.held)
    return best, conditional


def _outwards(bound: Fraction, sense: int, value: float) -> float:
    """Return the nearest float that is no tighter than a bound and is not the plan's own value."""
    near = float(bound)
    while (Fraction(near) - bound) * sense < 0 or near == value:
        near = math.nextafter(near, sense * math.inf)
    return near


def gap(value: float, bound: float) -> float | None:
    """Return ``|value - bound| / |value|``; 0 where they are equal, None where only the value is 0."""
    if value == bound:
        return 0.0
    return abs(value - bound) / abs(value) if value else None


def _step(instance: Instance, objective: str) -> Fraction:
    """Return the amount of which every value of an objective is a multiple."""
    if objective == "value":
        return instance.value_unit
    if objective == "fragmentation":
        return Fraction(1000, max(1, int(demand(instance).sum())) * instance.card_units)
    return Fraction(1)


def _round(instance: Instance, bound: Bound) -> Fraction:
    """Move a bound to the nearest value that a plan can have.

    Methods give bounds that are safe but for the rounding of a double; that much is granted here.
    """
    assert bound.value is not None
    step, sense, given = _step(instance, bound.objective), SENSE[bound.objective], Fraction(bound.value)
    steps = (given + sense * Fraction(ROUNDING) * abs(given)) / step
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
