"""Whether one job, and running tasks that move for it, have room once others have left: asked of all that is known.

A small snapshot is made for each question: what stays runs, and the job and the tasks that move wait. Greedy rules are
asked first, for where they find room there is some; that there is none is proven by the exact method.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from placement import exact
from placement.compile import compile as compile_snapshot
from placement.heuristics import TIED
from placement.heuristics.best_fit import BestFit
from placement.heuristics.first_fit import FirstFit
from placement.heuristics.greedy import Greedy
from placement.heuristics.mig_best_fit import MigBestFit
from placement.instance import Assignment, Instance, Ints
from placement.naming import name_tasks
from placement.plan import Tasks
from placement.snapshot import Job, RunningTask, Snapshot, Task, TaskGroup
from placement.solver import Limits

SURE = 1e-6
"""By how much a bound must be below what a job that starts is worth."""


@dataclass(frozen=True, slots=True)
class Landing:
    """Where all of them lie.

    Attributes
    ----------
    snapshot : Snapshot
        The question, as it was put.
    instance : Instance
    assignment : Assignment
    """

    snapshot: Snapshot
    instance: Instance
    assignment: Assignment


Admits = Callable[[Mapping[int, Collection[int]], Mapping[int, Sequence[int]]], bool]
"""See `Ground.admits`."""


@dataclass(slots=True)
class Ground:
    """A cluster on which jobs run, some of which may leave, and a job that is to start.

    Attributes
    ----------
    snapshot : Snapshot
        Its jobs are those that run and stay; every field of it is honoured.
    victims : sequence of Job
        Those that may leave.
    together : sequence of bool
        Whether the tasks of each move together, as the gang that it is.
    job : Job
        What is to start; its count is 1.
    limits : Limits
    seed : int
    admits : callable
        Whether the job may start once some have left (first what leaves, then what of it goes on, as in `land`); where
        it may, it may where more leave and where less of it goes on.
    asked, unsure : int
        Questions so far, and those of them to which no answer was proven.
    """

    snapshot: Snapshot
    victims: Sequence[Job]
    together: Sequence[bool]
    job: Job
    limits: Limits
    seed: int = 0
    admits: Admits = lambda left, moved: True
    asked: int = 0
    unsure: int = 0

    def __post_init__(self) -> None:
        self.job = least(self.job)

    def land(self, left: Mapping[int, Collection[int]], moved: Mapping[int, Sequence[int]]) -> Landing | None:
        """Return where the job and the tasks that move lie, or None if the job may not start or they have no room.

        Parameters
        ----------
        left : mapping of int to collection of int
            By victim, positions among its running tasks of those that leave.
        moved : mapping of int to sequence of int
            Those of them that go on elsewhere.
        """
        self.asked += 1
        if not self.admits(left, moved):
            return None
        snapshot = self._question(left, moved)
        instance = compile_snapshot(snapshot)
        movers = sum(job.running is None for job in snapshot.jobs) - 1
        for order in (_movers_first, _job_first) if movers else (_movers_first,):
            for rule in (FirstFit, BestFit) if instance.slots is None else (MigBestFit, FirstFit):
                found = Greedy(rule, order).solve(instance, objectives=("value",), limits=Limits(), seed=0)
                if self._all(instance, found.assignment):
                    return Landing(snapshot, instance, found.assignment)
        for solver in TIED.values() if instance.tied else ():
            found = solver.solve(instance, objectives=("value",), limits=Limits(), seed=0)
            if self._all(instance, found.assignment):
                return Landing(snapshot, instance, found.assignment)
        return self._exactly(snapshot, instance, movers)

    def _exactly(self, snapshot: Snapshot, instance: Instance, movers: int) -> Landing | None:
        result = exact.run(instance, objectives=("value",), limits=self.limits, seed=self.seed)
        if self._all(instance, result.assignment):
            return Landing(snapshot, instance, result.assignment)
        # movers are of priority 1 and worth 1 each; the job is of priority 0
        needed = {1: movers, 0: 1 if self._is_rigid() else SURE}
        known = [bound for bound in result.bounds if bound.value is not None and bound.priority in needed]
        refused = any(bound.value < needed[bound.priority] - SURE * needed[bound.priority] for bound in known)  # type: ignore[operator, index]
        if not refused or not instance.exact:
            self.unsure += 1
        return None

    def _is_rigid(self) -> bool:
        return self.job == rigid(self.job)

    def _all(self, instance: Instance, assignment: Assignment) -> bool:
        """Return whether every job of an instance has started."""
        return len(np.unique(assignment.job)) == instance.jobs

    def _question(self, left: Mapping[int, Collection[int]], moved: Mapping[int, Sequence[int]]) -> Snapshot:
        jobs = list(self.snapshot.jobs)
        for number, victim in enumerate(self.victims):
            gone = left.get(number, ())
            if not gone:
                jobs.append(victim)
                continue
            assert victim.running is not None
            kept = tuple(task for place, task in enumerate(victim.running.tasks) if place not in gone)
            if kept:
                running = msgspec.structs.replace(victim.running, tasks=kept)
                jobs.append(msgspec.structs.replace(victim, running=running))
            if moved.get(number):
                jobs.append(self._mover(number, moved[number]))
        jobs.append(msgspec.structs.replace(self.job, priority=0, weight=1, value=1))
        return msgspec.structs.replace(self.snapshot, jobs=tuple(jobs))

    def _mover(self, number: int, places: Sequence[int]) -> Job:
        """Return the tasks of a victim that move as a job that waits."""
        victim = self.victims[number]
        assert victim.running is not None
        groups = victim.groups
        if not self.together[number]:
            groups = tuple(
                TaskGroup(name=f"t{place}", task=task_of(victim, victim.running.tasks[place].group))
                for place in sorted(places)
            )
        # another name, for some of its tasks may still run; names of tasks are those of groups and counts it has not
        moving = msgspec.structs.replace(
            victim,
            name=self._name(number),
            groups=groups,
            task_names={},
            claims={},
            running=None,
            priority=1,
            weight=1,
            value=1,
        )
        return rigid(moving)

    def _name(self, number: int) -> str:
        return f"tasks of {self.victims[number].name} that move"

    def targets(self, landing: Landing) -> dict[int, list[RunningTask]]:
        """Return where the tasks of each victim that move come to lie, in the order of their positions."""
        found: dict[int, list[RunningTask]] = {}
        number_of = {self._name(number): number for number in range(len(self.victims))}
        for job, group, task in placed(name_tasks(landing.instance, landing.assignment)):
            number = number_of.get(job)
            if number is None:
                continue
            running = self.victims[number].running
            assert running is not None
            if not self.together[number]:
                was = running.tasks[int(group[1:])]
                task = msgspec.structs.replace(task, group=was.group, index=was.index)
            found.setdefault(number, []).append(task)
        return found

    def started(self, landing: Landing) -> list[RunningTask]:
        """Return where the tasks of the job that starts lie."""
        rows = placed(name_tasks(landing.instance, landing.assignment))
        return [task for job, _, task in rows if job == self.job.name]


def placed(tasks: Tasks) -> list[tuple[str, str, RunningTask]]:
    """Return the tasks of a plan as running ones, each with its job and group."""
    found = []
    for row in range(len(tasks.job)):
        zones = tasks.zones[row] if tasks.zones is not msgspec.UNSET else []
        found.append(
            (
                tasks.job[row],
                tasks.group[row],
                RunningTask(
                    group=tasks.group[row],
                    index=tasks.index[row],
                    node=tasks.node[row],
                    gpus=tuple(tasks.gpus[row]),
                    zone=zones[0] if len(zones) == 1 else None,
                    nics=tuple(tasks.nics[row]) if tasks.nics is not msgspec.UNSET else (),
                    mig_starts=tuple(tasks.mig_starts[row]) if tasks.mig_starts is not msgspec.UNSET else (),
                ),
            )
        )
    return found


def task_of(job: Job, path: str) -> Task:
    """Return what the tasks of a group ask for."""
    groups, found = job.groups, None
    for name in path.split("/"):
        found = next(group for group in groups if group.name == name)
        groups = found.groups
    assert found is not None
    assert found.task is not None
    return found.task


def rigid(job: Job) -> Job:
    """Return a job that runs whole or not at all."""

    def whole(group: TaskGroup) -> TaskGroup:
        below = tuple(map(whole, group.groups))
        return msgspec.structs.replace(group, min_count=None, min_groups=None, groups=below)

    return msgspec.structs.replace(job, groups=tuple(map(whole, job.groups)))


def least(job: Job) -> Job:
    """Return a job that wants no more than it needs to run, as far as fewer of the same are always easier to place.

    Which tasks are left out matters where slices name them or halves have to be even; a group that may do without some
    of its groups may do without any of them.
    """

    def smaller(group: TaskGroup) -> TaskGroup:
        below = tuple(map(smaller, group.groups))
        ties = group.topology
        if ties is not None and (ties.slices or ties.balanced or ties.spread):
            return group
        count = group.count if group.min_count is None else group.min_count
        return msgspec.structs.replace(group, count=count, min_count=None, groups=below)

    # names of tasks are as many as there were
    return msgspec.structs.replace(job, groups=tuple(map(smaller, job.groups)), task_names={})


def _movers_first(instance: Instance, objectives: tuple[str, ...]) -> Ints:
    """Return the tasks that move before the job."""
    return np.arange(instance.jobs, dtype=np.int64)


def _job_first(instance: Instance, objectives: tuple[str, ...]) -> Ints:
    return np.arange(instance.jobs, dtype=np.int64)[::-1].copy()
