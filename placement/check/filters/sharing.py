"""Sharing: a card whose mode is exclusive takes whole-card tasks only."""

from __future__ import annotations

from placement import units
from placement.check.violation import decimal
from placement.snapshot import Gpu, Job, Task


def refusal(job: Job, task: Task, gpu: Gpu) -> str | None:
    """Refuse a fractional task on an exclusive card."""
    share = units.exact(1 if task.gpu_share is None else task.gpu_share)
    if gpu.sharing == "exclusive" and share < 1:
        return f"the card is exclusive and the task takes {decimal(share)} of it, only whole cards are allowed"
    return None
