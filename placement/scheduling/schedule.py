"""Schedule: when each job starts and where, for the least weighted completion time, with a proven bound."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from importlib.metadata import version

import numpy as np

from placement import arguments
from placement.check import running_notes
from placement.check.schedules.judge import check_schedule
from placement.errors import SolverError, UsageError
from placement.honoured import refuse_unhonoured_in_time
from placement.naming import job_names
from placement.plan import Provenance
from placement.scheduling.answer import schedule_of
from placement.scheduling.baselines import BASELINES, baseline
from placement.scheduling.compile import compile_work
from placement.scheduling.progress import Report, silent
from placement.scheduling.search import search
from placement.scheduling.weights import aim_of, with_aim
from placement.scheduling.work import Work
from placement.snapshot import Policy, Snapshot
from placement.snapshot.read import digest, verified
from placement.solver import Limits
from placement.timetable import Schedule
from placement.version import VERSION

OTHER_AIM = (
    "policy.objectives is for solve, but for the objective of schedules that comes first in it, or else completion_time"
)
AFTERWARDS, AFTERWARDS_EACH, AS_COMPILING = 0.05, 2.5e-4, 3.5
"""Seconds kept back for naming and checking, in all and for each task; and the least, in times of compiling, which goes
by how busy the machine is. Measured, with room."""


def schedule(
    snapshot: Snapshot,
    *,
    solver: str = "auto",
    time_limit: float | None = None,
    gap: float = 0.0,
    seed: int = 0,
    without: Sequence[str] = (),
    objective: str | None = None,
    start: Schedule | None = None,
    report: Report = silent,
) -> Schedule:
    """Return the best checked schedule for a snapshot, with a proven bound.

    Every job that an empty cluster could take gets a start, so that none looks cheap for being left out. What is made
    least is the sum of `Job.weight` times T, in seconds, where T is the time from when a job may start until it ends:
    the seconds in which it waits, runs and is restored after it was stopped; for finish-time fairness, other weights
    (see `placement.scheduling.weights`). The priority says who may stop whom.

    Parameters
    ----------
    snapshot : Snapshot
        Its pending jobs state a `Duration`. Devices of running jobs come free when these end by their own; a running
        job without a duration never ends.
    solver : str
        ``"auto"``, or the name of one rule of `placement.scheduling.baselines`, which has no bound of its own.
    time_limit : float, optional
        Seconds of wall clock. None stops by limits on work, and the same call gives the same schedule.
    gap : float
        Relative gap that is good enough, in [0, 1].
    seed : int
        Non-negative; feeds whatever is random.
    without : sequence of str
        Fields that no rule honours yet, to be left out of account.
    objective : str, optional
        ``"completion_time"`` or ``"finish_time_fairness"``; by default the first of these that `Policy.objectives`
        names, and ``"completion_time"`` where it names none.
    start : Schedule, optional
        An earlier one, of jobs and nodes that may have changed since: the order in which jobs start in it is tried
        first. It is for ``"auto"``.
    report : callable
        Told of progress: the value and the bound in seconds times weight, None where there is none, and the phase.

    Returns
    -------
    Schedule
        Checked. Jobs without a start are in `Schedule.left_out`, with the reason.

    Raises
    ------
    SnapshotError
        If the snapshot is wrong, uses fields that no rule honours yet, or has a pending job without a duration.
    UsageError
        If an argument is out of range.
    SolverError
        If the schedule is refused by the check.
    """
    began = time.monotonic()
    arguments.refuse_arguments(None, solver, time_limit, gap, seed, tuple(BASELINES))
    arguments.refuse_aim(objective)
    if start is not None and solver != "auto":
        raise UsageError.one(f"{solver} starts from nothing", "leave it out, or take auto", path="start")
    snapshot = verified(snapshot)
    aim = aim_of(snapshot.policy) if objective is None else objective
    honoured = refuse_unhonoured_in_time(snapshot, without)
    work = compile_work(with_aim(honoured, aim))
    compiled = time.monotonic()
    deadline = math.inf if time_limit is None else began + time_limit - _afterwards(work, compiled - began)
    limits = Limits(deadline, float(gap))
    earlier = () if start is None else _order(work, start)
    found = search(work, limits, int(seed), report, earlier) if solver == "auto" else baseline(work, solver)
    searched = time.monotonic()
    provenance = Provenance(
        version=VERSION,
        solver=found.method,
        solver_version=version("highspy"),
        method=solver,
        objectives=(aim,),
        seed=int(seed),
        gap=float(gap),
        time_limit=None if time_limit is None else float(time_limit),
        without=tuple(without),
    )
    meant = objective is not None or snapshot.policy.objectives in (Policy().objectives, (aim,))
    notes = [*([] if meant else [OTHER_AIM]), *running_notes(honoured)]
    made = schedule_of(work, found.table, found.bound, found.stop, provenance, digest(snapshot), notes, snapshot)
    violations = check_schedule(snapshot, made)
    if violations:
        raise SolverError(f"the schedule was refused by the check ({violations[0]})")
    made.checked = True
    ended = time.monotonic()
    made.seconds = {"compile": compiled - began, "search": searched - compiled, "check": ended - searched}
    made.seconds = {**made.seconds, "total": ended - began}
    return made


def _order(work: Work, earlier: Schedule) -> list[int]:
    """Return all jobs in the order in which they start in an earlier schedule, and those that do not after them."""
    start = dict(zip(earlier.jobs.job, earlier.jobs.start, strict=True))
    names = job_names(work.instance, np.arange(work.jobs))
    return sorted(range(work.jobs), key=lambda job: start.get(names[job], math.inf))


def _afterwards(work: Work, compiling: float) -> float:
    """Return the seconds to keep back for naming and checking."""
    tasks = sum(len(one.jobs) * leaf.count * leaf.copies for one in work.instance.job_classes for leaf in one.leaves)
    return max(AFTERWARDS + AFTERWARDS_EACH * tasks, AS_COMPILING * compiling)
