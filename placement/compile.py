"""Compiling: snapshot to instance. Classes are built here and nowhere else."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from placement import units
from placement.compile_jobs import Shapes, arrival_order, classify_jobs
from placement.index import expand, members
from placement.instance import GPU, CardKind, Instance, Ints, LimitRow, NodeClass
from placement.rules import CARD_FILTERS, DIMENSIONS, NodeFilter, node_filters
from placement.rules.resources import extended
from placement.scale import Amounts, Scale, amounts_of, choose_scale, counted, tasks_of, total_memory
from placement.snapshot import DomainLimit, Gpu, Node, Snapshot, Task, TaskGroup


@dataclass(slots=True)
class _Used:
    """What running tasks take of one node, in base units; cards by device index."""

    demand: dict[str, Fraction] = field(default_factory=lambda: defaultdict(Fraction))
    share: dict[int, Fraction] = field(default_factory=lambda: defaultdict(Fraction))
    memory: dict[int, Fraction] = field(default_factory=lambda: defaultdict(Fraction))


def compile(snapshot: Snapshot) -> Instance:  # noqa: A001 - the word of the field; imported as compile_snapshot
    """Return the instance of a valid snapshot whose every field is honoured.

    Parameters
    ----------
    snapshot : Snapshot
        Already validated; see `placement.snapshot.read.verified` and `placement.honoured.refuse_unhonoured`.
    """
    amounts = {id(task): amounts_of(task) for job in snapshot.jobs for task in tasks_of(job.groups)}
    node_spec, node_copy = expand([node.count for node in snapshot.nodes])
    used = _running(snapshot, amounts)
    scale = choose_scale(snapshot, amounts)
    kinds = _Kinds(scale, total_memory(snapshot, amounts, scale))
    total = _total_demand(snapshot, amounts, scale)
    filters = node_filters(snapshot)
    limits, limits_of_spec = _limits(snapshot, used, scale, total)
    classes, node_class, node_cards, keys = _classes(
        snapshot, node_spec, used, scale, total, kinds, filters, limits_of_spec
    )
    pending = [i for i, job in enumerate(snapshot.jobs) if job.running is None]
    pending_spec, job_copy = expand([snapshot.jobs[i].count for i in pending])
    job_spec = np.array(pending, dtype=np.int64)[pending_spec] if pending else pending_spec
    shapes = Shapes(scale, tuple(scale.resources), filters)
    job_classes, value_unit, job_class, exact_worth = classify_jobs(snapshot, job_spec, shapes, amounts)
    admits_node, admits_card = shapes.admissions(keys, kinds.keys)
    return Instance(
        snapshot=snapshot,
        resources=tuple(scale.resources),
        resource_units=tuple(scale.resources.values()),
        card_units=int(1 / scale.card),
        memory_unit=scale.memory,
        value_unit=value_unit,
        exact=scale.exact and exact_worth,
        node_spec=node_spec,
        node_copy=node_copy,
        node_class=node_class,
        node_cards=node_cards,
        job_spec=job_spec,
        job_copy=job_copy,
        job_class=job_class,
        arrival=arrival_order(snapshot, job_spec, job_copy),
        card_kinds=tuple(kinds.kinds),
        classes=classes,
        shapes=tuple(shapes.shapes),
        admits_node=admits_node,
        admits_card=admits_card,
        job_classes=job_classes,
        limits=limits,
    )


# --- nodes ---------------------------------------------------------------------------------------------------


def _cards(node: Node) -> list[Gpu]:
    return [gpu for gpu in node.gpus for _ in range(gpu.count)]


def _running(snapshot: Snapshot, amounts: dict[int, Amounts]) -> dict[str, _Used]:
    """Return what running work takes, by node name."""
    used: dict[str, _Used] = defaultdict(_Used)
    for job in snapshot.jobs:
        if job.running is None:
            continue
        tasks = dict(_paths(job.groups))
        for place in job.running.tasks:
            amount = amounts[id(tasks[place.group])]
            node = used[place.node]
            for name, value in amount.demand.items():
                node.demand[name] += value
            for index in place.gpus:
                node.share[index] += amount.share
                node.memory[index] += amount.memory
    return used


def _paths(groups: Iterable[TaskGroup], above: str = "") -> Iterable[tuple[str, Task]]:
    for group in groups:
        path = f"{above}{group.name}"
        if group.task is not None:
            yield path, group.task
        yield from _paths(group.groups, f"{path}/")


class _Kinds:
    """Card kinds by what card filters and capacity see of them."""

    def __init__(self, scale: Scale, unlimited_memory: int) -> None:
        self.scale = scale
        self.unlimited = unlimited_memory
        self.kinds: list[CardKind] = []
        self.keys: list[tuple[Hashable, ...]] = []
        self._index: dict[Hashable, int] = {}

    def index(self, gpu: Gpu) -> int:
        memory = self.unlimited
        if gpu.memory is not None:
            memory = min(memory, math.floor(units.exact(gpu.memory) / self.scale.memory))
        keys = tuple(rule.card_key(gpu) for rule in CARD_FILTERS)
        index = self._index.setdefault((keys, memory), len(self.kinds))
        if index == len(self.kinds):
            self.kinds.append(CardKind(gpu.model, memory, gpu.health == "healthy"))
            self.keys.append(keys)
        return index


def _free_cards(node: Node, used: _Used | None, kinds: _Kinds, scale: Scale) -> list[tuple[int, int, int]]:
    """Return (kind, free units, free memory) by device index."""
    cards = []
    for index, gpu in enumerate(_cards(node)):
        kind = kinds.index(gpu)
        share = used.share.get(index, Fraction(0)) if used else Fraction(0)
        memory = used.memory.get(index, Fraction(0)) if used else Fraction(0)
        free_memory = kinds.unlimited
        if gpu.memory is not None:
            free_memory = min(free_memory, math.floor((units.exact(gpu.memory) - memory) / scale.memory))
        cards.append((kind, max(0, math.floor((1 - share) / scale.card)), max(0, free_memory)))
    return cards


def _free(node: Node, used: _Used | None, scale: Scale, total: dict[str, int]) -> tuple[int, ...]:
    capacity: dict[str, Fraction | None] = {}
    for dimension in DIMENSIONS:
        capacity.update(dimension.capacity(node))
    free = []
    for name, unit in scale.resources.items():
        have = capacity.get(name, Fraction(0))
        taken = used.demand.get(name, Fraction(0)) if used else Fraction(0)
        free.append(total[name] if have is None else max(0, math.floor((have - taken) / unit)))
    return tuple(free)


def _total_demand(snapshot: Snapshot, amounts: dict[int, Amounts], scale: Scale) -> dict[str, int]:
    """Return what stands for "no limit" of each resource and of card units (``"gpus"``): more than all tasks ask for.

    One more task of each kind is counted than is wanted: fragmentation asks what would fit on top of a plan.
    """
    total: dict[str, int] = defaultdict(int)
    for job in snapshot.jobs:
        for task, count in counted(job.groups, job.count):
            amount = amounts[id(task)]
            for name, value in amount.demand.items():
                total[name] += math.ceil(value / scale.resources[name]) * (count + 1)
            total["gpus"] += math.ceil(amount.share / scale.card) * task.gpus * (count + 1)
    return total


def _classes(
    snapshot: Snapshot,
    node_spec: Ints,
    used: dict[str, _Used],
    scale: Scale,
    total: dict[str, int],
    kinds: _Kinds,
    filters: Sequence[NodeFilter],
    limits_of_spec: list[tuple[int, ...]],
) -> tuple[tuple[NodeClass, ...], Ints, dict[int, tuple[int, ...]], list[tuple[Hashable, ...]]]:
    """Group the nodes; the last item holds each class's filter keys."""
    found: dict[Hashable, int] = {}
    keys: list[tuple[Hashable, ...]] = []
    parts: list[tuple[tuple[int, ...], tuple[tuple[int, int, int], ...], bool, tuple[int, ...]]] = []
    node_class = np.zeros(len(node_spec), dtype=np.int64)
    node_cards: dict[int, tuple[int, ...]] = {}
    first = 0
    for spec, node in enumerate(snapshot.nodes):
        keys_of_node = tuple(rule.node_key(node) for rule in filters)
        names = [node.name] if node.count == 1 else [f"{node.name}-{copy}" for copy in range(node.count)]
        whole: tuple[int, tuple[int, ...]] | None = None
        for offset, name in enumerate(names):
            busy = used.get(name)
            if busy is None and whole is not None:
                index, order = whole
            else:
                cards = _free_cards(node, busy, kinds, scale)
                order = tuple(sorted(range(len(cards)), key=lambda i, cards=cards: (cards[i], i)))  # type: ignore[misc]
                part = (
                    _free(node, busy, scale, total),
                    tuple(cards[i] for i in order),
                    busy is not None,
                    limits_of_spec[spec],
                )
                index = found.setdefault((keys_of_node, part), len(parts))
                if index == len(parts):
                    parts.append(part)
                    keys.append(keys_of_node)
                if busy is None:
                    whole = (index, order)
            node_class[first + offset] = index
            if order != tuple(range(len(order))):
                node_cards[first + offset] = order
        first += node.count
    groups = members(node_class, len(parts))
    classes = tuple(NodeClass(nodes, *part) for nodes, part in zip(groups, parts, strict=True))
    return classes, node_class, node_cards, keys


