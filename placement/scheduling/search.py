"""The best of several schedules."""

from __future__ import annotations

from placement.scheduling.baselines import BASELINES, baseline
from placement.scheduling.found import Found
from placement.scheduling.work import Work
from placement.solver import Limits


def search(work: Work, limits: Limits, seed: int) -> Found:
    """Return the best schedule found within the limits."""
    found = [baseline(work, name) for name in BASELINES]
    return min(found, key=lambda one: (one.table.left_out(work), one.table.value(work)))
