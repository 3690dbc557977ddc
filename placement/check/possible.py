"""What nodes without any work could take; caps on domains do not matter."""

from __future__ import annotations

import numpy as np

from placement.check.case import Placed
from placement.check.exact import Bools
from placement.check.kinds import Gang, NodeKind, Shape
from placement.check.room import Rooms
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
        """Return whether a node has cards enough for one task."""
        if len(kind.cards) < shape.gpus:
            return False
        if not shape.gpus:
            return True
        fits = np.array([card.memory is None or shape.memory <= card.memory for card in kind.cards], dtype=np.bool_)
        first = self._placed.facts.first_card[kind.number]
        fits &= self._placed.filters.admits_cards(shape, first + np.arange(len(kind.cards)))
        return int(fits.sum()) >= shape.gpus
