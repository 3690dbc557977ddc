"""Card models: which models a task may use, the compute capability it needs, and the health of the card."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar, cast

from placement import units
from placement.snapshot import Gpu, Job, Node, Task


class CardModel:
    """The card's model must be one of those the task allows; no list allows all."""

    name: ClassVar[str] = "gpu_models"

    def card_key(self, gpu: Gpu, node: Node) -> Hashable:
        """Return the model."""
        return gpu.model

    def task_key(self, job: Job, task: Task) -> Hashable:
        """Return the set of allowed models."""
        return tuple(sorted(set(task.gpu_models)))

    def refusal(self, task_key: Hashable, card_key: Hashable) -> str | None:
        """Refuse a model that is not allowed."""
        models = cast(tuple[str, ...], task_key)
        if models and card_key not in models:
            return f"model {card_key} is not one of {', '.join(models)}"
        return None


class ComputeCapability:
    """The card's compute capability must reach what the job requires; unknown satisfies no requirement."""

    name: ClassVar[str] = "compute_capability"

    def card_key(self, gpu: Gpu, node: Node) -> Hashable:
        """Return the compute capability."""
        return gpu.compute_capability

    def task_key(self, job: Job, task: Task) -> Hashable:
        """Return the least compute capability."""
        return job.requires.compute_capability

    def refusal(self, task_key: Hashable, card_key: Hashable) -> str | None:
        """Refuse a card that is too old or unknown."""
        need, have = cast(str, task_key), cast(str, card_key)
        if need and not have:
            return f"compute capability {need} is required and the card's is unknown"
        if need and units.version(have) < units.version(need):
            return f"compute capability {need} is required and the card has {have}"
        return None


class Health:
    """An unhealthy card takes no new work."""

    name: ClassVar[str] = "health"

    def card_key(self, gpu: Gpu, node: Node) -> Hashable:
        """Return the health."""
        return gpu.health

    def task_key(self, job: Job, task: Task) -> Hashable:
        """Return nothing: every task is alike."""
        return None

    def refusal(self, task_key: Hashable, card_key: Hashable) -> str | None:
        """Refuse any task on an unhealthy card."""
        return "the card is unhealthy" if card_key == "unhealthy" else None


class Exclusive:
    """A card whose mode is exclusive takes whole-card tasks only."""

    name: ClassVar[str] = "sharing"

    def card_key(self, gpu: Gpu, node: Node) -> Hashable:
        """Return the sharing mode."""
        return gpu.sharing

    def task_key(self, job: Job, task: Task) -> Hashable:
        """Return whether the task takes less than a whole card."""
        return task.gpu_share is not None and units.exact(task.gpu_share) < 1

    def refusal(self, task_key: Hashable, card_key: Hashable) -> str | None:
        """Refuse a fractional task on an exclusive card."""
        return "the card is exclusive and the task takes a share" if task_key and card_key == "exclusive" else None
