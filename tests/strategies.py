"""Tiny snapshots for every test that wants many: by seed, or by hypothesis. Import it as ``strategies``.

One generator makes both. It asks a source for whole numbers; the source is `random.Random`, or hypothesis, which can
then shrink what failed. What comes out is small enough to be solved by hand, or by `brute`, and touches every
rule that this version honours: shares, device memory, CPU, memory, pods, extended resources, labels, taints, cordons,
driver, CUDA and compute capability, card models and health, exclusive cards, limits on domains, gangs with minimum
counts and nested groups, running work that may overfill what it is on, priorities, weights, values and counts.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

from hypothesis import strategies as st

from placement.snapshot import (
    Affinity,
    DomainLimit,
    Gpu,
    Job,
    Node,
    Policy,
    Requires,
    Running,
    RunningTask,
    Slice,
    Snapshot,
    Spread,
    Taint,
    Task,
    TaskGroup,
    Toleration,
    Topology,
)
from placement.units import Quantity

T = TypeVar("T")

MODELS = ("A100", "T4")
CAPABILITY = {"A100": "8.0", "T4": "7.5"}
CPU: tuple[Quantity, ...] = (0, 1, "500m", 0, 2)
MEMORY: tuple[Quantity, ...] = (0, "1Gi", 0, "2Gi")
OBJECTIVES = ("value", "tasks", "fragmentation", "whole_nodes", "nodes")


class Source:
    """Where choices come from: a function that gives a whole number in a closed range."""

    def __init__(self, number: Callable[[int, int], int]) -> None:
        self.number = number
        self.rarity = 5 if number(0, 2) else 1

    def pick(self, options: Sequence[T]) -> T:
        """Return one of some options; hypothesis shrinks towards the first."""
        return options[self.number(0, len(options) - 1)]

    def one_in(self, n: int) -> bool:
        """Return True once in n times; hypothesis shrinks towards False."""
        return self.number(1, n) == n

    def rarely(self, n: int) -> bool:
        """Return True once in n times in one snapshot of three, else five times more rarely.

        For what keeps tasks off: when every rule is there at once, nothing fits anywhere.
        """
        return self.one_in(n * self.rarity)


def random_tiny(seed: int, max_tasks: int = 7) -> Snapshot:
    """Return the tiny snapshot of a seed; the same on every machine and Python.

    Parameters
    ----------
    seed : int
    max_tasks : int
        Most tasks that the pending jobs want together.
    """
    return tiny(Source(random.Random(seed).randint), max_tasks)


@st.composite
def snapshots(draw: st.DrawFn, max_tasks: int = 7) -> Snapshot:
    """Draw a tiny snapshot."""
    return tiny(Source(lambda low, high: draw(st.integers(low, high))), max_tasks)


def objective_orders() -> st.SearchStrategy[tuple[str, ...]]:
    """Draw some objectives in some order, at least one."""
    return st.permutations(OBJECTIVES).flatmap(lambda p: st.integers(1, len(p)).map(lambda n: tuple(p[:n])))


def random_objectives(seed: int) -> tuple[str, ...]:
    """Return some objectives in some order, by seed."""
    rng = random.Random(seed)
    return tuple(rng.sample(OBJECTIVES, rng.randint(1, len(OBJECTIVES))))


def tiny(source: Source, max_tasks: int = 7) -> Snapshot:
    """Return a tiny snapshot made of a source's choices."""
    nodes = _nodes(source)
    topology = ("rack",)
    running = _running(source, nodes)
    jobs: list[Job] = []
    left = max_tasks
    for number in range(source.number(0, 3) + (not source.one_in(8))):
        job, wanted = _job(source, f"job{number}", left)
        if wanted <= left:
            jobs.append(job)
            left -= wanted
    every = [*running, *jobs]
    if source.one_in(3):
        every.reverse()
    objectives = ("value", "tasks") if source.one_in(2) else (source.pick(OBJECTIVES),)
    return Snapshot(
        topology=topology,
        nodes=tuple(nodes),
        limits=tuple(_limits(source, nodes)),
        jobs=tuple(every),
        policy=Policy(objectives=objectives),  # type: ignore[arg-type]
    )


