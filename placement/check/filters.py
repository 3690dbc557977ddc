"""The rules that refuse a task on a node or a card whatever else runs there.

Each is a file of its own with a function ``refusal`` that returns why, or None.
"""

from __future__ import annotations

from collections.abc import Callable

from placement.check import compute_capability, cordon, gpu_models, health, node_selector, sharing, software, taints
from placement.check.facts import Card, NodeFact, Shape
from placement.snapshot import Gpu, Job, Node, Task

NODE_RULES: dict[str, Callable[[Job, Task, Node], str | None]] = {
    "node_selector": node_selector.refusal,
    "taints": taints.refusal,
    "cordon": cordon.refusal,
    "software": software.refusal,
}
CARD_RULES: dict[str, Callable[[Job, Task, Gpu], str | None]] = {
    "gpu_models": gpu_models.refusal,
    "compute_capability": compute_capability.refusal,
    "health": health.refusal,
    "sharing": sharing.refusal,
}


class Filters:
    """Answers of the filters, each worked out once."""

    def __init__(self) -> None:
        self._nodes: dict[tuple[Shape, int], dict[str, str]] = {}
        self._cards: dict[tuple[Shape, int], dict[str, str]] = {}

    def node(self, shape: Shape, fact: NodeFact) -> dict[str, str]:
        """Return why a node refuses a task, by rule; empty where it does not."""
        key = (shape, fact.spec)
        if key not in self._nodes:
            reasons = ((name, rule(shape.job, shape.task, fact.node)) for name, rule in NODE_RULES.items())
            self._nodes[key] = {name: reason for name, reason in reasons if reason is not None}
        return self._nodes[key]

    def card(self, shape: Shape, card: Card) -> dict[str, str]:
        """Return why a card refuses a task, by rule; empty where it does not."""
        key = (shape, card.kind)
        if key not in self._cards:
            reasons = ((name, rule(shape.job, shape.task, card.gpu)) for name, rule in CARD_RULES.items())
            self._cards[key] = {name: reason for name, reason in reasons if reason is not None}
        return self._cards[key]