def _limits(
    snapshot: Snapshot, used: dict[str, _Used], scale: Scale, total: dict[str, int]
) -> tuple[tuple[LimitRow, ...], list[tuple[int, ...]]]:
    """Return the limit rows, with running work taken off, and the rows of each node entry."""
    rows: list[LimitRow] = []
    of_spec: list[list[int]] = [[] for _ in snapshot.nodes]
    resources = list(scale.resources)
    for number, limit in enumerate(snapshot.limits):
        inside = [i for i, node in enumerate(snapshot.nodes) if _inside(node, limit)]
        for name, cap in _caps(limit):
            if name != "gpus" and name not in scale.resources:
                continue  # nothing asks for it
            taken = Fraction(0)
            for i in inside:
                node = snapshot.nodes[i]
                names = [node.name] if node.count == 1 else [f"{node.name}-{copy}" for copy in range(node.count)]
                for busy in (used[n] for n in names if n in used):
                    taken += (
                        sum(busy.share.values(), Fraction(0)) if name == "gpus" else busy.demand.get(name, Fraction(0))
                    )
            unit = scale.card if name == "gpus" else scale.resources[name]
            row = LimitRow(
                path=f"limits[{number}]",
                level=limit.level,
                domain=limit.domain,
                resource=GPU if name == "gpus" else resources.index(name),
                capacity=min(total[name], max(0, math.floor((cap - taken) / unit))),
            )
            for i in inside:
                of_spec[i].append(len(rows))
            rows.append(row)
    return tuple(rows), [tuple(indices) for indices in of_spec]


def _inside(node: Node, limit: DomainLimit) -> bool:
    return limit.level == "cluster" or node.position.get(limit.level) == limit.domain


def _caps(limit: DomainLimit) -> Iterable[tuple[str, Fraction]]:
    for name, quantity in (("gpus", limit.gpus), ("cpu", limit.cpu), ("memory", limit.memory)):
        if quantity is not None:
            yield name, units.exact(quantity)
    for resource, quantity in limit.extended.items():
        yield extended(resource), units.exact(quantity)
