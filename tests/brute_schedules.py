"""The best schedule of a tiny cluster, by trying all: whom to stop now, in which order jobs start, and on which nodes.

Tasks take whole cards, and the cards of a node are alike, so how many are free on each node says all. Sorted by start,
each job of some best schedule starts as soon as it can on its nodes, and no sooner than the one before. Nothing here
knows the engine; what fields mean is written from their descriptions. Import it as ``brute_schedules``.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, inf

from placement.snapshot import (
    Duration,
    Gpu,
    Job,
    Node,
    Queue,
    Running,
    RunningTask,
    Snapshot,
    Task,
    TaskGroup,
    Topology,
)
from placement.units import Quantity

RACK = "rack"


# --- random instances --------------------------------------------------------------------------------------------


def random_schedule_case(seed: int) -> Snapshot:
    """Return the tiny snapshot of a seed; the same on every machine and Python."""
    draw = random.Random(seed)
    racks = draw.random() < 0.5
    models = draw.choice(("A", "A", "AB"))
    nodes = tuple(
        Node(
            name=f"n{number}",
            gpus=(Gpu(model=draw.choice(models), count=draw.randint(1, 4)),),
            position={RACK: draw.choice("rs")} if racks else {},
        )
        for number in range(draw.randint(1, 3))
    )
    queues = _queues(draw) if draw.random() < 0.5 else ()
    free = {node.name: list(range(node.gpus[0].count)) for node in nodes}
    jobs = [_pending(draw, number, racks, queues) for number in range(draw.randint(2, 4))]
    for number in range(draw.randint(0, 5 - len(jobs)) if len(jobs) < 4 else draw.randint(0, 1)):
        found = _running(draw, number, nodes, free, queues)
        if found is not None:
            jobs.append(found)
    return Snapshot(time=0.0, topology=(RACK,) if racks else (), nodes=nodes, queues=tuple(queues), jobs=tuple(jobs))


def _queues(draw: random.Random) -> tuple[Queue, ...]:
    return _queue(draw, "p"), _queue(draw, "q"), Queue(name="top", quota={"*": draw.randint(0, 1)})


def _queue(draw: random.Random, name: str) -> Queue:
    quota = draw.randint(1, 4)
    borrowing: dict[str, Quantity] = {"*": draw.randint(0, 2)} if draw.random() < 0.4 else {}
    lending: dict[str, Quantity] = {"*": draw.randint(0, quota)} if draw.random() < 0.4 else {}
    return Queue(name=name, parent="top", quota={"*": quota}, borrowing_limit=borrowing, lending_limit=lending)


def _pending(draw: random.Random, number: int, racks: bool, queues: Sequence[Queue]) -> Job:
    count = draw.choice((1, 1, 2, 3))
    least = draw.randint(1, count) if draw.random() < 0.4 else count
    ties = Topology(required=draw.choice((RACK, "node"))) if racks and draw.random() < 0.5 else None
    group = TaskGroup(name="g", count=count, min_count=least, task=Task(gpus=draw.choice((1, 1, 2))), topology=ties)
    return Job(
        name=f"w{number}",
        groups=(group,),
        priority=draw.randint(0, 2),
        weight=draw.randint(1, 4),
        queue=draw.choice(("p", "q", "")) if queues else "",
        submit_time=float(draw.choice((0, 0, -2, 1, 3))),
        duration=_duration(draw, count),
    )


def _duration(draw: random.Random, count: int) -> Duration:
    return Duration(
        seconds=draw.randint(1, 6),
        gpu_models={"B": draw.choice((1, 2))},
        levels={"cluster": draw.choice((1, 1, 2))},
        scaling=((1, 0.5),) if count == 2 and draw.random() < 0.7 else (),
    )


def _running(
    draw: random.Random, number: int, nodes: Sequence[Node], free: dict[str, list[int]], queues: Sequence[Queue]
) -> Job | None:
    node = draw.choice(nodes)
    cards = draw.randint(1, 3)
    if len(free[node.name]) < cards:
        return None
    held = tuple(free[node.name].pop(0) for _ in range(cards))
    ran = draw.randint(0, 4)
    return Job(
        name=f"r{number}",
        groups=(TaskGroup(name="g", task=Task(gpus=cards)),),
        priority=draw.choice((0, 0, 1)),
        weight=draw.randint(1, 3),
        queue=draw.choice(("p", "q", "")) if queues else "",
        duration=Duration(seconds=ran + draw.randint(1, 6), gpu_models={"B": draw.choice((1, 2))}),
        preemptible=draw.random() < 0.8,
        restart_seconds=draw.choice((0, 1)),
        checkpoint_interval=draw.choice((None, 1, 2)),
        minimum_run_seconds=draw.choice((0, 0, 2)),
        running=Running(tasks=(RunningTask(group="g", index=0, node=node.name, gpus=held),), since=float(-ran)),
    )


# --- brute force -------------------------------------------------------------------------------------------------

Spread = tuple[int, ...]
"""How many tasks each node takes."""


@dataclass(frozen=True)
class _Held:
    """What a job holds from one moment to another, in milliseconds."""

    name: str
    start: int
    end: int
    spread: Spread
    cards: int


@dataclass
class _Case:
    snapshot: Snapshot
    cards: tuple[int, ...] = ()
    best: float = inf
    known: dict[tuple[str, Spread], int | None] = field(default_factory=dict)


def optimum(snapshot: Snapshot) -> tuple[int, frozenset[str]] | None:
    """Return the least weighted completion time in milliseconds, and the jobs that never start.

    Which jobs never start does not depend on others: not even the cluster with nothing but what is never stopped and
    never ends could take them; here all that runs has an end.
    """
    case = _Case(snapshot, tuple(node.gpus[0].count for node in snapshot.nodes))
    waiting = [job for job in snapshot.jobs if job.running is None]
    never = frozenset(job.name for job in waiting if not list(_spreads(case, job)))
    waiting = [job for job in waiting if job.name not in never]
    running = [job for job in snapshot.jobs if job.running is not None]
    may = [
        job
        for job in running
        if _may_stop(job) and list(_spreads(case, job)) and any(job.priority < other.priority for other in waiting)
    ]
    for count in range(len(may) + 1):
        for stopped in itertools.combinations(may, count):
            live = [_ongoing(case, job) for job in running if job not in stopped]
            value = sum(
                job.weight * _ongoing(case, job).end for job in running if job not in stopped and job.preemptible
            )
            _follow(case, [*waiting, *stopped], live, stopped, 0, value)
    return (int(case.best), never)


def _follow(
    case: _Case, left: Sequence[Job], held: Sequence[_Held], stopped: Sequence[Job], moment: int, value: int
) -> None:
    """Go through all jobs that may start next, and all nodes that they may start on."""
    rest = sum(job.weight * (max(moment, _release(job)) + _least(case, job) - _release(job)) for job in left)
    if value + rest >= case.best:
        return
    if not left:
        if all(_is_served(case, job, held) for job in stopped):
            case.best = value
        return
    for job in left:
        others = [other for other in left if other is not job]
        after = max(moment, _release(job))
        for spread, length in _spreads(case, job):
            start = _earliest(case, job, spread, held, after)
            mine = _Held(job.name, start, start + length, spread, _gpus(job))
            added = job.weight * (mine.end - _release(job))
            _follow(case, others, [*held, mine], stopped, start, value + added)


def _earliest(case: _Case, job: Job, spread: Spread, held: Sequence[_Held], after: int) -> int:
    """Return when some nodes and the quotas have room for a job; what is held only shrinks from then on."""
    for moment in sorted({after, *(one.end for one in held if one.end > after)}):
        there = [one for one in held if one.end > moment]
        room = all(
            tasks * _gpus(job) + sum(one.spread[node] * one.cards for one in there) <= case.cards[node]
            for node, tasks in enumerate(spread)
        )
        if room and _is_admitted(case, job, sum(spread) * _gpus(job), there):
            return moment
    raise AssertionError("a job never starts though it could on an empty cluster")


def _is_served(case: _Case, job: Job, held: Sequence[_Held]) -> bool:
    """Return whether a job was stopped for one of higher priority.

    That starts before the job would have ended and before it goes on, on its node, or anywhere where queues have quotas
    that some job falls under.
    """
    jobs = {one.name: one for one in case.snapshot.jobs}
    (again,) = (one for one in held if one.name == job.name)
    was = _ongoing(case, job)
    anywhere = any(one.queue for one in case.snapshot.jobs)
    return any(
        jobs[one.name].running is None
        and jobs[one.name].priority > job.priority
        and one.start < was.end
        and one.start <= again.start
        and (anywhere or any(a and b for a, b in zip(one.spread, was.spread, strict=True)))
        for one in held
    )


# --- what fields mean --------------------------------------------------------------------------------------------


def _gpus(job: Job) -> int:
    task = job.groups[0].task
    assert task is not None
    return task.gpus


def _release(job: Job) -> int:
    return 0 if job.running is not None else max(0, int(1000 * (job.submit_time or 0)))


def _may_stop(job: Job) -> bool:
    assert job.running is not None
    assert job.running.since is not None
    return job.preemptible and -job.running.since >= job.minimum_run_seconds


def _ongoing(case: _Case, job: Job) -> _Held:
    """Return what a running job holds if it goes on."""
    assert job.running is not None
    assert job.running.since is not None
    (task,) = job.running.tasks
    spread = tuple(int(node.name == task.node) for node in case.snapshot.nodes)
    return _Held(job.name, 0, _whole(case, job, spread) + int(1000 * job.running.since), spread, _gpus(job))


def _whole(case: _Case, job: Job, spread: Spread) -> int:
    """Return how long all of a job's work takes on some nodes."""
    duration = job.duration
    assert duration is not None
    used = [node for node, tasks in zip(case.snapshot.nodes, spread, strict=True) if tasks]
    model = max(Fraction(duration.gpu_models.get(node.gpus[0].model, 1)) for node in used)
    level = Fraction(1)
    if len(used) > 1 and (not case.snapshot.topology or len({node.position[RACK] for node in used}) > 1):
        level = Fraction(duration.levels.get("cluster", 1))
    points = {0: Fraction(0), job.groups[0].count: Fraction(1)} | {n: Fraction(s) for n, s in duration.scaling}
    speed = points[sum(spread)] if duration.scaling else Fraction(1)
    return ceil(1000 * Fraction(duration.seconds) * model * level / speed)


