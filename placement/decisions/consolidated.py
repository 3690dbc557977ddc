"""What consolidation answers with: moves, the snapshot after them, and a checked plan of what starts then."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from placement import portfolio
from placement.compile import compile as compile_snapshot
from placement.decisions.answered import answered
from placement.decisions.entries import Spot, changed
from placement.engine import COLD
from placement.errors import SolverError
from placement.exact.processes import worker
from placement.heuristics import PORTFOLIO
from placement.honoured import refuse_unhonoured
from placement.instance import Assignment, Instance
from placement.naming import job_names
from placement.plan import Plan
from placement.run import Run
from placement.snapshot import Gpu, Job, Node, Running, RunningTask, Snapshot
from placement.snapshot.read import verified
from placement.solver import Limits, Result, Stop

if TYPE_CHECKING:
    from placement.exact.mig.moves import Moved
    from placement.exact.mig.settle import Mover


OBJECTIVES = ("value", "tasks")
"""Of what starts."""

ROUNDING = 1e-12
"""Relative difference up to which a bound is what was reached: costs are floating-point numbers, added up twice."""


@dataclass(frozen=True, slots=True)
class Move:
    """A running task that moves: it is stopped, its instance destroyed, another created, and it starts there.

    Attributes
    ----------
    job, group : str
    index : int
    source, target : (str, int, int)
        Node, card and first slot.
    """

    job: str
    group: str
    index: int
    source: tuple[str, int, int]
    target: tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class Consolidation:
    """What to move and what then starts.

    Attributes
    ----------
    moves : tuple of Move
        All of these instances are destroyed before any is created, so no order among them is needed.
    after : Snapshot
        The cluster once they have moved.
    plan : Plan
        What starts then; a checked plan for `after`.
    worth : float
        GPU-milli times weight of what starts of what counts.
    cost : float
        Of the moves, in the same unit.
    bound : float or None
        No moves and starts have a larger `worth` less `cost`.
    gap : float or None
        How much larger at most, relative to worth less cost.
    """

    moves: tuple[Move, ...]
    after: Snapshot
    plan: Plan
    worth: float
    cost: float
    bound: float | None
    gap: float | None


@dataclass(frozen=True, slots=True)
class Found:
    """An answer and what it was made of.

    Attributes
    ----------
    answer : Consolidation
    then : Instance
        Of `Consolidation.after`.
    result : Result
        What starts of what counts.
    """

    answer: Consolidation
    then: Instance
    result: Result


@dataclass(frozen=True, slots=True)
class Case:
    """What is asked.

    Attributes
    ----------
    snapshot : Snapshot
    instance : Instance
        In which the movers wait like other jobs.
    movers : sequence of Mover
    limits : Limits
    time_limit : float, optional
        What was asked for.
    seed : int
    without : tuple of str
        Fields that are left out of account.
    """

    snapshot: Snapshot
    instance: Instance
    movers: Sequence[Mover]
    limits: Limits
    time_limit: float | None
    seed: int
    without: tuple[str, ...]


def answer(case: Case, found: Moved, bound: float | None) -> Found:
    """Return what was found as an answer.

    Parameters
    ----------
    case : Case
    found : Moved
    bound : float, optional
        On worth less cost, in the instance's unit of value.
    """
    instance = case.instance
    gone = [(mover, place) for mover, place in zip(case.movers, found.places, strict=True) if place != mover.home]
    moves = tuple(
        Move(
            instance.job_name(mover.job),
            instance.job_classes[instance.job_class[mover.job]].leaves[mover.leaf].path,
            mover.task,
            _place(instance, mover.home),
            _place(instance, place),
        )
        for mover, place in gone
    )
    after = _after(case.snapshot, moves)
    then = compile_snapshot(refuse_unhonoured(after, case.without))
    starts = _renumbered(found.assignment, instance, then)
    if found.short:
        starts = _filled(then, starts, case.limits)
    result = Result(starts, Stop.COMPLETE if found.in_time else Stop.TIME)
    plan = plan_for(case, after, then, result)
    cost = float(instance.value_unit) * sum(mover.cost for mover, _ in gone)
    consolidation = Consolidation(moves, after, plan, _worth(plan), cost, None, None)
    return bounded(case, Found(consolidation, then, result), bound)


def standstill(case: Case) -> Found:
    """Return the answer in which nothing moves, and what counts starts as `placement.solve` would have it.

    Counts of instances know of hosts and domains no more than totals; the methods of `solve` look at each.

    Raises
    ------
    SolverError
        If every plan is refused by the check.
    """
    from placement.exact.mig.moves import counted
    from placement.exact.mig.places import only

    then = compile_snapshot(refuse_unhonoured(case.snapshot, case.without))
    there = only(then, counted(then))
    results = solved(there, case) if there.job_classes else [Result(Assignment.empty(), Stop.COMPLETE)]
    for place, result in enumerate(results):
        try:
            plan = plan_for(case, case.snapshot, then, result)
        except SolverError:
            # the next best may pass
            if place == len(results) - 1:
                raise
        else:
            return Found(Consolidation((), case.snapshot, plan, _worth(plan), 0.0, None, None), then, result)
    raise AssertionError("a greedy rule always answers")


def solved(there: Instance, case: Case) -> list[Result]:
    """Return what methods found, from best to worst; all say so if the clock stopped any of them."""
    run = Run(there, OBJECTIVES, case.limits, case.seed, None, time.monotonic())
    ready = case.limits.left >= COLD or worker.ready()
    portfolio.together(run, worker.Exact("exact"), PORTFOLIO, all_rules=True, ready=ready)
    ranked = [result for _, _, result in run.ranked()]
    cut = run.cut or any(result.stop in (Stop.TIME, Stop.FAILED) for result in ranked)
    return [replace(result, stop=Stop.TIME if cut else Stop.COMPLETE) for result in ranked]


def _worth(plan: Plan) -> float:
    return sum(phase.value for phase in plan.phases if phase.objective == "value")


def bounded(case: Case, found: Found, bound: float | None) -> Found:
    """Return an answer with a bound on worth less cost, which is given in the instance's unit of value."""
    reached = found.answer.worth - found.answer.cost
    exact = case.instance.exact
    most = None if bound is None or not exact else max(bound * float(case.instance.value_unit), reached)
    if most is not None and most - reached <= ROUNDING * abs(reached):
        most = reached
    distance = None if most is None or (reached <= 0 < most) else (most - reached) / (abs(reached) or 1.0)
    return replace(found, answer=replace(found.answer, bound=most, gap=distance))


