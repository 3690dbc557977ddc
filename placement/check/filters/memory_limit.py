"""Memory limit: who asks that device memory be limited shares only cards where all who share them can be limited.

Of the ways to share a card, virtual GPUs have frame buffer of their own; with MPS it depends on the node. From CUDA
11.5 on what a client allocates can be limited; from CUDA 13.4 on, with cgroup 2 and without MIG, all that it has there.
A version that is not stated is none.
"""

from __future__ import annotations

from placement import units
from placement.snapshot import Gpu, Job, Node, Task

LEAST = {"enforced": ("11.5", False), "partitioned": ("13.4", True)}
"""Least CUDA for MPS to do what is asked, and whether it takes cgroup 2."""


def refusal(job: Job, task: Task, gpu: Gpu, node: Node) -> str | None:
    """Refuse a fractional task on a card where memory is not limited as it asks."""
    shares = task.gpu_share is not None and units.exact(task.gpu_share) < 1 and not task.mig_profile
    if not shares or not task.gpu_memory_limit or gpu.mig_enabled or gpu.sharing in ("exclusive", "vgpu"):
        return None
    asks = f"the task asks that device memory be {task.gpu_memory_limit}"
    if gpu.sharing != "mps":
        return f"{asks}, which {gpu.sharing} sharing does not do"
    cuda, by_group = LEAST[task.gpu_memory_limit]
    if not node.cuda or units.version(node.cuda) < units.version(cuda):
        return f"{asks}, which mps sharing does with CUDA {cuda}, the node has {node.cuda or 'none stated'}"
    if by_group and gpu.mig_instance:
        return f"{asks}, which mps sharing does on cards without MIG, this is a MIG instance"
    if by_group and node.cgroup != 2:
        return f"{asks}, which mps sharing does with cgroup 2, the node has {node.cgroup or 'none stated'}"
    return None
