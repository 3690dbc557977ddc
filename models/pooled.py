"""The pooled master: counts of tasks by shape and pool, with one-card patterns.

A relaxation: every placement gives a point of it, so its optimum over all patterns bounds the problem. It forgets that
the resources of a pool lie on separate nodes, and that a task of several cards takes distinct ones. What it keeps
makes it close: shares do not add up across cards, blocks of whole cards lie on one node, gangs run or do not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyomo.environ as pyo

from placement.models import pooled_cards, pooled_counts, pooled_gangs, pooled_objective, pooled_resources
from placement.models.pooled_linear import paused_collection
from placement.models.pooled_objective import Target
from placement.models.pools import Pattern, Pooling

FAMILIES = (pooled_counts, pooled_cards, pooled_resources, pooled_gangs, pooled_objective)


def build(
    view: Pooling,
    patterns: Sequence[Pattern],
    weights: Mapping[Target, float],
    held: Mapping[Target, int] | None = None,
    steps: Sequence[tuple[float, float]] = (),
) -> Any:
    """Return the model.

    Parameters
    ----------
    view : Pooling
    patterns : sequence of Pattern
        The one-card patterns to choose from.
    weights : mapping of target to float
        What to maximise; see `pooled_objective`.
    held : mapping of target to int, optional
        Values that must be kept, in units of the instance.
    steps : sequence of (level, cost), optional
        Price of filling a pool beyond each level; see `pooled_resources`.

    Returns
    -------
    pyomo.environ.ConcreteModel
        Variables in the order n, t, x, then those of the other families.
    """
    with paused_collection():
        m = pyo.ConcreteModel()
        m.pooling, m.patterns, m.weights, m.held, m.steps = view, patterns, weights, held or {}, tuple(steps)
        for family in FAMILIES:
            family.add(m, view.instance)
    return m
