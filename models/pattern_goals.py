r"""Goals that are sums over nodes, as costs of patterns.

Whatever depends on what is free on one node is a coefficient of the node's pattern:

.. math::
   \text{nodes: } \min \sum_{k,p} u_{kp}\, x_{kp}, \qquad
   \text{whole nodes: } \max \sum_{k,p} h_{kp}\, x_{kp}, \qquad
   \text{fragmentation: } \min \frac{1000}{W C} \sum_{k,p} \varphi_{kp}\, x_{kp}

with :math:`u_{kp} = 1` if running work is on the nodes of class *k* or *p* is not empty; :math:`h_{kp} = 1` if all
healthy cards of the class are wholly free, there is one, and *p* takes no card; and :math:`\varphi_{kp}` the idle
card units that each wanted task could not use, summed over the W wanted tasks, in the best arrangement of *p* (C
units a card, result in GPU-milli). Needs `configurations` with all patterns.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from placement.evaluate import demand
from placement.instance import Instance
from placement.models.core import Goal, Linear, Parts
from placement.models.whole_nodes import is_whole

NEEDS = ("counts", "configurations")


def add(m: Any, instance: Instance) -> None:
    """Add those goals of the three that are asked for."""
    parts: Parts = m.parts
    whole = [is_whole(instance, node_class) for node_class in instance.classes]
    used, kept, lost = [], [], []
    for (k, p), x in m.x.items():
        counts = m.patterns[k].counts[p]
        takes_cards = any(count and instance.shapes[s].gpus for s, count in enumerate(counts))
        used.append((int(instance.classes[k].in_use or any(counts)), x))
        kept.append((int(whole[k] and not takes_cards), x))
        lost.append((m.patterns[k].lost[p], x))
    goals = {"nodes": Linear.of(used), "whole_nodes": Linear.of(kept)}
    unit = Fraction(1000, max(1, int(demand(instance).sum())) * instance.card_units)
    goals["fragmentation"] = Linear.of(lost, unit=unit)
    for objective in sorted(parts.objectives & goals.keys()):
        parts.goals[Goal(objective)] = goals[objective]
