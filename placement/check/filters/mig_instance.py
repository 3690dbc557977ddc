"""Shared MIG instances: who takes a share of an instance gets one of that profile, and nobody else gets one."""

from __future__ import annotations

from placement.check.violation import show
from placement.hardware import mig
from placement.snapshot import Gpu, Job, Task


def refusal(job: Job, task: Task, gpu: Gpu) -> str | None:
    """Refuse an instance of another profile, a card in the place of an instance, and the other way round."""
    if not task.mig_instance and not gpu.mig_instance:
        return None
    if not gpu.mig_instance:
        return f"the task takes a share of a MIG instance {show(task.mig_instance)}, and this is a card"
    if not task.mig_instance:
        return f"this is a MIG instance {show(gpu.mig_instance)}, and the task asks for no share of one"
    found = mig.geometry(gpu.model)
    asked = None if found is None else found.profile(task.mig_instance)
    if found is None or asked is None or asked != found.profile(gpu.mig_instance):
        return f"this is a {show(gpu.mig_instance)}, the task takes a share of a {show(task.mig_instance)}"
    return None


def slices(gpu: Gpu) -> tuple[int, int]:
    """Return the compute slices of an instance, and of its whole card; 1 of 1 for a card."""
    if not gpu.mig_instance:
        return 1, 1
    found = mig.geometry(gpu.model)
    profile = None if found is None else found.profile(gpu.mig_instance)
    return (1, 1) if found is None or profile is None else (profile.compute, found.compute)
