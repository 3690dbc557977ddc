r"""Shares: what tasks take of a card is at most what is free on it.

With :math:`\sigma_t` the share of one card that task *t* takes of each of its cards and :math:`f_u` the free share of
card *u*, both in card units (a whole card is :math:`\sigma_t = C`):

.. math:: \sum_t \sigma_t\, a_{tu} \le f_u \quad\forall u.

A whole card has one owner by this, for it leaves nothing. Shares of two cards are no card: each card has its own row.
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
    with_cards = [t for t in range(len(m.tasks)) if shape_of(m, t).gpus]
    rows = {
        (n, c): (
            -inf,
            [(shape_of(m, t).units, m.a[t, n, c]) for t in with_cards],
            instance.classes[instance.node_class[n]].cards[c][1],
        )
        for n, c in m.cards
    }
    add_rows(m, "shares", rows)
