r"""Capacity: node resources, and limits on domains.

With :math:`d_{tr}` the amount of resource *r* that task *t* takes of its node and :math:`f_{nr}` what node *n* has
free,

.. math:: \sum_t d_{tr}\, z_{tn} \le f_{nr} \quad\forall n, r,

and with :math:`L_q` what new work may still take of the resource :math:`r(q)` in the domain :math:`D_q` of limit
*q*,

.. math:: \sum_{n \in D_q} \sum_t d_{t\,r(q)}\, z_{tn} \le L_q \quad\forall q,

where cards are a resource like another: :math:`d_{tr} = g_t \sigma_t` card units. Needs `assignment`.
"""

from __future__ import annotations

from math import inf
from typing import Any

from placement.instance import GPU, Instance, Shape
from placement.models.assignment import shape_of
from placement.models.core import Terms, add_rows

NEEDS = ("assignment",)


def add(m: Any, instance: Instance) -> None:
    """Add one row a node and resource, and one a limit."""
    tasks = range(len(m.tasks))
    rows = {}
    for n in range(instance.nodes):
        free = instance.classes[instance.node_class[n]].free
        for r in range(len(instance.resources)):
            rows[n, r] = (-inf, [(d, m.z[t, n]) for t in tasks if (d := shape_of(m, t).demand[r])], free[r])
    add_rows(m, "capacity", rows)
    limited: dict[int, Terms] = {q: [] for q in range(len(instance.limits))}
    for n in range(instance.nodes):
        for q in instance.classes[instance.node_class[n]].limits:
            resource = instance.limits[q].resource
            limited[q] += [(use, m.z[t, n]) for t in tasks if (use := limit_use(shape_of(m, t), resource))]
    add_rows(m, "limits", {q: (-inf, terms, instance.limits[q].capacity) for q, terms in limited.items()})


def limit_use(shape: Shape, resource: int) -> int:
    """Return what one task takes of a limited resource."""
    return shape.gpus * shape.units if resource == GPU else shape.demand[resource]
