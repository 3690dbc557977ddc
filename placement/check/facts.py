"""What the snapshot says, in whole numbers, for the judge alone; it shares no code with `placement.compile`.

Each resource is counted in the largest unit in which every amount of it in the snapshot is whole, so nothing is
ever rounded: Python's integers have no largest value. Entries with a ``count`` are never written out; names are
looked up instead.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from placement import units
from placement.snapshot import DomainLimit, Gpu, Job, Node, Snapshot, Task, TaskGroup

GPUS = "gpus"
"""The resource that shares of cards are counted in."""
GPU_MEMORY = "gpu_memory"
_BYTES = ("memory", GPU_MEMORY)


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """What tasks that no node can tell apart ask for; compared by identity.

    Attributes
    ----------
    job, task : Job, Task
        One of the jobs and its task, for the filters.
    gpus : int
        Distinct cards.
    share, memory : int
        Taken of each card.
    demand : dict of str to int
        Taken of the node, by resource; only what is more than 0.
    card_key : hashable
        Equal where share, memory and card filters are.
    """

    job: Job
    task: Task
    gpus: int
    share: int
    memory: int
    demand: dict[str, int]
    card_key: Hashable


@dataclass(frozen=True, slots=True)
class Leaf:
    """A group of tasks: `count` in each of `copies` copies of what is above it.

    Attributes
    ----------
    path : str
        Names from the top group down, joined by ``/``.
    group : TaskGroup
    shape : Shape
    copies : int
    worth : Fraction
        Of one started task.
    """

    path: str
    group: TaskGroup
    shape: Shape
    copies: int
    worth: Fraction

    @property
    def wanted(self) -> int:
        """Tasks that one whole job wants of it."""
        return self.group.count * self.copies


@dataclass(frozen=True, slots=True, eq=False)
class JobFact:
    """A job entry of the snapshot and its leaves by path."""

    spec: int
    job: Job
    leaves: dict[str, Leaf]

    @property
    def wanted(self) -> int:
        """Tasks that one job wants."""
        return sum(leaf.wanted for leaf in self.leaves.values())


@dataclass(frozen=True, slots=True)
class Card:
    """A card: its entry in the node, a number shared by equal entries, and its memory (None: no limit)."""

    entry: int
    kind: int
    gpu: Gpu
    memory: int | None

    @property
    def healthy(self) -> bool:
        """Whether the card takes new work."""
        return self.gpu.health == "healthy"


@dataclass(frozen=True, slots=True, eq=False)
class NodeFact:
    """A node entry of the snapshot.

    Attributes
    ----------
    spec : int
        Index of the entry.
    node : Node
    capacity : dict of str to (int or None)
        None is no limit; a resource that is not named is not there.
    cards : tuple of Card
        By device index.
    limits : tuple of int
        Indices of the snapshot's limits whose domain the node is in.
    """

    spec: int
    node: Node
    capacity: dict[str, int | None]
    cards: tuple[Card, ...]
    limits: tuple[int, ...]


class Names:
    """Looks up the names that entries with a ``count`` stand for."""

    def __init__(self, entries: Iterable[Node | Job]) -> None:
        self._single: dict[str, int] = {}
        self._counted: dict[str, tuple[int, int]] = {}
        self._known: dict[str, tuple[int, int] | None] = {}
        for spec, entry in enumerate(entries):
            if entry.count == 1:
                self._single[entry.name] = spec
            else:
                self._counted[entry.name] = (spec, entry.count)

    def find(self, name: str) -> tuple[int, int] | None:
        """Return the entry and the number within it that a name stands for, or None."""
        if name not in self._known:
            self._known[name] = self._find(name)
        return self._known[name]

    def _find(self, name: str) -> tuple[int, int] | None:
        if name in self._single:
            return self._single[name], 0
        base, _, tail = name.rpartition("-")
        spec, count = self._counted.get(base, (0, 0))
        # "01" and Arabic-Indic digits are no names of ours, although int() reads them
        plain = tail.isascii() and tail.isdigit() and len(tail) < 20 and (tail == "0" or tail[0] != "0")
        return (spec, int(tail)) if count and plain and int(tail) < count else None


class Facts:
    """The snapshot in whole numbers.

    Attributes
    ----------
    snapshot : Snapshot
        After the fields left out on request were taken out.
    scale : dict of str to int
        Whole numbers to one base unit (core, byte, card, item), by resource.
    nodes : list of NodeFact
    jobs : list of JobFact
    caps : list of dict of str to int
        What each of the snapshot's limits allows, by resource.
    node_names, job_names : Names
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.node_names = Names(snapshot.nodes)
        self.job_names = Names(snapshot.jobs)
        self.scale: dict[str, int] = {}
        self._measure()
        self._shapes: dict[Hashable, Shape] = {}
        self._kinds: dict[Gpu, int] = {}
        self._limits: dict[Hashable, list[int]] = defaultdict(list)
        for index, limit in enumerate(snapshot.limits):
            domain = "cluster" if limit.level == "cluster" else (limit.level, limit.domain)
            self._limits[domain].append(index)
        self.caps = [self._whole(_caps(limit)) for limit in snapshot.limits]
        self.nodes = [self._node(spec, node) for spec, node in enumerate(snapshot.nodes)]
        self.jobs = [self._job(spec, job) for spec, job in enumerate(snapshot.jobs)]

    def base(self, resource: str, amount: int) -> Fraction:
        """Return a whole number of a resource in base units."""
        return Fraction(amount, self.scale.get(resource, 1))

    def is_bytes(self, resource: str) -> bool:
        """Return whether a resource is counted in bytes."""
        return resource in _BYTES

    def pending(self) -> Iterator[JobFact]:
        """Yield the entries of jobs that do not run yet."""
        return (fact for fact in self.jobs if fact.job.running is None)

    # --- whole numbers ---------------------------------------------------------------------------------------

    def _measure(self) -> None:
        """Find the unit of every resource: all amounts in the snapshot, each looked at once."""
        seen: set[tuple[str, Fraction]] = set()
        for job in self.snapshot.jobs:
            for _, _, task, _ in _leaves(job.groups):
                seen.update(_amounts(task).items())
        for node in self.snapshot.nodes:
            seen.update((name, amount) for name, amount in _capacity(node).items() if amount is not None)
            seen.update((GPU_MEMORY, units.exact(gpu.memory)) for gpu in node.gpus if gpu.memory is not None)
        for limit in self.snapshot.limits:
            seen.update(_caps(limit).items())
        for resource, amount in seen:
            self.scale[resource] = math.lcm(self.scale.get(resource, 1), amount.denominator)
        self.scale.setdefault(GPUS, 1)

    def _whole(self, amounts: dict[str, Fraction]) -> dict[str, int]:
        return {name: int(amount * self.scale[name]) for name, amount in amounts.items()}

    # --- nodes -----------------------------------------------------------------------------------------------

    def _node(self, spec: int, node: Node) -> NodeFact:
        capacity = {
            name: None if amount is None else int(amount * self.scale[name]) for name, amount in _capacity(node).items()
        }
        cards: list[Card] = []
        for entry, gpu in enumerate(node.gpus):
            memory = None if gpu.memory is None else int(units.exact(gpu.memory) * self.scale[GPU_MEMORY])
            cards += [Card(entry, self._kinds.setdefault(gpu, len(self._kinds)), gpu, memory)] * gpu.count
        inside = [i for domain in node.position.items() for i in self._limits.get(domain, ())]
        limits = sorted({*self._limits.get("cluster", ()), *inside})
        return NodeFact(spec, node, capacity, tuple(cards), tuple(limits))

    # --- jobs ------------------------------------------------------------------------------------------------

    def _job(self, spec: int, job: Job) -> JobFact:
        found = [(path, group, self._shape(job, task), copies) for path, group, task, copies in _leaves(job.groups)]
        milli = [1000 * shape.gpus * self.base(GPUS, shape.share) for _, _, shape, _ in found]
        worths = [job.weight * amount for amount in milli]
        if job.value is not None:
            counts = [group.count * copies for _, group, _, copies in found]
            total = sum((amount * count for amount, count in zip(milli, counts, strict=True)), Fraction(0))
            # by GPU-milli; where no task has a GPU, by count
            worths = [job.value * amount / total if total else Fraction(job.value, sum(counts)) for amount in milli]
        leaves = {
            path: Leaf(path, group, shape, copies, worth)
            for (path, group, shape, copies), worth in zip(found, worths, strict=True)
        }
        return JobFact(spec, job, leaves)

    def _shape(self, job: Job, task: Task) -> Shape:
        amounts = self._whole(_amounts(task))
        share, memory = amounts.pop(GPUS, 0), amounts.pop(GPU_MEMORY, 0)
        demand = {name: amount for name, amount in amounts.items() if amount}
        models = frozenset(task.gpu_models)
        card_key = (share, memory, models, job.requires.compute_capability) if task.gpus else None
        node_key = (tuple(task.node_selector.items()), task.tolerations, job.requires.driver, job.requires.cuda)
        key = (task.gpus, tuple(sorted(demand.items())), card_key, node_key)
        if key not in self._shapes:
            self._shapes[key] = Shape(job, task, task.gpus, share, memory, demand, card_key)
        return self._shapes[key]


