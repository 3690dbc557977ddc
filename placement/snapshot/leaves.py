"""The tasks of a job's groups, however deep they are nested."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from placement.snapshot.workload import Task, TaskGroup


def leaf_tasks(groups: Iterable[TaskGroup], above: str = "") -> Iterator[tuple[str, Task]]:
    """Yield the path and the task of every group of tasks."""
    for group in groups:
        if group.task is not None:
            yield f"{above}{group.name}", group.task
        yield from leaf_tasks(group.groups, f"{above}{group.name}/")
