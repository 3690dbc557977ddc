"""The distinct gangs and tasks of a snapshot: a hundred thousand jobs ask for a few hundred things."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from operator import attrgetter

import msgspec
import numpy as np

from placement.index import numbered
from placement.instance import Ints
from placement.scale import Amounts, Wanted, amounts_of
from placement.snapshot import Job, Task, TaskGroup

encode = msgspec.msgpack.Encoder().encode
"""Bytes that tell records apart by what is written in them; ``1`` and ``1.0`` differ, as their exact values may."""


class Work:
    """Jobs by gang, and gangs by task, each numbered by first appearance.

    Attributes
    ----------
    gangs : list of tuple of TaskGroup
        The groups of each distinct gang.
    of_job : int array
        Gang of each entry of the snapshot's jobs.
    tasks : list of Task
        The distinct tasks.
    amounts : list of Amounts
        What each of them takes.
    leaves : list of dict of str to (int, int)
        For each gang, the paths of its leaves, in order, with the task and how many of it one job has.
    """

    def __init__(self, jobs: tuple[Job, ...]) -> None:
        groups = list(map(attrgetter("groups"), jobs))
        # equal gangs that were read from a file are one object; others are compared by what is written in them
        of_job, first = numbered(map(id, groups))
        objects = [groups[i] for i in first.tolist()]
        of_object, first = numbered(map(encode, objects))
        self.gangs: list[tuple[TaskGroup, ...]] = [objects[i] for i in first.tolist()]
        self.of_job = of_object[of_job] if len(of_job) else of_job
        self.tasks: list[Task] = []
        self.amounts: list[Amounts] = []
        self._task: dict[bytes, int] = {}
        self.leaves = [dict(self._leaves(gang)) for gang in self.gangs]
        self._counts = np.array([job.count for job in jobs], dtype=np.int64)

    def _leaves(
        self, groups: Iterable[TaskGroup], above: str = "", copies: int = 1
    ) -> Iterable[tuple[str, tuple[int, int]]]:
        for group in groups:
            path, count = f"{above}{group.name}", copies * group.count
            if group.task is not None:
                yield path, (self._number(group.task), count)
            yield from self._leaves(group.groups, f"{path}/", count)

    def _number(self, task: Task) -> int:
        number = self._task.setdefault(encode(task), len(self.tasks))
        if number == len(self.tasks):
            self.tasks.append(task)
            self.amounts.append(amounts_of(task))
        return number

    def count_as(self, least: Mapping[int, Fraction]) -> None:
        """Have tasks, by number, count as no less than a part of each of their cards."""
        for number, part in least.items():
            self.amounts[number] = replace(self.amounts[number], least=part)

    def gangs_of(self, entries: Ints) -> list[tuple[TaskGroup, ...]]:
        """Return the distinct gangs of some entries of the snapshot's jobs."""
        return [self.gangs[gang] for gang in np.unique(self.of_job[entries]).tolist()]

    def wanted(self) -> list[Wanted]:
        """Return how many there are of each task, over all jobs, running ones included."""
        jobs = np.zeros(len(self.gangs), dtype=np.int64)
        np.add.at(jobs, self.of_job, self._counts)
        entries = np.bincount(self.of_job, minlength=len(self.gangs))
        tasks, kinds = [0] * len(self.tasks), [0] * len(self.tasks)
        for leaves, copies, times in zip(self.leaves, jobs.tolist(), entries.tolist(), strict=True):
            for task, count in leaves.values():
                tasks[task] += count * copies
                kinds[task] += times
        return [
            Wanted(task, amount, number, times)
            for task, amount, number, times in zip(self.tasks, self.amounts, tasks, kinds, strict=True)
        ]
