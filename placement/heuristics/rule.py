"""What a greedy rule is: a score for every kind of node that has room, and a choice of cards."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from placement import units
from placement.heuristics.pool import Pool
from placement.instance import Instance, Ints

Floats = npt.NDArray[np.float64]

MOST = 100
"""Largest score, as in kube-scheduler. Scores are whole numbers, so equal nodes tie on every machine."""

LIMIT = 2.0**60
"""Scores beyond this are cut."""


def whole_scores(score: Floats) -> Ints:
    """Return scores cut to whole numbers; one that is no number, or beyond all bounds, is the worst or the best."""
    return np.clip(np.nan_to_num(score, nan=-LIMIT), -LIMIT, LIMIT).astype(np.int64)


class Rule(ABC):
    """One run of a greedy rule on a pool of nodes.

    A rule in a file of its own says in its docstring where it comes from. Amounts are normalised by the largest node
    of the cluster: `most_cpu` cores and `most_units` card units.
    """

    name: ClassVar[str]
    draws_cards: ClassVar[bool] = False
    """Whether `cards` may answer differently for equal nodes."""

    def __init__(self, pool: Pool, rng: np.random.Generator) -> None:
        self.pool = pool
        self.rng = rng
        instance = pool.instance
        self.shapes = instance.shapes
        self.card_units = instance.card_units
        self.healthy = np.array([kind.healthy for kind in instance.card_kinds] + [False], dtype=np.bool_)
        self.most_units = max(1, pool.state.units.shape[1]) * instance.card_units
        cores = [float(units.exact(node.cpu)) for node in instance.snapshot.nodes if node.cpu is not None]
        self.most_cpu = max(cores, default=0.0)
        self._cpu = instance.resources.index("cpu") if "cpu" in instance.resources else -1
        self._core = float(instance.resource_units[self._cpu]) if self._cpu >= 0 else 0.0

    @abstractmethod
    def scores(self, shape: int, slots: Ints) -> Ints:
        """Return how good it is to place one task on a node of each slot; the largest is taken.

        Parameters
        ----------
        shape : int
        slots : int array
            Slots with room for the task.
        """

    def cards(self, shape: int, node: int) -> tuple[int, ...]:
        """Return the cards for a task on a node that has room: those with least room left."""
        cards = self.pool.state.tightest(shape, int(self.pool.slot_of[node]))
        assert cards is not None
        return cards

    def choose(self, candidates: Ints, score: Ints) -> int:
        """Return the node for a task: of the slots with the best score, the node first in the fixed order.

        Parameters
        ----------
        candidates : int array
            Slots with room.
        score : int array
            Their scores.
        """
        tied = candidates[score == score.max()]
        return self.pool.first_node(int(tied[self.pool.first[tied].argmin()]))

    def marks(self, shape: int) -> int:
        """Return the bits that a task leaves on its node; rules that look at them override this."""
        return 0

    @classmethod
    def first_marks(cls, instance: Instance) -> Ints | None:
        """Return the bits that running work has left on each node, or None for none."""
        return None

    # --- what several rules look at ------------------------------------------------------------------------------

    def idle(self, slots: Ints) -> Ints:
        """Return the free units on the healthy cards of a node of each slot."""
        state = self.pool.state
        idle: Ints = np.where(self.healthy[state.kind[slots]], state.units[slots], 0)
        return idle

    def asked_units(self, shape: int) -> int:
        """Return the card units that a task takes in all."""
        return self.shapes[shape].gpus * self.shapes[shape].units

    def gpu_free(self, slots: Ints) -> Floats:
        """Return the free card units as a fraction of the largest node."""
        free: Floats = self.idle(slots).sum(axis=1) / self.most_units
        return free

    def cpu_free(self, slots: Ints) -> Floats:
        """Return the free CPU as a fraction of the largest node; at most 1 where CPU has no limit."""
        if self._cpu < 0 or not self.most_cpu:
            return np.zeros(len(slots))
        free: Floats = np.minimum(self.pool.state.free[slots, self._cpu] * self._core / self.most_cpu, 1.0)
        return free

    def cpu_asked(self, shape: int) -> float:
        """Return the CPU that a task asks for as a fraction of the largest node."""
        if self._cpu < 0 or not self.most_cpu:
            return 0.0
        return self.shapes[shape].demand[self._cpu] * self._core / self.most_cpu
