"""Meta's Rebalancer: local search, and its MIP with HiGHS.

It has no callbacks, so its course is that of several runs, each from the beginning; a point of the course is the end
of a run at that run's own time. A run is a process of its own, killed when it overruns. Rebalancer's threads are its
own choice; HiGHS within it is told to use one.

Local search is run with about twice the time of the run before. It cannot start gangs under their own rows (see
`rebalancer_model`), so it is helped as a user would: first it runs without those rows, then jobs that came out
incomplete go back to wait, and with the rest of the time it fills what they left. Started, it improves the first greedy
rule's answer, whose jobs of several tasks must not wait while the others of that kind must.

The MIP has all rows. When its time is up, Rebalancer 1.0.4 says that there is no feasible solution, whatever HiGHS has
found; so it is run with ever smaller gaps at which to stop, until one is not reached in time. Such a run gives a bound
and no plan.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import math
import multiprocessing
import os
import resource
import sys
import time
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from multiprocessing.connection import Connection
from typing import Any

from placement.heuristics import HEURISTICS
from placement.instance import Instance
from placement.solver import Limits

from . import rebalancer_model as models
from .common import OBJECTIVE, Case, Course, NotInstalled, Trace, judged

HIGHS = 2
"""`OptimalSolverPackage.HIGHS`."""
HIT_TIME_LIMIT = 2
"""`EndReason.HIT_TIME_LIMIT`."""
GRACE = 10.0
"""Seconds after its limit at which a run is killed."""
MEMORY = 12 * 2**30
"""Most bytes of address space of a run."""
MOVES: list[dict[str, object]] = [
    {"singleRandomBatchesMoveTypeSpec": {}},
    {"klSearchMoveTypeSpec": {}},
    {"swapMoveTypeSpec": {}},
    {"tripleLoopMoveTypeSpec": {}},
]
"""Tried in this order, each when those before it find nothing. The set that its documents begin with (single, swap,
triple loop) makes a few moves a second here, since a single step tries every container for every object; random batches
and KL search were the best of the others tried at 64 and 256 nodes."""
GAPS = (0.05, 0.01, 0.0)
"""Gaps at which the MIP stops, one run each."""
STARTED_NOTE = (
    "improves the first greedy rule's answer; gangs are not expressible to its local search: those that the rule "
    "started stay and may move, the others wait; each point is a run of its own"
)
LOCAL_NOTE = (
    "gangs are not expressible to its local search: it runs without them, incomplete jobs are taken back, and it runs "
    "again without those; each point is a run of its own"
)
MIP_NOTE = (
    "all rows, gangs included; each point is a run of its own with a smaller gap; a run that its time limit ends gives "
    "no plan"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What one run gave: where tasks went, the MIP's bound on the value, whether it ended by itself, and its times."""

    placed: dict[str, str]
    bound: float | None
    ended: bool
    seconds: float
    build_seconds: float
    objects: int
    containers: int


def installed() -> None:
    """Raise `NotInstalled` if the package is not there."""
    if sys.version_info < (3, 12):
        raise NotInstalled("not installed: Rebalancer needs Python 3.12 or newer")
    if importlib.util.find_spec("rebalancer") is None:
        raise NotInstalled("not installed: pip install '.[bench]'")


def run(case: Case, limit: float, seed: int, value: float | None = None, started: bool = False) -> Course:
    """Run a solver on a case and return its course.

    Parameters
    ----------
    case : Case
    limit, seed
    value : float, optional
        For the MIP: a value that a plan has, of which gaps are shares. Without it, local search runs.
    started : bool
        Whether local search begins with the first greedy rule's answer.
    """
    installed()
    trace = Trace()
    instance = case.compile()
    made = models.names(instance)
    mip = value is not None
    trace.about = {
        "version": f"rebalancer {version('rebalancer')}",
        "workers": "HiGHS with one thread" if mip else f"its own choice, on {os.cpu_count()} cores",
        "note": MIP_NOTE if mip else STARTED_NOTE if started else LOCAL_NOTE,
    }
    asked = [(limit, g * value / (1 + g)) for g in GAPS] if value is not None else [(t, None) for t in _times(limit)]
    for seconds, gap in asked:
        answer = _apart(case, seconds, seed, gap, started)
        if isinstance(answer, str):
            trace.about["stop"] = answer
            break
        _note(trace, answer)
        if answer.placed:
            trace.found.append((answer.seconds, partial(models.assignment_of, instance, made, answer.placed)))
        trace.about["stop"] = "ended by itself" if answer.ended else "time"
        if answer.ended != mip:
            break
    return judged(case, instance, trace)


def _note(trace: Trace, answer: Answer) -> None:
    if answer.bound is not None:
        trace.bounds.append((answer.seconds, answer.bound))
    trace.seconds = max(trace.seconds, answer.seconds)
    trace.about |= {
        "build_seconds": round(answer.build_seconds, 3),
        "objects": answer.objects,
        "containers": answer.containers,
    }


