"""Node selector: the node must carry every label that the task names, with the same value."""

from __future__ import annotations

from placement.check.violation import show
from placement.snapshot import Job, Node, Task


def refusal(job: Job, task: Task, node: Node) -> str | None:
    """Return which label is missing or different, or None."""
    for label, wanted in task.node_selector.items():
        if label not in node.labels:
            return f"the node has no label {show(label)}, {show(label)}={show(wanted)} is required"
        if node.labels[label] != wanted:
            return f"the node has {show(label)}={show(node.labels[label])}, {show(label)}={show(wanted)} is required"
    return None