def _place(instance: Instance, place: tuple[int, int]) -> tuple[str, int, int]:
    node, start = place
    return instance.node_name(node), instance.node_cards[node][0], start


def _after(snapshot: Snapshot, moves: Sequence[Move]) -> Snapshot:
    """Return the snapshot with tasks where they move to."""
    target = {(move.job, move.group, move.index): move.target for move in moves}
    moved = {move.job for move in moves}

    def running(job: Job) -> Running | None:
        if job.running is None or job.name not in moved:
            return job.running
        tasks = tuple(_moved(task, target.get((job.name, task.group, task.index))) for task in job.running.tasks)
        return msgspec.structs.replace(job.running, tasks=tasks)

    touched = {place[:2] for move in moves for place in (move.source, move.target)}
    jobs = tuple(msgspec.structs.replace(job, running=running(job)) for job in snapshot.jobs)
    nodes = tuple(entry for node in snapshot.nodes for entry in without_layouts(node, touched))
    return verified(msgspec.structs.replace(snapshot, jobs=jobs, nodes=nodes))


def without_layouts(node: Node, touched: Collection[Spot]) -> list[Node]:
    """Return a node whose cards list no instances where some of these are gone; those that are used are known."""
    if not any(gpu.mig_layout for gpu in node.gpus) or not touched:
        return [node]

    def cleared(spot: Spot, gpu: Gpu) -> Gpu:
        return gpu if gpu.mig_static or spot not in touched else msgspec.structs.replace(gpu, mig_layout=())

    return changed(node, cleared)


def _moved(task: RunningTask, target: tuple[str, int, int] | None) -> RunningTask:
    if target is None:
        return task
    node, card, start = target
    return msgspec.structs.replace(task, node=node, gpus=(card,), mig_starts=(start,), zone=None, nics=())


def plan_for(case: Case, after: Snapshot, then: Instance, result: Result) -> Plan:
    """Return the checked plan of what starts."""
    limits = case.limits
    return answered(
        after, then, result, "consolidate", OBJECTIVES, case.seed, case.time_limit, case.without, limits.gap
    )


def _filled(instance: Instance, starts: Assignment, limits: Limits) -> Assignment:
    """Return the same with what a greedy rule can start beside it of what counts."""
    from placement.exact.mig.moves import counted
    from placement.exact.mig.places import only
    from placement.heuristics.first_fit import FirstFit
    from placement.heuristics.greedy import Greedy
    from placement.heuristics.worth import by_worth

    there = only(instance, counted(instance))
    return Greedy(FirstFit, by_worth).solve(there, objectives=OBJECTIVES, limits=limits, start=starts).assignment


def _renumbered(assignment: Assignment, before: Instance, after: Instance) -> Assignment:
    """Return the assignment by the jobs of an instance in which fewer of them wait; nodes and gangs are the same."""
    number = {name: job for job, name in enumerate(job_names(after, np.arange(after.jobs)))}
    jobs = [number[name] for name in job_names(before, assignment.job)]
    order = np.lexsort((assignment.task, assignment.leaf, np.array(jobs, dtype=np.int64)))
    shift = after.slot_base - before.slot_base
    cards = np.where(assignment.cards >= before.slot_base, assignment.cards + shift, assignment.cards)
    assert (order == np.arange(len(order))).all()  # jobs that wait keep their order
    return replace(assignment, job=np.array(jobs, dtype=np.int64), cards=cards)
