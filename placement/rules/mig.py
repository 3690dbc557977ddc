"""MIG: a card in MIG mode takes instances of the profiles it can have, and nothing else."""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from typing import ClassVar, cast

from placement import units
from placement.hardware.mig import Geometry, geometry, plain_profile
from placement.snapshot import Gpu, Job, Node, Task

_MIB = 2**20


class Mig:
    """A task with a MIG profile needs a card in MIG mode whose model has it; other tasks need one with MIG off.

    Where instances stay as they are, one of the profile must exist. A task that states device memory needs a profile
    with as much, and a profile whose memory is not published satisfies no such need.
    """

    name: ClassVar[str] = "mig"

    def card_key(self, gpu: Gpu, node: Node) -> Hashable:
        """Return the model and the instances that stay as they are, or None where MIG is off."""
        if not gpu.mig_enabled:
            return None
        return gpu.model, tuple(sorted({one.profile for one in gpu.mig_layout})) if gpu.mig_static else None

    def task_key(self, job: Job, task: Task) -> Hashable:
        """Return the profile and the device memory."""
        if not task.mig_profile:
            return None
        return plain_profile(task.mig_profile), None if task.gpu_memory is None else units.exact(task.gpu_memory)

    def refusal(self, task_key: Hashable, card_key: Hashable) -> str | None:
        """Refuse a card in the wrong mode, without the profile, or with too little memory in it."""
        if task_key is None:
            return None if card_key is None else "the card is in MIG mode and the task asks for no instance"
        if card_key is None:
            return "MIG is off on the card"
        profile, memory = cast(tuple[str, Fraction | None], task_key)
        model, existing = cast(tuple[str, tuple[str, ...] | None], card_key)
        there = geometry(model)
        mine = None if there is None else there.profile(profile)
        if there is None or mine is None:
            return f"{model} has no MIG profile {profile}"
        if existing is not None and not self._exists(there, existing, mine.name):
            return f"no instance of {profile} exists, and none is to be created"
        if memory is not None and mine.memory is None:
            return f"the memory of a {profile} of {model} is unknown"
        if memory is not None and mine.memory is not None and memory > mine.memory * _MIB:
            return f"a {profile} of {model} has too little device memory"
        return None

    @staticmethod
    def _exists(there: Geometry, existing: tuple[str, ...], name: str) -> bool:
        found = (there.profile(one) for one in existing)
        return any(profile is not None and profile.name == name for profile in found)
