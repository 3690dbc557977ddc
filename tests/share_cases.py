"""Queues with shares at random, and the best that keeps to them by trying all. Import it as ``share_cases``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, product
from random import Random
from typing import Any, Literal

import msgspec
from hypothesis import strategies as st
from quota_cases import MODELS, leaves, trees

from placement.check.queues.division import ALL, Division
from placement.check.queues.held_cards import Amounts
from placement.check.queues.quota import exceeded
from placement.plan import Plan
from placement.snapshot import (
    Gpu,
    Job,
    Node,
    Policy,
    Queue,
    Running,
    RunningTask,
    Snapshot,
    Task,
    TaskGroup,
)

Shares = Literal["quota", "fair_share", "dominant_share"]
SHARES: tuple[Shares, ...] = ("fair_share", "dominant_share")


def details(plan: Plan) -> dict[str, str]:
    """Return what is said of each pending job."""
    return {one.job: one.detail for one in plan.pending}


def cards(name: str, model: str, count: int, **fields: Any) -> Node:
    return Node(name=name, gpus=(Gpu(model=model, count=count),), **fields)


def gang(name: str, queue: str, tasks: int, gpus: int = 1, models: tuple[str, ...] = (), **fields: Any) -> Job:
    """A job of so many tasks, all or nothing."""
    group = TaskGroup(name="g", count=tasks, task=Task(gpus=gpus, gpu_models=models))
    return Job(name=name, queue=queue, groups=(group,), **fields)


@st.composite
def shared(draw: st.DrawFn, kinds: tuple[Shares, ...] = SHARES) -> Snapshot:
    """A tiny cluster of two models, some of it in use, with three to five gangs of whole cards that wait in queues."""
    counts = draw(st.lists(st.integers(2, 5), min_size=1, max_size=3))
    nodes = tuple(cards(f"n{i}", draw(st.sampled_from(MODELS)), count) for i, count in enumerate(counts))
    stated = kinds == ("quota",) or draw(st.sampled_from([False, False, True]))
    queues = tuple(
        Queue(
            name=one.name,
            parent=one.parent,
            quota=one.quota if stated else {},
            borrowing_limit=one.borrowing_limit if stated else {},
            # nobody lends more than its quota
            lending_limit=dict.fromkeys(one.lending_limit, 0) if stated else {},
            weight=draw(st.sampled_from([1, 1, 2, 3, 0])),
        )
        for one in draw(trees())
    )
    of = st.sampled_from([*leaves(queues), *leaves(queues), ""])
    jobs = []
    for node in nodes:
        used = draw(st.integers(0, node.gpus[0].count)) if draw(st.booleans()) else 0
        if used:
            place = RunningTask(group="g", index=0, node=node.name, gpus=tuple(range(used)))
            jobs.append(gang(f"run-{node.name}", draw(of), 1, used, running=Running(tasks=(place,))))
    for number in range(draw(st.integers(3, 5))):
        models = draw(st.sampled_from([(), ("A",), ("B",)]))
        size = draw(st.sampled_from([(1, 1), (2, 1), (1, 2)]))
        jobs.append(gang(f"j{number}", draw(of), *size, models, value=draw(st.integers(1, 9))))
    return Snapshot(nodes=nodes, jobs=tuple(jobs), queues=queues, policy=Policy(shares=draw(st.sampled_from(kinds))))


def best(snapshot: Snapshot) -> int:
    """Return the most value that keeps to nodes, shares and quotas, by trying all places of all jobs."""
    free = {node.name: node.gpus[0].count for node in snapshot.nodes}
    model = {node.name: node.gpus[0].model for node in snapshot.nodes}
    old: dict[str, Amounts] = defaultdict(lambda: defaultdict(Fraction))
    for job in snapshot.jobs:
        for place in job.running.tasks if job.running else ():
            free[place.node] -= len(place.gpus)
            old[job.queue][model[place.node]] += len(place.gpus)
    waiting = [job for job in snapshot.jobs if job.running is None]
    found = 0
    for chosen in product(*(list(_places(job, model)) for job in waiting)):
        value = sum(job.value or 0 for job, places in zip(waiting, chosen, strict=True) if places)
        if value > found and _keeps(snapshot, waiting, chosen, free, model, old):
            found = value
    return found


def _places(job: Job, model: dict[str, str]) -> Iterator[tuple[str, ...]]:
    """Yield the nodes of the tasks of a job, however full; nothing for a job that waits."""
    yield ()
    (group,) = job.groups
    assert group.task is not None
    allowed = [name for name, one in model.items() if not group.task.gpu_models or one in group.task.gpu_models]
    yield from combinations_with_replacement(allowed, group.count)


def _keeps(
    snapshot: Snapshot,
    waiting: Sequence[Job],
    chosen: Sequence[tuple[str, ...]],
    free: dict[str, int],
    model: dict[str, str],
    old: dict[str, Amounts],
) -> bool:
    left = dict(free)
    now: dict[str, Amounts] = defaultdict(lambda: defaultdict(Fraction))
    for queue, amounts in old.items():
        now[queue] |= amounts
    for job, places in zip(waiting, chosen, strict=True):
        for name in places:
            task = job.groups[0].task
            assert task is not None
            left[name] -= task.gpus
            now[job.queue][model[name]] += task.gpus
    if min(left.values()) < 0 or any(True for _ in exceeded(snapshot.queues, old, now)):
        return False
    if snapshot.policy.shares == "quota":
        return True
    division = Division(snapshot, old)
    for one in snapshot.queues:
        before, after = (division.sum_below(one.name, used) for used in (old, now))
        for row in (*MODELS, ALL):
            was, taken = (
                sum(used.values(), Fraction(0)) if row == ALL else used.get(row, Fraction(0))
                for used in (before, after)
            )
            if taken > was and division.counts(one.name, row) and taken > division.share(one.name, row):
                return False
    return True


def in_queues(snapshot: Snapshot, source: Random) -> Snapshot:
    """Return a snapshot with its jobs in up to three queues, or in none, and shares of these."""
    queues = tuple(Queue(name=f"q{number}", weight=source.choice((1, 1, 2))) for number in range(source.randint(1, 3)))
    names = [*(queue.name for queue in queues), ""]
    jobs = tuple(msgspec.structs.replace(job, queue=source.choice(names)) for job in snapshot.jobs)
    policy = msgspec.structs.replace(snapshot.policy, shares=source.choice(SHARES))
    return msgspec.structs.replace(snapshot, jobs=jobs, queues=queues, policy=policy)
