"""Shared MIG instances: who takes a share of an instance needs one of its profile, and nobody else gets one."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar, cast

from placement.hardware.mig import geometry, plain_profile
from placement.snapshot import Gpu, Job, Node, Task


class SharedInstance:
    """What the task takes a share of, a card or an instance of some profile, must be what the entry stands for."""

    name: ClassVar[str] = "mig_instance"

    def card_key(self, gpu: Gpu, node: Node) -> Hashable:
        """Return the model and the profile; None for a card."""
        return (gpu.model, plain_profile(gpu.mig_instance)) if gpu.mig_instance else None

    def task_key(self, job: Job, task: Task) -> Hashable:
        """Return the profile; nothing where a card is asked for."""
        return plain_profile(task.mig_instance) if task.mig_instance else None

    def refusal(self, task_key: Hashable, card_key: Hashable) -> str | None:
        """Refuse a card to who wants an instance, an instance to who wants a card, and another profile."""
        if card_key is None:
            return None if task_key is None else "it is a card, and the task takes a share of a MIG instance"
        if task_key is None:
            return "it is a MIG instance that is shared, and the task does not ask for a share of one"
        model, profile = cast(tuple[str, str], card_key)
        if _same(model, profile, cast(str, task_key)):
            return None
        return f"it is a {profile}, and the task takes a share of a {task_key}"


def serves(task: Task, gpu: Gpu) -> bool:
    """Return whether a card is what a task takes a share of: a card, or an instance of the right profile."""
    if not task.mig_instance or not gpu.mig_instance:
        return task.mig_instance == gpu.mig_instance
    return _same(gpu.model, gpu.mig_instance, task.mig_instance)


def _same(model: str, one: str, other: str) -> bool:
    """Return whether two names are of one profile of a card model; they drift with the driver."""
    there = geometry(model)
    return there is not None and there.profile(one) is there.profile(other)
