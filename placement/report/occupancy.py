"""Who is on which card: running work and a plan's new tasks, node by node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from placement import units
from placement.hardware.mig import fraction
from placement.plan import Plan
from placement.snapshot import Gpu, Snapshot, Task
from placement.snapshot.leaves import leaf_tasks


@dataclass(frozen=True, slots=True)
class Part:
    """The share of one card that one task has.

    Attributes
    ----------
    job : str
    share : Fraction
        Of the card.
    running : bool
        Whether the task ran before the plan.
    """

    job: str
    share: Fraction
    running: bool


@dataclass(slots=True)
class Card:
    """A card and who is on it."""

    gpu: Gpu
    parts: list[Part] = field(default_factory=list)

    @property
    def free(self) -> Fraction:
        """Share that nobody has; 0 on an over-full card."""
        return max(Fraction(0), 1 - sum((part.share for part in self.parts), Fraction(0)))


@dataclass(slots=True)
class Row:
    """A node with its cards in the order of their index."""

    node: str
    cards: list[Card]


def occupancy(snapshot: Snapshot, plan: Plan | None = None) -> list[Row]:
    """Return every node with cards and who is on them; without a plan, running work alone."""
    rows = {
        name: Row(name, [Card(gpu) for gpu in node.gpus for _ in range(gpu.count)])
        for node in snapshot.nodes
        for name in names(node.name, node.count)
    }
    pending: dict[str, dict[str, Task]] = {}
    for job in snapshot.jobs:
        tasks = dict(leaf_tasks(job.groups))
        if job.running is None:
            pending |= dict.fromkeys(names(job.name, job.count), tasks)
            continue
        for place in job.running.tasks:
            for index in place.gpus:
                part = Part(job.name, share_of(tasks[place.group]), running=True)
                rows[place.node].cards[index].parts.append(part)
    for name, group, _, where, gpus in plan.tasks if plan else ():
        for index in gpus:
            rows[where].cards[index].parts.append(Part(name, share_of(pending[name][group]), running=False))
    return [row for row in rows.values() if row.cards]


def names(name: str, count: int) -> Iterator[str]:
    """Yield the names of the nodes or jobs that an entry stands for."""
    return iter([name]) if count == 1 else (f"{name}-{copy}" for copy in range(count))


def share_of(task: Task) -> Fraction:
    """Return what part of each of its cards a task takes; a MIG instance is drawn as what it counts as."""
    if task.mig_profile:
        return fraction(task.mig_profile) or Fraction(1)
    return units.exact(1 if task.gpu_share is None else task.gpu_share)
