"""How much of each node is allocated, as kube-scheduler counts it."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from placement import units
from placement.heuristics.nodes import Nodes
from placement.heuristics.rule import MOST, Rule
from placement.instance import Instance, Ints
from placement.snapshot import Node

LARGEST = 2**62
"""No product may be larger."""


class Allocated(Rule):
    """A rule that looks at the allocated share of CPU, memory and cards of a node, running work and the task included.

    Each is counted where the node has a limit of it, cards only for tasks that ask for some; weights are equal, and
    the mean is rounded down to a whole number as each share is. kube-scheduler adds a default request for tasks that
    ask for no CPU or no memory; here they ask for none. Shares of cards count as the fraction they are.
    """

    def __init__(self, nodes: Nodes, rng: np.random.Generator) -> None:
        super().__init__(nodes, rng)
        self.has_small_scores = True
        instance = nodes.instance
        sizes = _sizes(instance)
        self._columns = [
            _Amounts.of(amounts, instance, name)
            for name, amounts in (("cpu", [size[0] for size in sizes]), ("memory", [size[1] for size in sizes]))
            if name in instance.resources
        ]
        self._cards: Ints = np.array([size[2] for size in sizes], dtype=np.int64) * instance.card_units

    @classmethod
    def first_marks(cls, instance: Instance) -> Ints:
        """Return a number for what each node has in all: nodes with equal amounts free may be of different size."""
        number = {size: index for index, size in enumerate(_sizes(instance))}
        of_spec = np.array([number[_size(node)] for node in instance.snapshot.nodes], dtype=np.int64)
        return of_spec[instance.node_spec]

    @abstractmethod
    def share(self, free: Ints, size: Ints) -> Ints:
        """Return the score of one resource, from 0 to 100, by what is free after the task and by what there is."""

    def scores(self, shape: int, rows: Ints) -> Ints:
        """Return the mean of the scores of all resources."""
        state, task, kind = self.nodes.state, self.shapes[shape], self.nodes.marks[rows]
        total, counted = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
        parts = [
            (one.scaled(state.free[:, one.column][rows] - task.demand[one.column], kind), one.size[kind])
            for one in self._columns
        ]
        if task.gpus:
            parts.append((self.idle(rows).sum(axis=1) - self.asked_units(shape), self._cards[kind]))
        for free, size in parts:
            has = size > 0
            total[has] += self.share(np.maximum(free[has], 0), size[has])
            counted += has
        mean: Ints = total // np.maximum(counted, 1)
        return mean


def percent(part: Ints, size: Ints) -> Ints:
    """Return a part in hundredths of the whole, rounded down."""
    found: Ints = part * MOST // size
    return found


def _size(node: Node) -> tuple[Fraction, Fraction, int]:
    """Return the cores, the bytes and the healthy cards of a node; 0 where it has no limit."""
    cpu, memory = (Fraction(0) if amount is None else units.exact(amount) for amount in (node.cpu, node.memory))
    return cpu, memory, sum(gpu.count for gpu in node.gpus if gpu.health == "healthy")


def _sizes(instance: Instance) -> list[tuple[Fraction, Fraction, int]]:
    return list(dict.fromkeys(map(_size, instance.snapshot.nodes)))


@dataclass(frozen=True, slots=True)
class _Amounts:
    """Amounts of one resource in a common unit, so large that no product of the score is too large.

    Attributes
    ----------
    column : int
        Of the resource in what is free.
    size : int array
        What each size of node has in all.
    rest : array
        What of each size is no whole count, in parts of the unit.
    count : int
        What a count is in parts of the unit.
    parts : int
        Parts of the unit.
    """

    column: int
    size: Ints
    rest: npt.NDArray[Any]
    count: int
    parts: int

    @classmethod
    def of(cls, sizes: list[Fraction], instance: Instance, name: str) -> _Amounts:
        """Return the amounts of a resource, given all sizes of nodes."""
        column = instance.resources.index(name)
        unit = instance.resource_units[column]
        scale = math.lcm(unit.denominator, *(size.denominator for size in sizes))
        parts = max(1, math.ceil(max(sizes) * scale * MOST / LARGEST))
        whole = np.array([int(size * scale) // parts for size in sizes], dtype=np.int64)
        rest = np.array([int(size % unit * scale) for size in sizes], dtype=np.int64 if parts == 1 else object)
        return cls(column, whole, rest, int(unit * scale), parts)

    def scaled(self, counts: Ints, kind: Ints) -> Ints:
        """Return counts on nodes of some kinds in the common unit, rounded down."""
        if self.parts == 1:
            small: Ints = counts * self.count + self.rest[kind]
            return small
        # in parts they may be larger than an array holds, and a count may be less than the unit
        exact = counts.astype(object) * self.count + self.rest[kind]
        found: Ints = np.minimum(exact // self.parts, LARGEST).astype(np.int64)
        return found
