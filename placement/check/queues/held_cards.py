"""Cards by model that the tasks of a schedule hold, from the snapshot alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction

from placement.check.facts.names import Names
from placement.hardware.mig import fraction
from placement.plan import Tasks
from placement.snapshot import Job, Node, Snapshot, Task
from placement.snapshot.leaves import leaf_tasks
from placement.timetable import Schedule
from placement.units import exact

Amounts = dict[str, Fraction]
"""Cards by model."""


def add(used: Amounts, amounts: Amounts, sign: int = 1) -> None:
    """Add amounts to what is used, or take them off it."""
    for model, amount in amounts.items():
        used[model] += sign * amount


class HeldCards:
    """What tasks hold, where a schedule or the snapshot has them.

    Parameters
    ----------
    snapshot : Snapshot
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._nodes, self._jobs = Names(snapshot.nodes), Names(snapshot.jobs)
        self._models: dict[int, list[str]] = {}
        self._tasks: dict[int, dict[str, Task]] = {}

    def job(self, name: str) -> Job | None:
        """Return the entry of a job, or None where there is no such job."""
        found = self._jobs.find(name)
        return None if found is None else self._snapshot.jobs[found[0]]

    def of_stretches(self, schedule: Schedule) -> list[Amounts]:
        """Return what each stretch holds; tasks that name nothing there is are left out."""
        found: list[Amounts] = [defaultdict(Fraction) for _ in schedule.stretches.job]
        tasks = schedule.tasks
        for stretch, group, node, gpus in zip(tasks.stretch, tasks.group, tasks.node, tasks.gpus, strict=True):
            if 0 <= stretch < len(found):
                self._add(found[stretch], schedule.stretches.job[stretch], group, node, gpus)
        return found

    def of_tasks(self, tasks: Tasks) -> dict[str, Amounts]:
        """Return what each job holds by a plan; tasks that name nothing there is are left out."""
        found: dict[str, Amounts] = defaultdict(lambda: defaultdict(Fraction))
        for job, group, node, gpus in zip(tasks.job, tasks.group, tasks.node, tasks.gpus, strict=True):
            self._add(found[job], job, group, node, gpus)
        return found

    def queue(self, name: str) -> str:
        """Return the queue of a job; nothing for one that is in none, or not there."""
        job = self.job(name)
        return "" if job is None else job.queue

    def of_running(self) -> Iterator[tuple[Job, Amounts]]:
        """Yield jobs that run now and what they hold."""
        for job in self._snapshot.jobs:
            if job.running is not None:
                amounts: Amounts = defaultdict(Fraction)
                for task in job.running.tasks:
                    self._add(amounts, job.name, task.group, task.node, task.gpus)
                yield job, amounts

    def _add(self, amounts: Amounts, job: str, group: str, node: str, gpus: Sequence[int]) -> None:
        spot, owner = self._nodes.find(node), self._jobs.find(job)
        if spot is None or owner is None:
            return
        task = self._task(owner[0], group)
        if task is None:
            return
        part = Fraction(1) if task.gpu_share is None else exact(task.gpu_share)
        if task.mig_profile:
            part = fraction(task.mig_profile) or Fraction(0)
        models = self._models_of(spot[0])
        for card in gpus:
            if 0 <= card < len(models):
                amounts[models[card]] += part

    def _task(self, entry: int, group: str) -> Task | None:
        if entry not in self._tasks:
            self._tasks[entry] = dict(leaf_tasks(self._snapshot.jobs[entry].groups))
        return self._tasks[entry].get(group)

    def _models_of(self, entry: int) -> list[str]:
        if entry not in self._models:
            node: Node = self._snapshot.nodes[entry]
            self._models[entry] = [gpu.model for gpu in node.gpus for _ in range(gpu.count)]
        return self._models[entry]
