"""What the judge knows of tasks, jobs and nodes: everything that is alike is looked at once."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction

from placement.snapshot import Gpu, Job, Node, Task, TaskGroup


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """What tasks that no node can tell apart ask for; compared by identity.

    Attributes
    ----------
    number : int
    job, task : Job, Task
        One of the jobs and its task, for the filters.
    gpus : int
        Distinct cards.
    share, memory : int
        Taken of each card.
    demand : dict of str to int
        Taken of the node, by resource; only what is more than 0.
    node_key, card_key : hashable
        Equal where the node filters, and where share, memory and the card filters are.
    """

    number: int
    job: Job
    task: Task
    gpus: int
    share: int
    memory: int
    demand: dict[str, int]
    node_key: Hashable
    card_key: Hashable

    @property
    def policy(self) -> str:
        """How tightly the task is bound to NUMA zones, as the snapshot says it; empty where it is not."""
        return policy(self.task)


def policy(task: Task) -> str:
    """Return how tightly a task is bound to NUMA zones; a preference binds nothing."""
    return task.numa if task.numa in ("restricted", "single-numa-node") else ""


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """A group of tasks: `count` in each of `copies` copies of what is above it.

    Attributes
    ----------
    number : int
        Among the leaves of all gangs.
    path : str
        Names from the top group down, joined by ``/``.
    group : TaskGroup
    shape : Shape
    copies : int
    milli : Fraction
        GPU-milli of one task.
    part : Fraction
        What one task is of a job's value.
    """

    number: int
    path: str
    group: TaskGroup
    shape: Shape
    copies: int
    milli: Fraction
    part: Fraction

    @property
    def wanted(self) -> int:
        """Tasks that one whole job wants of it."""
        return self.group.count * self.copies


@dataclass(frozen=True, slots=True, eq=False)
class Gang:
    """Jobs with equal groups, requirements and affinity.

    Attributes
    ----------
    job : Job
        The first of them.
    leaves : dict of str to Leaf
        By path.
    wanted : int
        Tasks that one job wants.
    """

    job: Job
    leaves: dict[str, Leaf]
    wanted: int


@dataclass(frozen=True, slots=True)
class Card:
    """A card: its entry in a node, that node or one like it, a number shared by cards that look alike, and its memory.

    Those look alike that are equal entries in nodes with the same CUDA and cgroup. None for memory is no limit.
    """

    entry: int
    kind: int
    gpu: Gpu
    memory: int | None
    node: Node

    @property
    def healthy(self) -> bool:
        """Whether the card takes new work."""
        return self.gpu.health == "healthy"


@dataclass(frozen=True, slots=True, eq=False)
class NodeKind:
    """Nodes that differ at most in their name, their place, and labels that no task asks for.

    Attributes
    ----------
    number : int
    node : Node
        The first of them.
    look : int
        Equal for nodes that are alike to all node filters.
    capacity : dict of str to (int or None)
        None is no limit; a resource that is not named is not there.
    cards : tuple of Card
        By device index.
    limits : tuple of int
        Indices of the snapshot's limits whose domain the nodes are in.
    """

    number: int
    node: Node
    look: int
    capacity: dict[str, int | None]
    cards: tuple[Card, ...]
    limits: tuple[int, ...]
