"""What queues ask for where plans are to keep to shares: all that their jobs have, or want at most."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from placement.entitlement.cards import models_of, of_task, part_of
from placement.entitlement.dominant import by_dominant_share
from placement.entitlement.entitled import Amounts, Entitled, by_fair_share
from placement.quota import ALL
from placement.snapshot import Snapshot, Task, TaskGroup
from placement.snapshot.leaves import leaf_tasks

BY: Mapping[str, Callable[[Snapshot, Mapping[str, Sequence[Amounts]]], Entitled]] = {
    "fair_share": by_fair_share,
    "dominant_share": by_dominant_share,
}
"""What divides the cards, by `Policy.shares`."""


@dataclass(slots=True)
class Asked:
    """Cards by queue and model, `placement.quota.ALL` among the models.

    Attributes
    ----------
    used : dict of str to dict of str to Fraction
        What running work takes.
    wanted : dict of str to dict of str to Fraction
        What all pending jobs take at most; of each model that a task may be on, all that it takes.
    """

    used: dict[str, dict[str, Fraction]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(Fraction)))
    wanted: dict[str, dict[str, Fraction]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(Fraction)))

    def of(self, queue: str, model: str) -> Fraction:
        """Return what a queue asks for: what it has and what it wants."""
        return self.used[queue][model] + self.wanted[queue][model]


def asked(snapshot: Snapshot) -> Asked:
    """Return what the queues of a snapshot have and want."""
    found = Asked()
    models = {gpu.model for node in snapshot.nodes for gpu in node.gpus}
    card_models = models_of(snapshot.nodes)
    for job in snapshot.jobs:
        if not job.queue:
            continue
        if job.running is not None:
            tasks, used = dict(leaf_tasks(job.groups)), found.used[job.queue]
            for place in job.running.tasks:
                for model, amount in of_task(tasks[place.group], card_models(place.node, place.gpus)).items():
                    used[model] += amount
                    used[ALL] += amount
            continue
        wanted = found.wanted[job.queue]
        for task, count in counted(job.groups, job.count):
            amount = count * task.gpus * part_of(task)
            wanted[ALL] += amount
            for model in models.intersection(task.gpu_models) if task.gpu_models else models:
                wanted[model] += amount
    return found


def share_of(snapshot: Snapshot, what: Asked) -> Entitled:
    """Return what says of each queue what its share is by the snapshot's policy, of a model or of `ALL`.

    Cards of any model are asked for once, however many models a job may be on.
    """
    by, names = BY[snapshot.policy.shares], [queue.name for queue in snapshot.queues]
    models = {gpu.model for node in snapshot.nodes for gpu in node.gpus}
    of_model = by(snapshot, {name: [{model: what.of(name, model) for model in models}] for name in names})
    of_all = by(snapshot, {name: [{ALL: what.of(name, ALL)}] for name in names})
    return lambda queue, model: (of_all if model == ALL else of_model)(queue, model)


def counted(groups: Sequence[TaskGroup], copies: int) -> Iterator[tuple[Task, int]]:
    """Yield each task with how many of it there are in so many copies of some groups."""
    for group in groups:
        if group.task is not None:
            yield group.task, copies * group.count
        yield from counted(group.groups, copies * group.count)
