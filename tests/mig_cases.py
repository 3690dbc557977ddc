"""Small clusters with MIG cards, for cases solved by hand."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from placement import solve
from placement.plan import Plan
from placement.snapshot import Gpu, Job, MigInstance, Node, Running, RunningTask, Snapshot, Task, TaskGroup

A100 = Gpu(model="A100-40GB", mig_enabled=True)
A100_80 = Gpu(model="A100-80GB", mig_enabled=True)
RTX = Gpu(model="RTX-PRO-6000-BLACKWELL-96GB", mig_enabled=True)
WHOLE = Gpu(model="A100-40GB")
SEVENTH = Fraction(1000, 7)


def task(profile: str = "", **fields: Any) -> Task:
    return Task(gpus=1, mig_profile=profile, **fields)


def jobs(name: str, profile: str, count: int = 1, **fields: Any) -> Job:
    """Return so many jobs of one task each."""
    ours = {key: fields.pop(key) for key in ("weight", "priority", "value") if key in fields}
    return Job(name=name, count=count, groups=(TaskGroup(name="g", task=task(profile, **fields)),), **ours)


def gang(name: str, *tasks: tuple[int, Task], **fields: Any) -> Job:
    groups = tuple(TaskGroup(name=f"g{i}", count=count, task=one) for i, (count, one) in enumerate(tasks))
    return Job(name=name, groups=groups, **fields)


def runs(name: str, profile: str, card: int, start: int, **fields: Any) -> Job:
    place = RunningTask(group="g", index=0, node="n", gpus=(card,), mig_starts=(start,))
    group = TaskGroup(name="g", task=task(profile, **fields))
    return Job(name=name, groups=(group,), running=Running(tasks=(place,)))


def node(*gpus: Gpu, name: str = "n", **fields: Any) -> Node:
    return Node(name=name, gpus=gpus, **fields)


def instances(*some: tuple[str, int]) -> tuple[MigInstance, ...]:
    return tuple(MigInstance(profile=profile, start=start) for profile, start in some)


def plan_of(nodes: Node | Sequence[Node], *work: Job, objectives: Sequence[str] = ("value",), **fields: Any) -> Plan:
    nodes = (nodes,) if isinstance(nodes, Node) else tuple(nodes)
    plan = solve(Snapshot(nodes=nodes, jobs=work, **fields), objectives=objectives)
    assert plan.checked
    return plan


def proven(plan: Plan, *values: Fraction | int) -> None:
    """Expect these values, each with a bound that equals it."""
    assert [phase.value for phase in plan.phases] == [float(value) for value in values]
    assert [phase.bound for phase in plan.phases] == [float(value) for value in values]
    assert plan.status == "proven"


def starts(plan: Plan, job: str) -> list[int]:
    assert isinstance(plan.tasks.mig_starts, list)
    found = zip(plan.tasks.job, plan.tasks.mig_starts, strict=True)
    return sorted(start for name, mine in found if name.partition("-")[0] == job for start in mine)


def whole(name: str, count: int = 1, **fields: Any) -> Job:
    return Job(name=name, count=count, groups=(TaskGroup(name="g", task=Task(gpus=1)),), **fields)
