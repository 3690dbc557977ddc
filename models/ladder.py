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

`unsupported` says where this does not hold: other resources or device memory that could bind, cards of one node
that admit different shapes, tasks without cards, or shares of several cards. Needs `counts`.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np
import pyomo.environ as pyo

from placement.evaluate import demand
from placement.instance import Instance
from placement.models.capacity import limit_use
from placement.models.core import Parts, Terms, add_rows, placed_by_shape

NEEDS = ("counts",)


@dataclass(frozen=True, slots=True)
class Pool:
    """Nodes that admit the same shapes and count in the same limits.

    Attributes
    ----------
    classes : tuple of int
        Its node classes.
    shapes : tuple of int
        Shapes it admits.
    limits : tuple of int
    blocks : dict of int to int
        By size of its shapes: how many blocks of that size are free.
    """

    classes: tuple[int, ...]
    shapes: tuple[int, ...]
    limits: tuple[int, ...]
    blocks: dict[int, int]


def size(instance: Instance, shape: int) -> int:
    """Return the card units of all cards of a task."""
    return instance.shapes[shape].gpus * instance.shapes[shape].units


def unsupported(instance: Instance) -> str | None:
    """Return why ladder rows would not be exact, or None."""
    wanted = [int(s) for s in np.flatnonzero(demand(instance))]
    for s in wanted:
        task = instance.shapes[s]
        if not task.gpus:
            return "a task takes no card"
        if task.gpus > 1 and task.units < instance.card_units:
            return "a task takes shares of several cards"
    sizes = sorted({size(instance, s) for s in wanted})
    if sizes and sizes[-1] >= instance.card_units:
        sizes = sorted({*sizes, instance.card_units})
    for small, large in itertools.pairwise(sizes):
        if large % small:
            return f"task sizes do not divide one another: {small} and {large} units of {instance.card_units} a card"
    for number in range(len(instance.classes)):
        reason = _class_unsupported(instance, number, wanted)
        if reason:
            return reason
    return None


def _class_unsupported(instance: Instance, number: int, wanted: list[int]) -> str | None:
    node_class = instance.classes[number]
    let_in = [s for s in wanted if instance.admits_node[s, number]]
    open_cards = [card for card in node_class.cards if card[1] and any(instance.admits_card[let_in, card[0]])]
    for s in let_in:
        if len({bool(instance.admits_card[s, kind]) for kind, _, _ in open_cards}) > 1:
            return "a task may use some cards of a node and not others"
    here = _admitted(instance, number, wanted)
    total = demand(instance)
    for kind, units, memory in open_cards:
        asked = [(instance.shapes[s].memory, instance.shapes[s].units, int(total[s])) for s in here]
        if _most(asked, units) > memory:
            return f"device memory may bind on cards of model {instance.card_kinds[kind].model}"
    free_units = sum(units for _, units, _ in open_cards)
    for r, free in enumerate(node_class.free):
        asked = [(instance.shapes[s].demand[r], size(instance, s), int(total[s])) for s in here]
        if _most(asked, free_units) > free:
            return f"{instance.resources[r]} may bind"
    return None


def _most(asked: list[tuple[int, int, int]], units: int) -> Fraction:
    """Return what tasks can use at most where `units` are free, from (amount, units, tasks) by shape."""
    by_units = max((Fraction(amount, each) for amount, each, _ in asked), default=Fraction(0)) * units
    return min(by_units, Fraction(sum(amount * tasks for amount, _, tasks in asked)))


def _admitted(instance: Instance, number: int, wanted: list[int]) -> tuple[int, ...]:
    """Return the shapes that a node class admits on its cards."""
    kinds = {kind for kind, units, _ in instance.classes[number].cards if units}
    return tuple(
        s for s in wanted if instance.admits_node[s, number] and any(instance.admits_card[s, kind] for kind in kinds)
    )


def pools(instance: Instance) -> tuple[Pool, ...]:
    """Return the pools of an instance that ladder rows support."""
    wanted = [int(s) for s in np.flatnonzero(demand(instance))]
    members: dict[tuple[tuple[int, ...], tuple[int, ...]], list[int]] = {}
    for number, node_class in enumerate(instance.classes):
        shapes = _admitted(instance, number, wanted)
        if shapes:
            members.setdefault((shapes, node_class.limits), []).append(number)
    return tuple(
        Pool(tuple(classes), shapes, limits, _blocks(instance, classes, shapes))
        for (shapes, limits), classes in members.items()
    )


def _blocks(instance: Instance, classes: list[int], shapes: tuple[int, ...]) -> dict[int, int]:
    blocks = {}
    for u in sorted({size(instance, s) for s in shapes}):
        total = 0
        for number in classes:
            node_class = instance.classes[number]
            free = [units for kind, units, _ in node_class.cards if instance.admits_card[shapes[0], kind]]
            if u >= instance.card_units:
                mine = sum(units == instance.card_units for units in free) // (u // instance.card_units)
            else:
                mine = sum(units // u for units in free)
            total += mine * node_class.size
        blocks[u] = total
    return blocks


def add(m: Any, instance: Instance) -> None:
    """Add the variables and rows; ``m.pools`` has the pools."""
    parts: Parts = m.parts
    m.pools = pools(instance)
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
