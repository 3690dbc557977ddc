"""What the snapshot says, in whole numbers, for the judge alone; it shares no code with `placement.compile`.

Each resource is counted in the largest unit in which every amount of it in the snapshot is whole, so nothing is
ever rounded. Entries with a ``count`` are never written out, and entries that say the same are looked at once.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from typing import TypeVar

import msgspec
import numpy as np

from placement import units
from placement.check.exact import Bools, Ints, starts, sums
from placement.check.facts.amounts import GPU_MEMORY, GPUS, amounts, by_zone, capacity, caps
from placement.check.facts.kinds import Card, Gang, Leaf, NodeKind, Shape, policy
from placement.check.facts.names import Names
from placement.check.facts.uses import Uses, running
from placement.check.facts.zones import Zoning, zoning_of
from placement.hardware.mig import plain_profile
from placement.snapshot import Gpu, Job, Node, RunningTask, Snapshot, Task, TaskGroup, Topology


class Facts:
    """The snapshot in whole numbers.

    Attributes
    ----------
    snapshot : Snapshot
        After the fields left out on request were taken out.
    scale : dict of str to int
        Whole numbers to one base unit (core, byte, card, item), by resource.
    kinds : list of NodeKind
    kind : int array
        Of each node entry.
    shapes : list of Shape
    leaves : list of Leaf
    shape_of_leaf, wanted_of_leaf : int arrays
    gangs : list of Gang
    gang, count : int arrays
        Of each job entry.
    waits : bool array
        Whether the jobs of an entry do not run yet.
    cards : list of Card
        Of the kinds of nodes, one after the other.
    first_card : int array
        Where the cards of each kind of node begin, and last where they all end.
    caps : list of dict of str to int
        What each of the snapshot's limits allows, by resource.
    node_names, job_names : Names
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.node_names = Names(snapshot.nodes)
        self.job_names = Names(snapshot.jobs)
        self.count: Ints = np.diff(self.job_names.first)
        self.waits: Bools = np.array([job.running is None for job in snapshot.jobs], dtype=np.bool_)
        gangs, self.gang = _alike(
            snapshot.jobs, [_encode((job.groups, job.requires, job.affinity)) for job in snapshot.jobs]
        )
        asked = frozenset(
            label for job in gangs for *_, task, _ in leaves_of(job.groups) for label in task.node_selector
        )
        inside = _Inside(snapshot)
        nodes, self.kind = _alike(snapshot.nodes, [_node_key(node, asked, inside(node)) for node in snapshot.nodes])
        self.scale = self._scale(gangs, nodes)
        self.caps = [self._whole(caps(limit)) for limit in snapshot.limits]
        self._card_kinds: dict[tuple[Gpu, str, int | None], int] = {}
        self._looks: dict[Hashable, int] = {}
        self.kinds = [self._kind(number, node, asked, inside(node)) for number, node in enumerate(nodes)]
        self.cards = [card for kind in self.kinds for card in kind.cards]
        self.first_card = starts(np.array([len(kind.cards) for kind in self.kinds], dtype=np.int64))
        self.shapes: list[Shape] = []
        self._known: dict[Hashable, Shape] = {}
        self.leaves: list[Leaf] = []
        self._first_leaf: list[int] = []
        self.gangs = [self._gang(job) for job in gangs]
        self.shape_of_leaf: Ints = np.array([leaf.shape.number for leaf in self.leaves], dtype=np.int64)
        self.wanted_of_leaf: Ints = np.array([leaf.wanted for leaf in self.leaves], dtype=np.int64)

    @cached_property
    def running(self) -> Uses:
        """What runs already."""
        specs = np.flatnonzero(~self.waits).tolist()
        return running(((self.snapshot.jobs[spec], self.gang_of(spec)) for spec in specs), self.node_names)

    @cached_property
    def places(self) -> list[RunningTask]:
        """Where the tasks of `running` are, in its order."""
        return [place for job in self.snapshot.jobs if job.running is not None for place in job.running.tasks]

    @cached_property
    def running_job(self) -> Ints:
        """Entry of the job of each task of `running`."""
        tasks = [0 if job.running is None else len(job.running.tasks) for job in self.snapshot.jobs]
        return np.repeat(np.arange(len(tasks), dtype=np.int64), tasks)

    @cached_property
    def zonings(self) -> list[Zoning | None]:
        """NUMA zones of each kind of node; None where it lists none."""
        return [zoning_of(kind.node, self.scale) for kind in self.kinds]

    def base(self, resource: str, amount: int) -> Fraction:
        """Return a whole number of a resource in base units."""
        return Fraction(int(amount), self.scale.get(resource, 1))

    def gang_of(self, spec: int) -> Gang:
        """Return the gang of a job entry."""
        return self.gangs[int(self.gang[spec])]

    def gang_of_leaf(self, leaf: int) -> Gang:
        """Return the gang that a leaf is of."""
        return self.gangs[bisect_right(self._first_leaf, leaf) - 1]

    @cached_property
    def tied(self) -> list[Gang]:
        """Gangs that say where their tasks may lie relative to one another."""
        return [gang for gang in self.gangs if gang.job.affinity or _tied(gang.job.groups)]

    def waiting(self) -> list[int]:
        """Return how many jobs of each gang wait."""
        return [int(number) for number in sums(self.gang, np.where(self.waits, self.count, 0), len(self.gangs))]

    def nodes_of_kind(self) -> list[int]:
        """Return how many nodes there are of each kind."""
        return [int(count) for count in sums(self.kind, np.diff(self.node_names.first), len(self.kinds))]

    # --- whole numbers ---------------------------------------------------------------------------------------

    def _scale(self, jobs: Iterable[Job], nodes: Iterable[Node]) -> dict[str, int]:
        """Return the unit of every resource: all amounts in the snapshot, each looked at once."""
        seen: set[tuple[str, Fraction]] = set()
        for job in jobs:
            for _, _, task, _ in leaves_of(job.groups):
                seen.update(amounts(task).items())
        for node in nodes:
            seen.update((name, amount) for name, amount in capacity(node).items() if amount is not None)
            seen.update((name, part) for name, parts in by_zone(node).items() for part in parts)
            seen.update((GPU_MEMORY, units.exact(gpu.memory)) for gpu in node.gpus if gpu.memory is not None)
        for limit in self.snapshot.limits:
            seen.update(caps(limit).items())
        scale: dict[str, int] = {GPUS: 1}
        for resource, amount in seen:
            scale[resource] = math.lcm(scale.get(resource, 1), amount.denominator)
        return scale

    def _whole(self, exact: dict[str, Fraction]) -> dict[str, int]:
        return {name: int(amount * self.scale[name]) for name, amount in exact.items()}

    # --- nodes -----------------------------------------------------------------------------------------------

    def _kind(self, number: int, node: Node, asked: frozenset[str], limits: tuple[int, ...]) -> NodeKind:
        there = {
            name: None if amount is None else int(amount * self.scale[name]) for name, amount in capacity(node).items()
        }
        cards: list[Card] = []
        for entry, gpu in enumerate(node.gpus):
            memory = None if gpu.memory is None else int(units.exact(gpu.memory) * self.scale[GPU_MEMORY])
            number_of = self._card_kinds.setdefault((gpu, node.cuda, node.cgroup), len(self._card_kinds))
            cards += [Card(entry, number_of, gpu, memory, node)] * gpu.count
        look = (_asked(node, asked), node.taints, node.cordoned, node.driver, node.cuda)
        return NodeKind(number, node, self._looks.setdefault(look, len(self._looks)), there, tuple(cards), limits)

    # --- jobs ------------------------------------------------------------------------------------------------

    def _gang(self, job: Job) -> Gang:
        found = [(path, group, self._shape(job, task), copies) for path, group, task, copies in leaves_of(job.groups)]
        milli = [1000 * shape.gpus * self.base(GPUS, shape.share) for _, _, shape, _ in found]
        counts = [group.count * copies for _, group, _, copies in found]
        total = sum((amount * count for amount, count in zip(milli, counts, strict=True)), Fraction(0))
        # a job's value is shared by GPU-milli; where no task has a GPU, by count
        parts = [amount / total if total else Fraction(1, sum(counts)) for amount in milli]
        leaves = {
            path: Leaf(len(self.leaves) + i, path, group, shape, copies, milli[i], parts[i])
            for i, (path, group, shape, copies) in enumerate(found)
        }
        self._first_leaf.append(len(self.leaves))
        self.leaves += leaves.values()
        return Gang(job, leaves, sum(counts))

    def _shape(self, job: Job, task: Task) -> Shape:
        taken = self._whole(amounts(task))
        share, memory = taken.pop(GPUS, 0), taken.pop(GPU_MEMORY, 0)
        demand = {name: amount for name, amount in taken.items() if amount}
        models = frozenset(task.gpu_models)
        mig = (plain_profile(task.mig_profile), task.gpu_memory) if task.mig_profile else task.mig_instance
        wishes = frozenset(task.isolation), task.gpu_memory_limit
        card_key = (share, memory, models, job.requires.compute_capability, mig, wishes) if task.gpus else None
        node_key = (tuple(task.node_selector.items()), task.tolerations, job.requires.driver, job.requires.cuda)
        key = (task.gpus, tuple(sorted(demand.items())), card_key, node_key, policy(task))
        if key not in self._known:
            shape = Shape(len(self.shapes), job, task, task.gpus, share, memory, demand, node_key, card_key)
            self._known[key] = shape
            self.shapes.append(shape)
        return self._known[key]


