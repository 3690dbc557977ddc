"""Tiny clusters with MIG cards and all else there is: zones, paths, run times, domains; see `mig_tiny`."""

from __future__ import annotations

import random
from typing import Any

from mig_tiny import random_mig
from msgspec.structs import replace

from placement.snapshot import Duration, Job, Link, Node, NumaZone, Policy, Snapshot, TaskGroup, Topology

OBJECTIVES = ("value", "tasks", "locality", "run_time", "fragmentation", "whole_nodes", "nodes", "mig_cards")
MODELS = ("A100-40GB", "A100-80GB", "A30-24GB", "H100-SXM5-80GB")


def random_dressed(seed: int) -> Snapshot:
    """Return the snapshot of a seed; in some nobody waits for an instance, in others everybody does."""
    rng = random.Random(f"dressed {seed}")
    plain = random_mig(seed, scarce=seed % 3 == 0, mixed=seed % 4 > 0)
    zones = rng.random() < 0.5
    jobs = [job if job.running is not None else _job(rng, job, zones) for job in plain.jobs]
    only = rng.choice(("", "", "", "", "", "", "mig", "other"))
    if only:
        jobs = [job for job in jobs if job.running is not None or _asks(job) == (only == "mig")]
    return replace(
        plain,
        nodes=tuple(_node(rng, node) if zones and rng.random() < 0.7 else node for node in plain.nodes),
        jobs=tuple(jobs),
        policy=Policy(objectives=tuple(rng.sample(OBJECTIVES, rng.randint(1, 4)))),  # type: ignore[arg-type]
    )


def _asks(job: Job) -> bool:
    return any(group.task is not None and group.task.mig_profile for group in job.groups)


def _node(rng: random.Random, node: Node) -> Node:
    cards = range(sum(gpu.count for gpu in node.gpus))
    cut = rng.randint(0, len(cards))
    links = [
        Link(a=a, b=b, kind="NVLINK", width=rng.randint(1, 9))
        for a in cards
        for b in cards
        if a < b and rng.random() < 0.5
    ]
    zones = (NumaZone(id=0, gpus=tuple(cards[:cut]), cpu=8), NumaZone(id=1, gpus=tuple(cards[cut:]), cpu=8))
    return replace(node, cpu=16, links=tuple(links), zones=zones)


def _job(rng: random.Random, job: Job, zones: bool) -> Job:
    if rng.random() < 0.5:
        job = replace(
            job,
            duration=Duration(
                seconds=rng.choice((100, 10)),
                numa_misaligned=rng.choice((1, 1.5)),
                gpu_models={model: rng.choice((0.5, 2, 1.5)) for model in MODELS},
                levels=rng.choice(({}, {"rack": 1.5, "cluster": 2})),
            ),
        )
    return replace(job, groups=tuple(_group(rng, group, zones) for group in job.groups))


def _group(rng: random.Random, group: TaskGroup, zones: bool) -> TaskGroup:
    ties: tuple[dict[str, Any], ...]
    ties = ({"required": "rack"}, {"required": "node"}, {"preferred": "rack"}, {"preferred": "node"})
    if rng.random() < 0.4:
        group = replace(group, topology=Topology(**rng.choice(ties)))
    assert group.task is not None
    if zones and not group.task.mig_profile and rng.random() < 0.5:
        policy = rng.choice(("single-numa-node", "restricted", "best-effort"))
        group = replace(group, task=replace(group.task, numa=policy))
    return group
