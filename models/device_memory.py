r"""Device memory: what tasks need on a card fits what is free there.

With :math:`m_t` the device memory that task *t* needs on each of its cards and :math:`M_u` what is free on card *u*, in
the instance's memory unit:

.. math:: \sum_t m_t\, a_{tu} \le M_u \quad\forall u.

Needs `assignment`.
"""

from __future__ import annotations

from math import inf
from typing import Any

from placement.instance import Instance
from placement.models.assignment import shape_of
from placement.models.core import add_rows

NEEDS = ("assignment",)


def add(m: Any, instance: Instance) -> None:
    """Add one row a card."""
    needing = [t for t in range(len(m.tasks)) if shape_of(m, t).gpus and shape_of(m, t).memory]
    rows = {
        (n, c): (
            -inf,
            [(shape_of(m, t).memory, m.a[t, n, c]) for t in needing],
            instance.classes[instance.node_class[n]].cards[c][2],
        )
        for n, c in m.cards
    }
    add_rows(m, "device_memory", rows)
