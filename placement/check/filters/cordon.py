"""Cordon: a cordoned node keeps its running work and takes nothing new."""

from __future__ import annotations

from placement.snapshot import Job, Node, Task


def refusal(job: Job, task: Task, node: Node) -> str | None:
    """Refuse any new task on a cordoned node."""
    return "the node is cordoned and takes no new tasks" if node.cordoned else None
