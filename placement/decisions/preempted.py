"""What preemption answers with: who leaves, the snapshot after that, and a checked plan of what starts then."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from placement.decisions.consolidated import without_layouts
from placement.plan import Plan
from placement.snapshot import Job, Node, Running, RunningTask, Snapshot
from placement.snapshot.read import verified

Place = tuple[str, tuple[int, ...], tuple[int, ...]]
"""Node, cards, and the first slot of each MIG instance."""


@dataclass(frozen=True, slots=True)
class Departure:
    """A task that leaves its place.

    Attributes
    ----------
    group : str
    index : int
    source : Place
    target : Place, optional
        Where it goes on; None where it does not.
    """

    group: str
    index: int
    source: Place
    target: Place | None


@dataclass(frozen=True, slots=True)
class Eviction:
    """A running job of which tasks leave their places.

    Attributes
    ----------
    job : str
    kind : {"stop", "shrink", "move"}
        Whether none of its tasks goes on (it waits again), fewer than before do, or all of them.
    tasks : tuple of Departure
    cost : float
        Of restarting it: weight times seconds. 0 where enough of it stays for it to go on meanwhile.
    reason : str
        The job that starts by it.
    """

    job: str
    kind: Literal["stop", "shrink", "move"]
    tasks: tuple[Departure, ...]
    cost: float
    reason: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """A job that cannot be started.

    Attributes
    ----------
    job : str
    reason : {"never", "held", "quota", "no_victims", "unknown"}
        An empty cluster could not take it; it may not start yet; a quota is in the way; no set of victims that may be
        stopped or moved lets it start; the search ended before it found one.
    detail : str
    """

    job: str
    reason: Literal["never", "held", "quota", "no_victims", "unknown"]
    detail: str


@dataclass(frozen=True, slots=True)
class Preemption:
    """Which running jobs make room, and what starts there.

    Attributes
    ----------
    started : tuple of str
        Jobs that start, in the order in which they were served.
    evictions : tuple of Eviction
        All of these leave before any of what starts or moves comes, so no order among them is needed.
    waiting : tuple of Waiting
        Jobs asked for that cannot be started; nothing is stopped or moved for them.
    after : Snapshot
        The cluster once all of that has left; stopped jobs wait in it, and what starts does too.
    plan : Plan
        What starts then; a checked plan for `after`.
    cost : float
        Sum over the evictions.
    bound : float or None
        Each of the jobs that start was served at least cost, given those before; this is the sum of the proven bounds.
        None where nothing is proven.
    gap : float or None
        How much lower the bound is, relative to the cost.
    proven : bool
        Whether every choice is proven to be best by all goals, and of every job in `waiting` that it cannot be started.
    """

    started: tuple[str, ...]
    evictions: tuple[Eviction, ...]
    waiting: tuple[Waiting, ...]
    after: Snapshot
    plan: Plan
    cost: float
    bound: float | None
    gap: float | None
    proven: bool


def evictions(
    snapshot: Snapshot, now: Mapping[str, Job], costs: Mapping[str, int], reasons: Mapping[str, str]
) -> tuple[Eviction, ...]:
    """Return what has become of the jobs of a snapshot.

    Parameters
    ----------
    snapshot : Snapshot
    now : mapping of str to Job
        Running jobs as they are by now.
    costs : mapping of str to int
        What restarting costs of those that are restarted, in milliseconds times weight.
    reasons : mapping of str to str
        The job that each was first touched for.
    """
    found = []
    for job in snapshot.jobs:
        if job.name not in reasons or job.running is None:
            continue
        running = now[job.name].running if job.name in now else None
        there = {(task.group, task.index): task for task in (running.tasks if running is not None else ())}
        tasks = []
        for task in job.running.tasks:
            target = there.get((task.group, task.index))
            if target is None or place(target) != place(task):
                tasks.append(Departure(task.group, task.index, place(task), None if target is None else place(target)))
        gone = sum(task.target is None for task in tasks)
        kind: Literal["stop", "shrink", "move"] = "stop" if not there else "shrink" if gone else "move"
        found.append(Eviction(job.name, kind, tuple(tasks), costs.get(job.name, 0) / 1000, reasons[job.name]))
    return tuple(found)


def names(job: Job) -> list[str]:
    """Return the names of the jobs that an entry stands for."""
    return [job.name] if job.count == 1 else [f"{job.name}-{copy}" for copy in range(job.count)]


def place(task: RunningTask) -> Place:
    """Return where a task is."""
    return task.node, task.gpus, task.mig_starts


def after(snapshot: Snapshot, now: Mapping[str, Job], touched: Collection[str]) -> Snapshot:
    """Return the snapshot once some jobs have left their places; what starts waits in it."""
    jobs = []
    places: list[RunningTask] = []
    for job in snapshot.jobs:
        if job.running is None or job.name not in touched:
            jobs.append(job)
            continue
        moved: Running | None = now[job.name].running if job.name in now else None
        jobs.append(msgspec.structs.replace(job, running=moved))
        places += [*job.running.tasks, *(moved.tasks if moved is not None else ())]
    return verified(msgspec.structs.replace(snapshot, jobs=tuple(jobs), nodes=nodes_with(snapshot, places)))


def nodes_with(snapshot: Snapshot, places: Sequence[RunningTask]) -> tuple[Node, ...]:
    """Return the nodes, without the lists of instances of MIG cards on which some have come or gone."""
    cards = {(task.node, card) for task in places if task.mig_starts for card in task.gpus}
    return tuple(entry for node in snapshot.nodes for entry in without_layouts(node, cards))
