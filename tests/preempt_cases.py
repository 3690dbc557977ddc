"""Small clusters for preemption. Import it as ``preempt_cases``."""

from __future__ import annotations

from typing import Any

from placement import Preemption, check, preempt
from placement.snapshot import (
    Gpu,
    Job,
    Node,
    Running,
    RunningTask,
    Snapshot,
    Task,
    TaskGroup,
)

STATE = ("since", "work_done", "last_checkpoint")


def node(name: str, cards: int = 4, **fields: Any) -> Node:
    return Node(name=name, gpus=(Gpu(model="A", count=cards),) if cards else (), **fields)


def runs(name: str, *places: tuple[str, tuple[int, ...]], least: int | None = None, **fields: Any) -> Job:
    """Return a preemptible job of equal tasks, one at each place."""
    state = {key: fields.pop(key) for key in STATE if key in fields}
    topology = fields.pop("topology", None)
    task = Task(gpus=len(places[0][1]), **fields.pop("task", {}))
    group = TaskGroup(name="g", count=len(places), min_count=least, task=task, topology=topology)
    tasks = tuple(RunningTask(group="g", index=i, node=at, gpus=cards) for i, (at, cards) in enumerate(places))
    return Job(name=name, groups=(group,), running=Running(tasks=tasks, **state), **{"preemptible": True, **fields})


def waits(name: str = "new", count: int = 1, least: int | None = None, **fields: Any) -> Job:
    ours = {key: fields.pop(key) for key in ("queue", "weight", "submit_time", "after", "topology") if key in fields}
    priority = fields.pop("priority", 1)
    group = TaskGroup(
        name="g", count=count, min_count=least, task=Task(**{"gpus": 1, **fields}), topology=ours.pop("topology", None)
    )
    return Job(name=name, priority=priority, groups=(group,), **ours)


def kinds(found: Preemption) -> dict[str, str]:
    return {one.job: one.kind for one in found.evictions}


def sure(snapshot: Snapshot, *args: Any, **options: Any) -> Preemption:
    """Return an answer of which everything is proven and the plan passes the check."""
    found = preempt(snapshot, *args, **options)
    assert found.proven
    assert (found.bound, found.gap) == (found.cost, 0.0)
    assert found.plan.checked
    assert check(found.after, found.plan) == []
    assert set(found.plan.tasks.job) == set(found.started)
    if not found.started:
        assert not found.evictions
        assert found.cost == 0
    return found
