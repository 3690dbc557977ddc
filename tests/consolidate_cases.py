"""What tests of consolidation share: jobs and clusters in few words, and what holds of every answer.

Slots of an A100: 1g at 0 to 6, 2g (two slots) at 0, 2, 4, 3g (four) at 0 and 4, 4g (four) at 0, 7g (all eight) at 0.
An instance is worth its sevenths of 1000 GPU-milli, and a move costs a tenth of that unless said otherwise.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from placement import Consolidation, check
from placement.snapshot import Gpu, Job, Node, Running, RunningTask, Snapshot, Task, TaskGroup, Topology
from placement.snapshot.read import dumps, loads

A100 = Gpu(model="A100-40GB", mig_enabled=True)
TWO = Gpu(model="A100-40GB", count=2, mig_enabled=True)
SEVENTH = 1000 / 7


def one(profile: str, count: int = 1, name: str = "g", topology: Topology | None = None, **fields: Any) -> TaskGroup:
    return TaskGroup(name=name, count=count, task=Task(gpus=1, mig_profile=profile, **fields), topology=topology)


def runs(name: str, profile: str, card: int, start: int, node: str = "a", **fields: Any) -> Job:
    """Return a running job that may move unless `fields` say otherwise."""
    ours = {key: fields.pop(key) for key in ("weight", "value", "preemptible", "affinity", "topology") if key in fields}
    group = one(profile, topology=ours.pop("topology", None), **fields)
    place = RunningTask(group="g", index=0, node=node, gpus=(card,), mig_starts=(start,))
    return Job(name=name, groups=(group,), running=Running(tasks=(place,)), **{"preemptible": True, **ours})


def waits(name: str, profile: str, count: int = 1, **fields: Any) -> Job:
    ours = {key: fields.pop(key) for key in ("weight", "value", "priority", "topology") if key in fields}
    return Job(name=name, groups=(one(profile, count, topology=ours.pop("topology", None), **fields),), **ours)


def cluster(*work: Job, nodes: tuple[Node, ...] = (Node(name="a", gpus=(TWO,)),), **fields: Any) -> Snapshot:
    return Snapshot(nodes=nodes, jobs=work, **fields)


def places(found: Consolidation) -> dict[str, tuple[str, int, int]]:
    return {move.job: move.target for move in found.moves}


def started(found: Consolidation) -> list[str]:
    return sorted(found.plan.tasks.job)


def sound(snapshot: Snapshot, found: Consolidation, most: int | None = None) -> None:
    """Expect what holds of every answer."""
    assert check(found.after, found.plan) == []
    assert found.plan.checked
    assert loads(dumps(found.after)) == found.after
    before = {job.name: job for job in snapshot.jobs}
    moved = {move.job for move in found.moves}
    assert [job.name for job in found.after.jobs] == list(before)
    for job in found.after.jobs:
        if job.name not in moved:
            assert job == before[job.name]
        else:
            assert before[job.name].preemptible
            assert msgspec.structs.replace(job, running=None) == msgspec.structs.replace(before[job.name], running=None)
    assert all(move.source != move.target for move in found.moves)
    assert most is None or len(found.moves) <= most
    if found.bound is not None:
        assert found.bound >= found.worth - found.cost - 1e-9


def proven(found: Consolidation, worth: float, cost: float) -> None:
    """Expect this worth and cost, and a bound that equals what is left."""
    assert found.worth == pytest.approx(worth)
    assert found.cost == pytest.approx(cost)
    assert found.bound == pytest.approx(worth - cost)
    assert found.gap == 0 or (found.gap is not None and found.gap < 1e-9)
