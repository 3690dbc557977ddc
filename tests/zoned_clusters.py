"""Random clusters with NUMA zones, of some tens of tasks: more than brute force can do, and enough for large steps."""

from __future__ import annotations

import random

from placement.snapshot import Gpu, Job, Node, NumaZone, Running, RunningTask, Snapshot, Task, TaskGroup

POLICIES = ("single-numa-node", "single-numa-node", "restricted", "restricted", "none", "best-effort")


def zoned_cluster(seed: int, nodes: int = 8, jobs: int = 24) -> Snapshot:
    """Return a cluster of a few kinds of nodes with two to four zones, and jobs that ask for more than there is.

    Parameters
    ----------
    seed : int
    nodes, jobs : int
        How many.
    """
    rng = random.Random(seed)
    kinds = [_kind(rng) for _ in range(rng.choice((1, 2, 3, nodes)))]
    made = [_node(rng.choice(kinds), number) for number in range(nodes)]
    pending = [_job(rng, number) for number in range(jobs)]
    return Snapshot(nodes=tuple(made), jobs=(*_running(rng, made), *pending))


def _kind(rng: random.Random) -> Node:
    zones, cards = rng.choice((2, 2, 2, 3, 4)), rng.choice((0, 1, 2, 2, 4))
    cpu, memory = rng.choice((4, 6, 8)), rng.choice((4, 8))
    listed = tuple(
        NumaZone(
            id=zone,
            cpu=cpu - (zone == 1 and rng.random() < 0.3),
            memory=None if memory == 4 else f"{memory}Gi",
            gpus=tuple(range(zone * cards, (zone + 1) * cards)),
        )
        for zone in range(zones)
    )
    return Node(
        name="kind",
        cpu=sum(int(zone.cpu or 0) for zone in listed),
        memory=f"{memory * zones}Gi",
        pods=rng.choice((None, 9)),
        gpus=(Gpu(model=rng.choice(("A", "A", "B")), count=cards * zones, memory="16Gi"),) if cards else (),
        zones=() if rng.random() < 0.1 else listed,
    )


def _node(kind: Node, number: int) -> Node:
    return Node(name=f"n{number}", cpu=kind.cpu, memory=kind.memory, pods=kind.pods, gpus=kind.gpus, zones=kind.zones)


def _job(rng: random.Random, number: int) -> Job:
    gpus = rng.choice((0, 1, 1, 1, 2, 2, 3, 4))
    share = rng.choice((0.25, 0.5, 0.75)) if gpus and rng.random() < 0.35 else None
    task = Task(
        gpus=gpus if share is None else min(gpus, 2),
        gpu_share=share,
        gpu_memory=rng.choice((None, "5Gi", "9Gi")) if gpus else None,
        cpu=rng.choice((1, 1, 2, 3, "1500m")),
        memory=rng.choice(("1Gi", "2Gi", "512Mi")),
        numa=rng.choice(POLICIES),  # type: ignore[arg-type]
    )
    count = rng.choice((1, 1, 1, 2, 3))
    group = TaskGroup(name="g", count=count, min_count=rng.choice((None, 1)), task=task)
    return Job(name=f"job{number}", count=rng.choice((1, 1, 2)), weight=rng.choice((1, 1, 2)), groups=(group,))


def _running(rng: random.Random, nodes: list[Node]) -> list[Job]:
    found = []
    for number, node in enumerate(nodes):
        cards = sum(gpu.count for gpu in node.gpus)
        if not cards or rng.random() < 0.6:
            continue
        task = Task(gpus=1, gpu_share=rng.choice((None, 0.5)), cpu=1, numa=rng.choice(POLICIES))  # type: ignore[arg-type]
        place = RunningTask(group="g", index=0, node=node.name, gpus=(rng.randrange(cards),))
        group = TaskGroup(name="g", count=1, task=task)
        found.append(Job(name=f"running{number}", groups=(group,), running=Running(tasks=(place,))))
    return found
