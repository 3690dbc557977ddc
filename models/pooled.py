"""The pooled master: counts of tasks by shape and pool, with one-card patterns.

A relaxation: every placement gives a point of it, so its optimum over all patterns bounds the problem. It forgets that
the resources of a pool lie on separate nodes, and that a task of several cards takes distinct ones. What it keeps
makes it close: shares do not add up across cards, blocks of whole cards lie on one node, gangs run or do not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyomo import core as pyo

from placement.collector import collector_paused
from placement.models import (
    pooled_cards,
    pooled_counts,
    pooled_gangs,
    pooled_objective,
    pooled_prices,
    pooled_resources,
    pooled_topology,
)
from placement.models.pooled_linear import Draft, Prices, Target
from placement.models.pools import Pattern, Pooling

REST = (pooled_resources, pooled_gangs, pooled_objective, pooled_topology)
"""Families that are always there."""


def build(
    view: Pooling,
    patterns: Sequence[Pattern],
    weights: Mapping[Target, float],
    held: Mapping[Target, int] | None = None,
    steps: Sequence[tuple[float, float]] = (),
    prices: Sequence[Prices] = (),
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
    prices : sequence of Prices, optional
        If given, cards are seen through these prices and patterns are not used; see `pooled_prices`.

    Returns
    -------
    pyomo.environ.ConcreteModel
        Variables in the order n, t, x, then those of the other families.
    """
    with collector_paused():
        m = pyo.ConcreteModel()
        m.draft = Draft(view, patterns, weights, held or {}, steps, prices)
        for family in (pooled_counts, pooled_prices if prices else pooled_cards, *REST):
            family.add(m, view.instance)
    return m
