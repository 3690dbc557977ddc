"""Compute capability: every card of a task must reach what the job requires; unknown reaches nothing."""

from __future__ import annotations

from placement.check.filters.software import too_old
from placement.snapshot import Gpu, Job, Task


def refusal(job: Job, task: Task, gpu: Gpu) -> str | None:
    """Return why the card's compute capability does not do, or None."""
    return too_old("compute capability", gpu.compute_capability, job.requires.compute_capability)
