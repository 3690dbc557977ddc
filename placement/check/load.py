"""What running work and a plan's tasks take of every node and card they touch, side by side."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from placement.check.facts import GPUS, Card, Facts, JobFact, Leaf, NodeFact, Shape


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the plan's tasks of which every name is known.

    Attributes
    ----------
    number : int
        Row in the plan.
    name : str
        Of the job.
    job : JobFact
    copy : int
        Number of the job within its entry.
    leaf : Leaf
    index : int
        Number of the task within the leaf.
    node : NodeFact
    node_name : str
    gpus : tuple of int
        Distinct devices that the node has.
    """

    number: int
    name: str
    job: JobFact
    copy: int
    leaf: Leaf
    index: int
    node: NodeFact
    node_name: str
    gpus: tuple[int, ...]


def _amounts() -> defaultdict[str, int]:
    return defaultdict(int)


def _by_device() -> defaultdict[int, int]:
    return defaultdict(int)


@dataclass(slots=True)
class Taken:
    """What a set of tasks takes of one node: resources by name, shares and memory by device."""

    demand: defaultdict[str, int] = field(default_factory=_amounts)
    share: defaultdict[int, int] = field(default_factory=_by_device)
    memory: defaultdict[int, int] = field(default_factory=_by_device)

    def add(self, shape: Shape, gpus: Iterable[int]) -> None:
        """Add one task."""
        for resource, amount in shape.demand.items():
            self.demand[resource] += amount
        for device in gpus:
            self.share[device] += shape.share
            self.memory[device] += shape.memory


@dataclass(slots=True)
class NodeLoad:
    """A node that something runs on."""

    name: str
    fact: NodeFact
    running: Taken = field(default_factory=Taken)
    new: Taken = field(default_factory=Taken)

    def share(self, device: int) -> int:
        """Return the shares taken of a card."""
        return self.running.share.get(device, 0) + self.new.share.get(device, 0)

    def memory(self, device: int) -> int:
        """Return the device memory taken of a card."""
        return self.running.memory.get(device, 0) + self.new.memory.get(device, 0)

    def demand(self, resource: str) -> int:
        """Return how much is taken of a resource."""
        return self.running.demand.get(resource, 0) + self.new.demand.get(resource, 0)

    def room(self) -> dict[str, float]:
        """Return what is left of the resources that are there, at least 0; infinity where there is no limit."""
        return {
            resource: math.inf if capacity is None else max(0, capacity - self.demand(resource))
            for resource, capacity in self.fact.capacity.items()
        }

    def where(self, device: int) -> str:
        """Return the path of a card's entry in the snapshot."""
        return f"nodes[{self.fact.spec}].gpus[{self.card(device).entry}]"

    def card(self, device: int) -> Card:
        """Return a card by its device index."""
        return self.fact.cards[device]


class Load:
    """Everything that is taken under a plan.

    Attributes
    ----------
    nodes : dict of str to NodeLoad
        The nodes with any task, by name.
    running, new : list of dict of str to int
        What running work and new tasks take in the domain of each of the snapshot's limits, by resource.
    """

    def __init__(self, facts: Facts, rows: Iterable[Row] = ()) -> None:
        self.facts = facts
        self.nodes: dict[str, NodeLoad] = {}
        self.running = [_amounts() for _ in facts.caps]
        self.new = [_amounts() for _ in facts.caps]
        for job in facts.jobs:
            if job.job.running is None:
                continue
            for place in job.job.running.tasks:
                shape = job.leaves[place.group].shape
                node = self._node(place.node)
                node.running.add(shape, place.gpus)
                self._count(self.running, node.fact, shape, len(place.gpus))
        for row in rows:
            node = self._node(row.node_name)
            node.new.add(row.leaf.shape, row.gpus)
            self._count(self.new, node.fact, row.leaf.shape, len(row.gpus))

    def _node(self, name: str) -> NodeLoad:
        if name not in self.nodes:
            found = self.facts.node_names.find(name)
            if found is None:
                raise KeyError(name)
            self.nodes[name] = NodeLoad(name, self.facts.nodes[found[0]])
        return self.nodes[name]

    @staticmethod
    def _count(totals: list[defaultdict[str, int]], node: NodeFact, shape: Shape, gpus: int) -> None:
        for limit in node.limits:
            for resource, amount in shape.demand.items():
                totals[limit][resource] += amount
            totals[limit][GPUS] += shape.share * gpus
