"""What nodes without any work could take, task by task, where caps on domains do not matter, and all together."""

from __future__ import annotations

import numpy as np

from placement.check.case.case import Placed
from placement.check.exact import Bools
from placement.check.facts.facts import Facts
from placement.check.facts.kinds import Gang, NodeKind, Shape
from placement.check.loads.capacity import amount
from placement.check.waiting.most import Most
from placement.check.waiting.room import Rooms
from placement.snapshot import TaskGroup

FEW = 16
"""Kinds of nodes that are looked at together at first."""


class Possible:
    """Which shapes and jobs nodes without any work could take."""

    def __init__(self, placed: Placed) -> None:
        self._placed = placed
        facts = placed.facts
        self._rooms = Rooms(facts, np.arange(len(facts.kinds), dtype=np.int64))
        self._known: dict[int, bool] = {}
        self._most = Most(placed, self._zoned)

    def enough(self, gang: Gang) -> bool:
        """Return whether no count of the tasks that empty domains hold shows that a job can never run."""
        return self._most.enough(gang)

    def _zoned(self, shape: Shape, kind: NodeKind) -> bool:
        return zones_hold(self._placed, shape, kind)

    def gangs(self) -> Bools:
        """Return whether nodes without work could take tasks enough for a job to run, gang by gang."""
        return np.array([self.gang(gang) for gang in self._placed.facts.gangs], dtype=np.bool_)

    def gang(self, gang: Gang) -> bool:
        """Return whether nodes without work could take tasks enough for a job to run."""
        return all(self._group(gang, group, group.name) for group in gang.job.groups)

    def _group(self, gang: Gang, group: TaskGroup, path: str) -> bool:
        if group.task is not None:
            return self.shape(gang.leaves[path].shape)
        able = sum(self._group(gang, child, f"{path}/{child.name}") for child in group.groups)
        return able >= (len(group.groups) if group.min_groups is None else group.min_groups)

    def shape(self, shape: Shape) -> bool:
        """Return whether some node without work could take one task of a shape."""
        if shape.number not in self._known:
            self._known[shape.number] = self._find(shape)
        return self._known[shape.number]

    def _find(self, shape: Shape) -> bool:
        """Look at a few kinds of nodes first, for most tasks fit somewhere, and then at ever more."""
        kinds, first, number = self._placed.facts.kinds, 0, FEW
        while first < len(kinds):
            piece = np.arange(first, min(first + number, len(kinds)), dtype=np.int64)
            able = self._placed.filters.admits_nodes(shape, piece) & self._rooms.hold(shape, piece)
            if any(self._cards(shape, kinds[kind]) for kind in piece[able].tolist()):
                return True
            first, number = first + number, number * FEW
        return False

    def _cards(self, shape: Shape, kind: NodeKind) -> bool:
        """Return whether a node has cards enough for one task, and zones that hold it where it is bound to some."""
        return self._enough(shape, kind) and zones_hold(self._placed, shape, kind)

    def _enough(self, shape: Shape, kind: NodeKind) -> bool:
        if not shape.gpus or len(kind.cards) < shape.gpus:
            return not shape.gpus
        return int(self._placed.filters.usable(shape, kind).sum()) >= shape.gpus

    # --- why not ---------------------------------------------------------------------------------------------

    def unzoned(self, gang: Gang) -> str:
        """Return how NUMA zones alone keep a task of jobs off every node, which takes it otherwise; empty if none."""
        for leaf in gang.leaves.values():
            if leaf.shape.policy and not self.shape(leaf.shape):
                kinds = self._but_for_zones(leaf.shape)
                if kinds:
                    return f"numa: {leaf.path} {self._figures(leaf.shape, kinds)}"
        return ""

    def _but_for_zones(self, shape: Shape) -> list[NodeKind]:
        """Return the kinds of nodes that could take a task of a shape if it were not bound."""
        kinds = self._placed.facts.kinds
        every = np.arange(len(kinds), dtype=np.int64)
        able = self._placed.filters.admits_nodes(shape, every) & self._rooms.hold(shape, every)
        return [kinds[kind] for kind in every[able].tolist() if self._enough(shape, kinds[kind])]

    def _figures(self, shape: Shape, kinds: list[NodeKind]) -> str:
        """Return what a task asks of one zone and the most that one has."""
        facts, filters = self._placed.facts, self._placed.filters
        lacking: list[dict[str, tuple[int, int]]] = []
        for kind in kinds:
            zoning = facts.zonings[kind.number]
            if zoning is not None:
                lacking.append(zoning.largest(shape, filters.usable(shape, kind).tolist()))
        if not lacking:
            return f"is {shape.policy}, and no node that could take it lists NUMA zones"
        # a resource that one zone of some node has enough of is not what keeps it off
        for name in lacking[0]:
            if all(name in lack for lack in lacking):
                asked, most = lacking[0][name][0], max(lack[name][1] for lack in lacking)
                has = f"the largest zone of the cluster has {_amount(facts, name, most)}"
                return f"asks for {_amount(facts, name, asked)}{_of(name)} in one NUMA zone; {has}"
        return "asks for more in one NUMA zone than any zone of the cluster has at once"


def zones_hold(placed: Placed, shape: Shape, kind: NodeKind) -> bool:
    """Return whether zones of a node without work hold one task, where it is bound to some."""
    if not shape.policy:
        return True
    zoning = placed.facts.zonings[kind.number]
    if zoning is None:
        return False
    fewest = zoning.fewest(shape, placed.filters.usable(shape, kind).tolist())
    return fewest is not None and (fewest == 1 or shape.policy == "restricted")


def _of(name: str) -> str:
    return {"cpu": " cores", "memory": " of memory", "nics": " NICs"}.get(name, f" {name}")


def _amount(facts: Facts, name: str, number: int) -> str:
    return str(number) if name == "cards" else amount(facts, name, number)
