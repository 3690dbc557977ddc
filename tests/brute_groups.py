"""The best schedule of a few gangs of several groups on a few nodes, by trying all. Import it as ``brute_groups``.

Every group of a job runs with any number of its tasks from the fewest it needs to all. Cards of a node are alike, and
nothing runs at first, so how many are free on each node says all. Sorted by start, each job of some best schedule
starts as soon as it can on its nodes, and no sooner than the one before. Nothing here knows the engine.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from fractions import Fraction
from math import ceil, inf

from msgspec.structs import replace

from placement.snapshot import Duration, Gpu, Job, Node, Queue, Snapshot, Task, TaskGroup

Spread = tuple[int, ...]
"""Cards that a job takes of each node."""


def random_groups_case(seed: int) -> Snapshot:
    """Return the tiny snapshot of a seed; the same on every machine and Python."""
    draw = random.Random(seed)
    nodes = tuple(
        Node(name=f"n{i}", gpus=(Gpu(model="A", count=draw.randint(2, 4)),)) for i in range(draw.randint(1, 2))
    )
    jobs = tuple(_job(draw, number) for number in range(draw.randint(2, 3)))
    every = sum(node.gpus[0].count for node in nodes)
    queues = (Queue(name="q", quota={"*": draw.randint(1, every)}),) if draw.random() < 0.4 else ()
    return Snapshot(nodes=nodes, queues=queues, jobs=tuple(replace(job, queue="q" if queues else "") for job in jobs))


def _job(draw: random.Random, number: int) -> Job:
    groups = []
    for name in ("g", "h")[: draw.choice((1, 2, 2))]:
        count = draw.randint(1, 3)
        least = draw.randint(1, count)
        groups.append(TaskGroup(name=name, count=count, min_count=least, task=Task(gpus=draw.choice((1, 1, 2)))))
    every = sum(group.count for group in groups)
    scaling = ((1, 0.5),) if every > 1 and draw.random() < 0.7 else ()
    duration = Duration(seconds=draw.randint(1, 6), levels={"cluster": draw.choice((1, 2))}, scaling=scaling)
    submitted = float(draw.choice((0, 0, 1, 3)))
    return Job(
        name=f"w{number}", groups=tuple(groups), weight=draw.randint(1, 4), submit_time=submitted, duration=duration
    )


def optimum(snapshot: Snapshot) -> tuple[int, frozenset[str]]:
    """Return the least weighted completion time in milliseconds, and the jobs that fit on no empty cluster."""
    free = tuple(node.gpus[0].count for node in snapshot.nodes)
    # the quota is of one more node, on which each job takes as much as on all others
    free = *free, int(snapshot.queues[0].quota["*"]) if snapshot.queues else sum(free)
    ways = {job.name: dict(_ways(job, free)) for job in snapshot.jobs}
    jobs = [job for job in snapshot.jobs if ways[job.name]]
    best = _best(jobs, ways, free, (), 0, 0, inf)
    return int(best), frozenset(job.name for job in snapshot.jobs if not ways[job.name])


def _best(
    left: list[Job],
    ways: dict[str, dict[Spread, int]],
    free: Spread,
    held: tuple[tuple[int, Spread], ...],
    moment: int,
    value: int,
    known: float,
) -> float:
    """Return the least value of what begins so, or what is known if that is less; held is the end and cards of each."""
    rest = sum(job.weight * (max(0, moment - _release(job)) + min(ways[job.name].values())) for job in left)
    if not left or value + rest >= known:
        return min(known, value + rest)
    for job in left:
        others = [other for other in left if other is not job]
        for spread, length in ways[job.name].items():
            start = _earliest(free, held, spread, max(moment, _release(job)))
            added = job.weight * (start + length - _release(job))
            known = _best(others, ways, free, (*held, (start + length, spread)), start, value + added, known)
    return known


def _earliest(free: Spread, held: tuple[tuple[int, Spread], ...], spread: Spread, after: int) -> int:
    for moment in sorted({after, *(end for end, _ in held if end > after)}):
        used = [sum(one[node] for end, one in held if end > moment) for node in range(len(free))]
        if all(one + more <= most for one, more, most in zip(used, spread, free, strict=True)):
            return moment
    raise AssertionError("a job never starts though it could on an empty cluster")


def _release(job: Job) -> int:
    return int(1000 * (job.submit_time or 0))


def _ways(job: Job, free: Spread) -> Iterator[tuple[Spread, int]]:
    """Yield the cards that a job may take of each node, and the least time that it runs on such."""
    found: dict[Spread, int] = {}
    places = [list(_of_group(group, len(free) - 1)) for group in job.groups]
    for chosen in itertools.product(*places):
        spread = tuple(map(sum, zip(*(cards for _, cards in chosen), strict=True)))
        nodes, spread = sum(map(bool, spread)), (*spread, sum(spread))
        if all(one <= most for one, most in zip(spread, free, strict=True)):
            length = _length(job, sum(tasks for tasks, _ in chosen), nodes)
            found[spread] = min(length, found.get(spread, length))
    yield from found.items()


def _of_group(group: TaskGroup, nodes: int) -> Iterator[tuple[int, Spread]]:
    """Yield how many tasks of a group run, and the cards that they take of each node."""
    assert group.task is not None
    assert group.min_count is not None
    for tasks in itertools.product(range(group.count + 1), repeat=nodes):
        if group.min_count <= sum(tasks) <= group.count:
            yield sum(tasks), tuple(group.task.gpus * some for some in tasks)


def _length(job: Job, tasks: int, nodes: int) -> int:
    """Return how long a job runs with so many tasks on so many nodes."""
    assert job.duration is not None
    every = sum(group.count for group in job.groups)
    points = dict(
        [(0, Fraction(0)), *((at, Fraction(speed)) for at, speed in job.duration.scaling), (every, Fraction(1))]
    )
    speed = Fraction(1)
    if job.duration.scaling:
        (below, slow), (above, fast) = next(
            (one, two) for one, two in itertools.pairwise(sorted(points.items())) if one[0] <= tasks <= two[0]
        )
        speed = slow + (fast - slow) * Fraction(tasks - below, above - below)
    level = Fraction(job.duration.levels["cluster"]) if nodes > 1 else Fraction(1)
    return ceil(1000 * Fraction(job.duration.seconds) * level / speed)
