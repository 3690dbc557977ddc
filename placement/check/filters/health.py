"""Health: an unhealthy card keeps its running work and takes nothing new."""

from __future__ import annotations

from placement.snapshot import Gpu, Job, Task


def refusal(job: Job, task: Task, gpu: Gpu) -> str | None:
    """Refuse any new task on an unhealthy card."""
    return "the card is unhealthy and takes no new tasks" if gpu.health == "unhealthy" else None
