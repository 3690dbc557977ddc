"""Node selector: a node must carry every label the task names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence, Set
from typing import ClassVar, cast

import numpy as np
import numpy.typing as npt

from placement.snapshot import Job, Node, Task

Labels = tuple[tuple[str, str], ...]


class NodeSelector:
    """Kubernetes ``nodeSelector``: equality of every named label.

    Parameters
    ----------
    asked : set of (label, value), optional
        The labels that some task names. No other label tells two nodes apart; every node of a real cluster has one of
        its own, its host name.
    """

    name: ClassVar[str] = "node_selector"

    def __init__(self, asked: Set[tuple[str, str]] | None = None) -> None:
        self._asked = asked

    def node_key(self, node: Node) -> Hashable:
        """Return the node's labels that some task names."""
        return tuple(sorted(node.labels.items() if self._asked is None else node.labels.items() & self._asked))

    def task_key(self, job: Job, task: Task) -> Hashable:
        """Return the labels asked for."""
        return tuple(sorted(task.node_selector.items()))

    def refusal(self, task_key: Hashable, node_key: Hashable) -> str | None:
        """Name the first label that the node lacks."""
        labels = dict(cast(Labels, node_key))
        for label, value in cast(Labels, task_key):
            if labels.get(label) != value:
                return f"label {label}={value} is missing"
        return None

    def refusals(self, task_keys: Sequence[Hashable], keys: Sequence[Hashable]) -> npt.NDArray[np.bool_]:
        """Count, for each task, how many of its labels each node carries; see `placement.rules.base.Tabulated`."""
        carried_by: dict[tuple[str, str], list[int]] = defaultdict(list)
        for node, node_key in enumerate(keys):
            for label in cast(Labels, node_key):
                carried_by[label].append(node)
        indices = {label: np.array(nodes) for label, nodes in carried_by.items()}
        refused = np.zeros((len(task_keys), len(keys)), dtype=np.bool_)
        for row, task_key in enumerate(task_keys):
            labels = cast(Labels, task_key)
            if labels:
                carried = np.zeros(len(keys), dtype=np.int64)
                for label in labels:
                    if label in indices:
                        carried[indices[label]] += 1
                refused[row] = carried < len(labels)
        return refused