# --- nodes ----------------------------------------------------------------------------------------------------


def _nodes(source: Source) -> list[Node]:
    nodes: list[Node] = []
    left = 0 if source.one_in(25) else source.number(1, 4)
    while left:
        count = min(left, source.pick((1, 1, 2, 3)))
        nodes.append(_node(source, f"n{len(nodes)}", count))
        left -= count
    return nodes


def _node(source: Source, name: str, count: int) -> Node:
    gpus: list[Gpu] = []
    left = source.pick((2, 4, 3, 4, 2, 1, 0))
    while left:
        number = min(left, source.pick((4, 2, 1)))
        gpus.append(_gpu(source, number))
        left -= number
    return Node(
        name=name,
        count=count,
        position={"rack": source.pick(("r0", "r1"))} if not source.one_in(5) else {},
        labels={"zone": source.pick(("a", "b"))} if source.one_in(3) else {},
        taints=(Taint(key="dedicated", value=source.pick(("x", "y"))),) if source.rarely(8) else (),
        cordoned=source.rarely(15),
        cpu=source.pick((None, 4, "2500m", 8, 3)),
        memory=source.pick((None, "8Gi", "3Gi", 2**33)),
        pods=source.pick((None, None, 3, None, 2, 4)),
        extended={"nic": source.pick((2, 1))} if source.one_in(2) else {},
        driver=source.pick(("550.54.14", "550.90", "535.0", "")),
        cuda=source.pick(("12.4", "12", "11.8", "")),
        gpus=tuple(gpus),
    )


def _gpu(source: Source, count: int) -> Gpu:
    model = source.pick(MODELS)
    return Gpu(
        model=model,
        count=count,
        memory=source.pick((None, "16Gi", "10Gi")),
        compute_capability="" if source.rarely(8) else CAPABILITY[model],
        health="unhealthy" if source.rarely(12) else "healthy",
        sharing="exclusive" if source.rarely(8) else "shared",
    )


def _limits(source: Source, nodes: list[Node]) -> list[DomainLimit]:
    racks = sorted({node.position["rack"] for node in nodes if node.position})
    limits: list[DomainLimit] = []
    if racks and source.one_in(4):
        gpus = source.pick((None, 3, 2, "1500m"))
        cpu = source.pick((None, 2, 4)) if gpus is not None else source.pick((2, 4))
        limits.append(DomainLimit(level="rack", domain=source.pick(racks), gpus=gpus, cpu=cpu))
    if nodes and source.rarely(6):
        limits.append(
            DomainLimit(
                level="cluster", gpus=source.pick((3, 4, 2, 0)), extended={"nic": 1} if source.one_in(2) else {}
            )
        )
    return limits


# --- jobs -----------------------------------------------------------------------------------------------------


def _task(source: Source) -> Task:
    gpus = source.pick((1, 1, 2, 1, 0, 2, 1, 3))
    return Task(
        gpus=gpus,
        gpu_share=source.pick((None, 0.5, "250m", None, 0.6, "1")) if gpus else None,
        gpu_memory=source.pick((None, None, "6Gi", None, "10Gi", "4Gi")) if gpus else None,
        cpu=source.pick(CPU),
        memory=source.pick(MEMORY),
        extended={"nic": 1} if source.rarely(8) else {},
        gpu_models=(source.pick(MODELS),) if gpus and source.rarely(6) else (),
        node_selector={"zone": source.pick(("a", "b"))} if source.rarely(15) else {},
        tolerations=(_toleration(source),) if source.one_in(3) else (),
    )