def _length(case: _Case, job: Job, spread: Spread) -> int:
    """Return how long a job that waits, or was stopped, holds cards when it is started on some nodes."""
    whole = _whole(case, job, spread)
    if job.running is None:
        return whole
    there = _ongoing(case, job)
    assert job.running.since is not None
    worked = int(-1000 * job.running.since)
    every = int(1000 * (job.checkpoint_interval or 0))
    kept = worked - worked % every if every else 0
    part = Fraction(kept, _whole(case, job, there.spread))
    return int(1000 * (job.restart_seconds or 0)) + ceil(whole * (1 - part))


def _spreads(case: _Case, job: Job) -> Iterator[tuple[Spread, int]]:
    """Yield on how many tasks of each node a job may run on the empty cluster, and for how long it holds cards then."""
    group = job.groups[0]
    least = group.count if group.min_count is None else group.min_count
    for spread in itertools.product(*(range(cards // _gpus(job) + 1) for cards in case.cards)):
        enough = least <= sum(spread) <= group.count and _is_together(case, job, spread)
        if enough and _is_admitted(case, job, sum(spread) * _gpus(job), ()):
            yield spread, _length(case, job, spread)


def _is_together(case: _Case, job: Job, spread: Spread) -> bool:
    ties = job.groups[0].topology
    used = [node for node, tasks in zip(case.snapshot.nodes, spread, strict=True) if tasks]
    if ties is None:
        return True
    return len({node.name if ties.required == "node" else node.position[RACK] for node in used}) == 1


def _least(case: _Case, job: Job) -> int:
    return min(length for _, length in _spreads(case, job))


def _is_admitted(case: _Case, job: Job, cards: int, there: Sequence[_Held]) -> bool:
    """Return whether quotas let a job take cards beside what others hold; see `placement.quota`."""
    if not job.queue or not case.snapshot.queues:
        return True
    used: dict[str, int] = {}
    queue_of = {one.name: one.queue for one in case.snapshot.jobs}
    for one in there:
        used[queue_of[one.name]] = used.get(queue_of[one.name], 0) + sum(one.spread) * one.cards
    before = _usages(case.snapshot.queues, used)
    now = _usages(case.snapshot.queues, used | {job.queue: used.get(job.queue, 0) + cards})
    return all(usage <= most or usage <= before[name][0] for name, (usage, most) in now.items())


def _usages(queues: Sequence[Queue], used: Mapping[str, int]) -> dict[str, tuple[int, float]]:
    """Return the usage of each queue and the most that it may come to: two queues and the one above them."""
    *below, top = queues
    found: dict[str, tuple[int, float]] = {}
    usage, subtree = 0, int(top.quota["*"])
    for queue in below:
        quota = int(queue.quota["*"])
        kept = max(0, quota - int(queue.lending_limit["*"])) if queue.lending_limit else 0
        mine = used.get(queue.name, 0)
        found[queue.name] = mine, quota + (int(queue.borrowing_limit["*"]) if queue.borrowing_limit else inf)
        usage += max(0, mine - kept)
        subtree += quota - kept
    found[top.name] = usage, subtree
    return found
