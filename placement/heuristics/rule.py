"""What a greedy rule is: a score for every node that has room, and a choice of cards."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from placement import units
from placement.heuristics.domain_order import BEST_FIT, DomainOrder
from placement.heuristics.nodes import Nodes
from placement.heuristics.ranking import Ranking
from placement.instance import Bools, Instance, Ints

Floats = npt.NDArray[np.float64]

MOST = 100
"""Largest score, as in kube-scheduler. Scores are whole numbers, so equal nodes tie on every machine."""

LIMIT = 2.0**60
"""Scores beyond this are cut."""


class Finder(Protocol):
    """What knows which node is best for the task at hand."""

    def find(self, shape: int, within: Bools | None) -> int:
        """Return the row of the node for one task, among some if `within` is given; -1 where it fits nowhere."""
        ...

    def undone(self, rows: Ints) -> None:
        """Take into account that tasks on some rows, perhaps named twice, were taken back."""
        ...

    def commit(self) -> None:
        """Take what was placed so far as final."""
        ...


class Rule(ABC):
    """One run of a greedy rule on the nodes of a cluster.

    A rule in a file of its own says in its docstring where it comes from. What it thinks of a node depends on the task
    and on what is free on that node, on nothing else. Amounts are normalised by the largest node of the cluster:
    `most_cpu` cores and `most_units` card units.
    """

    name: ClassVar[str]
    domains: ClassVar[DomainOrder] = BEST_FIT
    """In which order to try the domains that could hold tasks tied together."""
    marks_add: ClassVar[bool] = False
    """Whether `marks` of the tasks on a node are added up; else they are bits, and it is known which are there."""

    def __init__(self, nodes: Nodes, rng: np.random.Generator) -> None:
        self.nodes = nodes
        self.rng = rng
        instance = nodes.instance
        self.shapes = instance.shapes
        self.card_units = instance.card_units
        self.healthy = np.array([kind.healthy for kind in instance.card_kinds] + [False], dtype=np.bool_)
        self._any_unhealthy = not self.healthy[:-1].all()
        self.most_units = max(1, nodes.state.units.shape[1]) * instance.card_units
        cores = {node.cpu for node in instance.snapshot.nodes}
        unlimited = None in cores
        self.most_cpu = max((float(units.exact(cpu)) for cpu in cores if cpu is not None), default=0.0)
        self._cpu = instance.resources.index("cpu") if "cpu" in instance.resources else -1
        self._core = float(instance.resource_units[self._cpu]) if self._cpu >= 0 else 0.0
        asked = max((self.cpu_asked(shape) for shape in range(len(self.shapes))), default=0.0)
        self.has_small_scores = not (unlimited and asked > 1.0) and nodes.state.units.shape[1] <= MOST
        """Whether all scores lie between -100 and 100: a task that fits takes a fraction of the largest node, unless
        it takes more on a node without limit."""

    def domain_order(self) -> DomainOrder:
        """Return the order of domains in this run, for a rule whose order looks at more than the domains' room."""
        return self.domains

    @abstractmethod
    def scores(self, shape: int, rows: Ints) -> Ints:
        """Return how good it is to place one task on the node of each row; the largest is taken.

        Parameters
        ----------
        shape : int
        rows : int array
            Rows with room for the task, perhaps some of them twice.
        """

    def finder(self) -> Finder:
        """Return what finds the node for a task: of those with the best score the first in the fixed order."""
        return Ranking(self)

    def cards(self, shape: int, row: int) -> tuple[int, ...]:
        """Return the cards for a task on a node that has room: those with least room left."""
        cards = self.nodes.state.tightest(shape, row)
        assert cards is not None
        return cards

    def marks(self, shape: int) -> int:
        """Return what a task leaves on its node, bits or a number; rules that look at it override this."""
        return 0

    @classmethod
    def first_marks(cls, instance: Instance) -> Ints | None:
        """Return what running work has left on each node, or None for nothing."""
        return None

    def whole_scores(self, score: Floats) -> Ints:
        """Return scores cut to whole numbers; one that is no number, or beyond all bounds, is the worst or the best."""
        if self.has_small_scores:
            return score.astype(np.int64)
        return np.clip(np.nan_to_num(score, nan=-LIMIT), -LIMIT, LIMIT).astype(np.int64)

    # --- what several rules look at ------------------------------------------------------------------------------

    def idle(self, rows: Ints) -> Ints:
        """Return the free units on the healthy cards of a node of each row."""
        state = self.nodes.state
        idle: Ints = state.units.T.take(rows, axis=1).T
        if self._any_unhealthy:
            idle *= self.healthy[state.kind[rows]]
        return idle

    def asked_units(self, shape: int) -> int:
        """Return the card units that a task takes in all."""
        return self.shapes[shape].of_cards

    def gpu_free(self, rows: Ints) -> Floats:
        """Return the free card units as a fraction of the largest node."""
        free: Floats = self.idle(rows).sum(axis=1) / self.most_units
        return free

    def cpu_free(self, rows: Ints) -> Floats:
        """Return the free CPU as a fraction of the largest node; at most 1 where CPU has no limit."""
        if self._cpu < 0 or not self.most_cpu:
            return np.zeros(len(rows))
        free: Floats = np.minimum(self.nodes.state.free[:, self._cpu][rows] * self._core / self.most_cpu, 1.0)
        return free

    def cpu_asked(self, shape: int) -> float:
        """Return the CPU that a task asks for as a fraction of the largest node."""
        if self._cpu < 0 or not self.most_cpu:
            return 0.0
        return self.shapes[shape].demand[self._cpu] * self._core / self.most_cpu
