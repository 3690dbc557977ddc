"""GPU clustering: keep equal requests together."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from placement import units
from placement.heuristics.rule import MOST, Rule
from placement.instance import Instance, Ints
from placement.snapshot.leaves import leaf_tasks

_LAST_BIT = 62


class GpuClustering(Rule):
    """Prefer nodes that hold requests of the same class: shares, or a number of whole cards.

    With ``base = 25 * (units in use, counted from the largest node) // (units of the largest node)``,

    - only this class on the node: 75 + base;
    - this class among others: 50 + base;
    - no request for cards on the node: 25 + base;
    - other classes only: base;
    - a task without cards: 0 everywhere, so the tie rule decides.

    Source: ``gpu_clustering_score.go`` of the simulator of FGD (Weng et al., ATC'23), after the affinity of Gandiva
    (Xiao et al., OSDI'18).
    """

    name: ClassVar[str] = "gpu-clustering"

    def scores(self, shape: int, rows: Ints) -> Ints:
        """Return the score above."""
        mine = self.marks(shape)
        if not mine:
            return np.zeros(len(rows), dtype=np.int64)
        base = MOST // 4 * (self.most_units - self.idle(rows).sum(axis=1)) // self.most_units
        held = self.nodes.marks[rows]
        quarter = np.select([held == mine, held & mine != 0, held == 0], [3, 2, 1], default=0)
        score: Ints = base + MOST // 4 * quarter
        return score

    def marks(self, shape: int) -> int:
        """Return the bit of the task's class."""
        task = self.shapes[shape]
        return _class_bit(task.gpus, task.units < self.card_units)

    @classmethod
    def first_marks(cls, instance: Instance) -> Ints | None:
        """Return the classes that running work holds on each node."""
        running = [job for job in instance.snapshot.jobs if job.running is not None]
        if not running:
            return None
        marks = np.zeros(instance.nodes, dtype=np.int64)
        index = {instance.node_name(node): node for node in range(instance.nodes)}
        for job in running:
            tasks = dict(leaf_tasks(job.groups))
            for place in job.running.tasks if job.running else ():
                task = tasks[place.group]
                share = task.gpu_share is not None and units.exact(task.gpu_share) < 1
                marks[index[place.node]] |= _class_bit(task.gpus, share)
        return marks


def _class_bit(gpus: int, share: bool) -> int:
    if not gpus:
        return 0
    return 1 if share else 1 << min(gpus, _LAST_BIT)
