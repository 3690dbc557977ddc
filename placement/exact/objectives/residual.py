"""What nodes are left like: the objectives that are sums over nodes of what each node's residual is worth.

Moving a task changes two terms of such a sum and no count of started tasks, so value and tasks stay as they are.
All amounts are whole numbers; less is better.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placement.evaluate import demand
from placement.instance import Bools, Instance, Ints
from placement.state import State

RESIDUAL = ("nodes", "whole_nodes", "fragmentation")
"""The objectives of this kind."""


@dataclass(frozen=True, slots=True)
class Nodes:
    """What some nodes have left, as rows; see `State`.

    Attributes
    ----------
    node_class : int array (n,)
    free : int array (n, R)
    units, memory, kind : int arrays (n, C)
    placed : int array (n,)
        New tasks on each.
    """

    node_class: Ints
    free: Ints
    units: Ints
    memory: Ints
    kind: Ints
    placed: Ints

    @classmethod
    def of(cls, state: State, nodes: Ints, placed: Ints) -> Nodes:
        """Return copies of the rows of some nodes; `placed` counts new tasks by node of the instance."""
        return cls(
            state.instance.node_class[nodes],
            state.free[nodes],
            state.units[nodes],
            state.memory[nodes],
            state.kind[nodes],
            placed[nodes],
        )


class Residual:
    """Costs of nodes in some objectives.

    Parameters
    ----------
    instance : Instance
    objectives : tuple of str
        In order; of `RESIDUAL`.
    """

    def __init__(self, instance: Instance, objectives: tuple[str, ...]) -> None:
        self.instance, self.objectives = instance, objectives
        wanted = demand(instance)
        self.shapes = np.flatnonzero(wanted)
        self.wanted: Ints = wanted[self.shapes]
        tasks = [instance.shapes[s] for s in self.shapes.tolist()]
        self.gpus: Ints = np.array([t.gpus for t in tasks], dtype=np.int64)
        self.units: Ints = np.array([t.units for t in tasks], dtype=np.int64)
        self.memory: Ints = np.array([t.memory for t in tasks], dtype=np.int64)
        self.demand: Ints = np.array([t.demand for t in tasks], dtype=np.int64).reshape(
            len(tasks), len(instance.resources)
        )
        kinds = len(instance.card_kinds)
        self.admits_card: Bools = np.zeros((len(tasks), kinds + 1), dtype=np.bool_)
        self.admits_card[:, :kinds] = instance.admits_card[self.shapes]
        self.admits_node: Bools = instance.admits_node[self.shapes]
        self.healthy: Bools = np.array([kind.healthy for kind in instance.card_kinds] + [False])
        self.in_use: Bools = np.array([c.in_use for c in instance.classes], dtype=np.bool_)

    def cost(self, nodes: Nodes) -> Ints:
        """Return the cost of each node in each objective, shape (n, objectives)."""
        of = {"nodes": self._nodes, "whole_nodes": self._whole_nodes, "fragmentation": self._fragmentation}
        return np.stack([of[objective](nodes) for objective in self.objectives], axis=1)

    def _nodes(self, nodes: Nodes) -> Ints:
        return np.asarray(self.in_use[nodes.node_class] | (nodes.placed > 0), dtype=np.int64)

    def _whole_nodes(self, nodes: Nodes) -> Ints:
        healthy = self.healthy[nodes.kind]
        free = healthy & (nodes.units == self.instance.card_units)
        whole = healthy.any(axis=1) & (free == healthy).all(axis=1)
        return -np.asarray(whole, dtype=np.int64)

    def _fragmentation(self, nodes: Nodes) -> Ints:
        """Return the idle units that each wanted task could not use, summed over wanted tasks."""
        idle = np.where(self.healthy[nodes.kind], nodes.units, 0)
        room = self.admits_card[:, nodes.kind] & (nodes.units >= self.units[:, None, None])
        room &= nodes.memory >= self.memory[:, None, None]
        runs = self.admits_node[:, nodes.node_class] & (room.sum(axis=2) >= self.gpus[:, None])
        runs &= (nodes.free[None] >= self.demand[:, None, :]).all(axis=2) & (self.gpus > 0)[:, None]
        used = np.where(runs, np.where(room, idle, 0).sum(axis=2), 0)
        lost: Ints = idle.sum(axis=1)[None] - used
        return np.asarray(self.wanted @ lost, dtype=np.int64)
