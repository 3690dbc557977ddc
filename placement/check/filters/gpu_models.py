"""Card models: every card of a task must be of a model that the task allows; an empty list allows all."""

from __future__ import annotations

from placement.check.violation import show
from placement.snapshot import Gpu, Job, Task


def refusal(job: Job, task: Task, gpu: Gpu) -> str | None:
    """Refuse a card of a model that is not listed."""
    if not task.gpu_models or gpu.model in task.gpu_models:
        return None
    listed = ", ".join(show(model) for model in task.gpu_models[:10])
    return (
        f"the card's model is {show(gpu.model)}, allowed are {listed}{' and more' if len(task.gpu_models) > 10 else ''}"
    )
