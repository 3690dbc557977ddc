"""Solve: greedy answers first, then the exact pipeline in a killable process; the best checked plan leaves."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from importlib.metadata import version

import msgspec

from placement.area import area_bounds
from placement.check import check, usage
from placement.compile import compile as compile_snapshot
from placement.errors import Problem, SolverError, UsageError
from placement.evaluate import SENSE, Score, demand, scores
from placement.exact.worker import Exact, warm
from placement.heuristics import HEURISTICS
from placement.honoured import refuse_unhonoured
from placement.instance import Assignment, Instance
from placement.plan import Baseline, Plan, Provenance
from placement.planning import name_tasks, plan_of
from placement.snapshot import OBJECTIVES, Snapshot
from placement.snapshot.read import digest, verified
from placement.snapshot.report import suggestion
from placement.solver import Bound, Limits, Result, Solver, Stop
from placement.version import VERSION

SOLVERS: dict[str, Solver] = {**HEURISTICS, "exact": Exact()}
"""Every method by name."""


@dataclass(frozen=True, slots=True)
class Update:
    """What `solve` tells while it works.

    Attributes
    ----------
    seconds : float
        Since the call.
    phase : str
        What is being done.
    value, bound, gap : float, optional
        Of the first objective, as far as they are known.
    """

    seconds: float
    phase: str
    value: float | None = None
    bound: float | None = None
    gap: float | None = None


Listener = Callable[[Update], None]


@dataclass(slots=True)
class _Run:
    """One call of `solve`: what is fixed, and the best so far."""

    instance: Instance
    objectives: tuple[str, ...]
    limits: Limits
    seed: int
    listener: Listener | None
    began: float
    candidates: list[tuple[tuple[Score, ...], str, Result]] = field(default_factory=list)
    bounds: dict[str, Sequence[Bound]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    cancelled: bool = False

    def add(self, name: str, result: Result) -> None:
        """Take a result into account."""
        self.candidates.append((scores(self.instance, result.assignment, self.objectives), name, result))
        self.bounds[name] = result.bounds
        self.notes += [f"{name}: {note}" for note in result.notes]
        for activity, seconds in result.seconds.items():
            self.seconds[activity] = self.seconds.get(activity, 0.0) + seconds

    def ranked(self) -> list[tuple[tuple[Score, ...], str, Result]]:
        """Return the candidates from best to worst; of equal ones the exact method's first, then as they came."""
        return sorted(self.candidates, key=lambda c: ([-score.rank for score in c[0]], c[1] != "exact"))

    def _first_bound(self, score: Score, bounds: Sequence[Bound]) -> float | None:
        """Return the best bound on the first phase."""
        phase, sense = (score.objective, score.priority), SENSE[score.objective]
        known = [b.value * sense for b in bounds if (b.objective, b.priority) == phase and b.value is not None]
        return min(known) * sense if known and self.instance.exact else None

    def tell(self, phase: str, bounds: Sequence[Bound] = ()) -> None:
        if self.listener is None:
            return
        first = self.ranked()[0][0][:1] if self.candidates else ()
        value = float(first[0].value) if first else None
        known = [bound for given in (*self.bounds.values(), bounds) for bound in given]
        bound = self._first_bound(first[0], known) if first else None
        gap = None if value is None or bound is None or not value else abs(bound - value) / abs(value)
        self.listener(Update(time.monotonic() - self.began, phase, value, bound, gap))


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
) -> Plan:
    """Return the best checked plan for a snapshot, with a proven bound where there is one.

    Parameters
    ----------
    snapshot : Snapshot
        From `placement.load`, or built in Python.
    objectives : sequence of str, optional
        In order, instead of the snapshot's policy; see `placement.snapshot.policy.ObjectiveName`.
    solver : str
        ``"auto"`` (every greedy rule that applies, then the exact pipeline; the best of all), ``"exact"`` (the same
        without the greedy portfolio), or the name of one greedy rule.
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
        Told of progress.

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
    if solver not in HEURISTICS:
        warm()
    deadline = math.inf if time_limit is None else began + time_limit
    snapshot = verified(snapshot)
    used = refuse_unhonoured(snapshot, without)
    chosen = tuple(used.policy.objectives if objectives is None else objectives)
    _refuse_objectives(chosen)
    instance = compile_snapshot(used)
    run = _Run(instance, chosen, Limits(deadline - _reserve(instance, time_limit), gap), seed, report, began)
    run.seconds["compile"] = time.monotonic() - began
    run.bounds["area"] = area_bounds(instance)
    if not instance.exact:
        run.notes.append(INEXACT)
    _search(run, solver)
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
    plan = _checked(snapshot, run, provenance)
    plan.greedy = _best_greedy(run) if solver == "auto" else None
    plan.seconds = {**run.seconds, "total": time.monotonic() - began}
    return plan


INEXACT = (
    "amounts or values differ by too many digits to be held exactly, so requests were rounded up and capacities down: "
    "what just fits may be left out, and no method's bound is used"
)
LONGEST = 1e6
"""Longest time limit in seconds; some platforms cannot wait much longer."""
FIRST_SHARE = 0.25
"""Share of the time after which the first greedy rule gives up, so that the exact method has most of it."""
CHECK_SECONDS = 5e-5
"""What naming, checking and explaining take for each node and each wanted task; measured, with some room."""


def _reserve(instance: Instance, time_limit: float | None) -> float:
    """Return the seconds to keep back for what follows the search, at most half of the limit."""
    if time_limit is None:
        return 0.0
    return min(time_limit / 2, CHECK_SECONDS * (instance.nodes + int(demand(instance).sum())))


def refuse_arguments(
    objectives: Sequence[str] | None, solver: str, time_limit: float | None, gap: float, seed: int
) -> None:
    """Raise `UsageError` if an argument of `solve` is out of range or unknown, whatever the snapshot."""
    problems = []
    if not isinstance(solver, str) or (solver != "auto" and solver not in SOLVERS):
        problems.append(Problem("solver", f"{solver!r} is unknown", suggestion(str(solver), ["auto", *SOLVERS])))
    if time_limit is not None and not (_is_number(time_limit) and 0 < time_limit <= LONGEST):
        remedy = f"give seconds above 0 and up to {LONGEST:.0e}, or none"
        problems.append(Problem("time_limit", f"is {time_limit!r:.40}", remedy))
    if not (_is_number(gap) and 0 <= gap <= 1):
        problems.append(Problem("gap", f"is {gap!r}", "give a number from 0 to 1, such as 0.01 for one percent"))
    if not (isinstance(seed, int) and not isinstance(seed, bool) and 0 <= seed < 2**31):
        problems.append(Problem("seed", f"is {seed!r}", f"give a whole number from 0 to {2**31 - 1}"))
    if isinstance(objectives, str):
        problems.append(Problem("objectives", f"is the text {objectives!r}", "give a list of names"))
        objectives = None
    if objectives is not None:
        if not objectives:
            problems.append(Problem("objectives", "the list is empty", f"give some of {', '.join(OBJECTIVES)}"))
        if len(set(objectives)) < len(objectives):
            problems.append(Problem("objectives", "one is named twice", "name each once, the most important first"))
        problems += [
            Problem("objectives", f"{name!r} is unknown", suggestion(name, OBJECTIVES))
            for name in objectives
            if name not in OBJECTIVES
        ]
    if problems:
        raise UsageError(problems)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _refuse_objectives(objectives: tuple[str, ...]) -> None:
    if "completion_time" in objectives:
        usable = ", ".join(name for name in OBJECTIVES if name != "completion_time")
        raise UsageError.one(
            "no model has the objective completion_time yet", f"choose among {usable}", path="objectives"
        )


def _search(run: _Run, solver: str) -> None:
    """Fill the run with candidates and bounds.

    The exact method works in another process, so the greedy rules that remain run beside it.
    """
    if solver in HEURISTICS:
        run.tell(solver)
        run.add(solver, _solve(run, HEURISTICS[solver], None))
        return
    usable = [name for name, rule in HEURISTICS.items() if rule.supports(run.instance) is None]
    first = usable[0]
    run.tell(first)
    begun = _solve(run, HEURISTICS[first], None, _early(run.limits))
    run.add(first, begun)
    start, again = begun.assignment, begun.stop is Stop.TIME
    with ThreadPoolExecutor(max_workers=1) as pool:
        beside = pool.submit(_greedy, run, usable[not again :] if solver == "auto" else [])
        try:
            # in this thread, so that an interrupt reaches it and ends the solver's process
            exact = _solve(run, SOLVERS["exact"], start)
        except BaseException:
            run.cancelled = True
            raise
        beside.result()
    run.add("exact", exact)


def _early(limits: Limits) -> Limits:
    """Return limits that end after the first greedy rule's share of the time."""
    if limits.deadline == math.inf:
        return limits
    return replace(limits, deadline=limits.deadline - (1 - FIRST_SHARE) * limits.left)


