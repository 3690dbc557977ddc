r"""Admissibility: which nodes and cards refuse which tasks, whatever else runs.

The node filters (selector, taints, cordon, driver and CUDA) and the card filters (health, models, compute
capability, exclusive) are compiled into tables :math:`A^\mathrm{node}_{tn}` and :math:`A^\mathrm{card}_{tu}` of 0
and 1:

.. math:: z_{tn} \le A^\mathrm{node}_{tn}, \qquad a_{tu} \le A^\mathrm{card}_{tu}.

These are upper bounds of the variables, no rows. Needs `assignment`.
"""

from __future__ import annotations

from typing import Any

from placement.instance import Instance

NEEDS = ("assignment",)


def add(m: Any, instance: Instance) -> None:
    """Fix to 0 what a filter refuses."""
    for (t, n), variable in m.z.items():
        if not instance.admits_node[m.tasks[t].shape, instance.node_class[n]]:
            variable.setub(0)
    for (t, n, c), variable in m.a.items():
        kind = instance.classes[instance.node_class[n]].cards[c][0]
        if not instance.admits_card[m.tasks[t].shape, kind]:
            variable.setub(0)