def _toleration(source: Source) -> Toleration:
    return source.pick(
        (
            Toleration(key="dedicated", operator="Exists"),
            Toleration(key="dedicated", value="x"),
            Toleration(operator="Exists", effect="NoSchedule"),
            Toleration(operator="Exists", effect="NoExecute"),
        )
    )


def _requires(source: Source) -> Requires:
    if not source.rarely(7):
        return Requires()
    return Requires(
        driver=source.pick(("", "535", "550")),
        cuda=source.pick(("", "12.0")),
        compute_capability=source.pick(("", "8.0")),
    )


def _leaf(source: Source, name: str) -> TaskGroup:
    count = source.pick((1, 2, 1, 3))
    return TaskGroup(
        name=name, count=count, min_count=source.pick((None, 1, source.number(1, count))), task=_task(source)
    )


def _group(source: Source, name: str) -> TaskGroup:
    if not source.one_in(5):
        return _leaf(source, name)
    count = source.pick((1, 2))
    children = tuple(_leaf(source, f"c{i}") for i in range(source.pick((2, 1, 3))))
    if source.one_in(4):  # one level deeper
        children = (*children[1:], TaskGroup(name="deep", count=1, groups=(children[0],)))
    return TaskGroup(
        name=name,
        count=count,
        min_count=source.pick((None, 1)),
        groups=children,
        min_groups=source.pick((None, source.number(1, len(children)))),
    )


def _job(source: Source, name: str, most: int) -> tuple[Job, int]:
    groups = tuple(_group(source, f"g{i}") for i in range(source.pick((1, 1, 2))))
    one = sum(_wanted(group) for group in groups)
    count = source.pick((1, 1, 2, 3)) if one * 3 <= most else 1
    value = source.pick((None, None, 7, 0, 1000))
    job = Job(
        name=name,
        count=count,
        priority=source.pick((0, 0, 10)),
        weight=source.pick((1, 1, 3, 0)) if value is None else 1,
        value=value,
        submit_time=source.pick((None, 5.0, 1.0)),
        requires=_requires(source),
        groups=groups,
    )
    return job, one * count


def _wanted(group: TaskGroup) -> int:
    return group.count * (1 if group.task is not None else sum(_wanted(child) for child in group.groups))


def _running(source: Source, nodes: list[Node]) -> list[Job]:
    """Return running jobs on random nodes and cards; nothing keeps them from overfilling either."""
    names = [
        (node, node.name if node.count == 1 else f"{node.name}-{copy}") for node in nodes for copy in range(node.count)
    ]
    jobs = []
    for number in range(source.pick((0, 0, 1, 2)) if names else 0):
        task = _task(source)
        places = []
        for index in range(source.pick((1, 2))):
            node, name = source.pick(names)
            cards = sum(gpu.count for gpu in node.gpus)
            if cards < task.gpus:
                continue
            first = source.number(0, cards - 1) if cards else 0
            gpus = tuple(sorted((first + i) % cards for i in range(task.gpus)))
            places.append(RunningTask(group="g", index=index, node=name, gpus=gpus))
        if places:
            group = TaskGroup(name="g", count=2, min_count=1, task=task)
            jobs.append(Job(name=f"running{number}", groups=(group,), running=Running(tasks=tuple(places))))
    return jobs


# --- ties -----------------------------------------------------------------------------------------------------


def random_tied_tiny(seed: int, max_tasks: int = 6) -> Snapshot:
    """Return a tiny snapshot in which jobs say where their tasks lie relative to one another.

    There are at most four nodes, in two racks of one or two blocks.
    """
    return tied_tiny(Source(random.Random(seed).randint), max_tasks)


