"""Taints: a node's marks keep off every task that does not tolerate them; a cordoned node takes nothing new."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import ClassVar, cast

import numpy as np
import numpy.typing as npt

from placement.snapshot import Job, Node, Taint, Task, Toleration


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Return whether a toleration matches a taint (Kubernetes, ``Toleration.ToleratesTaint``)."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return bool(toleration.key) and toleration.value == taint.value


class Taints:
    """Every taint of the node must be tolerated."""

    name: ClassVar[str] = "taints"

    def node_key(self, node: Node) -> Hashable:
        """Return the node's taints."""
        return node.taints

    def task_key(self, job: Job, task: Task) -> Hashable:
        """Return the task's tolerations."""
        return task.tolerations

    def refusal(self, task_key: Hashable, node_key: Hashable) -> str | None:
        """Name the first taint that is not tolerated."""
        tolerations = cast(tuple[Toleration, ...], task_key)
        for taint in cast(tuple[Taint, ...], node_key):
            if not any(tolerates(toleration, taint) for toleration in tolerations):
                return f"taint {taint.key}={taint.value}:{taint.effect} is not tolerated"
        return None

    def refusals(self, task_keys: Sequence[Hashable], keys: Sequence[Hashable]) -> npt.NDArray[np.bool_]:
        """Look at each toleration and each taint once, not at each pair; see `placement.rules.base.Tabulated`."""
        on = [(node, taint) for node, node_key in enumerate(keys) for taint in cast(tuple[Taint, ...], node_key)]
        number = {taint: index for index, taint in enumerate(dict.fromkeys(taint for _, taint in on))}
        called: dict[str, list[Taint]] = defaultdict(list)
        for taint in number:
            called[taint.key].append(taint)
        tolerated_by: dict[Toleration, list[int]] = {}
        node = np.array([node for node, _ in on], dtype=np.int64)
        mark = np.array([number[taint] for _, taint in on], dtype=np.int64)
        refused = np.zeros((len(task_keys), len(keys)), dtype=np.bool_)
        for row, task_key in enumerate(task_keys):
            tolerated = np.zeros(len(number), dtype=np.bool_)
            for toleration in cast(tuple[Toleration, ...], task_key):
                if toleration not in tolerated_by:
                    alike = called.get(toleration.key, ()) if toleration.key else number
                    tolerated_by[toleration] = [number[taint] for taint in alike if tolerates(toleration, taint)]
                tolerated[tolerated_by[toleration]] = True
            refused[row, node[~tolerated[mark]]] = True
        return refused


class Cordon:
    """A cordoned node keeps its running work and takes no new tasks."""

    name: ClassVar[str] = "cordon"

    def node_key(self, node: Node) -> Hashable:
        """Return whether the node is cordoned."""
        return node.cordoned

    def task_key(self, job: Job, task: Task) -> Hashable:
        """Return nothing: every task is alike."""
        return None

    def refusal(self, task_key: Hashable, node_key: Hashable) -> str | None:
        """Refuse any task on a cordoned node."""
        return "the node is cordoned" if node_key else None
