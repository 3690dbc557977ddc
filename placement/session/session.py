"""The loop of a scheduler: events come in, decisions come out, and what is started is kept."""

from __future__ import annotations

import time as clock
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from placement.engine import solve as solve_snapshot
from placement.errors import SnapshotError, SolverError, UsageError
from placement.honoured import SHARED, every, refuse_unhonoured, refuse_unhonoured_in_plan, timeless
from placement.plan import Plan, Tasks
from placement.quota import Short
from placement.scheduling.schedule import schedule as schedule_snapshot
from placement.session.ahead import AHEAD, refuse_ahead
from placement.session.arriving import refuse_arriving
from placement.session.cluster import Cluster, copies_of
from placement.session.decision import Decision
from placement.session.judged import alone, places_of, starting, touched, unnamed
from placement.session.live import Live
from placement.session.progress import dated, ended, held_up, stopped, until
from placement.session.stopping import stopping
from placement.snapshot import Job, Running, RunningTask, Snapshot
from placement.snapshot.events import Event, EventLog, JobArrived, JobEnded, NodeDrained, NodeFailed
from placement.snapshot.fields import moment
from placement.snapshot.read import digest, verified
from placement.snapshot.report import show, suggestion
from placement.timetable import Schedule

REMEMBERED = 100_000
"""Jobs that have ended of which the names are kept, the last ones: not given again, and others may come after."""