def _times(limit: float) -> list[float]:
    """Return limits that double up to the last; Rebalancer counts whole seconds."""
    times = [limit]
    while times[-1] > 3:
        times.append(float(math.ceil(times[-1] / 2)))
    return times[::-1]


# --- in a process of its own ---------------------------------------------------------------------------------------


def _apart(case: Case, limit: float, seed: int, gap: float | None, started: bool) -> Answer | str:
    """Run once in another process; return the answer, or why there is none."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_child, args=(theirs, case, limit, seed, gap, started), daemon=True)
    process.start()
    theirs.close()
    try:
        if not ours.poll(60.0) or ours.recv() != "ready":
            return "the process did not start"
        # its own clock starts only now, with everything imported
        if not ours.poll(limit + GRACE):
            return f"killed {GRACE:.0f} s after its limit of {limit:.0f} s, without an answer"
        answer: Answer | str = ours.recv()
        return answer
    except EOFError:
        return "its process died"
    finally:
        process.kill()
        process.join()
        ours.close()


def _child(connection: Connection, case: Case, limit: float, seed: int, gap: float | None, started: bool) -> None:
    # its MIP of a large case must not take the machine down; what it cannot get ends the run with a message
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    # it logs to standard error whatever its log level
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    # by name, so that types are the same wherever it is installed and where it is not
    package = importlib.import_module("rebalancer")
    connection.send("ready")
    try:
        connection.send(_solve(package, case, limit, seed, gap, started))
    except Exception as error:
        with contextlib.suppress(OSError):
            connection.send(f"{type(error).__name__}: {error}"[:300])


def _solve(rebalancer: Any, case: Case, limit: float, seed: int, gap: float | None, started: bool) -> Answer:
    began = time.monotonic()
    instance = case.compile()
    made = models.names(instance)
    placed, still, kept = _start(instance, made, seed) if started else ({}, set(), set())
    bound: float | None = None
    build, ended = 0.0, True
    for share in (0.6, 1.0) if gap is None and not started else (1.0,):
        start = time.monotonic()
        solver = rebalancer.ProblemSolver(service_name="rebalancer", service_scope="placement")
        models.state(solver, instance, made, gangs=gap is not None, placed=placed, still=still, kept=kept)
        build += time.monotonic() - start
        # it counts whole seconds
        left = max(1, round(limit * share - (time.monotonic() - began)))
        solver.add_solver(_spec(left, seed, gap))
        solution = solver.solve()
        placed = {task: place for task, place in solution["assignment"].items() if place != models.WAITING}
        ended &= solution["solverSummaries"][-1].get("endReason") != HIT_TIME_LIMIT
        if gap is None:
            still |= models.incomplete(instance, made, placed)
            placed = {task: place for task, place in placed.items() if task not in still}
        else:
            bound = _bound(solution, models.wanted(instance))
    seconds = time.monotonic() - began
    return Answer(placed, bound, ended, seconds, build, len(made.tasks), len(made.whole) + len(made.cards) + 1)


def _start(instance: Instance, made: models.Names, seed: int) -> tuple[dict[str, str], set[str], set[str]]:
    """Return where the first greedy rule puts tasks, the tasks of its gangs that wait, and those that run."""
    rule = next(rule for rule in HEURISTICS.values() if rule.supports(instance) is None)
    found = rule.solve(instance, objectives=(OBJECTIVE,), limits=Limits(), seed=seed).assignment
    placed = models.placed_of(instance, made, found)
    gangs = {task for _, tasks in models.gang_minimum(instance, made).values() for task in tasks}
    return placed, gangs - placed.keys(), gangs & placed.keys()


def _bound(solution: Any, wanted: float) -> float | None:
    """Return the MIP's bound on the value: all that is wanted, less what must wait at least.

    Its objective is what waits. Where it gives no solution, the objective that HiGHS had follows from the two gaps.
    """
    profile = solution["problemProfile"]["optimalSolverProfile"]
    absolute, relative = profile["gap"]["absolute"], profile["gap"]["relative"]
    waiting = solution["finalObjective"]["value"]
    if profile["noFeasibleSolution"]:
        if not relative or not math.isfinite(absolute / relative):
            return None
        waiting = absolute / relative
    return float(wanted - max(0.0, waiting - absolute))


def _spec(seconds: int, seed: int, gap: float | None) -> dict[str, Any]:
    if gap is None:
        return {"localSearchSolverSpec": {"solveTime": seconds, "randomSeed": seed, "moveTypeList": MOVES}}
    # options of HiGHS, whatever the field is called
    options = {"mip_rel_gap": 0.0, "mip_abs_gap": gap, "threads": 1.0, "random_seed": float(seed)}
    return {
        "optimalSolverSpec": {
            "solverPackage": HIGHS,
            "solveTime": seconds,
            "suppressLogs": True,
            "xpressArgs": options,
        }
    }
