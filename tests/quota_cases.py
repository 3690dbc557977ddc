"""Queues at random, and jobs in them. Import it as ``quota_cases``."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from placement.quota import ALL
from placement.snapshot import Duration, Job, Queue, Task, TaskGroup

MODELS = ("A", "B")


@st.composite
def trees(draw: st.DrawFn) -> tuple[Queue, ...]:
    """Up to six queues in trees of any depth."""
    queues: list[Queue] = []
    amounts: st.SearchStrategy[int | float | str] = st.integers(0, 3)
    stated = st.dictionaries(st.sampled_from([*MODELS, ALL]), amounts, max_size=2)
    for number in range(draw(st.integers(1, 6))):
        parent = draw(st.sampled_from(["", *(queue.name for queue in queues)])) if queues else ""
        limits = (draw(stated), draw(stated)) if parent else ({}, {})
        queues.append(
            Queue(
                name=f"q{number}", parent=parent, quota=draw(stated), borrowing_limit=limits[0], lending_limit=limits[1]
            )
        )
    return tuple(queues)


def leaves(queues: tuple[Queue, ...]) -> list[str]:
    parents = {queue.parent for queue in queues}
    return [queue.name for queue in queues if queue.name not in parents]


def job(
    name: str, queue: str, gpus: int, seconds: float, models: tuple[str, ...] = (), count: int = 1, **fields: Any
) -> Job:
    least, task = fields.pop("min_count", None), Task(gpus=gpus, gpu_models=models)
    group = TaskGroup(name="g", count=count, min_count=least, task=task)
    return Job(
        name=name, queue=queue, duration=Duration(seconds=seconds, levels={"node": 1}), groups=(group,), **fields
    )
