"""Cards that tasks share: short ways to write snapshots, random ones, and the best plans of tiny ones by trying all.

Import it as ``shared_cases``. What is tried here is judged by words of its own: no code of the engine or of the judge.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction

from hypothesis import strategies as st

from placement.snapshot import Duration, Gpu, Job, Node, Policy, Running, RunningTask, Snapshot, Task, TaskGroup

GIB = 2**30
PROMISED = {
    "exclusive": ("security", "performance", "fault"),
    "shared": (),
    "time_slicing": (),
    "mps": (),
    "vgpu": ("security",),
}
POLICIES = ("", "best_effort", "equal_share", "fixed_share")
CUDA, CGROUP = ("", "11.4", "12.0", "13.4"), (None, 1, 2)
WAYS = ("shared", "time_slicing", "mps", "vgpu", "exclusive")


def card(sharing: str = "shared", **more: object) -> Gpu:
    return Gpu(model=str(more.pop("model", "A")), sharing=sharing, **more)  # type: ignore[arg-type]


def node(name: str, *gpus: Gpu, **more: object) -> Node:
    return Node(name=name, gpus=gpus, **more)  # type: ignore[arg-type]


def job(name: str, share: object = None, count: int = 1, **more: object) -> Job:
    """Return a job of tasks with one card each, of which any number may run."""
    rest = {key: more.pop(key) for key in ("duration", "running", "weight", "requires") if key in more}
    task = Task(gpus=1, gpu_share=share, **more)  # type: ignore[arg-type]
    group = TaskGroup(name="w", count=count, min_count=1, task=task)
    return Job(name=name, groups=(group,), **rest)  # type: ignore[arg-type]


def runs(name: str, share: object, *places: tuple[str, int], **more: object) -> Job:
    """Return a running job with a task on each of some cards."""
    tasks = tuple(RunningTask(group="w", index=i, node=on, gpus=(gpu,)) for i, (on, gpu) in enumerate(places))
    return job(name, share, len(places), running=Running(tasks=tasks), **more)


# --- all plans of a tiny snapshot -----------------------------------------------------------------------------------


def limit_of(gpu: Gpu, cuda: str) -> int | None:
    """Return how many tasks may be on a card; versions here have one point at most."""
    found = [] if gpu.replicas is None else [gpu.replicas]
    if gpu.sharing == "mps":
        old = gpu.compute_capability and float(gpu.compute_capability) < 7
        found.append(16 if old else 60 if cuda and float(cuda) >= 13.1 else 48)
    return min(found, default=None)


def fits(task: Task, gpu: Gpu, on: Node) -> bool:
    """Return whether a task of one card may be on a card, whatever else is there."""
    share = Fraction(1) if task.gpu_share is None else Fraction(str(task.gpu_share))
    if share == 1:
        return True
    promised = {*PROMISED[gpu.sharing], *(["performance"] if gpu.vgpu_policy == "fixed_share" else [])}
    if gpu.sharing == "exclusive" or not set(task.isolation) <= promised:
        return False
    if task.gpu_memory_limit and gpu.sharing != "vgpu":
        cuda = float(on.cuda or 0) if gpu.sharing == "mps" else 0
        partitions = cuda >= 13.4 and on.cgroup == 2
        if not (partitions if task.gpu_memory_limit == "partitioned" else cuda >= 11.5):
            return False
    if gpu.sharing != "mps" or not gpu.replicas or gpu.memory is None or task.gpu_memory is None:
        return True
    return int(task.gpu_memory) * gpu.replicas <= int(gpu.memory)


Placed = tuple[tuple[Job, int | None], ...]
"""Each pending task's job, and the number of its card or None."""


def plans(snapshot: Snapshot) -> Iterator[tuple[Placed, list[Gpu]]]:
    """Yield every plan of nodes without counts and jobs of tasks with one card, and the cards by number."""
    cards = [
        (one, i, gpu) for one in snapshot.nodes for i, gpu in enumerate(g for g in one.gpus for _ in range(g.count))
    ]
    held: dict[tuple[str, int], list[Task]] = {}
    pending = []
    for one in snapshot.jobs:
        (group,) = one.groups
        assert group.task is not None
        if one.running is None:
            pending += [one] * (group.count * one.count)
            continue
        for place in one.running.tasks:
            held.setdefault((place.node, place.gpus[0]), []).append(group.task)
    start = [held.get((on.name, i), []) for on, i, _ in cards]
    options: list[list[int | None]] = []
    for one in pending:
        task = one.groups[0].task
        assert task is not None
        options.append([None, *(c for c, (on, _, gpu) in enumerate(cards) if fits(task, gpu, on))])
    for chosen in itertools.product(*options):
        if all(_holds(one, gpu, start[c], _on(c, chosen, pending)) for c, (one, _, gpu) in enumerate(cards)):
            yield tuple(zip(pending, chosen, strict=True)), [gpu for _, _, gpu in cards]


