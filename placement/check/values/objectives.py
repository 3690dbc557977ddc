"""Objectives: what a plan is worth, recomputed exactly from the snapshot and the placed tasks alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np

from placement.check.case.case import Case, Placed
from placement.check.case.identity import columns
from placement.check.exact import codes, sums, whole
from placement.check.facts.facts import facts_of
from placement.check.groups.preferred import preferred
from placement.check.values.fragmentation import fragmentation
from placement.check.values.run_time import run_time
from placement.check.violation import Violation, as_float, integer, many, show
from placement.errors import PlanError, Problem, UsageError
from placement.plan import Phase, Tasks
from placement.snapshot import Snapshot

RULE = "objective"

Score = tuple[str, int | None, Fraction]
"""Objective, priority (of the tiers of ``value``) and exact value."""


def objective(snapshot: Snapshot, tasks: Tasks, objectives: Sequence[str]) -> list[Score]:
    """Return what placed tasks are worth.

    Parameters
    ----------
    snapshot : Snapshot
        Valid, with every field honoured.
    tasks : Tasks
        Rows that name no task of the snapshot are left out; `check` reports them.
    objectives : sequence of str
        In order. ``value`` yields one entry for each priority of pending jobs, highest first.

    Returns
    -------
    list of (str, int or None, Fraction)
        Objective, priority and value: ``value`` in GPU-milli times weight, ``fragmentation`` in GPU-milli,
        ``locality`` in levels, ``run_time`` in seconds times weight, the others in tasks, nodes and cards.

    Raises
    ------
    PlanError
        If the columns of the tasks differ in length.
    UsageError
        If an objective is not one of `MEASURES` or ``value``.
    """
    refuse_unknown(objectives)
    return scores(place(snapshot, tasks), objectives)


def refuse_unknown(objectives: Sequence[str]) -> None:
    """Raise `UsageError` for objectives that cannot be measured."""
    unknown = [name for name in objectives if name != "value" and name not in MEASURES]
    if unknown:
        known = ", ".join(("value", *MEASURES))
        raise UsageError(
            [Problem("objectives", f"{show(name)} cannot be measured", f"use {known}") for name in unknown]
        )


def place(snapshot: Snapshot, tasks: Tasks) -> Placed:
    """Return placed tasks beside the facts; raises PlanError if their columns differ in length."""
    wrong = columns(tasks)
    if wrong is not None:
        raise PlanError([Problem(wrong.path, wrong.what, "give one entry of each column for every task")])
    return Placed.of(facts_of(snapshot), tasks)


def scores(placed: Placed, objectives: Sequence[str]) -> list[Score]:
    """Return the scores of known objectives in order."""
    found: list[Score] = []
    for name in objectives:
        if name == "value":
            found += [("value", priority, worth) for priority, worth in values(placed).items()]
        else:
            found.append((name, None, measure(placed, name)))
    return found


def measure(placed: Placed, name: str) -> Fraction:
    """Return an objective that is one number, worked out once."""
    if name not in placed.measured:
        placed.measured[name] = MEASURES[name](placed)
    return placed.measured[name]


def values(placed: Placed) -> dict[int, Fraction]:
    """Return the worth of the placed tasks by priority, highest first.

    What tasks of one leaf and one priority are worth differs by their jobs' weights or values alone, so those are
    added up as whole numbers first.
    """
    facts, rows = placed.facts, placed.rows
    jobs = facts.snapshot.jobs
    waiting = np.flatnonzero(facts.waits).tolist()
    totals = dict.fromkeys(sorted({jobs[spec].priority for spec in waiting}, reverse=True), Fraction(0))
    if not len(rows):
        return totals
    entries, place = np.unique(rows.job, return_inverse=True)
    mine = [jobs[spec] for spec in entries.tolist()]
    valued = np.array([job.value is not None for job in mine], dtype=np.int64)
    factor = whole([job.weight if job.value is None else job.value for job in mine], len(rows))
    priority = codes(np.array([job.priority for job in mine], dtype=np.int64))
    sort = (rows.leaf * len(totals) + priority[place]) * 2 + valued[place]
    sorts, first, which = np.unique(sort, return_index=True, return_inverse=True)
    total = sums(which.reshape(-1), factor[place], len(sorts))
    for row, amount in zip(first.tolist(), total.tolist(), strict=True):
        leaf, job = facts.leaves[int(rows.leaf[row])], jobs[int(rows.job[row])]
        totals[job.priority] += amount * (leaf.milli if job.value is None else leaf.part)
    return totals


def started(placed: Placed) -> Fraction:
    """Return the number of placed tasks."""
    return Fraction(len(placed.rows))


def whole_nodes(placed: Placed) -> Fraction:
    """Return the number of nodes with healthy cards of which all are wholly free."""
    facts, load = placed.facts, placed.load
    healthy = np.array([card.healthy for card in facts.cards], dtype=np.bool_)
    with_cards = [any(card.healthy for card in kind.cards) for kind in facts.kinds]
    count = sum(number for number, some in zip(facts.nodes_of_kind(), with_cards, strict=True) if some)
    taken = np.unique(load.card_node[(load.share > 0) & healthy[load.card]])
    return Fraction(count - len(taken))


def nodes_used(placed: Placed) -> Fraction:
    """Return the number of nodes with a task, running or new."""
    return Fraction(len(placed.load))


def mig_cards(placed: Placed) -> Fraction:
    """Return the number of cards with MIG on that a task, running or new, has an instance of."""
    facts, load = placed.facts, placed.load
    sliced = np.array([card.gpu.mig_enabled for card in facts.cards], dtype=np.bool_)
    return Fraction(int((sliced[load.card] & (load.share > 0)).sum()))


MEASURES: dict[str, Callable[[Placed], Fraction]] = {
    "tasks": started,
    "locality": preferred,
    "run_time": run_time,
    "fragmentation": fragmentation,
    "whole_nodes": whole_nodes,
    "nodes": nodes_used,
    "mig_cards": mig_cards,
}
"""Every objective that is one number."""

SENSE: dict[str, str] = {
    "value": "max",
    "tasks": "max",
    "locality": "min",
    "run_time": "min",
    "fragmentation": "min",
    "whole_nodes": "max",
    "nodes": "min",
    "mig_cards": "min",
}
"""What is better."""


def judge(case: Case) -> Iterator[Violation]:
    """Yield where the phases are not the declared objectives in order, complete, each with its exact value."""
    declared = case.plan.provenance.objectives or case.facts.snapshot.policy.objectives
    unknown = sorted({name for name in declared if name not in SENSE})
    for name in unknown:
        known = ", ".join(SENSE)
        yield Violation(RULE, "provenance.objectives", f"{show(name)} cannot be measured, allowed are {known}")
    if unknown:
        return
    repeated = sorted({name for name in declared if declared.count(name) > 1})
    if repeated:
        yield Violation(
            RULE, "provenance.objectives", f"{', '.join(repeated)} is named more than once, once is allowed"
        )
        return
    expected = scores(case, declared)
    if len(case.plan.phases) != len(expected):
        listed = ", ".join(_title(name, priority) for name, priority, _ in expected) or "none"
        what = f"{many(len(case.plan.phases), 'phase')} listed, the objectives make {len(expected)}: {listed}"
        yield Violation(RULE, "phases", what)
    for number, (phase, score) in enumerate(zip(case.plan.phases, expected, strict=False)):
        yield from _phase(f"phases[{number}]", phase, score)


def _phase(path: str, phase: Phase, score: Score) -> Iterator[Violation]:
    name, priority, exact = score
    if (phase.objective, phase.priority) != (name, priority):
        found, due = _title(phase.objective, phase.priority), _title(name, priority)
        yield Violation(RULE, path, f"the phase is {found}, the next objective is {due}")
        return
    if phase.sense != SENSE[name]:
        yield Violation(RULE, f"{path}.sense", f"the sense is {phase.sense}, of {name} it is {SENSE[name]}")
    value = as_float(exact)
    if phase.value != value:
        yield Violation(RULE, f"{path}.value", f"the value of {name} is {phase.value!r}, the tasks make {value!r}")


def _title(name: str, priority: int | None) -> str:
    return show(name) if priority is None else f"{show(name)} of priority {integer(priority)}"
