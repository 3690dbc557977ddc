"""Node selector: a node must carry every label the task names."""

from __future__ import annotations

from collections.abc import Hashable, Set
from typing import ClassVar, cast

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
        return tuple(sorted(item for item in node.labels.items() if self._asked is None or item in self._asked))

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
