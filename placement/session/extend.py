"""One kind of job more in an instance that is there already, without compiling all nodes and jobs again.

The job is compiled with one node of each sort alone, and what comes of it is put into the units of the instance. Where
these are too coarse for it, or where it changes what is known of nodes and cards, the whole has to be compiled anew:
NUMA zones, MIG cards, tenants, limits of domains and of tasks on a card are of that sort.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

import msgspec
import numpy as np

from placement.compile import MANY
from placement.compile import compile as compile_snapshot
from placement.compile.cards import NodeKinds
from placement.gang import Branch, Leaf, leaves
from placement.heuristics.fastest_fit import ranks
from placement.instance import Instance, Ints, Shape
from placement.rules import node_filters
from placement.scale import counted
from placement.snapshot import Job

MUCH = 2**10
"""A job that asks for so many times as much of something as any before it is compiled with all."""


class Extender:
    """Adds kinds of jobs to an instance.

    Parameters
    ----------
    instance : Instance
        Of nodes on which nothing runs, one entry each.
    """

    def __init__(self, instance: Instance) -> None:
        self._nodes = instance.snapshot.nodes
        self._class = instance.node_class
        self._sorts: dict[frozenset[tuple[str, str]], list[int]] = {}
        self._kind_of_node: Ints | None = None
        self._is_ranked = bool(ranks(instance).any())
        self._is_plain = not (
            instance.slots is not None
            or instance.zone_sets
            or instance.limits
            or instance.apart is not None
            or instance.rounded
            or instance.crowded
            or any(kind.clients is not None for kind in instance.card_kinds)
        )

    def add(self, instance: Instance, job: Job) -> Instance | None:
        """Return an instance with one job more, the last; None where all has to be compiled anew."""
        if not self._is_plain or not instance.shapes:
            return None
        sorts = self._sorts_for(job)
        nodes = tuple(self._nodes[node] for node in sorts)
        alone = compile_snapshot(msgspec.structs.replace(instance.snapshot, nodes=nodes, jobs=(job,)), MANY)
        if alone.slots is not None or alone.zone_sets or alone.apart is not None or alone.rounded or alone.crowded:
            return None
        kinds = [(one.model, one.healthy, one.slowdown) for one in alone.card_kinds]
        if kinds != [(one.model, one.healthy, one.slowdown) for one in instance.card_kinds]:
            return None
        admits = _by_class(alone, self._class[sorts], len(instance.classes))
        shapes = _rescaled(alone, instance)
        self._is_ranked = self._is_ranked or bool(ranks(alone).any())
        if self._is_ranked and shapes is not None and not set(shapes).isdisjoint(instance.shapes):
            # tasks that no node can tell apart are one shape where all is compiled, and have one mean of their speeds
            return None
        return None if admits is None or shapes is None else _joined(instance, alone, shapes, admits, job)

    def _sorts_for(self, job: Job) -> list[int]:
        """Return a node of each sort, as far as such a job can tell nodes apart."""
        tasks = [task for task, _ in counted(job.groups)]
        asked = frozenset(item for task in tasks for item in task.node_selector.items())
        if asked not in self._sorts:
            if self._kind_of_node is None:
                self._kind_of_node = NodeKinds(self._nodes).of_spec
            filters = node_filters(tasks)
            first: dict[object, int] = {}
            for node, (spec, kind, number) in enumerate(
                zip(self._nodes, self._kind_of_node.tolist(), self._class.tolist(), strict=True)
            ):
                first.setdefault((number, kind, *(rule.node_key(spec) for rule in filters)), node)
            self._sorts[asked] = list(first.values())
        return self._sorts[asked]


def _by_class(alone: Instance, classes: Ints, count: int) -> list[list[bool]] | None:
    """Return which node classes admit each shape; None where nodes of one class differ in that."""
    found = []
    for row in alone.admits_node[:, alone.node_class].tolist():
        admits: dict[int, bool] = {}
        for number, one in zip(classes.tolist(), row, strict=True):
            if admits.setdefault(number, one) is not one:
                return None
        found.append([admits[number] for number in range(count)])
    return found


def _rescaled(alone: Instance, instance: Instance) -> list[Shape] | None:
    """Return the shapes of a job in the units of an instance; None where these are too coarse, or far too fine."""
    known = dict(zip(instance.resources, instance.resource_units, strict=True))
    times: dict[str, int] = {}
    for name, unit in zip(alone.resources, alone.resource_units, strict=True):
        if name not in known or (unit / known[name]).denominator != 1:
            if any(shape.demand[alone.resources.index(name)] for shape in alone.shapes):
                return None
            continue
        times[name] = int(unit / known[name])
    memory: Fraction = alone.memory_unit / instance.memory_unit
    by_memory = any(shape.memory for shape in alone.shapes)
    if instance.card_units % alone.card_units or (by_memory and memory.denominator != 1):
        return None
    found = []
    for shape in alone.shapes:
        demand = dict(zip(alone.resources, shape.demand, strict=True))
        found.append(
            replace(
                shape,
                units=shape.units * (instance.card_units // alone.card_units),
                memory=shape.memory * int(memory) if by_memory else 0,
                demand=tuple(demand.get(name, 0) * times.get(name, 0) for name in instance.resources),
            )
        )
    most = [max(column) for column in zip(*(_amounts(shape) for shape in instance.shapes), strict=True)]
    if any(one > MUCH * least for shape in found for one, least in zip(_amounts(shape), most, strict=True)):
        return None
    return found


def _amounts(shape: Shape) -> Iterator[int]:
    yield shape.memory
    yield from shape.demand


def _joined(
    instance: Instance, alone: Instance, shapes: Sequence[Shape], admits: Sequence[Sequence[bool]], job: Job
) -> Instance:
    """Return an instance with the one job of another."""
    number = [len(instance.shapes) + index for index in range(len(shapes))]
    one = alone.job_classes[0]
    root = _renumbered(one.root, number)
    assert isinstance(root, Branch)
    job_class = replace(one, jobs=np.array([instance.jobs]), root=root, leaves=tuple(leaves(root)))
    snapshot = msgspec.structs.replace(instance.snapshot, jobs=(*instance.snapshot.jobs, job))
    rows = len(shapes)
    return replace(
        instance,
        snapshot=snapshot,
        job_spec=np.append(instance.job_spec, instance.jobs),
        job_copy=np.append(instance.job_copy, 0),
        job_class=np.append(instance.job_class, len(instance.job_classes)),
        arrival=np.append(instance.arrival, instance.jobs),
        shapes=(*instance.shapes, *shapes),
        admits_node=np.concatenate([instance.admits_node, np.array(admits, dtype=np.bool_).reshape(rows, -1)]),
        admits_card=np.concatenate([instance.admits_card, alone.admits_card]),
        bound=np.concatenate([instance.bound, np.zeros((rows, len(instance.classes)), dtype=instance.bound.dtype)]),
        job_classes=(*instance.job_classes, job_class),
    )


def _renumbered(group: Branch | Leaf, number: Sequence[int]) -> Branch | Leaf:
    if isinstance(group, Leaf):
        return replace(group, shape=number[group.shape])
    return replace(group, children=tuple(_renumbered(child, number) for child in group.children))
