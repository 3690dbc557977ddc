"""How much of each node is allocated, as kube-scheduler counts it."""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction

import numpy as np

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
            (instance.resources.index(name), *_scaled(amounts, instance, name))
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
            ((state.free[:, column][rows] - task.demand[column]) * unit + rest[kind], size[kind])
            for column, unit, rest, size in self._columns
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


def _scaled(sizes: list[Fraction], instance: Instance, name: str) -> tuple[int, Ints, Ints]:
    """Return a count of a resource, what of each size is no whole count, and the sizes, in a common small unit."""
    unit = instance.resource_units[instance.resources.index(name)]
    scale = math.lcm(unit.denominator, *(size.denominator for size in sizes))
    coarse = max(1, math.ceil(max(sizes) * scale * MOST / LARGEST))
    rest = [int((size - size // unit * unit) * scale) // coarse for size in sizes]
    whole = [int(size * scale) // coarse for size in sizes]
    return int(unit * scale) // coarse, np.array(rest, dtype=np.int64), np.array(whole, dtype=np.int64)
