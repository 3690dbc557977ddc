"""MIG card by card: a card with MIG on takes tasks with a MIG profile, if it has that profile, and no others.

Where instances stay as they are, a task needs one of its own profile among them. A need for device memory is met by
what the profile is published to have; a figure that is not published meets none.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from placement import units
from placement.check.violation import show, size
from placement.hardware import mig
from placement.snapshot import Gpu, Job, Task

MEBIBYTE = 2**20
LISTED = 20
"""Profiles that a message lists."""


def part(task: Task) -> Fraction:
    """Return what part of a card a task with a MIG profile counts as."""
    found = mig.fraction(task.mig_profile)
    assert found is not None, "a snapshot with a profile that no card model has is refused"
    return found


def profile_of(task: Task, gpu: Gpu) -> mig.Profile | None:
    """Return the profile of a task on a card; None if it asks for none, or the card has none of that name."""
    geometry = mig.geometry(gpu.model) if gpu.mig_enabled and task.mig_profile else None
    return None if geometry is None else geometry.profile(task.mig_profile)


def existing(profile: mig.Profile, gpu: Gpu) -> list[int]:
    """Return the slots at which the layout of a card has instances of a profile."""
    geometry = mig.geometry(gpu.model)
    assert geometry is not None
    return [one.start for one in gpu.mig_layout if geometry.profile(one.profile) == profile]


def refusal(job: Job, task: Task, gpu: Gpu) -> str | None:
    """Refuse a card that cannot give a task its instance, whatever else it holds, or that gives nothing else."""
    if not task.mig_profile:
        allowed = "MIG is on, so only tasks with a MIG profile are allowed, and this one has none"
        return allowed if gpu.mig_enabled else None
    if not gpu.mig_enabled:
        return f"MIG is off, and the task asks for an instance {show(task.mig_profile)}"
    profile = profile_of(task, gpu)
    if profile is None:
        geometry = mig.geometry(gpu.model)
        has = ", ".join(one.name for one in geometry.profiles[:LISTED]) if geometry is not None else "none"
        return f"a card {show(gpu.model)} has no MIG profile {show(task.mig_profile)}, its profiles are {has}"
    needed = units.exact(0 if task.gpu_memory is None else task.gpu_memory)
    if needed and profile.memory is None:
        return f"the task needs {size(needed)} of memory, and that of an instance {profile.name} is not published"
    if profile.memory is not None and needed > profile.memory * MEBIBYTE:
        has = size(Fraction(profile.memory * MEBIBYTE))
        return f"the task needs {size(needed)} of memory, an instance {profile.name} has {has}"
    if gpu.mig_static and not existing(profile, gpu):
        return f"the instances of the card stay as they are, and none is a {profile.name}"
    return None


def most(task: Task, gpu: Gpu) -> int:
    """Return how many instances for such tasks a card without work holds at most; 0 if it has no such profile."""
    profile = profile_of(task, gpu)
    if profile is None:
        return 0
    if gpu.mig_static:
        return len(existing(profile, gpu))
    number, free = 0, 0
    # of instances of one size, those that start first leave most room for the others
    for start in profile.starts:
        if start >= free:
            number, free = number + 1, start + profile.size
    budget = zip(_engines(gpu), profile.engines, strict=True)
    return min([number, *(there // each for there, each in budget if each)])


def opens(task: Task, gpu: Gpu, slots: int, engines: Sequence[int]) -> bool:
    """Return whether a card has or can make one more instance for such a task.

    Parameters
    ----------
    task : Task
    gpu : Gpu
    slots : int
        Those in use, as bits.
    engines : sequence of int
        Media engines in use; empty for none.
    """
    profile = profile_of(task, gpu)
    if profile is None:
        return False
    if gpu.mig_static:
        return any(not profile.bits(start) & slots for start in existing(profile, gpu))
    taken = engines or (0,) * len(profile.engines)
    fits = all(a + b <= c for a, b, c in zip(taken, profile.engines, _engines(gpu), strict=True))
    return fits and any(not profile.bits(start) & slots for start in profile.starts)


def _engines(gpu: Gpu) -> tuple[int, ...]:
    geometry = mig.geometry(gpu.model)
    assert geometry is not None
    return geometry.engines