def _leaves(
    groups: tuple[TaskGroup, ...], above: str = "", copies: int = 1
) -> Iterator[tuple[str, TaskGroup, Task, int]]:
    """Yield the path, the group, its task and its number of copies, for every group of tasks below some groups."""
    for group in groups:
        path = f"{above}{group.name}"
        if group.task is not None:
            yield path, group, group.task, copies
        yield from _leaves(group.groups, f"{path}/", copies * group.count)


def _amounts(task: Task) -> dict[str, Fraction]:
    """Return what one task takes: of its node, and (under `GPUS` and `GPU_MEMORY`) of each of its cards."""
    amounts = {"cpu": units.exact(task.cpu), "memory": units.exact(task.memory), "pods": Fraction(1)}
    if task.gpus:
        amounts[GPUS] = units.exact(1 if task.gpu_share is None else task.gpu_share)
        amounts[GPU_MEMORY] = units.exact(0 if task.gpu_memory is None else task.gpu_memory)
    for name, quantity in task.extended.items():
        amounts[f"extended:{name}"] = units.exact(quantity)
    return amounts


def _capacity(node: Node) -> dict[str, Fraction | None]:
    capacity: dict[str, Fraction | None] = {
        "cpu": None if node.cpu is None else units.exact(node.cpu),
        "memory": None if node.memory is None else units.exact(node.memory),
        "pods": None if node.pods is None else Fraction(node.pods),
    }
    for name, quantity in node.extended.items():
        capacity[f"extended:{name}"] = units.exact(quantity)
    return capacity


def _caps(limit: DomainLimit) -> dict[str, Fraction]:
    named = {GPUS: limit.gpus, "cpu": limit.cpu, "memory": limit.memory}
    caps = {name: units.exact(quantity) for name, quantity in named.items() if quantity is not None}
    return caps | {f"extended:{name}": units.exact(quantity) for name, quantity in limit.extended.items()}


_last: Facts | None = None


def facts_of(snapshot: Snapshot) -> Facts:
    """Return the facts of a snapshot; those of the last one asked for are kept, for one plan asks several times."""
    global _last
    known = _last  # one read, so that threads cannot mix snapshots up
    if known is None or known.snapshot is not snapshot:
        _last = known = Facts(snapshot)
    return known
