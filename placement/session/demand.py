"""What tasks of jobs take of the cards that quotas count, and on cards of which models they may be."""

from __future__ import annotations

import numpy as np

from placement.entitlement.cards import part_of
from placement.heuristics.filling import Filling
from placement.instance import Instance, Ints
from placement.quota import Cards
from placement.snapshot.leaves import leaf_tasks


class Demands:
    """Cards by class of jobs of an instance, worked out as they are asked for.

    Parameters
    ----------
    instance : Instance
        Of nodes on which nothing runs.
    filling : Filling
        Of its nodes.

    Attributes
    ----------
    models : tuple of str
    model : int array (N,)
        Index of the model of the cards of each row of the filling; -1 for none. The first one on nodes with several,
        where none counts by itself, see `placement.honoured.refuse_unhonoured_in_plan`.
    """

    def __init__(self, instance: Instance, filling: Filling) -> None:
        self._instance = instance
        nodes = instance.snapshot.nodes
        self.models = tuple(sorted({gpu.model for node in nodes for gpu in node.gpus}))
        number = {model: index for index, model in enumerate(self.models)}
        of_spec = np.array([number[node.gpus[0].model] if node.gpus else -1 for node in nodes], dtype=np.int64)
        all_nodes = np.arange(instance.nodes)
        self._of_node: Ints = of_spec[instance.node_spec[instance.hosts_of(all_nodes)]]
        self.model: Ints = np.empty(instance.nodes, dtype=np.int64)
        self.model[filling.rows(all_nodes.tolist())] = self._of_node
        self._known: dict[int, tuple[list[Cards], list[frozenset[str]]]] = {}
        self._where: dict[int, frozenset[str]] = {}

    def extend(self, instance: Instance) -> None:
        """Take an instance of the same nodes with more classes of jobs at the end."""
        self._instance = instance

    def of(self, number: int) -> tuple[list[Cards], list[frozenset[str]]]:
        """Return what a task of each leaf of a class takes, and the models of the nodes that it may be on.

        There are no models where it may be on a node without cards.
        """
        if number not in self._known:
            one = self._instance.job_classes[number]
            spec = self._instance.snapshot.jobs[int(self._instance.job_spec[int(one.jobs[0])])]
            tasks = dict(leaf_tasks(spec.groups))
            takes: list[Cards] = [tasks[leaf.path].gpus * part_of(tasks[leaf.path]) for leaf in one.leaves]
            self._known[number] = takes, [self._models_for(leaf.shape) for leaf in one.leaves]
        return self._known[number]

    def by_shape(self, number: int) -> dict[int, Cards]:
        """Return what a task of each shape of a class takes; the most of two that rounding made one."""
        takes: dict[int, Cards] = {}
        for leaf, amount in zip(self._instance.job_classes[number].leaves, self.of(number)[0], strict=True):
            takes[leaf.shape] = max(amount, takes.get(leaf.shape, 0))
        return takes

    def _models_for(self, shape: int) -> frozenset[str]:
        if shape not in self._where:
            instance = self._instance
            profile = instance.shapes[shape].profile >= 0
            admits = np.array(
                [
                    instance.admits_node[shape, number]
                    and (one.slots >= 0) == profile
                    and any(profile or instance.admits_card[shape, kind] for kind in {kind for kind, _, _ in one.cards})
                    for number, one in enumerate(instance.classes)
                ],
                dtype=np.bool_,
            )
            found = np.unique(self._of_node[admits[instance.node_class]]).tolist()
            self._where[shape] = frozenset() if -1 in found else frozenset(self.models[one] for one in found)
        return self._where[shape]