def tied_tiny(source: Source, max_tasks: int = 6) -> Snapshot:
    """Return such a snapshot made of a source's choices."""
    block = {"r0": "b0", "r1": source.pick(("b0", "b1"))}
    nodes: list[Node] = []
    left = source.number(2, 4)
    while left:
        count = min(left, source.pick((1, 1, 2)))
        rack = source.pick(("r0", "r1"))
        inside = {"block": block[rack], "rack": rack} if not nodes or not source.one_in(7) else {}
        gpus = Gpu(model="A100", count=source.pick((2, 1, 3)))
        pods = source.pick((None, 3, None, 2))
        nodes.append(Node(name=f"n{len(nodes)}", count=count, position=inside, pods=pods, gpus=(gpus,)))
        left -= count
    jobs: list[Job] = []
    wanted = 0
    for number in range(source.number(1, 3)):
        job = _tied_job(source, f"job{number}")
        if wanted + sum(map(_wanted, job.groups)) <= max_tasks:
            jobs.append(job)
            wanted += sum(map(_wanted, job.groups))
    policy = Policy(objectives=("value", "tasks") if source.one_in(2) else ("value",))
    return Snapshot(topology=("block", "rack"), nodes=tuple(nodes), jobs=tuple(jobs), policy=policy)


def _tied_job(source: Source, name: str) -> Job:
    groups = tuple(_tied_group(source, f"g{i}") for i in range(source.pick((1, 1, 2))))
    inner = [f"{group.name}/{child.name}" for group in groups for child in group.groups]
    pairs = [(groups[0].name, groups[1].name)] if len(groups) > 1 else [(inner[0], inner[1])] if len(inner) > 1 else []
    affinity = tuple(
        Affinity(a=a, b=b, level=source.pick(("rack", "block", "node")), kind=source.pick(("together", "apart")))
        for a, b in pairs
        if not source.one_in(3)
    )
    return Job(name=name, weight=source.pick((1, 3)), groups=groups, affinity=affinity)


def _tied_group(source: Source, name: str) -> TaskGroup:
    if not source.one_in(4):
        return _tied_leaf(source, name, source.pick((2, 4, 3, 1, 5, 6)))
    children = tuple(_tied_leaf(source, f"c{i}", source.pick((1, 2))) for i in range(source.pick((1, 2))))
    count = source.pick((2, 1))
    topology = _topology(source, count * sum(child.count for child in children)) if source.one_in(2) else None
    return TaskGroup(
        name=name, count=count, min_count=source.pick((None, 1)), min_groups=1, groups=children, topology=topology
    )


def _tied_leaf(source: Source, name: str, count: int) -> TaskGroup:
    task = Task(gpus=source.pick((1, 0, 1, 2)))
    return TaskGroup(
        name=name,
        count=count,
        min_count=source.pick((None, source.number(1, count))),
        task=task,
        topology=_topology(source, count) if not source.one_in(4) else None,
    )


def _topology(source: Source, tasks: int) -> Topology:
    """Return a topology that a copy of so many tasks may state."""
    levels = ("block", "rack", "node")
    required = source.pick((3, 0, 3, 1, 2))  # 3 is none
    inside = levels[required + 1 :] if required < 3 else levels
    preferred = source.number(required % 3, 2) if source.one_in(3) else 3
    slices = tuple(Slice(level=level, sizes=_sizes(source, tasks)) for level in levels[1:] if source.one_in(4))
    spread = tuple(
        Spread(
            level=level,
            max_per_domain=source.pick((1, 2, 3)),
            min_domains=source.number(1, min(3, tasks)) if source.one_in(2) else None,
        )
        for level in inside
        if source.one_in(5)
    )
    return Topology(
        required=(*levels, "")[required],
        preferred=(*levels, "")[preferred],
        slices=slices,
        balanced=source.pick(inside) if inside and source.one_in(4) else "",
        spread=spread,
    )


def _sizes(source: Source, tasks: int) -> tuple[int, ...]:
    if tasks > 1 and source.one_in(3):
        first = source.number(1, tasks - 1)
        return (first, tasks - first)
    return (source.pick([size for size in range(1, tasks + 1) if tasks % size == 0]),)