# --- what is alike -------------------------------------------------------------------------------------------

Entry = TypeVar("Entry", Node, Job)

_encode = msgspec.json.Encoder().encode
"""JSON tells 1 from 1.0 and "1", as equality does not, and costs a tenth of a hash of nested structures."""


def _asked(node: Node, asked: frozenset[str]) -> tuple[tuple[str, str], ...]:
    """Return a node's labels that some task names; most nodes have one of their own, which none does."""
    return tuple((label, node.labels[label]) for label in asked if label in node.labels) if asked else ()


def _node_key(node: Node, asked: frozenset[str], limits: tuple[int, ...]) -> Hashable:
    amounts = (node.cpu, node.memory, node.pods, node.extended, node.gpus, node.zones)
    marks = (node.taints, node.cordoned, node.driver, node.cuda, node.cgroup)
    return _encode((amounts, marks)), _asked(node, asked), limits


def _alike(entries: Sequence[Entry], keys: list[Hashable] | list[bytes]) -> tuple[list[Entry], Ints]:
    """Return the first entry of every key, and the number of each entry's key."""
    number = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    found = np.array([number[key] for key in keys], dtype=np.int64)
    _, first = np.unique(found, return_index=True)
    return [entries[place] for place in first.tolist()], found


class _Inside:
    """Looks up the limits whose domain a node is in."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._cluster: list[int] = []
        self._domains: dict[Hashable, list[int]] = defaultdict(list)
        for index, limit in enumerate(snapshot.limits):
            where = self._cluster if limit.level == "cluster" else self._domains[limit.level, limit.domain]
            where.append(index)

    def __call__(self, node: Node) -> tuple[int, ...]:
        """Return the indices of the limits, ascending."""
        if not self._domains:
            return tuple(self._cluster)
        inside = [i for domain in node.domains.items() for i in self._domains.get(domain, ())]
        return tuple(sorted({*self._cluster, *inside}))


def leaves_of(
    groups: tuple[TaskGroup, ...], above: str = "", copies: int = 1
) -> Iterator[tuple[str, TaskGroup, Task, int]]:
    """Yield the path, the group, its task and its number of copies, for every group of tasks below some groups."""
    for group in groups:
        path = f"{above}{group.name}"
        if group.task is not None:
            yield path, group, group.task, copies
        yield from leaves_of(group.groups, f"{path}/", copies * group.count)


def states(group: TaskGroup) -> bool:
    """Return whether a group says anything of where its tasks may lie."""
    return group.topology is not None and group.topology != Topology()


def _tied(groups: tuple[TaskGroup, ...]) -> bool:
    return any(states(group) or _tied(group.groups) for group in groups)


_last: Facts | None = None


def facts_of(snapshot: Snapshot) -> Facts:
    """Return the facts of a snapshot; those of the last one asked for are kept, for one plan asks several times."""
    global _last
    known = _last  # one read, so that threads cannot mix snapshots up
    if known is None or known.snapshot is not snapshot:
        _last = known = Facts(snapshot)
    return known