def _greedy(run: _Run, names: Sequence[str]) -> None:
    """Try greedy rules one after the other."""
    for name in names:
        if run.cancelled:
            return
        if run.limits.left <= 0:
            run.notes.append(f"{name}: not tried, the time was up")
            return
        run.tell(name)
        run.add(name, _solve(run, HEURISTICS[name], None))


def _solve(run: _Run, solver: Solver, start: Assignment | None, limits: Limits | None = None) -> Result:
    began = time.monotonic()
    result = solver.solve(
        run.instance,
        objectives=run.objectives,
        limits=run.limits if limits is None else limits,
        seed=run.seed,
        start=start,
        report=lambda progress: run.tell(f"{solver.name}: {progress.phase}", progress.bounds),
    )
    run.seconds[solver.name] = time.monotonic() - began
    return result


def _checked(snapshot: Snapshot, run: _Run, provenance: Provenance) -> Plan:
    """Return the plan of the best candidate that the independent check accepts."""
    overall = _overall_stop(run)
    for _, name, result in run.ranked():
        plan = plan_of(
            run.instance,
            replace(result, stop=overall if provenance.method in ("auto", "exact") else result.stop),
            run.bounds,
            run.objectives,
            msgspec.structs.replace(provenance, solver=name),
            digest(snapshot),
            run.notes,
        )
        violations = check(snapshot, plan)
        if not violations:
            plan.checked = True
            return plan
        run.notes.append(f"{name}: its plan was refused by the check ({violations[0]}); the next best is given")
    raise SolverError("no method gave a plan that the check accepts: " + "; ".join(run.notes))


def _best_greedy(run: _Run) -> Baseline | None:
    found = [candidate for candidate in run.ranked() if candidate[1] in HEURISTICS]
    if not found:
        return None
    reached, name, result = found[0]
    figures = usage(run.instance.snapshot, name_tasks(run.instance, result.assignment))
    return Baseline(solver=name, values=tuple(float(score.value) for score in reached), usage=figures)


def _overall_stop(run: _Run) -> Stop:
    """Return why the search as a whole stopped: the exact method's reason, or the clock where it cut a greedy rule."""
    stops = [result.stop for _, _, result in run.candidates]
    return Stop.TIME if Stop.TIME in stops else stops[-1]
