"""How much longer a task usually runs on a card that it shares, by its workload and by how the card is shared."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

from placement import units
from placement.hardware import interference
from placement.snapshot import Duration, Gpu

FEW, MANY = Fraction("1.04"), Fraction("1.19")
"""Factor where tasks take turns: with one that may be on the card, and with eight or more. It grows evenly."""


def sharing_factor(gpu: Gpu) -> Fraction:
    """Return the factor that a card has for a job which does not state its own."""
    if gpu.sharing not in ("time_slicing", "vgpu"):
        return Fraction(1)
    tasks = 8 if gpu.replicas is None else min(8, gpu.replicas)
    return FEW + (MANY - FEW) * Fraction(tasks - 1, 7)


def shared_factor(duration: Duration, model: str, usual: Fraction) -> Fraction:
    """Return the factor of a card of a model for a job, given what `sharing_factor` says of the card."""
    if duration.shared is not None:
        return units.exact(duration.shared)
    if not duration.workload:
        return usual
    measured = _measured(model, duration.workload)
    return usual if measured is None else measured


@cache
def _measured(model: str, workload: str) -> Fraction | None:
    """Return the mean over all beside which a workload was measured on such a card; None where that is none."""
    every = (interference.factor(model, workload, beside) for beside in interference.workloads())
    found = [one for one in every if one is not None]
    return Fraction(sum(found), len(found)) if found else None
