"""The cheapest victims on a tiny cluster, by trying all of them: each task stays, leaves, or leaves and goes on.

Whether the job and the tasks that go on have room is asked of `brute`, and of `mig_brute` where there are MIG cards,
neither of which knows the engine. Who may be stopped, what it costs and what comes first is written here from what the
fields mean.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import brute
import mig_brute
import msgspec

from placement import Preemption
from placement.snapshot import (
    Gpu,
    Job,
    MigInstance,
    Node,
    Running,
    RunningTask,
    Snapshot,
    Task,
    TaskGroup,
    Topology,
)

Key = tuple[Fraction, int, int, int, int]
"""Cost in seconds times weight, stopped jobs, touched jobs, tasks that leave, ranks of the touched jobs."""
STAYS, LEAVES, GOES_ON = range(3)


def best(snapshot: Snapshot, name: str, move: bool) -> Key | None:
    """Return what the best victims for a job come to; None where none let it start."""
    (job,) = (one for one in snapshot.jobs if one.name == name)
    running = [one for one in snapshot.jobs if one.running is not None]
    victims = [one for one in running if _may_leave(snapshot, one)]
    ranks = sorted({one.priority for one in running})
    stay = [one for one in running if one not in victims]
    ways = []
    for fates in itertools.product(*(list(_fates(one, one.priority < job.priority, move)) for one in victims)):
        key = _key(snapshot, victims, fates, ranks)
        ways.append((key, fates))
    for key, fates in sorted(ways, key=lambda way: way[0]):
        if _lands(snapshot, stay, victims, fates, job):
            return key
    return None


def key_of(snapshot: Snapshot, found: Preemption) -> Key:
    """Return the same of an answer."""
    jobs = {job.name: job for job in snapshot.jobs}
    ranks = sorted({job.priority for job in snapshot.jobs if job.running is not None})
    return (
        Fraction(str(found.cost)),
        sum(one.kind == "stop" for one in found.evictions),
        len(found.evictions),
        sum(len(one.tasks) for one in found.evictions),
        sum(ranks.index(jobs[one.job].priority) for one in found.evictions),
    )


def _may_leave(snapshot: Snapshot, job: Job) -> bool:
    assert job.running is not None
    ran = 0.0 if job.running.since is None else snapshot.time - job.running.since
    return job.preemptible and ran >= job.minimum_run_seconds


def _fates(job: Job, lower: bool, move: bool) -> Iterator[tuple[int, ...]]:
    """Yield what may become of the tasks of a job."""
    assert job.running is not None
    count = len(job.running.tasks)
    tied = any(group.topology is not None for group in job.groups)
    for fates in itertools.product((STAYS, LEAVES, GOES_ON) if move else (STAYS, LEAVES), repeat=count):
        if not lower and LEAVES in fates:
            continue
        if tied and len(set(fates)) > 1:
            continue
        stopped = set(fates) == {LEAVES}
        if stopped or _is_enough(job, [fate != LEAVES for fate in fates]) or set(fates) == {STAYS}:
            yield fates


def _is_enough(job: Job, there: list[bool]) -> bool:
    """Return whether tasks of a job form a gang that runs; all groups are leaves."""
    assert job.running is not None
    for group in job.groups:
        mine = sum(is_ for is_, task in zip(there, job.running.tasks, strict=True) if task.group == group.name)
        if mine < (group.count if group.min_count is None else group.min_count):
            return False
    return True


def _key(snapshot: Snapshot, victims: list[Job], fates: tuple[tuple[int, ...], ...], ranks: list[int]) -> Key:
    cost, stopped, touched, tasks, rank = Fraction(0), 0, 0, 0, 0
    for job, mine in zip(victims, fates, strict=True):
        gone = sum(fate != STAYS for fate in mine)
        if gone:
            touched, tasks, rank = touched + 1, tasks + gone, rank + ranks.index(job.priority)
            stopped += set(mine) == {LEAVES}
            tied = any(group.topology is not None for group in job.groups)
            if tied or not _is_enough(job, [fate == STAYS for fate in mine]):
                cost += job.weight * (Fraction(job.restart_seconds or 0) + _lost(snapshot, job))
    return cost, stopped, touched, tasks, rank


def _lost(snapshot: Snapshot, job: Job) -> Fraction:
    assert job.running is not None
    worked = Fraction(0) if job.running.since is None else Fraction(snapshot.time) - Fraction(job.running.since)
    return worked % Fraction(job.checkpoint_interval) if job.checkpoint_interval else worked


def _lands(
    snapshot: Snapshot, stay: list[Job], victims: list[Job], fates: tuple[tuple[int, ...], ...], job: Job
) -> bool:
    """Return whether a job, and all tasks that go on, have room."""
    jobs = list(stay)
    moving = 0
    for victim, mine in zip(victims, fates, strict=True):
        assert victim.running is not None
        kept = tuple(task for task, fate in zip(victim.running.tasks, mine, strict=True) if fate == STAYS)
        if kept:
            jobs.append(msgspec.structs.replace(victim, running=Running(tasks=kept)))
        on = [task for task, fate in zip(victim.running.tasks, mine, strict=True) if fate == GOES_ON]
        if not on:
            continue
        moving += 1
        groups = victim.groups
        if all(group.topology is None for group in groups):
            asked = {group.name: group.task for group in groups}
            groups = tuple(TaskGroup(name=f"m{n}", task=asked[task.group]) for n, task in enumerate(on))
        groups = tuple(msgspec.structs.replace(group, min_count=None) for group in groups)
        jobs.append(
            msgspec.structs.replace(victim, name=f"{victim.name}-on", running=None, groups=groups, weight=1, value=1)
        )
    small = tuple(
        msgspec.structs.replace(
            group, count=group.count if group.min_count is None else group.min_count, min_count=None
        )
        for group in job.groups
    )
    jobs.append(msgspec.structs.replace(job, groups=small, weight=1, value=1))
    jobs = [msgspec.structs.replace(one, priority=0) for one in jobs]
    question = msgspec.structs.replace(snapshot, jobs=tuple(jobs))
    mig = any(gpu.mig_enabled for node in snapshot.nodes for gpu in node.gpus)
    (value,) = (mig_brute if mig else brute).optimum(question, ("value",))
    return bool(value.value == moving + 1)


# --- snapshots -----------------------------------------------------------------------------------------------------


def tiny(seed: int) -> Snapshot:
    """Return a snapshot with one job that waits, ``new``: up to three nodes in two racks, five tasks that run."""
    draw = random.Random(f"preempt {seed}")
    if draw.random() < 0.2:
        return _tiny_mig(draw)
    nodes, free = [], {}
    cores = draw.choice((None, None, 4))
    for number in range(draw.randint(1, 3)):
        cards = draw.randint(1, 3)
        gpus = (Gpu(model="A", count=cards),) if draw.random() < 0.8 else (Gpu(model="B", count=cards),)
        name = f"n{number}"
        position = {"rack": draw.choice("rs")} if number == 0 or draw.random() < 0.9 else {}
        nodes.append(Node(name=name, cpu=cores, position=position, gpus=gpus, cordoned=draw.random() < 0.05))
        free[name] = [Fraction(1)] * cards
    jobs: list[Job] = []
    left = 5
    while left > 0 and len(jobs) < 5:
        job = _runs(draw, len(jobs), free, min(left, draw.choice((1, 1, 2, 3))), cores)
        if job is None:
            break
        assert job.running is not None
        left -= len(job.running.tasks)
        jobs.append(job)
    count = draw.choice((1, 1, 1, 2, 2, 3))
    group = TaskGroup(
        name="g",
        count=count,
        min_count=draw.choice((None, 1)) if count > 1 else None,
        task=_task(draw, cores),
        topology=Topology(required=draw.choice(("rack", "node"))) if draw.random() < 0.3 else None,
    )
    more = (TaskGroup(name="h", task=_task(draw, cores)),) if draw.random() < 0.2 else ()
    jobs.append(Job(name="new", priority=draw.choice((0, 1, 2, 2, 3)), groups=(group, *more)))
    return Snapshot(time=100.0, topology=("rack",), nodes=tuple(nodes), jobs=tuple(jobs))


def _task(draw: random.Random, cores: int | None) -> Task:
    cpu = 0 if cores is None else draw.randint(0, 3)
    models = draw.choice(((), (), (), ("A",)))
    if draw.random() < 0.4:
        return Task(gpus=1, gpu_share=draw.choice((0.3, 0.5, 0.6)), cpu=cpu, gpu_models=models)
    return Task(gpus=draw.choice((1, 1, 2, 3)), cpu=cpu, gpu_models=models)


def _runs(draw: random.Random, number: int, free: dict[str, list[Fraction]], wanted: int, cores: int | None) -> Any:
    """Return a running job on cards that are free, or None where there are none."""
    share = Fraction(draw.choice(("0.3", "0.5"))) if draw.random() < 0.4 else Fraction(1)
    gpus = 1 if share < 1 else draw.choice((1, 1, 2))
    tasks: list[RunningTask] = []
    for _ in range(wanted):
        spots = [
            (node, tuple(card for card, left in enumerate(cards) if left >= share)[:gpus])
            for node, cards in free.items()
            if sum(left >= share for left in cards) >= gpus
        ]
        if not spots:
            break
        node, cards = draw.choice(spots)
        for card in cards:
            free[node][card] -= share
        tasks.append(RunningTask(group="g", index=len(tasks), node=node, gpus=cards))
    if not tasks:
        return None
    many = len(tasks)
    same = len({task.node for task in tasks}) == 1
    group = TaskGroup(
        name="g",
        count=many,
        min_count=draw.choice((None, 1)) if many > 1 else None,
        task=Task(gpus=gpus, gpu_share=None if share == 1 else float(share), cpu=draw.randint(0, 1) if cores else 0),
        topology=Topology(required="node") if same and many > 1 and draw.random() < 0.3 else None,
    )
    return Job(
        name=f"old{number}",
        priority=draw.choice((0, 0, 1, 2)),
        groups=(group,),
        running=Running(tasks=tuple(tasks), since=draw.choice((None, 0.0, 40.0, 90.0))),
        **_terms(draw),
    )


def _terms(draw: random.Random) -> dict[str, Any]:
    return {
        "weight": draw.choice((1, 1, 2)),
        "preemptible": draw.random() < 0.85,
        "restart_seconds": draw.choice((None, 5.0, 30.0)),
        "checkpoint_interval": draw.choice((None, 25.0, 60.0)),
        "minimum_run_seconds": draw.choice((0.0, 0.0, 0.0, 50.0)),
    }


def _tiny_mig(draw: random.Random) -> Snapshot:
    """Return a snapshot of one or two MIG cards."""
    layout = draw.choice(
        (
            (("3g.20gb", 0), ("3g.20gb", 4)),
            (("2g.10gb", 0), ("2g.10gb", 2), ("1g.5gb", 4)),
            (("1g.5gb", 1), ("2g.10gb", 4)),
            (("4g.20gb", 0), ("2g.10gb", 4)),
            (("1g.5gb", 0), ("1g.5gb", 3), ("1g.5gb", 6)),
        )
    )
    cards = draw.randint(1, 2)
    known = tuple(MigInstance(profile=p, start=s) for p, s in layout) if draw.random() < 0.3 else ()
    gpus = [Gpu(model="A100-40GB", mig_enabled=True, mig_layout=known)]
    gpus += [Gpu(model="A100-40GB", mig_enabled=True)] * (cards - 1)
    jobs = [
        Job(
            name=f"old{number}",
            priority=draw.choice((0, 0, 1)),
            groups=(TaskGroup(name="g", task=Task(gpus=1, mig_profile=profile)),),
            running=Running(
                tasks=(RunningTask(group="g", index=0, node="n", gpus=(0,), mig_starts=(start,)),),
                since=draw.choice((None, 0.0, 40.0)),
            ),
            **_terms(draw),
        )
        for number, (profile, start) in enumerate(layout)
    ]
    profile = draw.choice(("1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"))
    group = TaskGroup(name="g", count=draw.choice((1, 1, 2)), task=Task(gpus=1, mig_profile=profile))
    jobs.append(Job(name="new", priority=draw.choice((0, 1)), groups=(group,)))
    return Snapshot(time=100.0, nodes=(Node(name="n", gpus=tuple(gpus)),), jobs=tuple(jobs))
