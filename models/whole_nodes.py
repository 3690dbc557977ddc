r"""Wholly free nodes, device level: nodes with healthy cards on none of which anything runs.

With :math:`h_n \in \{0, 1\}` for each node *n* that is wholly free now,

.. math:: \max \sum_n h_n \qquad\text{with}\qquad h_n + a_{tu} \le 1 \quad\forall t, u : n(u) = n.

Needs `assignment`.
"""

from __future__ import annotations

from math import inf
from typing import Any

from pyomo import core as pyo

from placement.instance import Instance, NodeClass
from placement.models.core import Goal, Linear, add_rows

NEEDS = ("assignment",)


def add(m: Any, instance: Instance) -> None:
    """Add the variables, rows and the goal."""
    free = [n for n in range(instance.nodes) if is_whole(instance, instance.classes[instance.node_class[n]])]
    m.h = pyo.Var(free, domain=pyo.Binary)
    kept = set(free)
    rows = {(t, n, c): (-inf, [(1, m.h[n]), (1, a)], 1) for (t, n, c), a in m.a.items() if n in kept}
    add_rows(m, "whole_node", rows)
    m.parts.goals[Goal("whole_nodes")] = Linear.of([(1, m.h[n]) for n in free])


def is_whole(instance: Instance, node_class: NodeClass) -> bool:
    """Return whether the nodes of a class have healthy cards that are all wholly free now."""
    healthy = [units for kind, units, _ in node_class.cards if instance.card_kinds[kind].healthy]
    return bool(healthy) and all(units == instance.card_units for units in healthy)
