"""Targets: the objectives that counts of started tasks determine, one for each priority, in order."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from placement.exact.objectives.residual import RESIDUAL
from placement.instance import Instance
from placement.models.pooled_linear import Target

COUNTED = ("value", "tasks")
"""The objectives that counts of started tasks determine."""


def targets_of(instance: Instance, objectives: Sequence[str]) -> tuple[Target, ...]:
    """Return the leading objectives that counts of tasks determine, one target a priority for ``value``."""
    targets: list[Target] = []
    for objective in objectives:
        if objective == "value":
            targets += [("value", priority) for priority in instance.priorities]
        elif objective == "tasks":
            targets.append(("tasks", None))
        else:
            break
    return tuple(targets)


def rest_of(objectives: Sequence[str]) -> tuple[str, ...]:
    """Return the objectives on what nodes are left like that follow the leading ones directly."""
    others = itertools.dropwhile(COUNTED.__contains__, objectives)
    return tuple(itertools.takewhile(RESIDUAL.__contains__, others))
