"""Random tiny snapshots for planning over time, and a policy that starts and stops jobs as a seed says.

Import it as ``schedule_cases``.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from msgspec.structs import replace
from strategies import Source, tied_tiny, tiny
from timed_strategies import timed_tiny

from placement.honoured import refuse_unhonoured_in_time
from placement.plan import Provenance
from placement.scheduling.answer import schedule_of
from placement.scheduling.compile import compile_work
from placement.scheduling.desk import NEVER, Desk
from placement.scheduling.loop import Loop, Policy
from placement.snapshot import Duration, Job, Reservation, Snapshot
from placement.snapshot.read import digest, verified
from placement.solver import Stop
from placement.timetable import Schedule

SECONDS = (10, 7.5, 0.0015, 60, 3.3333, 20)


def random_timed_work(seed: int) -> Snapshot:
    """Return the snapshot of a seed; the same on every machine and Python."""
    return timed_work(Source(random.Random(seed).randint))


def timed_work(source: Source) -> Snapshot:
    """Return a tiny snapshot in which jobs take time, made of a source's choices."""
    snapshot = source.pick((tiny, tied_tiny, timed_tiny))(source, 6)
    jobs = [_timed(source, job) for job in snapshot.jobs]
    jobs = [_later(source, job, jobs[:number]) for number, job in enumerate(jobs)]
    names = [node.name if node.count == 1 else f"{node.name}-0" for node in snapshot.nodes]
    aside: tuple[Reservation, ...] = ()
    if names and source.one_in(3):
        jobs_of = tuple(job.name for job in jobs[:1] if job.count == 1)
        start = source.number(0, 20)
        end = start + source.number(1, 15)
        aside = (Reservation(name="aside", nodes=(source.pick(names),), start=start, end=end, jobs=jobs_of),)
    policy = replace(snapshot.policy, objectives=("value", "tasks"), tenants_apart=source.pick(("", "", "gpu", "node")))
    return verified(
        replace(snapshot, jobs=tuple(jobs), reservations=aside, policy=policy, time=source.pick((0, 100.25)))
    )


def _timed(source: Source, job: Job) -> Job:
    duration = job.duration or Duration(seconds=source.pick(SECONDS))
    if source.one_in(3):
        duration = replace(duration, scaling=((1, 0.5),))
    changed = replace(
        job,
        duration=None if job.running is not None and source.one_in(3) else duration,
        tenant=source.pick(("a", "b", "")),
        weight=source.number(0, 3) if job.value is None else 1,
        priority=source.number(0, 2),
        preemptible=source.one_in(2),
        restart_seconds=source.pick((0.5, 2, 1)),
        checkpoint_interval=source.pick((None, 2, 0.75)),
        minimum_run_seconds=source.pick((0, 0, 3)),
    )
    if job.running is None:
        return changed
    # NICs elsewhere than all else are refused
    tasks = tuple(replace(task, nics=()) for task in job.running.tasks)
    running = replace(job.running, tasks=tasks, since=None if source.one_in(2) else -source.number(0, 30))
    if source.one_in(3):
        running = replace(running, work_done=source.pick((0, 3, 8.5, 70)))
    return replace(changed, running=running)


def _later(source: Source, job: Job, earlier: Sequence[Job]) -> Job:
    if job.running is not None:
        return job
    submit = source.pick((None, 0, 5.5, 12, -3))
    after: tuple[str, ...] = ()
    if earlier and source.one_in(4):
        before = source.pick(earlier)
        after = (before.name if before.count == 1 else f"{before.name}-0",)
    hard = source.one_in(5)
    deadline = source.pick((20, 40.5, 130)) if hard or source.one_in(5) else None
    return replace(job, submit_time=submit, after=after, deadline=deadline, hard_deadline=hard)


class Fickle:
    """Starts waiting jobs in random order, and stops running ones now and then, each a few times at most."""

    name = "fickle"

    def __init__(self, seed: int, period: int = 1500) -> None:
        self.period = period
        self._random = random.Random(seed)
        self._stops: dict[int, int] = {}
        self._asked = 0

    def decide(self, desk: Desk) -> None:
        """Stop some jobs and start others in their place."""
        self._asked += 1
        if self._asked > 20:
            self.period = 0  # jobs that wait for ever would have it asked for ever
        endless = sum(live.end == NEVER for live in desk.live.values())
        for job in sorted(desk.live):
            often = self._stops.get(job, 0)
            if (
                often < 2
                and endless == 0
                and desk.may_stop(job)
                and desk.length(job) < NEVER
                and not desk.work.hard[job]
                and self._random.random() < 0.4
            ):
                desk.stop(job)
                self._stops[job] = often + 1
        waiting = sorted(desk.waiting)
        self._random.shuffle(waiting)
        for job in waiting:
            if desk.start(job) and desk.may_stop(job) and self._random.random() < 0.1:
                desk.stop(job)
                desk.start(job)


def scheduled(snapshot: Snapshot, policy: Policy) -> Schedule:
    """Return the schedule of a policy, not yet checked."""
    work = compile_work(refuse_unhonoured_in_time(snapshot))
    provenance = Provenance(version="0", solver=policy.name)
    return schedule_of(
        work, Loop(Desk(work), policy).run(), None, Stop.COMPLETE, provenance, digest(snapshot), [], snapshot
    )
