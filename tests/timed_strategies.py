"""Random tiny snapshots in which jobs say how long they run where, and where their data are.

Import it as ``timed_strategies``.
"""

from __future__ import annotations

import random

from hypothesis import strategies as st
from msgspec.structs import replace
from strategies import Source, tied_tiny
from zoned_strategies import zoned_tiny

from placement.snapshot import DataLocality, Duration, Job, Node, Snapshot

SECONDS = (10, 1, 0.0015, 7200, 0, 3.3333)
FACTORS = (1, 1.5, 2, 0.5, 1.1)


def random_timed(seed: int, max_tasks: int = 4) -> Snapshot:
    """Return the snapshot of a seed; the same on every machine and Python.

    Parameters
    ----------
    seed : int
    max_tasks : int
        Most tasks that the pending jobs want together.
    """
    return timed_tiny(Source(random.Random(seed).randint), max_tasks)


@st.composite
def timed_snapshots(draw: st.DrawFn, max_tasks: int = 4) -> Snapshot:
    """Draw a tiny snapshot with run times."""
    return timed_tiny(Source(lambda low, high: draw(st.integers(low, high))), max_tasks)


def timed_tiny(source: Source, max_tasks: int = 4) -> Snapshot:
    """Return a tiny snapshot made of a source's choices: of racks and blocks, or of nodes with NUMA zones in racks."""
    if source.one_in(2):
        snapshot = tied_tiny(source, max_tasks)
        nodes = tuple(_models(source, node) for node in snapshot.nodes)
        jobs = tuple(_untied(job) if source.one_in(2) else job for job in snapshot.jobs)
    else:
        snapshot = zoned_tiny(source, max_tasks)
        racks = [source.pick(("r0", "r1", "")) for _ in snapshot.nodes]
        nodes = tuple(
            replace(node, position={"rack": rack} if rack else {})
            for node, rack in zip(snapshot.nodes, racks, strict=True)
        )
        jobs = tuple(job if source.one_in(3) else _loose(source, job) for job in snapshot.jobs)
        snapshot = replace(snapshot, topology=("rack",))
    levels = (*snapshot.topology, "node")
    jobs = tuple(_timed(source, job, levels, nodes) for job in jobs)
    return replace(snapshot, nodes=nodes, jobs=jobs)


def _models(source: Source, node: Node) -> Node:
    gpus = tuple(replace(gpu, model=source.pick(("A", "B"))) for gpu in node.gpus)
    return replace(node, gpus=gpus)


def _untied(job: Job) -> Job:
    groups = tuple(
        replace(group, topology=None, groups=tuple(replace(child, topology=None) for child in group.groups))
        for group in job.groups
    )
    return replace(job, groups=groups, affinity=())


def _loose(source: Source, job: Job) -> Job:
    """Return a job whose tasks are bound to no zones and ask for little, so that cards and NICs lie apart."""
    if job.running is not None:
        return job
    nics = source.pick((1, 0, 2))
    groups = tuple(
        replace(group, task=replace(group.task, numa="none", nics=nics, cpu=0, memory=0, gpus=source.pick((2, 1, 3))))
        if group.task is not None and group.task.gpus
        else group
        for group in job.groups
    )
    return replace(job, groups=groups)


def _timed(source: Source, job: Job, levels: tuple[str, ...], nodes: tuple[Node, ...]) -> Job:
    if source.one_in(6):
        return job
    duration = None if source.one_in(8) else _duration(source, levels)
    data = tuple(_data(source, levels, nodes) for _ in range(source.pick((0, 1, 0, 2))))
    weight = source.pick((job.weight, 1, 3, 0)) if job.value is None else job.weight
    return replace(job, weight=weight, duration=duration, data=data)


def _duration(source: Source, levels: tuple[str, ...]) -> Duration:
    stated = {level: source.pick(FACTORS) for level in ("cluster", *levels) if source.one_in(2)}
    models = {model: source.pick(FACTORS) for model in ("A", "B") if source.one_in(2)}
    return Duration(
        seconds=source.pick(SECONDS),
        gpu_models=models,
        levels=stated if source.one_in(2) else {},
        numa_misaligned=source.pick((1.4, 1, 0.5, 2)),
        nic_misaligned=source.pick((1.4, 1, 0.5, 2)),
    )


def _data(source: Source, levels: tuple[str, ...], nodes: tuple[Node, ...]) -> DataLocality:
    level = source.pick(levels)
    domains = [node.position[level] for node in nodes if level in node.position]
    if level == "node":
        domains = [node.name if node.count == 1 else f"{node.name}-{node.count - 1}" for node in nodes]
    domain = "nowhere" if not domains or source.one_in(8) else source.pick(domains)
    costs = {name: source.pick((1, 0, 100, 0.0001, 7)) for name in ("cluster", *levels) if source.one_in(2)}
    return DataLocality(level=level, domain=domain, fetch_seconds=costs)
