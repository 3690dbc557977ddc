"""Isolation: a task that takes a share of a card may ask for no more than the card's way of sharing guarantees.

Whole cards and MIG instances are a task's own, so it has there all that it can ask for.
"""

from __future__ import annotations

from placement import units
from placement.snapshot import Gpu, Job, Task

GUARANTEED: dict[str, frozenset[str]] = {
    "exclusive": frozenset({"security", "performance", "fault"}),
    "vgpu": frozenset({"security"}),
}
"""What is guaranteed under each way of sharing; nothing under those that are not named."""


def guaranteed_by(gpu: Gpu) -> frozenset[str]:
    """Return what is guaranteed to those who share a card; a fixed share of a virtual GPU's time is one's own."""
    always = GUARANTEED.get(gpu.sharing, frozenset())
    return always | {"performance"} if gpu.vgpu_policy == "fixed_share" else always


def refusal(job: Job, task: Task, gpu: Gpu) -> str | None:
    """Refuse a fractional task on a card that does not guarantee all it asks for."""
    if task.gpu_share is None or units.exact(task.gpu_share) == 1 or task.mig_profile:
        return None
    guaranteed = guaranteed_by(gpu)
    missing = [need for need in task.isolation if need not in guaranteed]
    if not missing:
        return None
    way = f"{gpu.sharing} ({gpu.vgpu_policy})" if gpu.vgpu_policy else gpu.sharing
    return f"the task asks for isolation of {' and '.join(missing)}, which {way} sharing does not guarantee"
