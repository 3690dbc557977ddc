r"""Ladder rows: task sizes that divide one another, cards alone binding.

A pool *P* is a set of nodes that admit the same shapes and count in the same limits. The size :math:`g_s` of a
shape is its share of one card, or its number of whole cards times the units C of a card. For shape *s* admitted in
*P*, :math:`n_{sP}` tasks are placed there:

.. math::
   \sum_{\kappa, l:\, s(\kappa l) = s} N_{\kappa l} = \sum_P n_{sP} \quad\forall s, \qquad
   \sum_{s:\, g_s \ge u} \frac{g_s}{u}\, n_{sP} \le K_{uP} \quad\forall P, u,

for each size *u* of the pool's shapes, with :math:`K_{uP}` the blocks of size *u* in the pool: each node gives
:math:`\lfloor` wholly free cards / (u/C) :math:`\rfloor` if :math:`u \ge C`, each card :math:`\lfloor` free units /
u :math:`\rfloor` if :math:`u < C`. Limits bind sums over pools:

.. math:: \sum_{P \subseteq D_q} \sum_s d_{s\,r(q)}\, n_{sP} \le L_q \quad\forall q.

Necessary, because a task of size :math:`g \ge u` covers :math:`g/u` disjoint blocks of size *u*. Sufficient if
sizes divide one another and, where a shape takes whole cards, all divide C up to it and are multiples of C from it:
place the largest first, anywhere; each takes exactly :math:`g/u` blocks of every smaller size *u* from its node or
card, so the next size finds what its row promises.

`placement.ladder` has the pools, and says where this does not hold: other resources or device memory that could bind,
cards of one node that admit different shapes, tasks without cards, or shares of several cards. Needs `counts`.
"""

from __future__ import annotations

from math import inf
from typing import Any

from pyomo import core as pyo

from placement.instance import Instance
from placement.ladder import pools, size
from placement.ladder import unsupported as unsupported
from placement.models.capacity import limit_use
from placement.models.core import Parts, Terms, add_rows, placed_by_shape

NEEDS = ("counts",)


def add(m: Any, instance: Instance) -> None:
    """Add the variables and rows; ``m.pools`` has the pools."""
    parts: Parts = m.parts
    m.pools = parts.shared["ladder"] if "ladder" in parts.shared else pools(instance)
    parts.shared["ladder"] = m.pools
    m.n = pyo.Var([(s, p) for p, pool in enumerate(m.pools) for s in pool.shapes], domain=pyo.NonNegativeIntegers)
    placed = placed_by_shape(parts)
    link = {
        s: (0, [*terms, *((-1, m.n[s, p]) for p, pool in enumerate(m.pools) if s in pool.shapes)], 0)
        for s, terms in placed.items()
    }
    add_rows(m, "link", link)
    rungs = {}
    limited: dict[int, Terms] = {q: [] for q in range(len(instance.limits))}
    for p, pool in enumerate(m.pools):
        for u, blocks in pool.blocks.items():
            terms = [(g // u, m.n[s, p]) for s in pool.shapes if (g := size(instance, s)) >= u]
            rungs[p, u] = (-inf, terms, blocks)
        for q in pool.limits:
            resource = instance.limits[q].resource
            limited[q] += [(limit_use(instance.shapes[s], resource), m.n[s, p]) for s in pool.shapes]
    add_rows(m, "ladder", rungs)
    add_rows(m, "limits", {q: (-inf, terms, instance.limits[q].capacity) for q, terms in limited.items()})
