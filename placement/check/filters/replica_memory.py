"""Replica memory: on a card that MPS divides into N equal replicas, a fractional task has one Nth of the memory."""

from __future__ import annotations

from placement import units
from placement.check.violation import size
from placement.snapshot import Gpu, Job, Task


def refusal(job: Job, task: Task, gpu: Gpu) -> str | None:
    """Refuse a fractional task that needs more device memory than one replica has."""
    if gpu.sharing != "mps" or not gpu.replicas or gpu.memory is None or gpu.mig_enabled:
        return None
    if task.gpu_share is None or units.exact(task.gpu_share) == 1 or task.gpu_memory is None:
        return None
    needed, memory = units.exact(task.gpu_memory), units.exact(gpu.memory)
    if needed * gpu.replicas > memory:
        each = f"each of {gpu.replicas} replicas has {size(memory / gpu.replicas)}"
        return f"the task needs {size(needed)} of device memory, {each}"
    return None
