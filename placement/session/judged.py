"""Places that were found for some jobs, as a plan for the nodes that they touch, which the check accepts or refuses."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from functools import cache
from importlib.metadata import version

import msgspec
import numpy as np

from placement.check import check
from placement.compile import compile as compile_snapshot
from placement.errors import UsageError
from placement.honoured import timeless
from placement.instance import Assignment
from placement.naming import job_names, node_names
from placement.places import places_of as places_of
from placement.plan import Plan, Provenance
from placement.planning import plan_of
from placement.scheduling.compile import Spots
from placement.session.cluster import Cluster
from placement.snapshot import Job, RunningTask, Snapshot
from placement.snapshot.leaves import leaf_tasks
from placement.snapshot.read import digest, verified
from placement.snapshot.report import show, suggestion
from placement.solver import Result, Stop
from placement.timetable import Schedule
from placement.version import VERSION

OBJECTIVES = ("value",)
"""Of a plan for the touched nodes."""


def plan_for(snapshot: Snapshot, places: Mapping[str, Sequence[RunningTask]]) -> Plan:
    """Return the plan that puts waiting jobs of a snapshot on some places; `Plan.checked` says what the check says.

    What a NUMA zone gives each task, and which of alike cards it gets, is worked out anew; see
    `placement.naming.name_tasks`.

    Parameters
    ----------
    snapshot : Snapshot
    places : mapping of str to sequence of RunningTask
        By job.
    """
    snapshot = timeless(verified(snapshot))
    instance = compile_snapshot(snapshot)
    nodes = {name: node for node, name in enumerate(node_names(instance, np.arange(instance.hosts)))}
    jobs = {name: job for job, name in enumerate(job_names(instance, np.arange(instance.jobs)))}
    spots = Spots(instance, nodes)
    rows = [
        (jobs[name], leaf, index, node, cards)
        for name in sorted(places, key=jobs.__getitem__)
        for leaf, index, (node, cards) in sorted(spots.of(jobs[name], tuple(places[name])))
    ]
    provenance = Provenance(
        version=VERSION,
        solver="session",
        solver_version=_solver_version(),
        method="session",
        objectives=OBJECTIVES,
        seed=0,
        gap=0.0,
        time_limit=None,
        without=(),
    )
    found = Result(Assignment.of(rows), Stop.COMPLETE)
    plan = plan_of(instance, found, {}, OBJECTIVES, provenance, digest(snapshot))
    violations = check(snapshot, plan)
    plan.checked = not violations
    plan.notes += [str(one) for one in violations[:1]]
    return plan


@cache
def _solver_version() -> str:
    return version("highspy")


def starting(schedule: Schedule, jobs: Container[str], brief: bool = False) -> dict[str, tuple[RunningTask, ...]]:
    """Return where a schedule puts the tasks of each of some jobs that it starts at once.

    Parameters
    ----------
    schedule : Schedule
    jobs : container of str
    brief : bool
        Whether of those that take no time, on whose places others may start at the same moment, instead of all others.
    """
    stretches = schedule.stretches
    now = {
        stretch: job
        for stretch, (job, start, end) in enumerate(zip(stretches.job, stretches.start, stretches.end, strict=True))
        if start == 0 and (end == 0) is brief and job in jobs
    }
    tasks, found = schedule.tasks, dict[str, list[RunningTask]]()
    for row, stretch in enumerate(tasks.stretch):
        if stretch not in now:
            continue
        zones = () if isinstance(tasks.zones, msgspec.UnsetType) else tasks.zones[row]
        starts = () if isinstance(tasks.mig_starts, msgspec.UnsetType) else tasks.mig_starts[row]
        found.setdefault(now[stretch], []).append(
            RunningTask(
                group=tasks.group[row],
                index=tasks.index[row],
                node=tasks.node[row],
                gpus=tuple(tasks.gpus[row]),
                zone=zones[0] if len(zones) == 1 else None,
                mig_starts=tuple(starts),
            )
        )
    return {name: tuple(some) for name, some in found.items()}


def unnamed(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot in which running tasks that state no zone do not name their NICs.

    Over time a task takes all that it has from the same zones. So of one that has its NICs from one zone and its cards
    from two, say, it cannot be said which NICs they are; and of one that is bound to the zone of its cards, they are
    of that zone anyway.
    """
    jobs = []
    for job in snapshot.jobs:
        running = job.running
        if running is not None and any(task.nics and task.zone is None for task in running.tasks):
            tasks = tuple(
                msgspec.structs.replace(task, nics=()) if task.zone is None else task for task in running.tasks
            )
            job = msgspec.structs.replace(job, running=msgspec.structs.replace(running, tasks=tasks))
        jobs.append(job)
    return msgspec.structs.replace(snapshot, jobs=tuple(jobs))


def alone(job: Job) -> Job:
    """Return a job without what names other jobs and domains, which is no matter of where it fits."""
    return msgspec.structs.replace(job, after=(), data=(), queue="") if job.after or job.data or job.queue else job


def touched(cluster: Cluster, jobs: Sequence[Job], places: Mapping[str, Sequence[RunningTask]]) -> Plan:
    """Return the same for jobs of a session, judged on the nodes that they touch and all that is on these.

    Raises
    ------
    UsageError
        If a place is on a node, or of a group, that is not there.
    """
    for job in jobs:
        groups = [path for path, _ in leaf_tasks(job.groups)]
        for task in places[job.name]:
            for kind, name, known in (("node", task.node, cluster.nodes), ("group", task.group, groups)):
                if name not in known:
                    what = f"{show(job.name)} has a place of {kind} {show(name)}, and there is none"
                    raise UsageError.one(what, suggestion(name, list(known)), path="plan")
    nodes = {task.node for tasks in places.values() for task in tasks}
    return plan_for(cluster.part(nodes, jobs), places)
