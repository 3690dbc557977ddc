r"""Node resources summed over each pool, and domain limits.

With demand :math:`d_{sr}` of shape *s* for resource *r* and free amounts :math:`f_{ir}` of the nodes *i* of pool *k*,

.. math:: \sum_s d_{sr}\, n_{sk} \;\le\; \sum_{i \in k} f_{ir} \qquad \forall k, r,

and for a limit *q* on resource *r* in a domain (*r* may be cards: :math:`d_{sr} = g_s u_s` in card units) with
:math:`B_q` left for new work in the nodes considered here,

.. math:: \sum_{k \in q} \sum_s d_{sr}\, n_{sk} \;\le\; B_q \qquad \forall q.

A full pool can rarely be turned into places: what is left over on its nodes is in the wrong pieces. So a model that
guides places, not one that bounds, may pay for filling a pool. Its capacity is cut into steps
:math:`0 = \ell_0 < \ell_1 < \dots < \ell_S < 1`; variables :math:`o_{krj}` are the share of the capacity used beyond
step *j*:

.. math:: \sum_s d_{sr}\, n_{sk} \;\le\; F_{kr} \Bigl(\ell_1 + \sum_{j=1}^{S} o_{krj}\Bigr),
    \quad 0 \le o_{krj} \le \ell_{j+1} - \ell_j, \quad \ell_{S+1} = 1.

A pool of one node has no other node to leave room on, and pays nothing.
"""

from __future__ import annotations

from typing import Any

from pyomo import core as pyo

from placement.instance import GPU, Instance
from placement.models.pooled_linear import Draft, Row, add_rows


def add(m: Any, instance: Instance) -> None:
    """Add the rows of pools' resources and of domain limits; `Draft.steps` are the steps of filling, empty for none."""
    draft: Draft = m.draft
    view = draft.view
    binding = [{int(r): Row(float(pool.capacity[r])) for r in pool.binding.nonzero()[0]} for pool in view.pools]
    limits = [Row(float(left)) for left in view.limits.tolist()]
    for pair, (shape, pool) in enumerate(zip(view.shape.tolist(), view.pool.tolist(), strict=True)):
        task = instance.shapes[shape]
        for r, row in binding[pool].items():
            if task.demand[r]:
                row.add(float(task.demand[r]), draft.n[pair])
        for q in view.pools[pool].limits:
            r = instance.limits[q].resource
            amount = task.gpus * task.units if r == GPU else task.demand[r]
            if amount:
                limits[q].add(float(amount), draft.n[pair])
    if draft.steps:
        _pay_for_filling(m, binding)
    add_rows(m, "resources", [row for rows in binding for row in rows.values()])
    add_rows(m, "limits", [row for row in limits if row.variables])


def _pay_for_filling(m: Any, binding: list[dict[int, Row]]) -> None:
    """Cut the capacity of each row into steps; `Draft.filling` tells the objective of them."""
    draft: Draft = m.draft
    levels = [level for level, _ in draft.steps]
    widths = [high - low for low, high in zip(levels, [*levels[1:], 1.0], strict=True)]
    owners = [
        (pool, row)
        for pool, rows in enumerate(binding)
        for row in rows.values()
        if row.variables and draft.view.pools[pool].size > 1
    ]
    m.o = pyo.Var(range(len(owners) * len(widths)), domain=pyo.NonNegativeReals)
    variables = list(m.o.values())
    draft.filling = []
    for number, (pool, row) in enumerate(owners):
        capacity, row.upper = row.upper, row.upper * levels[0]
        for step, width in enumerate(widths):
            variable = variables[number * len(widths) + step]
            variable.setub(width)
            row.add(-capacity, variable)
            draft.filling.append((variable, pool, step))
