r"""Quotas of queues: what each queue uses of each card model is within its own limit and those above it.

With :math:`u_{cm}` the cards of model *m* that queue *c* uses, :math:`S_{cm}` the quota of its subtree,
:math:`g_{cm}` what it never lends and :math:`b_{cm}` its borrowing limit (see `placement.quota`), the rule is

.. math::

    u_{cm} &= \sum_{d \text{ below } c} \max(0, u_{dm} - g_{dm}) \quad\text{where queues are below } c,\\
    u_{cm} &\le S_{cm} + b_{cm}, \qquad u_{cm} \le S_{cm} \text{ at the top}.

The largest of two is convex and bounded from above alone, so that a variable may stand for it:

.. math::

    e_{dm} &\ge u_{dm} - g_{dm}, \quad e_{dm} \ge 0,\\
    u_{cm} &= \sum_{d \text{ below } c} e_{dm}.

If the rule holds, :math:`e_{dm} = \max(0, u_{dm} - g_{dm})` satisfies the rows; and where some *e* does, the smallest
does too, for it makes no usage above larger. So the rows are exact, and linear. All models together are one more row,
:math:`u_{c*} = \sum_m u_{cm}` in queues that take jobs. What running work uses counts as a constant, and a row that it
exceeds keeps that much as its limit: nothing that is added may make it worse.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pyomo import core as pyo

from placement.quota import ALL, Quotas


def add(m: Any, quotas: Quotas, usage: Mapping[tuple[str, str], Any], models: Iterable[str]) -> None:
    """Add the rows to a model.

    Parameters
    ----------
    m : pyomo.environ.ConcreteModel
        Gets ``quota_over`` (variables e), ``quota_above`` and ``quota`` (rows).
    quotas : Quotas
        With what running work uses.
    usage : mapping of (str, str) to expression
        What new work takes, by queue without queues below it and card model; what is absent takes nothing.
    models : iterable of str
        All card models that may be used.
    """
    models = sorted(set(models))
    parents = {queue.parent for queue in quotas.queues}
    leaves = [queue.name for queue in quotas.queues if queue.name not in parents and quotas.limited(queue.name)]
    rows: dict[str, list[str]] = {}
    for leaf in leaves:
        found = [model for model, _ in quotas.rows(leaf, dict.fromkeys(models, 1))]
        for queue in quotas.chain(leaf):
            rows[queue] = found
    index = [(queue, model) for queue in rows for model in rows[queue]]
    m.quota_over = pyo.Var(index, within=pyo.NonNegativeReals)
    m.quota_above = pyo.ConstraintList()
    m.quota = pyo.ConstraintList()
    below: dict[str, list[str]] = {queue: [] for queue in rows}
    for one in quotas.queues:
        if one.name in rows and one.parent:
            below[one.parent].append(one.name)
    for queue, model in index:
        used: Any = sum(m.quota_over[child, model] for child in below[queue])
        if not below[queue]:
            counted = models if model == ALL else [model]
            used = float(quotas.usage(queue, model)) + sum(usage.get((queue, other), 0) for other in counted)
        row = quotas.row(queue, model)
        m.quota_above.add(m.quota_over[queue, model] >= used - float(row.guaranteed))
        if row.limit is not None:
            # a row without variables would be no row for Pyomo
            m.quota.add(used + 0 * m.quota_over[queue, model] <= float(max(row.limit, quotas.usage(queue, model))))
