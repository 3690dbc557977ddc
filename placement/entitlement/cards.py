"""Cards as quotas and shares count them: a share as it is stated, a MIG instance as a part of its card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

from placement import units
from placement.hardware import mig
from placement.snapshot import Node, Task

Amounts = dict[str, Fraction]
"""Cards by model."""


def part_of(task: Task) -> Fraction:
    """Return what part of a card a task takes of each of its cards; see `placement.hardware.mig.fraction`."""
    if task.mig_profile:
        return mig.fraction(task.mig_profile) or Fraction(0)
    return Fraction(1) if task.gpu_share is None else units.exact(task.gpu_share)


def of_task(task: Task, models: Sequence[str]) -> Amounts:
    """Return what a task takes of cards, given the model of each of them."""
    part = part_of(task)
    return {model: part * count for model, count in Counter(models).items()}


def models_of(nodes: Iterable[Node]) -> Callable[[str, Sequence[int]], list[str]]:
    """Return what says of which models cards of a node are, given its name and their numbers."""
    cards: dict[str, list[str]] = {}
    for node in nodes:
        models = [gpu.model for gpu in node.gpus for _ in range(gpu.count)]
        names = [node.name] if node.count == 1 else [f"{node.name}-{copy}" for copy in range(node.count)]
        cards |= dict.fromkeys(names, models)
    return lambda node, gpus: [cards[node][gpu] for gpu in gpus]
