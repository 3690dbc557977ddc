"""Isolation and device memory: what a card promises to a task that shares it, and what memory the task then has."""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from typing import ClassVar, cast

from placement import units
from placement.hardware.sharing import NEEDS, lacking, memory_of_replica, mode_of, unlimited
from placement.snapshot import Gpu, Job, Node, Task


def takes_part(task: Task) -> bool:
    """Return whether a task shares its cards with others; a MIG instance and a whole card are its own."""
    return not task.mig_profile and task.gpu_share is not None and units.exact(task.gpu_share) < 1


class Isolation:
    """The card's way of sharing must guarantee all that a task asks for that takes a share of it.

    Whole cards and MIG instances give everything; see `placement.hardware.sharing` for what that leaves out.
    """

    name: ClassVar[str] = "isolation"

    def card_key(self, gpu: Gpu, node: Node) -> Hashable:
        """Return the name of the sharing mode."""
        return mode_of(gpu).name

    def task_key(self, job: Job, task: Task) -> Hashable:
        """Return what the task asks for; nothing where it shares with nobody."""
        return tuple(need for need in NEEDS if need in task.isolation) if takes_part(task) else ()

    def refusal(self, task_key: Hashable, card_key: Hashable) -> str | None:
        """Name the first thing that the mode does not guarantee."""
        asked, mode = cast(tuple[str, ...], task_key), cast(str, card_key)
        missing = lacking(mode, asked)
        if missing is None:
            return None
        need = next(need for need in asked if lacking(mode, (need,)) is not None)
        return f"isolation of {need} is asked for, and sharing {mode!r} does not guarantee it: {missing.why}"


class ReplicaMemory:
    """A task on a card that MPS divides into equal replicas has one Nth of its memory, and may not ask for more."""

    name: ClassVar[str] = "replica_memory"

    def card_key(self, gpu: Gpu, node: Node) -> Hashable:
        """Return the memory of one replica; None where there are none."""
        return memory_of_replica(gpu)

    def task_key(self, job: Job, task: Task) -> Hashable:
        """Return the device memory that a task needs which shares its cards."""
        return units.exact(task.gpu_memory) if task.gpu_memory is not None and takes_part(task) else None

    def refusal(self, task_key: Hashable, card_key: Hashable) -> str | None:
        """Refuse a task that needs more than a replica has."""
        need, have = cast(Fraction | None, task_key), cast(Fraction | None, card_key)
        if need is None or have is None or need <= have:
            return None
        return f"{_gib(need)} of device memory is asked for, and each replica has {_gib(have)}"


class MemoryLimit:
    """A task that asks for a limit on device memory shares only cards where somebody keeps all tasks to theirs."""

    name: ClassVar[str] = "memory_limit"

    def card_key(self, gpu: Gpu, node: Node) -> Hashable:
        """Return what the card lacks for either sort of limit."""
        return tuple(unlimited(gpu, node.cuda, node.cgroup, asked) for asked in _LIMITS)

    def task_key(self, job: Job, task: Task) -> Hashable:
        """Return the limit that is asked for; nothing where it shares with nobody."""
        return task.gpu_memory_limit if takes_part(task) else ""

    def refusal(self, task_key: Hashable, card_key: Hashable) -> str | None:
        """Say what is missing."""
        asked, lacks = cast(str, task_key), cast(tuple[str | None, ...], card_key)
        why = lacks[_LIMITS.index(asked)] if asked else None
        return None if why is None else f"device memory is to be {asked}: {why}"


_LIMITS = ("enforced", "partitioned")


def _gib(size: Fraction) -> str:
    return f"{float(size / 2**30):.6g}Gi"
