r"""Objectives on counts, and the values that earlier phases reached.

With :math:`v_l` the value of one task of leaf *l* and :math:`L_\pi` the leaves of jobs of priority :math:`\pi`,

.. math:: \mathrm{value}_\pi = \sum_{l \in L_\pi} v_l\, t_l, \qquad \mathrm{tasks} = \sum_l t_l .

The model maximises one of them, and holds each earlier one at the value :math:`V` it reached:
:math:`\mathrm{value}_\pi \ge V`. A model that guides places may add small multiples of other objectives, and pays
:math:`c_j` for each card's worth of a pool filled beyond step *j* (see `pooled_resources`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from pyomo import core as pyo
from pyomo.core.expr.numeric_expr import LinearExpression

from placement.instance import Instance, Ints
from placement.models.pooled_linear import Draft, Row, Target, add_rows


def coefficients(instance: Instance, leaves: Ints, target: Target) -> Ints:
    """Return what one task of each leaf counts in an objective, in units of the instance."""
    objective, priority = target
    if objective == "tasks":
        return np.ones(len(leaves), dtype=np.int64)
    if objective != "value":
        raise ValueError(f"the pooled model has no objective {objective!r}")
    priorities = np.array([c.priority for c in instance.job_classes], dtype=np.int64)
    mine = priorities[leaves[:, 0]] == priority
    return np.where(mine, leaves[:, 4], 0)


def add(m: Any, instance: Instance) -> None:
    """Add the objective with the draft's weights and the rows that hold what it holds."""
    draft: Draft = m.draft
    leaves = draft.view.leaves
    total = np.zeros(len(leaves))
    for target, weight in draft.weights.items():
        total += weight * coefficients(instance, leaves, target)
    terms: list[tuple[float, Any]] = [(c, t) for c, t in zip(total.tolist(), draft.t, strict=True) if c]
    if draft.steps:
        costs = [cost for _, cost in draft.steps]
        cards = [sum(group.count for group in pool.groups) for pool in draft.view.pools]
        terms += [(-costs[step] * cards[pool], variable) for variable, pool, step in draft.filling if cards[pool]]
    m.objective = pyo.Objective(expr=_sum(terms), sense=pyo.maximize)
    rows = []
    for target, reached in draft.held.items():
        row = Row(-float(reached))
        for c, t in zip(coefficients(instance, leaves, target).tolist(), draft.t, strict=True):
            if c:
                row.add(-float(c), t)
        rows.append(row)
    add_rows(m, "kept", rows)


def _sum(terms: Iterable[tuple[float, Any]]) -> Any:
    listed = list(terms)
    if not listed:
        return LinearExpression(constant=0.0)
    return LinearExpression(linear_coefs=[c for c, _ in listed], linear_vars=[v for _, v in listed])
