"""Taints: a node's marks keep off every task without a matching toleration.

A toleration matches as in Kubernetes: an empty effect matches both, an empty key every key; ``Exists`` asks nothing
of the value, ``Equal`` the same value, and an empty key goes with ``Exists`` alone.
"""

from __future__ import annotations

from placement.check.violation import show
from placement.snapshot import Job, Node, Taint, Task, Toleration


def refusal(job: Job, task: Task, node: Node) -> str | None:
    """Return which taint is not tolerated, or None."""
    for taint in node.taints:
        if not any(_matches(toleration, taint) for toleration in task.tolerations):
            return f"the node's taint {show(taint.key)}={show(taint.value)}:{taint.effect} is not tolerated"
    return None


def _matches(toleration: Toleration, taint: Taint) -> bool:
    effect = toleration.effect in ("", taint.effect)
    if toleration.operator == "Exists":
        return effect and toleration.key in ("", taint.key)
    return effect and toleration.key == taint.key != "" and toleration.value == taint.value
