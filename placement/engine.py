"""Solve: greedy answers first, then the exact pipeline in a killable process; the best checked plan leaves."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version

import msgspec

from placement import arguments, portfolio
from placement.area import area_bounds
from placement.carried import carried
from placement.check import check, usage
from placement.compile import compile as compile_snapshot
from placement.entitlement.limits import compile_with_shares
from placement.errors import SolverError, UsageError
from placement.evaluate import demand, wished_for
from placement.exact import METHODS
from placement.exact.processes import worker
from placement.exact.processes.worker import Exact
from placement.heuristics import HEURISTICS, PORTFOLIO, TIED
from placement.honoured import refuse_unhonoured_in_plan
from placement.instance import Instance
from placement.plan import Baseline, Plan, Provenance, Tasks
from placement.planning import name_tasks, plan_of
from placement.run import CARRIED, Listener, Run
from placement.snapshot import Policy, Snapshot
from placement.snapshot.read import digest, verified
from placement.solver import Limits, Result, Solver, Stop
from placement.version import VERSION

SOLVERS: dict[str, Solver] = {**HEURISTICS, **{name: Exact(name) for name in METHODS}}
"""Every method by name."""
COLD = 1.0
"""Seconds below which a limit leaves no time to start a solver process; the next call then has one."""
INEXACT = (
    "amounts or values differ by too many digits to be held exactly, so requests were rounded up and capacities down: "
    "what just fits may be left out, and no method's bound is used"
)
CROWDED = (
    "tasks ask for less than one Nth of a card where at most N may be on it, so they were counted as one Nth, or kept "
    "off such cards: what just fits may be left out, and no method's bound is used"
)
AFTERWARDS, AFTERWARDS_EACH = 0.01, 1.5e-5
"""Seconds that naming, checking and explaining take, and for each node and each wanted task; measured, with room."""
NEAR_NODE, NEAR_TASK, TIMED_TASK = 1e-5, 6e-5, 2e-5
"""The same besides: for each node that lists zones or paths, for each wanted task where there are such nodes, and for
each where jobs say how long they run. Measured on 20,000 and 100,000 nodes of 1,000 kinds with 2 zones and 8 NICs and
8,000 to 36,000 tasks, where all of it took 0.5 to 0.85 of what this makes."""
CARRY_SHARE = 0.5
"""Part of the time left within which it is looked at what of an earlier plan still holds."""
AS_COMPILING, AS_COMPILING_INSTANCES = 2.0, 1.2
"""The same relative to compiling, at least; on a machine that is slow or busy, compiling has just shown by how much. It
is the second where all that waits are MIG instances, which are soon checked and explained."""
BY_FRAGMENTATION = 1.5
"""How many times as long where candidates are compared by fragmentation: two of them come only when the time is up."""
PART = 0.65
"""Part of the time left beside what nodes take that goes to naming and checking, where zones or paths make that take
longer than to place tasks by a greedy rule; measured on the same."""
BY_PLACE = 2.0
"""How many times as long as else, relative to compiling, where zones, paths or run times have to be worked out."""


def solve(
    snapshot: Snapshot,
    *,
    objectives: Sequence[str] | None = None,
    solver: str = "auto",
    time_limit: float | None = None,
    gap: float = 0.0,
    seed: int = 0,
    without: Sequence[str] = (),
    report: Listener | None = None,
    start: Tasks | None = None,
) -> Plan:
    """Return the best checked plan for a snapshot, with a proven bound where there is one.

    Parameters
    ----------
    snapshot : Snapshot
        From `placement.load`, or built in Python.
    objectives : sequence of str, optional
        In order, instead of the snapshot's policy; see `placement.snapshot.policy.ObjectiveName`.
    solver : str
        ``"auto"`` (every greedy rule that applies, then the exact method; the best of all), ``"exact"`` (the same
        without the greedy portfolio; it chooses among the following by what the instance is), ``"configurations"``
        (all that a node can hold, listed), ``"ladder"`` (blocks of cards, where nothing else binds), ``"columns"``
        (what nodes hold, generated as needed), ``"pooled"`` (like nodes counted together), or the name of one greedy
        rule. Where pending jobs say where their tasks may lie relative to one another, exact has methods of its own in
        place of these four. See ``docs/methods.md``.
    time_limit : float, optional
        Seconds of wall clock, counted from this call. The search ends in time to name and check its answer, by an
        estimate; compiling the snapshot is not cut short. None sets no clock: the search then stops by its own limits
        on work, and the same call gives the same plan.
    gap : float
        Relative gap of the first objective that is good enough, in [0, 1].
    seed : int
        Non-negative; feeds whatever is random.
    without : sequence of str
        Fields that no rule honours yet, to be left out of account; see the error that names them.
    report : callable, optional
        Told of progress, in the thread that keeps the deadline: what it takes is lost.
    start : Tasks, optional
        Those of an earlier plan. What of it still holds, see `placement.carried.carried`, with what else fits around
        it, is an answer that another takes the place of only if it is better, and that the exact method starts from.

    Returns
    -------
    Plan
        Checked. Jobs that stay pending are in `Plan.pending`, with the reason.

    Raises
    ------
    SnapshotError
        If the snapshot is wrong or uses fields that no rule honours yet.
    UsageError
        If an argument is out of range.
    SolverError
        If no method gave a plan that `placement.check` accepts.
    """
    began = time.monotonic()
    refuse_arguments(objectives, solver, time_limit, gap, seed)
    # numpy's numbers are as good, and have no place in a plan
    time_limit, gap, seed = None if time_limit is None else float(time_limit), float(gap), int(seed)
    ready = time_limit is None or time_limit >= COLD or worker.ready()
    if solver not in HEURISTICS and ready:
        worker.warm()
    deadline = math.inf if time_limit is None else began + time_limit
    snapshot = verified(snapshot)
    used = refuse_unhonoured_in_plan(snapshot, without)
    chosen = tuple(used.policy.objectives if objectives is None else objectives)
    arguments.refuse_objectives(chosen)
    compiling = time.monotonic()
    instance = compile_with_shares(used)
    if objectives is None and chosen == Policy().objectives:
        added = wished_for(instance)
        chosen = (*chosen, *(name for name, counts in added.items() if counts))
    reserve = _reserve(instance, chosen, time_limit, time.monotonic() - compiling, time.monotonic() - began)
    run = Run(instance, chosen, Limits(deadline - reserve, gap), seed, report, began)
    run.seconds["compile"] = time.monotonic() - began
    # limits do not count in it, and without those of queues far fewer tasks differ
    run.prove("area", area_bounds(compile_snapshot(used) if any(row.queue for row in instance.limits) else instance))
    if not instance.exact:
        run.notes.append(CROWDED if instance.crowded else INEXACT)
    if start is not None:
        _carry(run, start, snapshot, used)
    _search(run, solver, ready)
    searched = time.monotonic()
    provenance = Provenance(
        version=VERSION,
        solver="",
        solver_version=version("highspy"),
        method=solver,
        objectives=chosen,
        seed=seed,
        gap=gap,
        time_limit=time_limit,
        without=tuple(without),
    )
    plan = _checked(snapshot, used, run, provenance)
    plan.greedy = _best_greedy(used, run, plan) if solver == "auto" else None
    ended = time.monotonic()
    if solver not in HEURISTICS and not ready:
        worker.prepare()
    plan.seconds = {**run.seconds, "check": ended - searched, "total": ended - began}
    return plan


def _reserve(
    instance: Instance, objectives: Sequence[str], time_limit: float | None, compiling: float, passed: float = 0.0
) -> float:
    """Return the seconds to keep back for what follows the search, given those that compiling and all so far took.

    That is at most half of the limit, or what all nodes take and a part of what is left beside that: it grows with the
    tasks that are placed, and fewer are placed in less time.
    """
    if time_limit is None:
        return 0.0
    tasks = int(demand(instance).sum())
    near = sum(node.count for node in instance.snapshot.nodes if node.zones or node.links)
    of_nodes = AFTERWARDS + AFTERWARDS_EACH * instance.nodes + NEAR_NODE * near
    usual = of_nodes + AFTERWARDS_EACH * tasks + NEAR_TASK * min(tasks, near * max(1, instance.widest))
    usual += TIMED_TASK * tasks if instance.timed else 0.0
    share = of_nodes / usual
    relative = AS_COMPILING_INSTANCES if instance.only_instances else AS_COMPILING
    usual = max(usual, relative * compiling * (BY_PLACE if near or instance.timed else 1.0))
    usual *= BY_FRAGMENTATION if "fragmentation" in objectives else 1.0
    first = min(usual * share, time_limit - passed)
    least = first + PART * (time_limit - passed - first) if near else 0.0
    return min(usual, max(time_limit / 2, least))


def refuse_arguments(
    objectives: Sequence[str] | None, solver: str, time_limit: float | None, gap: float, seed: int
) -> None:
    """Raise `UsageError` if an argument of `solve` is out of range or unknown, whatever the snapshot."""
    arguments.refuse_arguments(objectives, solver, time_limit, gap, seed, SOLVERS)


def _carry(run: Run, start: Tasks, snapshot: Snapshot, used: Snapshot) -> None:
    """Add what still holds of an earlier plan, and the same with what fits around it, to the candidates."""
    kept = carried(run.instance, start, time.monotonic() + CARRY_SHARE * run.limits.left)
    found = Result(kept, Stop.COMPLETE)
    if run.instance.zoned and check(snapshot, _unchecked(run, found, snapshot, used)):
        return
    # also where it is nothing: some objectives are best so
    run.add(CARRIED, found)
    if len(kept):
        portfolio.around(run, HEURISTICS["best-fit"], CARRIED, kept)


def _unchecked(run: Run, result: Result, snapshot: Snapshot, used: Snapshot) -> Plan:
    """Return an answer as a plan of no method."""
    nothing = Provenance(
        version=VERSION,
        solver=CARRIED,
        solver_version=version("highspy"),
        method=CARRIED,
        objectives=run.objectives,
        seed=run.seed,
        gap=0.0,
        time_limit=None,
        without=(),
    )
    return plan_of(run.instance, result, {}, run.objectives, nothing, digest(snapshot), (), used)


def _search(run: Run, solver: str, ready: bool) -> None:
    """Fill the run with candidates and bounds."""
    if solver in HEURISTICS:
        portfolio.alone(run, HEURISTICS[solver])
    else:
        method = SOLVERS["exact" if solver == "auto" else solver]
        reason = method.supports(run.instance)
        if reason is not None:
            remedy = "choose another method, or exact, which chooses by itself"
            raise UsageError.one(f"{solver} cannot take this snapshot: {reason}", remedy, path="solver")
        rules = {**PORTFOLIO, **TIED} if run.instance.tied else PORTFOLIO
        portfolio.together(run, method, rules, all_rules=solver == "auto", ready=ready)


def _checked(snapshot: Snapshot, used: Snapshot, run: Run, provenance: Provenance) -> Plan:
    """Return the plan of the best candidate that the independent check accepts; what is used leaves fields out."""
    overall, mark = _overall_stop(run), digest(snapshot)
    for _, name, result in (*run.ranked(), *run.beside):
        plan = plan_of(
            run.instance,
            replace(result, stop=overall if provenance.method not in HEURISTICS else result.stop),
            run.bounds,
            run.objectives,
            msgspec.structs.replace(provenance, solver=name),
            mark,
            run.notes,
            used,
        )
        violations = check(snapshot, plan)
        if not violations:
            plan.checked = True
            return plan
        run.notes.append(f"{name}: its plan was refused by the check ({violations[0]}); the next best is given")
        # whatever ended the search, it did not end with this answer
        overall = Stop.FAILED
    raise SolverError("no method gave a plan that the check accepts: " + "; ".join(run.notes))


def _best_greedy(snapshot: Snapshot, run: Run, plan: Plan) -> Baseline | None:
    found = sorted(
        (c for c in (*run.candidates, *run.beside) if c[1] in HEURISTICS), key=lambda c: [-score.rank for score in c[0]]
    )
    if not found:
        return None
    reached, name, result = found[0]
    own = name == plan.provenance.solver
    tasks = plan.tasks if own else name_tasks(run.instance, result.assignment)
    figures = plan.usage if tasks == plan.tasks else usage(snapshot, tasks)
    return Baseline(solver=name, values=tuple(float(score.value) for score in reached), usage=figures)


def _overall_stop(run: Run) -> Stop:
    """Return why the search as a whole stopped: the last method's reason, or the clock where it cut anything short."""
    stops = [result.stop for _, _, result in run.candidates]
    methods = sum(name != CARRIED for _, name, _ in run.candidates)
    if methods <= 1 and stops[-1] is Stop.COMPLETE and run.good_enough():
        return Stop.GAP
    return Stop.TIME if run.cut or Stop.TIME in stops else stops[-1]
