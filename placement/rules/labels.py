"""Node selector: a node must carry every label the task names."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar, cast

from placement.snapshot import Job, Node, Task

Labels = tuple[tuple[str, str], ...]


class NodeSelector:
    """Kubernetes ``nodeSelector``: equality of every named label."""

    name: ClassVar[str] = "node_selector"

    def node_key(self, node: Node) -> Hashable:
        """Return the node's labels."""
        return tuple(sorted(node.labels.items()))

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
