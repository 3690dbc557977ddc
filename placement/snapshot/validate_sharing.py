"""Rules for how cards are shared: what a card says of it must be possible, and one node shares its cards in one way.

And for what a job says of how it fares on such cards: the workload that it names must be one that was measured.
"""

from __future__ import annotations

from collections.abc import Iterator

from placement import units
from placement.hardware import interference
from placement.hardware.sharing import MPS_LEAST_CAPABILITY
from placement.snapshot.cluster import Gpu
from placement.snapshot.fields import MOST_TASKS, version, whole
from placement.snapshot.report import Found, names, show


def judge_sharing(gpus: tuple[Gpu, ...]) -> Iterator[Found]:
    """Yield what is wrong with how the cards of a node are shared."""
    ways: dict[str, int] = {}
    for index, gpu in enumerate(gpus):
        end = f".gpus[{index}]"
        yield from whole(f"{end}.replicas", gpu.replicas, 1, MOST_TASKS, "say how many tasks may share the card")
        if gpu.replicas is not None and gpu.mig_enabled:
            what = "the card has replicas while MIG mode is on, where each instance has one task"
            yield f"{end}.replicas", what, "leave it out"
        elif gpu.replicas is not None and gpu.sharing == "exclusive":
            what = 'the card has replicas, but "exclusive" cards are not shared'
            yield f"{end}.replicas", what, "leave it out, or say how the card is shared"
        if gpu.mig_enabled and gpu.sharing in ("time_slicing", "mps"):
            what = f"found {show(gpu.sharing)} while MIG mode is on, where each instance has one task"
            yield f"{end}.sharing", what, "leave it out"
        elif gpu.vgpu_policy and gpu.sharing != "vgpu":
            what = (
                f"found {show(gpu.vgpu_policy)}, but the card is {show(gpu.sharing)}: only virtual GPUs have a policy"
            )
            yield f"{end}.vgpu_policy", what, 'leave it out, or say "sharing": "vgpu"'
        elif gpu.vgpu_policy and gpu.mig_enabled:
            what = f"found {show(gpu.vgpu_policy)} while MIG mode is on, where virtual GPUs do not take turns"
            yield f"{end}.vgpu_policy", what, "leave it out"
        elif gpu.sharing == "mps" and _too_old(gpu.compute_capability):
            what = (
                f"MPS needs compute capability {MPS_LEAST_CAPABILITY}, and the card has {show(gpu.compute_capability)}"
            )
            yield f"{end}.sharing", what, "correct one of them"
        if gpu.sharing in ("time_slicing", "mps"):
            ways.setdefault(gpu.sharing, index)
    if len(ways) > 1:
        (way, first), (other, second) = ways.items()
        what = f"found {show(other)}, but gpus[{first}] of the same node says {show(way)}"
        yield f".gpus[{second}].sharing", what, "a node shares its cards in one of these ways: keep one"


def measured(end: str, workload: str) -> Iterator[Found]:
    """Yield what is wrong with the name of a measured workload."""
    known = interference.workloads()
    if workload not in known:
        near = interference.nearest(workload)
        listed = f"the known ones are {names(known, len(known))};"
        remedy = f"did you mean {' or '.join(map(show, near))}?" if near else listed
        what = f"there is no measured workload {show(workload)}"
        yield end, what, f"{remedy} leave it out for one that was not measured"


def _too_old(compute_capability: str) -> bool:
    """Return whether a card cannot serve MPS; of what is unknown or wrong, others tell."""
    if not compute_capability or any(version("", compute_capability)):
        return False
    return units.version(compute_capability) < units.version(MPS_LEAST_CAPABILITY)
