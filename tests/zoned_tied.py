"""Tiny snapshots with gangs, ties and NUMA zones together. Import it as ``zoned_tied``.

They are those of `strategies.random_tied_tiny`, in which nodes get zones, and tasks what zones are there for.
"""

from __future__ import annotations

import random

import msgspec
from strategies import random_tied_tiny

from placement.snapshot import Job, Nic, Node, NumaZone, Snapshot, Task, TaskGroup


def random_zoned_tied(seed: int, max_tasks: int = 5) -> Snapshot:
    """Return the snapshot of a seed; the same on every machine and Python.

    Parameters
    ----------
    seed : int
    max_tasks : int
        Most tasks that the pending jobs want together.
    """
    rng = random.Random(seed)
    snapshot = random_tied_tiny(seed, max_tasks)
    nodes = tuple(_node(rng, node) for node in snapshot.nodes)
    return msgspec.structs.replace(snapshot, nodes=nodes, jobs=tuple(_job(rng, job) for job in snapshot.jobs))


def _node(rng: random.Random, node: Node) -> Node:
    """Return a node with two or three zones, or with none."""
    if rng.random() < 0.1:
        return node
    cards = node.gpus[0].count
    count = rng.choice((2, 2, 3))
    zone_of = [rng.randrange(count) for _ in range(cards)]
    cpu = [rng.choice((1, 2, 3)) for _ in range(count)] if rng.random() < 0.8 else None
    zones = tuple(
        NumaZone(
            id=zone,
            cpu=None if cpu is None else cpu[zone],
            gpus=tuple(card for card, where in enumerate(zone_of) if where == zone),
            nics=tuple(Nic(name=f"nic{zone}-{i}") for i in range(rng.choice((0, 1, 1)))),
        )
        for zone in range(count)
    )
    return msgspec.structs.replace(node, zones=zones, cpu=None if cpu is None else sum(cpu))


def _job(rng: random.Random, job: Job) -> Job:
    return msgspec.structs.replace(job, groups=tuple(_group(rng, group) for group in job.groups))


def _group(rng: random.Random, group: TaskGroup) -> TaskGroup:
    if group.task is not None:
        return msgspec.structs.replace(group, task=_task(rng, group.task))
    return msgspec.structs.replace(group, groups=tuple(_group(rng, child) for child in group.groups))


def _task(rng: random.Random, task: Task) -> Task:
    return msgspec.structs.replace(
        task,
        cpu=rng.choice((0, 1, 1, 2)),
        nics=rng.choice((0, 0, 0, 1)),
        numa=rng.choice(("single-numa-node", "restricted", "restricted", "single-numa-node", "none")),
    )