class Session:
    """A cluster and its jobs as events change them.

    Running work stays where it is, but for what happens, what `stop` is told and what a schedule that is started stops.
    Jobs that are stopped wait again, with a `Duration` of what is left to do and, where `Job.restart_seconds` says so,
    of restoring it.

    Parameters
    ----------
    snapshot : Snapshot
        Its state at the start. Copies of counted nodes and jobs become entries of their own.
    without : sequence of str
        Fields that a session does not honour, to be left out of account: `AHEAD`, and those that no rule honours yet;
        and ``"queues"``: what is decided and solved then keeps to no quota.

    Attributes
    ----------
    time : float
        Of the last event, on the snapshot's clock.
    waiting : dict of str to Job
        Jobs that wait, in the order in which they came.
    """

    def __init__(self, snapshot: Snapshot, *, without: Sequence[str] = ()) -> None:
        snapshot = verified(snapshot)
        self._without = every(without)
        self._beyond = tuple(name for name in self._without if name not in AHEAD)
        refuse_ahead(snapshot, self._without)
        self._queues = () if any(path in self._without for path in SHARED) else SHARED
        refuse_unhonoured(timeless(snapshot), self._beyond)
        refuse_unhonoured_in_plan(timeless(snapshot, self._queues), self._beyond)
        self.time = self._began = snapshot.time
        self.waiting: dict[str, Job] = {}
        self._cluster = Cluster(snapshot, bool(self._queues))
        self._gone: dict[str, None] = {}
        self._restarts: dict[str, int] = {}
        self._restoring: dict[str, float] = {}
        """Stated seconds of jobs that were stopped in which they are restored."""
        self._version = 0
        self._solved: tuple[int, str] = (-1, "")
        self._scheduled: tuple[int, str] = (-1, "")
        self._places: Tasks | None = None
        self._planned: Schedule | None = None
        for one in (one for job in snapshot.jobs for one in copies_of(job)):
            if one.running is None:
                self.waiting[one.name] = one
            else:
                self._cluster.start(dated(one, self.time))
        self._live = Live(self._cluster)

    @property
    def running(self) -> Mapping[str, Job]:
        """Jobs that run, by name; not to be changed."""
        return self._cluster.running

    # --- what happens --------------------------------------------------------------------------------------------

    def apply(self, events: Event | EventLog | Iterable[Event]) -> None:
        """Take in what has happened.

        Raises
        ------
        SnapshotError
            If a job that arrives is wrong, or uses a field that no rule honours.
        UsageError
            If an event is before the last one, or names a job or node that is not there, or a job that was there
            already. Those before it in the list have been taken in.
        """
        if isinstance(events, EventLog):
            events = events.events
        elif isinstance(events, msgspec.Struct):
            events = (events,)
        for index, event in enumerate(events):
            self._apply(event, f"events[{index}]")
            self._version += 1

    def _apply(self, event: Event, path: str) -> None:
        for wrong, what, remedy in moment(f"{path}.time", event.time):
            raise UsageError.one(what, remedy, path=wrong)
        if event.time < self.time:
            what = f"found {show(event.time)}, which is before {show(self.time)}, the time of the last event"
            raise UsageError.one(what, "give events in the order of their times", path=f"{path}.time")
        if isinstance(event, JobArrived):
            self._arrive(event.job, path)
        elif isinstance(event, JobEnded):
            self._end(event.job, path)
        else:
            if event.node not in self._cluster.nodes:
                raise UsageError.one(
                    f"there is no node {show(event.node)}",
                    suggestion(event.node, list(self._cluster.nodes)),
                    path=f"{path}.node",
                )
            if isinstance(event, NodeFailed):
                self._fail(event.node, event.time)
            elif isinstance(event, NodeDrained):
                self._shut(event.node)
            elif self._cluster.nodes[event.node].cordoned:
                self._cluster.cordon(event.node, False)
                self._live.reopen(event.node)
        self.time = event.time

    def _arrive(self, job: Job, path: str) -> None:
        copies = copies_of(job)
        refuse_arriving(job, copies, (self.waiting, self.running, self._gone), path)
        try:
            alone = verified(self._cluster.frame(msgspec.structs.replace(job, after=())))
        except SnapshotError as error:
            here = [replace(one, path=one.path.replace("jobs[0]", f"{path}.job", 1)) for one in error.problems]
            raise SnapshotError(here, error.source, error.total) from None
        refuse_ahead(alone, self._without)
        refuse_unhonoured(timeless(alone), self._beyond)
        for one in copies:
            self.waiting[one.name] = one

    def _end(self, name: str, path: str) -> None:
        if name in self.running:
            self._live.release(self._cluster.stop(name))
        elif self.waiting.pop(name, None) is None:
            remedy = suggestion(name, [*self.running, *self.waiting])
            raise UsageError.one(f"there is no job {show(name)}", remedy, path=f"{path}.job")
        self._restarts.pop(name, None)
        self._restoring.pop(name, None)
        self._gone[name] = None
        if len(self._gone) > REMEMBERED:
            del self._gone[next(iter(self._gone))]

    def _fail(self, node: str, time: float) -> None:
        for name in list(self._cluster.on.get(node, ())):
            self._stop(name, time)
        self._shut(node)

    def _stop(self, name: str, time: float) -> Job:
        """Stop a running job, and return it as it was."""
        job = self.running[name]
        assert job.running is not None
        factor = 1.0 if job.duration is None else self._live.stretched(job)
        self._live.release(self._cluster.stop(name))
        self._restarts[name] = job.running.restarts + 1
        self.waiting[name] = stopped(until(job, time, self._began), time, factor, self._restoring.get(name, 0.0))
        self._restoring[name] = job.restart_seconds or 0.0
        return job

    def _shut(self, node: str) -> None:
        if not self._cluster.nodes[node].cordoned:
            self._cluster.cordon(node, True)
            self._live.shut(node)

    # --- deciding ------------------------------------------------------------------------------------------------

    def decide(self, name: str) -> Decision:
        """Return where one job that waits can start now, by fastest fit; nothing is started yet, see `start`.

        Raises
        ------
        UsageError
            If no such job waits.
        SolverError
            If the check refuses what was found.
        """
        began = clock.perf_counter()
        job = self._waits(name)
        held_up = self._held_up(job)
        if held_up:
            return Decision(name, Tasks(), held_up, version=self._version)
        room = self._cluster.queue_use.room(job.queue)
        short = self._live.short(job, room) if room else None
        tasks = () if short is not None else self._live.place(job, room)
        if not tasks:
            reason = self._free_now(job, bool(room)) if short is None else f"it asks for {short}"
            return Decision(name, Tasks(), reason, clock.perf_counter() - began, self._version)
        over = self._over([job], {name: tasks})
        if over is not None:
            raise SolverError(f"the places found for {name} come to {over}")
        plan = touched(self._cluster, [alone(job)], {name: tasks})
        if not plan.checked:
            raise SolverError(f"the places found for {name} were refused by the check ({plan.notes[-1]})")
        return Decision(name, plan.tasks, "", clock.perf_counter() - began, self._version)

    def _free_now(self, job: Job, limited: bool) -> str:
        """Return why a job finds no place of which its queue may use as much as it needs on some cards."""
        if limited and self._live.place(job):
            return f"nothing that it could use is free now within what quotas leave to queue {job.queue}"
        return "nothing that it could use is free now"

    def _over(self, jobs: Iterable[Job], places: Mapping[str, tuple[RunningTask, ...]]) -> Short | None:
        """Return a quota that jobs would exceed beside what runs."""
        return self._cluster.queue_use.exceeded((job, places[job.name]) for job in jobs)

    def _held_up(self, job: Job) -> str:
        """Return why a job may not start yet whatever is free."""
        return held_up(job, self.time, {*self.waiting, *self.running} if job.after else ())

    def solve(self, *, time_limit: float | None = None, **options: Any) -> Plan:
        """Return a plan for all that waits and may start now; running work stays where it is.

        What still holds of the last one is a start: this one is no worse, and moves nothing without a gain.

        Parameters
        ----------
        time_limit : float, optional
            Seconds; see `placement.solve`.
        **options
            Of `placement.solve`.

        Raises
        ------
        SnapshotError, UsageError, SolverError
            As `placement.solve`.
        """
        may_start = [job for job in self.waiting.values() if not self._held_up(job)]
        present = timeless(self._present(may_start), self._queues)
        options.setdefault("start", self._places)
        plan = solve_snapshot(present, time_limit=time_limit, without=self._beyond, **options)
        self._places, self._solved = plan.tasks, (self._version, plan.snapshot)
        return plan

    def schedule(self, *, time_limit: float | None = None, **options: Any) -> Schedule:
        """Return when each job that waits starts, with running work in its place until its estimate ends.

        The order of the last one is tried first. It is for the present state without the names of NICs that go with no
        one zone, see `judged.unnamed`; what it starts now is judged with them, see `start`.

        Parameters
        ----------
        time_limit : float, optional
            Seconds; see `placement.schedule`.
        **options
            Of `placement.schedule`.

        Raises
        ------
        SnapshotError, UsageError, SolverError
            As `placement.schedule`.
        """
        if options.get("solver", "auto") == "auto":
            options.setdefault("start", self._planned)
        found = schedule_snapshot(unnamed(self.snapshot()), time_limit=time_limit, without=self._beyond, **options)
        self._planned, self._scheduled = found, (self._version, found.snapshot)
        return found

    def stop(self, name: str) -> None:
        """Stop a running job, which waits again; it keeps what was done before its last checkpoint.

        Raises
        ------
        UsageError
            If it does not run.
        """
        if not isinstance(name, str):
            raise UsageError.one(f"found {name!r:.60}", "give the name of a job", path="job")
        if name not in self.running:
            remedy = "it waits" if name in self.waiting else suggestion(name, list(self.running))
            raise UsageError.one(f"no job {show(name)} runs", remedy, path="job")
        self._stop(name, self.time)
        self._version += 1

    def start(self, plan: Plan | Decision | Schedule) -> None:
        """Start what a plan or a decision places, or what a schedule starts now.

        What a schedule of the present state stops now is stopped first. What is to start now after a job that takes no
        time, or where such a job was, has to wait until that has ended.

        Raises
        ------
        UsageError
            If it is none of the present state: a job does not wait, or its places are taken. Nothing is changed then.
            So if it is no plan at all.
        """
        if not isinstance(plan, Plan | Decision | Schedule):
            what = f"found {type(plan).__name__}, expected a plan, a decision or a schedule"
            raise UsageError.one(what, "give what `solve`, `decide` or `schedule` returned", path="plan")
        gone: list[str] = []
        if isinstance(plan, Schedule) and self._scheduled == (self._version, plan.snapshot):
            gone = stopping(plan, self.running)
        if gone:
            self._start_instead(gone, plan)
        else:
            self._start(plan)

    def _start_instead(self, gone: Iterable[str], plan: Plan | Decision | Schedule) -> None:
        """Stop some jobs and start a plan, or leave all as it was."""
        known, order = (self._restarts.copy(), self._restoring.copy()), list(self.running)
        before = [self._stop(name, self.time) for name in gone]
        try:
            self._start(plan)
        except BaseException:
            for job in before:
                del self.waiting[job.name]
                self._cluster.start(job)
                self._live.hold(job)
            self._cluster.set_order(order)
            self._restarts, self._restoring = known
            raise

    def _start(self, plan: Plan | Decision | Schedule) -> None:
        places = self._starting(plan) if isinstance(plan, Schedule) else places_of(plan.tasks)
        jobs = [self._waits(name) for name in places]
        if places and not self._is_of_now(plan):
            judged = touched(self._cluster, [alone(job) for job in jobs], places)
            over = self._over(jobs, places) if judged.checked else None
            if not judged.checked or over is not None:
                why = judged.notes[-1] if over is None else f"it comes to {over}"
                what = f"the plan does not go with what runs now ({why})"
                raise UsageError.one(what, "decide again", path="plan")
        for job in jobs:
            del self.waiting[job.name]
            running = Running(tasks=places[job.name], since=self.time, restarts=self._restarts.pop(job.name, 0))
            one = msgspec.structs.replace(job, running=running)
            self._cluster.start(one)
            self._live.hold(one)
        self._version += 1

    def _starting(self, schedule: Schedule) -> dict[str, tuple[RunningTask, ...]]:
        """Return what a schedule starts now: what runs for some time, and what takes none as far as it goes beside."""
        may_start = {name for name, job in self.waiting.items() if not self._held_up(job)}
        found = starting(schedule, may_start)
        for name, tasks in starting(schedule, may_start, brief=True).items():
            beside = {**found, name: tasks}
            jobs = [self.waiting[one] for one in beside]
            within = self._over(jobs, beside) is None
            if within and touched(self._cluster, [alone(job) for job in jobs], beside).checked:
                found = beside
        return found

    def _is_of_now(self, plan: Plan | Decision | Schedule) -> bool:
        """Return whether a plan was made, and checked, for the present state.

        One in time is judged anew, for what it starts is to go beside what is on the nodes now.
        """
        if isinstance(plan, Decision):
            return plan.version == self._version
        return isinstance(plan, Plan) and plan.checked and self._solved == (self._version, plan.snapshot)

    def _waits(self, name: str) -> Job:
        job = self.waiting.get(name)
        if job is None:
            remedy = "it runs already" if name in self.running else suggestion(name, list(self.waiting))
            raise UsageError.one(f"no job {show(name)} waits", remedy, path="job")
        return job

    # --- the present ---------------------------------------------------------------------------------------------

    def snapshot(self, *, in_time: bool = True) -> Snapshot:
        """Return the present state: running jobs with their places, then those waiting.

        Jobs that ended are gone, from `Job.after` too.

        Parameters
        ----------
        in_time : bool
            Whether to state what counts in a schedule alone, such as since when jobs run; not for `placement.solve`.
        """
        found = self._present(self.waiting.values())
        return found if in_time else timeless(found, self._queues)

    def _present(self, waiting: Iterable[Job]) -> Snapshot:
        jobs = [*(until(job, self.time, self._began) for job in self.running.values()), *waiting]
        there = {*self.running, *self.waiting}
        return verified(self._cluster.whole(self.time, (ended(job, there) for job in jobs)))

    def digest(self) -> str:
        """Return the SHA-256 of the present state; see `placement.snapshot.read.digest`."""
        return digest(self.snapshot())
