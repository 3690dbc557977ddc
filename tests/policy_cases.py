"""Small clusters over time, and schedules of them in plain numbers. Import it as ``policy_cases``."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from msgspec.structs import replace

from placement.naming import job_names
from placement.scheduling.baselines import BASELINES
from placement.scheduling.compile import compile_work
from placement.scheduling.desk import Desk
from placement.scheduling.loop import Loop, Policy
from placement.scheduling.timing import Timetable
from placement.scheduling.work import Work
from placement.snapshot import Duration, Gpu, Job, Node, Running, RunningTask, Snapshot, Task, TaskGroup


def node(name: str, cards: int, model: str = "A") -> Node:
    return Node(name=name, gpus=(Gpu(model=model, count=cards),))


def job(name: str, gpus: int, seconds: float, tasks: int = 1, **more: Any) -> Job:
    """Return a job of some tasks of so many cards each."""
    models = more.pop("models", ())
    group = TaskGroup(name="w", count=tasks, min_count=more.pop("least", None), task=Task(gpus=gpus, gpu_models=models))
    duration = Duration(
        seconds=seconds,
        scaling=more.pop("scaling", ()),
        gpu_models=more.pop("factors", {}),
        levels={"cluster": 1.0},  # as fast on several nodes as on one
    )
    return Job(name=name, groups=(group,), duration=duration, **more)


def running(one: Job, where: str, gpus: Sequence[int], **more: Any) -> Job:
    """Return a job that runs, its one task on some cards of a node."""
    return replace(one, running=Running(tasks=(RunningTask(group="w", index=0, node=where, gpus=tuple(gpus)),), **more))


def run(snapshot: Snapshot, policy: str | Policy, slow: Sequence[Fraction] | None = None) -> tuple[Work, Timetable]:
    work = compile_work(snapshot)
    chosen = BASELINES[policy] if isinstance(policy, str) else policy
    return work, Loop(Desk(work, slow=slow), chosen).run()


def spells(snapshot: Snapshot, policy: str | Policy, slow: Sequence[Fraction] | None = None) -> dict[str, list[Any]]:
    """Return the start and end of each stretch of each job, in seconds."""
    work, table = run(snapshot, policy, slow)
    names = job_names(work.instance, np.arange(work.jobs))
    found: dict[str, list[Any]] = {}
    for one in table.stretches:
        found.setdefault(names[one.job], []).append((one.start / 1000, one.end / 1000))
    return found
