"""Simulation: what a policy makes of a workload when jobs run longer or shorter than estimated and nodes fail."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import msgspec
import numpy as np

from placement import units
from placement.errors import Problem, SnapshotError, UsageError
from placement.figures import figures
from placement.heuristics.gangs import Placed
from placement.honoured import refuse_unhonoured_in_time
from placement.naming import job_names, node_names
from placement.scheduling.answer import job_times
from placement.scheduling.baselines import BASELINES
from placement.scheduling.compile import compile_work
from placement.scheduling.desk import Desk
from placement.scheduling.loop import CANCELLED, DRAINS, FAILS, RETURNS, Loop, Policy
from placement.scheduling.rolling import Rolling
from placement.scheduling.timing import Stretch
from placement.scheduling.work import Work
from placement.simulation import Samples, Simulation
from placement.snapshot import Snapshot
from placement.snapshot.events import Event, EventLog, JobArrived, JobEnded, NodeDrained, NodeFailed
from placement.snapshot.fields import MOST_FACTOR, MOST_SECONDS
from placement.snapshot.read import digest, verified
from placement.snapshot.report import show, suggestion
from placement.snapshot.validate import judge_events
from placement.timetable import Figures, JobTimes, Stretches, StretchTasks

POLICIES = (*BASELINES, "rolling")
"""Every policy that may be named."""
SAMPLED = 600.0
"""Seconds between samples if nothing else is said."""


def simulate(
    snapshot: Snapshot,
    policy: str | Policy = "fifo",
    *,
    events: EventLog | Sequence[Event] = (),
    actual: Mapping[str, float] | None = None,
    sample: float = SAMPLED,
    seed: int = 0,
    without: Sequence[str] = (),
) -> Simulation:
    """Replay a workload under a policy and return what becomes of it.

    Parameters
    ----------
    snapshot : Snapshot
        Jobs come at their `submit_time`; those that wait state a `Duration`, which is the estimate that policies see.
    policy : str or Policy
        One of `POLICIES`, or an object of one's own; see `placement.scheduling.loop.Policy`.
    events : EventLog or sequence of Event
        On the snapshot's clock, none before its time. A job that arrives is added to those of the snapshot; one that
        ended is taken away then, whatever its state. A node that fails stops all jobs on it: work since the last
        checkpoint is lost, and the job is restored elsewhere. A node that is drained keeps its jobs.
    actual : mapping of str to float, optional
        How many times as long as estimated jobs run, by name; 1 where a job is not listed.
    sample : float
        Seconds between two samples, at least.
    seed : int
    without : sequence of str
        Fields that no rule honours yet, to be left out of account.

    Raises
    ------
    SnapshotError
        If the snapshot or the events are wrong, or a waiting job states no duration.
    UsageError
        If an argument is out of range.
    """
    began = time.monotonic()
    chosen = _policy(policy)
    if not 0 < sample <= MOST_SECONDS:
        raise UsageError.one(f"is {sample!r}", f"give seconds above 0, at most {MOST_SECONDS:,}", path="sample")
    log = events.events if isinstance(events, EventLog) else tuple(events)
    snapshot = verified(snapshot)
    stated = len(snapshot.jobs)
    try:
        snapshot = _with_arrivals(snapshot, log)
        work = compile_work(refuse_unhonoured_in_time(snapshot, without))
    except SnapshotError as error:
        raise type(error)([_in_log(one, stated, log) for one in error.problems], error.source, error.total) from None
    desk = Desk(work, seed=seed, slow=_slow(work, actual or {}))
    watch = _Watch(chosen, math.ceil(1000 * sample))
    table = Loop(desk, watch, _happenings(work, log)).run()
    # what a failure stopped, would be late or was taken away is not started again, though it ran for some time
    left = set(desk.waiting) | table.late | table.never
    done = [one for one in table.stretches if one.job not in left]
    stopped = [one for one in table.stretches if one.job in left]
    jobs = job_times(work, [one for one in done if work.counts(one.job)])
    names = job_names(work.instance, np.arange(work.jobs))
    unended = table.never | table.late | table.quota.keys() | left
    return Simulation(
        snapshot=digest(snapshot),
        policy=chosen.name,
        jobs=jobs,
        figures=_figures(desk, jobs, [*done, *stopped]),
        unfinished=[names[job] for job in sorted(unended - {one.job for one in done})],
        failures=sum(isinstance(one, NodeFailed) for one in log),
        samples=watch.samples,
        seconds=time.monotonic() - began,
    )


def _policy(policy: str | Policy) -> Policy:
    if not isinstance(policy, str):
        return policy
    if policy == "rolling":
        return Rolling()
    if policy not in BASELINES:
        raise UsageError.one(f"{policy!r} is unknown", suggestion(policy, list(POLICIES), len(POLICIES)), path="policy")
    return BASELINES[policy]


# --- what happens --------------------------------------------------------------------------------------------


def _with_arrivals(snapshot: Snapshot, log: Sequence[Event]) -> Snapshot:
    """Return the snapshot with the jobs that arrive, each at its time, or at its `submit_time` if that is later."""
    report = judge_events(EventLog(events=tuple(log)))
    for index, event in enumerate(log):
        if event.time < snapshot.time:
            what = f"found {show(event.time)}, which is before the snapshot's time {show(snapshot.time)}"
            report.add(f"events[{index}].time", what, "leave out what is past")
    if report.total:
        raise SnapshotError(report.problems, "", report.total)
    arrived = [
        msgspec.structs.replace(event.job, submit_time=max(event.time, event.job.submit_time or event.time))
        for event in log
        if isinstance(event, JobArrived)
    ]
    return verified(msgspec.structs.replace(snapshot, jobs=(*snapshot.jobs, *arrived))) if arrived else snapshot


def _in_log(problem: Problem, stated: int, log: Sequence[Event]) -> Problem:
    """Return a problem of a job that arrives with its place among the events."""
    found = re.match(r"jobs\[(\d+)\]", problem.path)
    if found is None or int(found[1]) < stated:
        return problem
    arrivals = [index for index, event in enumerate(log) if isinstance(event, JobArrived)]
    path = f"events[{arrivals[int(found[1]) - stated]}].job{problem.path[found.end() :]}"
    return replace(problem, path=path)


def _happenings(work: Work, log: Sequence[Event]) -> Iterator[tuple[int, int, int]]:
    """Yield what happens besides arrivals; see `Loop`."""
    instance = work.instance
    nodes = {name: node for node, name in enumerate(node_names(instance, np.arange(instance.hosts)))}
    jobs = {name: job for job, name in enumerate(job_names(instance, np.arange(instance.jobs)))}
    now = instance.snapshot.time
    arrives = {
        name: index for index, event in enumerate(log) if isinstance(event, JobArrived) for name in _names(event)
    }
    for index, event in enumerate(log):
        if isinstance(event, JobArrived):
            continue
        moment = math.ceil(1000 * (Fraction(repr(float(event.time))) - Fraction(repr(float(now)))))
        what = "job" if isinstance(event, JobEnded) else "node"
        name, known = (event.job, jobs) if isinstance(event, JobEnded) else (event.node, nodes)
        if name not in known:
            remedy = suggestion(name, list(known))
            raise SnapshotError([Problem(f"events[{index}].{what}", f"there is no {what} {show(name)}", remedy)])
        if what == "job" and index < arrives.get(name, -1):
            wrong = f"{show(name)} ends before it arrives (events[{arrives[name]}])"
            raise SnapshotError([Problem(f"events[{index}].job", wrong, "correct the times, or take one of them out")])
        if isinstance(event, JobEnded):
            yield moment, CANCELLED, known[name]
        elif isinstance(event, NodeFailed):
            yield moment, FAILS, known[name]
        else:
            yield moment, DRAINS if isinstance(event, NodeDrained) else RETURNS, known[name]


def _names(event: JobArrived) -> list[str]:
    job = event.job
    return [job.name] if job.count == 1 else [f"{job.name}-{copy}" for copy in range(job.count)]


def _slow(work: Work, actual: Mapping[str, float]) -> list[Fraction] | None:
    """Return how many times as long as estimated each job runs."""
    if not actual:
        return None
    names = job_names(work.instance, np.arange(work.jobs))
    problems = [
        Problem(f"actual[{show(name)}]", "there is no such job", suggestion(name, names))
        for name in sorted(set(actual) - set(names))
    ]
    problems += [
        Problem(f"actual[{show(name)}]", f"found {factor!r:.40}", f"expected a number above 0, at most {MOST_FACTOR:,}")
        for name, factor in sorted(actual.items())
        if not (isinstance(factor, int | float) and 0 < factor <= MOST_FACTOR)
    ]
    if problems:
        raise UsageError(problems)
    return [units.exact(actual.get(name, 1)) for name in names]


# --- what is seen --------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Watch:
    """A policy, and what the cluster looks like after it has decided, at the first event of each period."""

    policy: Policy
    every: int
    samples: Samples
    _next: int

    def __init__(self, policy: Policy, every: int) -> None:
        self.policy, self.every, self._next = policy, every, 0
        self.samples = Samples()

    @property
    def name(self) -> str:
        return self.policy.name

    @property
    def period(self) -> int:
        return self.policy.period

    def decide(self, desk: Desk) -> None:
        """Let the policy decide, and look."""
        self.policy.decide(desk)
        if desk.now >= self._next:
            self._next = desk.now - desk.now % self.every + self.every
            self._look(desk)

    def _look(self, desk: Desk) -> None:
        card = desk.work.instance.card_units
        units_free, healthy = desk.filling.idle_units()
        idle = np.where(healthy, units_free, 0)
        empty = ((idle == card) == healthy).all(axis=1)
        free, on_empty = int(idle.sum()), int(idle[empty].sum())
        found = self.samples
        found.time.append(desk.now / 1000)
        found.used.append(float(sum(_units(desk.work, job, live.tasks) for job, live in desk.live.items()) / card))
        found.idle.append(free / card)
        found.scattered.append((free - on_empty) / card)
        found.largest.append(on_empty // card)
        found.running.append(len(desk.live))
        found.waiting.append(len(desk.waiting))


def _units(work: Work, job: int, tasks: Sequence[Placed]) -> Fraction:
    """Return how many card units the tasks of a job take."""
    instance = work.instance
    leaves = instance.job_classes[instance.job_class[job]].leaves
    return Fraction(sum(instance.shapes[leaves[leaf].shape].of_cards for leaf, _, _ in tasks))


def _figures(desk: Desk, jobs: JobTimes, stretches: Sequence[Stretch]) -> Figures:
    """Return the figures of a run, with what its stretches took of all healthy cards until the last of them ended.

    What still runs then runs without an end.
    """
    work = desk.work
    instance = work.instance
    counted = [one for one in stretches if work.counts(one.job)]
    rows = Stretches(
        job=job_names(instance, np.array([one.job for one in counted], dtype=np.int64)),
        start=[one.start / 1000 for one in counted],
        end=[one.end / 1000 for one in counted],
    )
    found = figures(instance.snapshot, jobs, rows, StretchTasks())
    makespan = max((one.end for one in stretches), default=0)
    held = sum(((one.end - one.start) * _units(work, one.job, one.tasks) for one in stretches), Fraction(0))
    held += sum(makespan * _units(work, job, live.tasks) for job, live in desk.live.items())
    healthy = sum(
        one.size * sum(instance.card_kinds[kind].healthy for kind, _, _ in one.cards) for one in instance.classes
    )
    share = float(held / (healthy * makespan * instance.card_units)) if healthy and makespan else None
    return msgspec.structs.replace(found, makespan=makespan / 1000, utilisation=share)