def _on(number: int, chosen: tuple[int | None, ...], pending: list[Job]) -> list[Task]:
    return [job.groups[0].task for job, one in zip(pending, chosen, strict=True) if one == number]  # type: ignore[misc]


def _holds(on: Node, gpu: Gpu, before: list[Task], new: list[Task]) -> bool:
    if not new:
        return True
    both = [*before, *new]
    limit = limit_of(gpu, on.cuda)
    if limit is not None and len(both) > limit:
        return False
    if sum(Fraction(1) if task.gpu_share is None else Fraction(str(task.gpu_share)) for task in both) > 1:
        return False
    needed = sum(int(task.gpu_memory or 0) for task in both)
    return gpu.memory is None or needed <= int(gpu.memory) or not any(task.gpu_memory for task in new)


def most_milli(snapshot: Snapshot) -> Fraction:
    """Return the largest sum of weight times GPU-milli of placed tasks."""
    return max(sum((milli(job) for job, c in placed if c is not None), Fraction(0)) for placed, _ in plans(snapshot))


def milli(one: Job) -> Fraction:
    task = one.groups[0].task
    assert task is not None
    return 1000 * one.weight * (Fraction(1) if task.gpu_share is None else Fraction(str(task.gpu_share)))


# --- random ones ----------------------------------------------------------------------------------------------------

SHARES = (0.5, 0.25, 0.2, 0.7, 0.1, None)


@st.composite
def shared_snapshots(draw: st.DrawFn, most_tasks: int = 5) -> Snapshot:
    """Draw a tiny snapshot of cards that are shared in all ways."""
    nodes = tuple(draw(shared_nodes(f"n{i}")) for i in range(draw(st.integers(1, 2))))
    spots = [(one.name, i) for one in nodes for i in range(len(one.gpus))]
    jobs = [
        runs(f"r{i}", draw(st.sampled_from(SHARES)), draw(st.sampled_from(spots)))
        for i in range(draw(st.integers(0, 3)))
    ]
    left = most_tasks
    for i in range(draw(st.integers(1, 3))):
        count = draw(st.integers(1, min(3, left)))
        left -= count
        jobs.append(draw(shared_jobs(f"j{i}", count)))
        if not left:
            break
    return Snapshot(nodes=nodes, jobs=tuple(jobs), policy=Policy(objectives=("value",)))


@st.composite
def shared_nodes(draw: st.DrawFn, name: str) -> Node:
    """Draw a node of one or two cards; not both of the ways that cannot be on one node."""
    without = draw(st.sampled_from(("mps", "time_slicing")))
    ways = [way for way in WAYS if way != without]
    more = {"cuda": draw(st.sampled_from(CUDA)), "cgroup": draw(st.sampled_from(CGROUP))}
    return node(name, *(draw(shared_cards(ways)) for _ in range(draw(st.integers(1, 2)))), **more)


@st.composite
def shared_cards(draw: st.DrawFn, ways: list[str]) -> Gpu:
    way = draw(st.sampled_from(ways))
    replicas = None if way == "exclusive" else draw(st.sampled_from((None, 2, 4, 3, 1)))
    policy = draw(st.sampled_from(POLICIES)) if way == "vgpu" else ""
    return card(way, replicas=replicas, memory=draw(st.sampled_from((None, 8 * GIB))), vgpu_policy=policy)


@st.composite
def shared_jobs(draw: st.DrawFn, name: str, count: int) -> Job:
    asked = draw(st.sampled_from(((), (), ("security",), ("performance",), ("fault", "security"))))
    memory = draw(st.sampled_from((None, 2 * GIB, 3 * GIB)))
    limit = draw(st.sampled_from(("", "", "enforced", "partitioned"))) if memory else ""
    seconds = draw(st.sampled_from((None, 7, 100)))
    duration = None if seconds is None else Duration(seconds=seconds, shared=draw(st.sampled_from((None, 1.5, 0.5))))
    more = {
        "isolation": asked,
        "gpu_memory": memory,
        "gpu_memory_limit": limit,
        "weight": draw(st.sampled_from((1, 2))),
    }
    return job(name, draw(st.sampled_from(SHARES)), count, duration=duration, **more)
