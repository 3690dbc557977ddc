"""Preemption: which running jobs to stop, shrink or move, at least cost, so that a job that waits can start now."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from itertools import groupby

from placement import arguments
from placement.decisions.preempted import Eviction as Eviction
from placement.decisions.preempted import Preemption as Preemption
from placement.decisions.preempted import names
from placement.entitlement.entitled import RECLAIMS, Reclaim
from placement.errors import Problem, UnhonouredError, UsageError
from placement.honoured import IN_TIME, every, refuse_unhonoured, timeless
from placement.snapshot import Snapshot
from placement.snapshot.read import verified
from placement.solver import Limits

HONOURED = frozenset(IN_TIME) - {"reservations", "policy.objectives"}
"""Fields that count here beyond those that count in a plan."""


def preempt(
    snapshot: Snapshot,
    job: str | None = None,
    *,
    move: bool = True,
    reclaim: Reclaim = "quota",
    time_limit: float | None = None,
    seed: int = 0,
    without: Sequence[str] = (),
) -> Preemption:
    """Return which running jobs to stop, shrink or move so that a waiting job can start now, at least cost.

    Running jobs may be stopped that are preemptible, have run for as long as they must, and are of lower priority; and
    whatever their priority those of another queue that uses more than its quota, while the queue of the job that starts
    stays within its own. Jobs of any priority may be moved if they are preemptible and have run for as long. Of an
    elastic gang any tasks may leave that it can do without. Nothing leaves for a job that then does not start.

    Restarting a job costs its weight times the seconds of `Job.restart_seconds` and of its work since its last
    checkpoint, whether it is stopped or goes on elsewhere. It costs nothing where enough of it stays where it is. Of
    all ways in which the job starts, the cost is least; then the stopped jobs are fewest; then the jobs of which tasks
    leave; then these tasks; and then the sum of the ranks of these jobs by priority.

    Parameters
    ----------
    snapshot : Snapshot
    job : str, optional
        A job that waits. Absent: all of them, by falling priority, of equal ones first those that start without harm
        to others, and then as they were submitted. Each is served as if it were the last.
    move : bool
        Whether running tasks may go on elsewhere.
    reclaim : str
        What a queue may claim back from others, and what others must be beyond for it: ``"quota"``;
        ``"fair_share"``: of what is left over its part by `Queue.weight` too, model by model, see
        `placement.entitlement.entitled`; or ``"dominant_share"``: that part by what it gets most of, see
        `placement.entitlement.dominant`.
    time_limit : float, optional
        Seconds that the search tries to keep.
    seed : int
    without : sequence of str
        As in `placement.solve`.

    Raises
    ------
    SnapshotError
        If the snapshot is wrong or uses fields that are not honoured here.
    UsageError
        If no such job waits, or an argument is out of range.
    SolverError
        If the answer is refused by the check.
    """
    arguments.refuse_arguments(None, "exact", time_limit, 0.0, seed, ("exact",))
    if not isinstance(move, bool):
        raise UsageError([Problem("move", f"is {move!r:.40}", "give True or False")])
    if reclaim not in RECLAIMS:
        raise UsageError([Problem("reclaim", f"is {reclaim!r:.40}", f"give one of {', '.join(RECLAIMS)}")])
    deadline = math.inf if time_limit is None else time.monotonic() + float(time_limit)
    snapshot = verified(snapshot)
    without = every(without)
    _refuse(snapshot, without)
    # not at the top: who only imports the package must not load the modelling language
    from placement.decisions.serving import Serving

    serving = Serving(snapshot, move, Limits(deadline), int(seed), tuple(without), reclaim)
    for _, equal in groupby(_asked(snapshot, job), key=lambda one: one[0]):
        later = [name for *_, name in equal]
        if job is None:
            later = [name for name in later if not serving.start_without_harm(name)]
        for name in later:
            serving.serve(name)
    return serving.answer(None if time_limit is None else float(time_limit))


def _refuse(snapshot: Snapshot, without: Sequence[str]) -> None:
    """Refuse fields that are honoured neither in plans nor here."""
    refuse_unhonoured(timeless(snapshot), [name for name in without if name not in HONOURED])
    if snapshot.reservations and "reservations" not in without:
        what = "reservations are honoured in schedules alone"
        raise UnhonouredError([Problem("reservations", what, "leave them out with `without`, or use `schedule`")])


def _asked(snapshot: Snapshot, job: str | None) -> list[tuple[int, bool, float, int, int, str]]:
    """Return the jobs to serve in the order in which they arrive, each with what it is ordered by."""
    waiting = [
        (-one.priority, one.submit_time is not None, one.submit_time or 0.0, entry, copy, name)
        for entry, one in enumerate(snapshot.jobs)
        if one.running is None
        for copy, name in enumerate(names(one))
    ]
    found = [one for one in sorted(waiting) if job in (None, one[-1])]
    if job is not None and not found:
        running = any(one.name == job and one.running is not None for one in snapshot.jobs)
        what = f"{job!r:.60} runs already" if running else f"no job is called {job!r:.60}"
        raise UsageError([Problem("job", what, "name a job that waits")])
    return found
