"""Snapshots in which tenants are kept apart, and a slow search for the best that they allow.

Import it as ``tenant_cases``. The search shares nothing with the package but the snapshot: one task after the other
goes to every node and set of cards that has room, and whoever is in a card, node or rack lets nobody else in.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations

import strategies
from hypothesis import strategies as st
from msgspec.structs import replace
from zoned_strategies import zoned_snapshots

from placement.snapshot import Gpu, Job, Node, Policy, Running, RunningTask, Snapshot, Task, TaskGroup

TENANTS = ("", "a", "b")
LEVELS = ("node", "gpu", "rack")


def job(name: str, tenant: str, *, tasks: int = 1, running: tuple[RunningTask, ...] = (), **task: object) -> Job:
    """A job of one group ``g`` all of whose tasks are needed; one card for each if nothing else is said."""
    wants = Task(**({"gpus": 1} | task))  # type: ignore[arg-type]
    group = TaskGroup(name="g", count=tasks, task=wants)
    return Job(name=name, tenant=tenant, groups=(group,), running=Running(tasks=running) if running else None)


def on(node: str, *gpus: int) -> tuple[RunningTask, ...]:
    """Where the one task of a running job is."""
    return (RunningTask(group="g", index=0, node=node, gpus=gpus),)


def node(name: str, cards: int, rack: str = "", count: int = 1, cpu: int | None = None) -> Node:
    gpus = (Gpu(model="A", count=cards),) if cards else ()
    return Node(name=name, count=count, position={"rack": rack} if rack else {}, gpus=gpus, cpu=cpu)


def cluster(level: str, nodes: Sequence[Node], *jobs: Job) -> Snapshot:
    return Snapshot(topology=("rack",), nodes=tuple(nodes), jobs=jobs, policy=Policy(tenants_apart=level))


def with_tenants(snapshot: Snapshot, pick: Callable[[Sequence[str]], str]) -> Snapshot:
    """Return a snapshot whose jobs have tenants that are kept apart at some level."""
    jobs = tuple(replace(one, tenant=pick(TENANTS)) for one in snapshot.jobs)
    levels = ["node", "gpu", *snapshot.topology]
    return replace(snapshot, jobs=jobs, policy=replace(snapshot.policy, tenants_apart=pick(levels)))


@st.composite
def apart_snapshots(draw: st.DrawFn, max_tasks: int = 10) -> Snapshot:
    """Draw a tiny snapshot, some with NUMA zones, in which tenants are kept apart."""
    snapshot = draw(strategies.snapshots(max_tasks=max_tasks) | zoned_snapshots(max_tasks=max_tasks))
    return with_tenants(snapshot, lambda options: draw(st.sampled_from(options)))


# --- tiny ones, and the best there is -------------------------------------------------------------------------


def random_apart(seed: int) -> Snapshot:
    """Return a tiny snapshot of up to three nodes, five jobs and two running ones."""
    rng = random.Random(f"tenants {seed}")
    nodes = [
        node(f"n{i}", rng.choice((1, 2, 2)), rng.choice(("r0", "r1", "")), cpu=rng.choice((None, 2, 3)))
        for i in range(rng.randint(1, 3))
    ]
    running = []
    for i in range(rng.choice((0, 0, 1, 2))):
        place = rng.choice(nodes)
        running.append(
            job(f"old{i}", rng.choice(TENANTS), running=on(place.name, 0), gpu_share=rng.choice((0.25, 0.5)))
        )
    jobs = []
    for i in range(rng.randint(2, 5)):
        gpus = rng.choice((1, 1, 1, 1, 2, 0))
        share = rng.choice((None, 0.5, 0.25, 0.5)) if gpus else None
        tasks = rng.choice((1, 1, 2))
        weight = rng.choice((1, 1, 2))
        one = job(f"j{i}", rng.choice(TENANTS), tasks=tasks, gpus=gpus, gpu_share=share, cpu=rng.choice((0, 1)))
        jobs.append(replace(one, weight=weight))
    return cluster(rng.choice(LEVELS), nodes, *running, *jobs)


Use = tuple[str, int, tuple[int, ...], Task]
"""Tenant, node, cards and task."""


def best_of(snapshot: Snapshot) -> tuple[Fraction, int]:
    """Return the best value, and the most tasks with it."""
    place = {one.name: number for number, one in enumerate(snapshot.nodes)}
    uses: list[Use] = [
        (one.tenant, place[task.node], task.gpus, one.groups[0].task or Task())
        for one in snapshot.jobs
        if one.running is not None
        for task in one.running.tasks
    ]
    waiting = [one for one in snapshot.jobs if one.running is None]
    return max(_outcomes(snapshot, waiting, uses))


def _outcomes(snapshot: Snapshot, waiting: list[Job], uses: list[Use]) -> Iterator[tuple[Fraction, int]]:
    if not waiting:
        yield Fraction(0), 0
        return
    first, rest = waiting[0], waiting[1:]
    yield max(_outcomes(snapshot, rest, uses))
    task, tasks = first.groups[0].task or Task(), first.groups[0].count
    worth = tasks * 1000 * task.gpus * _share(task) * Fraction(first.weight)
    for placed in _ways(snapshot, first.tenant, task, tasks, uses):
        value, count = max(_outcomes(snapshot, rest, placed))
        yield value + worth, count + tasks


def _ways(snapshot: Snapshot, tenant: str, task: Task, tasks: int, uses: list[Use]) -> Iterator[list[Use]]:
    if not tasks:
        yield uses
        return
    for number, one in enumerate(snapshot.nodes):
        for cards in combinations(range(sum(gpu.count for gpu in one.gpus)), task.gpus):
            if _has_room(one, number, cards, task, uses) and _may(snapshot, tenant, number, cards, uses):
                yield from _ways(snapshot, tenant, task, tasks - 1, [*uses, (tenant, number, cards, task)])


def _share(task: Task) -> Fraction:
    return Fraction(1) if task.gpu_share is None else Fraction(task.gpu_share)


def _has_room(one: Node, number: int, cards: tuple[int, ...], task: Task, uses: list[Use]) -> bool:
    here = [use for use in uses if use[1] == number]
    for card in cards:
        if sum(_share(other) for _, _, taken, other in here if card in taken) + _share(task) > 1:
            return False
    cores = sum(int(other.cpu) for *_, other in here) + int(task.cpu)
    return one.cpu is None or cores <= int(one.cpu)


def _may(snapshot: Snapshot, tenant: str, number: int, cards: tuple[int, ...], uses: list[Use]) -> bool:
    level = snapshot.policy.tenants_apart
    for other, there, taken, _ in uses:
        if level == "gpu":
            near = there == number and bool({*taken} & {*cards})
        elif level == "node":
            near = there == number
        else:
            racks = [snapshot.nodes[n].position.get("rack") for n in (there, number)]
            near = there == number or (racks[0] is not None and racks[0] == racks[1])
        if near and other != tenant:
            return False
    return True
