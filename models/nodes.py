r"""Nodes in use, device level: running work uses its nodes anyway, new tasks should need few others.

With :math:`w_n \in \{0, 1\}` for each node *n* without running work, and :math:`N_0` the others,

.. math:: \min\; N_0 + \sum_n w_n \qquad\text{with}\qquad z_{tn} \le w_n \quad\forall t, n.

Needs `assignment`.
"""

from __future__ import annotations

from math import inf
from typing import Any

from pyomo import core as pyo

from placement.instance import Instance
from placement.models.core import Goal, Linear, add_rows

NEEDS = ("assignment",)


def add(m: Any, instance: Instance) -> None:
    """Add the variables, rows and the goal."""
    idle = [n for n in range(instance.nodes) if not instance.classes[instance.node_class[n]].in_use]
    m.w = pyo.Var(idle, domain=pyo.Binary)
    rows = {(t, n): (-inf, [(1, m.z[t, n]), (-1, m.w[n])], 0) for t in range(len(m.tasks)) for n in idle}
    add_rows(m, "node_in_use", rows)
    m.parts.goals[Goal("nodes")] = Linear.of([(1, m.w[n]) for n in idle], constant=instance.nodes - len(idle))
