"""Serving one waiting job after the other: who leaves for it, and the cluster once that is done."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf

import msgspec
import numpy as np

from placement.check import check
from placement.compile import compile as compile_snapshot
from placement.decisions.answered import answered
from placement.decisions.preempted import Preemption, Waiting, after, evictions, names, nodes_with
from placement.decisions.victims import Preemptable, cost_of, lost, preemptable, quota_refusal
from placement.empty import EmptyCluster
from placement.entitlement.entitled import Reclaim
from placement.errors import SolverError
from placement.exact.preemption.counts import goes_as_one, question
from placement.exact.preemption.landing import Ground, Landing
from placement.exact.preemption.victims import Choice, Found, Search
from placement.heuristics.filling import Filling
from placement.heuristics.first_fit import FirstFit
from placement.honoured import refuse_unhonoured, timeless, unhonoured
from placement.instance import Assignment, Instance
from placement.naming import job_names, node_names
from placement.plan import Plan, Provenance
from placement.planning import plan_of
from placement.scheduling.compile import Spots
from placement.snapshot import Job, Running, RunningTask, Snapshot, TaskGroup
from placement.snapshot.read import digest, verified
from placement.solver import Limits, Result, Stop
from placement.version import VERSION

OBJECTIVES = ("value", "tasks")
"""Of the plan of what starts."""

NO_VICTIMS = "no set of victims that may be stopped or moved lets it start"


@dataclass(slots=True)
class Serving:
    """One call: the cluster as it comes to be.

    Attributes
    ----------
    snapshot : Snapshot
    move : bool
    limits : Limits
    seed : int
    without : tuple of str
    reclaim : str
        See `placement.entitlement.entitled`.
    now : dict of str to Job
        Jobs that run, those that were started among them.
    started : dict of str to list of RunningTask
    costs : dict of str to int
        Of the jobs that are restarted.
    reasons : dict of str to str
        By touched job the one that it was first touched for.
    waiting : list of Waiting
    """

    snapshot: Snapshot
    move: bool
    limits: Limits
    seed: int
    without: tuple[str, ...]
    reclaim: Reclaim
    now: dict[str, Job] = field(default_factory=dict)
    started: dict[str, tuple[RunningTask, ...]] = field(default_factory=dict)
    costs: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    waiting: list[Waiting] = field(default_factory=list)
    _bound: float | None = 0.0
    _proven: bool = True
    _in_time: bool = True
    _jobs: dict[str, Job] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.now = {job.name: job for job in self.snapshot.jobs if job.running is not None}
        self._jobs = {
            name: msgspec.structs.replace(job, name=name, count=1)
            for job in self.snapshot.jobs
            if job.running is None
            for name in names(job)
        }

    def start_without_harm(self, name: str) -> bool:
        """Start a job if nothing has to leave for it."""
        job = self._jobs[name]
        if self._held(job) is not None or quota_refusal(self.snapshot, list(self.now.values()), job) is not None:
            return False
        ground = self._ground(job, Preemptable((), (), ()))
        landing = ground.land({}, {})
        if landing is None:
            return False
        self._take(ground, Choice({}, {}, (), ()), landing)
        return True

    def serve(self, name: str) -> None:
        """Start a job, at the expense of others if that helps."""
        job = self._jobs[name]
        held = self._held(job)
        if held is not None:
            self.waiting.append(Waiting(name, "held", held))
            return
        never = self._never(job)
        if never is not None:
            self.waiting.append(Waiting(name, "never", never))
            return
        running = list(self.now.values())
        who = preemptable(self.snapshot, running, job, move=self.move, restarted=self.costs, reclaim=self.reclaim)
        ground = self._ground(job, who)
        most = self.snapshot.policy.max_preemptions
        stopped = sum(one not in self.now for one in self.reasons)
        asked = question(ground, who.roles, who.caps, None if most is None else max(0, most - stopped))
        found = Search(asked, ground).run()
        self._proven &= found.proven
        self._in_time &= found.in_time
        if found.choice is None or found.landing is None:
            self.waiting.append(self._why(job, found))
            return
        self._bound = None if self._bound is None or found.bound is None else self._bound + found.bound
        self._take(ground, found.choice, found.landing)

    def _held(self, job: Job) -> str | None:
        """Return why a job may not start yet, whatever there is room for."""
        if job.submit_time is not None and job.submit_time > self.snapshot.time:
            return "it is submitted later"
        known = {*self.now, *self._jobs}
        ahead = [name for name in job.after if name in known]
        return f"it comes after {', '.join(ahead)}" if ahead else None

    def _never(self, job: Job) -> str | None:
        alone = msgspec.structs.replace(self.snapshot, jobs=(job,))
        instance = compile_snapshot(alone)
        return EmptyCluster(instance).never(0)

    def _why(self, job: Job, found: Found) -> Waiting:
        if not found.proven:
            return Waiting(job.name, "unknown", "the search ended before it was known whether victims let it start")
        short = quota_refusal(self.snapshot, list(self.now.values()), job)
        if short is not None:
            return Waiting(job.name, "quota", f"{short}; {NO_VICTIMS}")
        return Waiting(job.name, "no_victims", NO_VICTIMS)

    def _ground(self, job: Job, who: Preemptable) -> Ground:
        leaving = {one.name for one in who.jobs}
        stay = tuple(one for name, one in self.now.items() if name not in leaving)
        there = after(self.snapshot, self.now, self.reasons) if self.reasons else self.snapshot
        nodes = nodes_with(there, [task for tasks in self.started.values() for task in tasks])
        cluster = msgspec.structs.replace(there, nodes=nodes, jobs=stay, queues=())
        together = [goes_as_one(one) for one in who.jobs]
        admits = partial(self._admits, job, stay, who.jobs)
        return Ground(cluster, who.jobs, together, job, self.limits, self.seed, admits)

    def _admits(
        self,
        job: Job,
        stay: Sequence[Job],
        victims: Sequence[Job],
        left: Mapping[int, Collection[int]],
        moved: Mapping[int, Sequence[int]],
    ) -> bool:
        """Return whether quotas let a job start once some tasks have left; what goes on counts as where it was."""
        there = list(stay)
        for number, victim in enumerate(victims):
            assert victim.running is not None
            gone = set(left.get(number, ())) - set(moved.get(number, ()))
            tasks = tuple(task for place, task in enumerate(victim.running.tasks) if place not in gone)
            there.append(msgspec.structs.replace(victim, running=Running(tasks=tasks)) if gone else victim)
        return quota_refusal(self.snapshot, there, job) is None

    # --- what has become of it -----------------------------------------------------------------------------------

    def _take(self, ground: Ground, choice: Choice, landing: Landing) -> None:
        """Let victims leave and the job start."""
        name = ground.job.name
        _refuse_wrong(landing)
        targets = ground.targets(landing)
        for number, gone in choice.left.items():
            victim = ground.victims[number]
            assert victim.running is not None
            self.reasons.setdefault(victim.name, name)
            if number in choice.restarted:
                self.costs.setdefault(victim.name, cost_of(self.snapshot, victim))
            if number in choice.stopped:
                del self.now[victim.name]
                continue
            stay = [task for place, task in enumerate(victim.running.tasks) if place not in gone]
            tasks = tuple(sorted([*stay, *targets.get(number, ())], key=lambda task: (task.group, task.index)))
            running = msgspec.structs.replace(victim.running, tasks=tasks)
            if number in choice.restarted:
                running = _restarted(self.snapshot, victim, running)
            self.now[victim.name] = msgspec.structs.replace(victim, running=running)
        tasks = tuple(_renumbered(self._jobs[name], ground.job, task) for task in ground.started(landing))
        self.started[name] = tasks
        # who has just been started is not stopped for the next one
        self.now[name] = msgspec.structs.replace(self._jobs[name], running=Running(tasks=tasks), preemptible=False)

    def answer(self, time_limit: float | None) -> Preemption:
        """Return what was decided."""
        there = after(self.snapshot, self.now, self.reasons)
        found = evictions(self.snapshot, self.now, self.costs, self.reasons)
        cost = sum(one.cost for one in found)
        bound = None if self._bound is None else min(self._bound / 1000, cost)
        gap = None if bound is None else (cost - bound) / cost if cost else 0.0
        return Preemption(
            tuple(self.started), found, tuple(self.waiting), there, self._plan(there, time_limit), cost, bound, gap,
            self._proven,
        )  # fmt: skip

    def _plan(self, there: Snapshot, time_limit: float | None) -> Plan:
        """Return the checked plan of what starts."""
        without = (*self.without, *unhonoured(there, self.without))
        then = compile_snapshot(refuse_unhonoured(there, without))
        starts = self._grown(then, _assignment(then, self.started))
        result = Result(starts, Stop.COMPLETE if self._in_time else Stop.TIME)
        return answered(there, then, result, "preempt", OBJECTIVES, self.seed, time_limit, without)

    def _grown(self, then: Instance, starts: Assignment) -> Assignment:
        """Return the same with more tasks of what starts, where there is room left and no quota counts them."""
        filling = Filling(then, FirstFit, inf, 0)
        placed = filling.resume(starts)
        limited = {queue.name for queue in self.snapshot.queues}
        number = {name: job for job, name in enumerate(job_names(then, np.arange(then.jobs)))}
        rows = []
        for name in self.started:
            job = number[name]
            tasks = placed.get(job, [])
            if self._jobs[name].queue not in limited:
                tasks = filling.serve(int(then.job_class[job]), tasks)
            rows += [(job, leaf, index, node, cards) for leaf, index, (node, cards) in tasks]
        return Assignment.of(sorted(rows))


def _refuse_wrong(landing: Landing) -> None:
    """Refuse a landing that the check does not accept, those that move in it included."""
    snapshot = timeless(verified(landing.snapshot))
    without = unhonoured(snapshot)
    provenance = Provenance(version=VERSION, solver="preempt", objectives=("value",), without=without)
    result = Result(landing.assignment, Stop.COMPLETE)
    # the landing may state scaling, which a plan leaves out of account
    instance = replace(landing.instance, snapshot=snapshot)
    plan = plan_of(instance, result, {}, ("value",), provenance, digest(snapshot))
    violations = check(snapshot, plan)
    if violations:
        raise SolverError(f"the landing was refused by the check ({violations[0]})")


def _restarted(snapshot: Snapshot, job: Job, running: Running) -> Running:
    """Return the state of a job that goes on elsewhere from its last checkpoint."""
    assert job.running is not None
    since = job.running.since
    worked = job.running.work_done
    if worked is None and since is not None:
        worked = max(0.0, snapshot.time - since)
    kept = None if worked is None else float(max(0, worked - float(lost(snapshot, job))))
    saved = None if job.running.last_checkpoint is None else snapshot.time
    return msgspec.structs.replace(
        running, since=snapshot.time, work_done=kept, last_checkpoint=saved, restarts=running.restarts + 1
    )


def _renumbered(job: Job, smaller: Job, task: RunningTask) -> RunningTask:
    """Return a task of a job that wanted fewer as one of the job itself; outer copies count slowest."""
    groups: tuple[tuple[TaskGroup, ...], tuple[TaskGroup, ...]] = (job.groups, smaller.groups)
    counts = []
    for name in task.group.split("/"):
        pair = [next(group for group in side if group.name == name) for side in groups]
        counts.append((pair[0].count, pair[1].count))
        groups = pair[0].groups, pair[1].groups
    digits, rest = [], task.index
    for _, few in reversed(counts):
        rest, digit = divmod(rest, few)
        digits.append(digit)
    index = 0
    for (many, _), digit in zip(counts, reversed(digits), strict=True):
        index = index * many + digit
    return msgspec.structs.replace(task, index=index)


def _assignment(then: Instance, started: dict[str, tuple[RunningTask, ...]]) -> Assignment:
    """Return where jobs start, as an instance calls it."""
    number = {name: job for job, name in enumerate(job_names(then, np.arange(then.jobs)))}
    spots = Spots(then, {name: node for node, name in enumerate(node_names(then, np.arange(then.hosts)))})
    rows = [
        (number[name], leaf, index, node, cards)
        for name, tasks in started.items()
        for leaf, index, (node, cards) in spots.of(number[name], tasks)
    ]
    return Assignment.of(sorted(rows))
