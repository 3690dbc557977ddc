r"""Fragmentation, device level: idle GPU that the wanted tasks could not use.

For node *n*, :math:`R_n = \sum_u r_u` is the idle GPU of its healthy cards and :math:`p_s` the number of wanted
tasks of shape *s* among all W. A task of shape *s* could use :math:`q_{su}` of card *u*: all that is idle there if
the card has room for one task's part and *n* could take the task, else nothing. With :math:`e_{su}, b_{sn} \in \{0,
1\}` for "card *u* has room" and "node *n* could take it",

.. math::
   \min \frac1W \sum_s p_s \sum_n \Big( R_n - \sum_{u \in n} q_{su} \Big), \qquad
   r_u = f_u - \sum_t \sigma_t a_{tu},

.. math::
   q_{su} \le r_u, \quad q_{su} \le f_u e_{su}, \quad
   \sigma_s e_{su} \le r_u, \quad m_s e_{su} \le M_u - \sum_t m_t a_{tu}, \\
   e_{su} \le b_{sn}, \quad g_s b_{sn} \le \sum_{u \in n} e_{su}, \quad
   d_{sr} b_{sn} \le f_{nr} - \sum_t d_{tr} z_{tn}.

Fewer e, b or q than the truth only count more as lost, so the optimum is exact. Sums are whole multiples of
:math:`1000 / (W C)` GPU-milli, C being the units of a card. Source of the measure: Weng et al., "Beware of
Fragmentation" (ATC'23), section 3. Needs `assignment`, and `shares`, `device_memory`, `capacity` to mean anything.
"""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np
from pyomo import core as pyo

from placement.evaluate import demand
from placement.instance import Instance
from placement.models.assignment import shape_of
from placement.models.core import Goal, Linear, Row, Terms, add_rows

NEEDS = ("assignment",)


def add(m: Any, instance: Instance) -> None:
    """Add the variables, rows and the goal."""
    wanted = demand(instance)
    usable = [
        (int(s), n, c)
        for s in np.flatnonzero(wanted)
        for n, c in m.cards
        if instance.shapes[s].gpus
        and instance.admits_node[s, instance.node_class[n]]
        and instance.admits_card[s, instance.classes[instance.node_class[n]].cards[c][0]]
    ]
    m.room_on_card = pyo.Var(usable, domain=pyo.Binary)
    m.room_on_node = pyo.Var(sorted({(s, n) for s, n, _ in usable}), domain=pyo.Binary)
    m.could_use = pyo.Var(usable, domain=pyo.NonNegativeIntegers)
    for (_, n, c), variable in m.could_use.items():
        variable.setub(instance.classes[instance.node_class[n]].cards[c][1])
    _card_rows(m, instance, usable)
    _node_rows(m, instance)
    terms: Terms = []
    constant = 0
    total = int(wanted.sum())
    for n, c in m.cards:
        kind, units, _ = instance.classes[instance.node_class[n]].cards[c]
        if instance.card_kinds[kind].healthy:
            constant += total * units
            terms += [(-total * units_, variable) for units_, variable in _on_card(m, n, c, "units")]
    terms += [(-int(wanted[s]), m.could_use[s, n, c]) for s, n, c in usable]
    unit = Fraction(1000, max(1, total) * instance.card_units)
    m.parts.goals[Goal("fragmentation")] = Linear.of(terms, constant, unit)


def _on_card(m: Any, n: int, c: int, amount: str) -> Terms:
    """Return what new tasks take of a card."""
    with_cards = [t for t in range(len(m.tasks)) if shape_of(m, t).gpus]
    return [(getattr(shape_of(m, t), amount), m.a[t, n, c]) for t in with_cards]


def _card_rows(m: Any, instance: Instance, usable: list[tuple[int, int, int]]) -> None:
    idle: dict[Hashable, Row] = {}
    if_room: dict[Hashable, Row] = {}
    share: dict[Hashable, Row] = {}
    memory: dict[Hashable, Row] = {}
    node: dict[Hashable, Row] = {}
    for s, n, c in usable:
        _, units, free_memory = instance.classes[instance.node_class[n]].cards[c]
        taken, held = _on_card(m, n, c, "units"), _on_card(m, n, c, "memory")
        e, q, b = m.room_on_card[s, n, c], m.could_use[s, n, c], m.room_on_node[s, n]
        idle[s, n, c] = (-inf, [(1, q), *taken], units)
        if_room[s, n, c] = (-inf, [(1, q), (-units, e)], 0)
        share[s, n, c] = (-inf, [(instance.shapes[s].units, e), *taken], units)
        memory[s, n, c] = (-inf, [(instance.shapes[s].memory, e), *held], free_memory)
        node[s, n, c] = (-inf, [(1, e), (-1, b)], 0)
    named = {"at_most_idle": idle, "only_with_room": if_room, "share_room": share, "memory_room": memory}
    for name, rows in (named | {"card_of_node": node}).items():
        add_rows(m, name, rows)


def _node_rows(m: Any, instance: Instance) -> None:
    enough: dict[Hashable, Row] = {}
    resources: dict[Hashable, Row] = {}
    for (s, n), b in m.room_on_node.items():
        shape = instance.shapes[s]
        cards = [(1, m.room_on_card[key]) for key in m.room_on_card if key[0] == s and key[1] == n]
        enough[s, n] = (0, [*cards, (-shape.gpus, b)], inf)
        free = instance.classes[instance.node_class[n]].free
        for r, amount in enumerate(shape.demand):
            if amount:
                used = [(d, m.z[t, n]) for t in range(len(m.tasks)) if (d := shape_of(m, t).demand[r])]
                resources[s, n, r] = (-inf, [(amount, b), *used], free[r])
    add_rows(m, "enough_cards", enough)
    add_rows(m, "resource_room", resources)
