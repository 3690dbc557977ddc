r"""NUMA zones: within which zones of its node a task lies, for tasks that are bound to so many.

On node *n* task *t* is bound to :math:`b_{tn}` of its zones, 0 where it is not bound. With :math:`y_{tnB} \in \{0, 1\}`
for "task *t* lies within the zones *B* of *n*", for every set *B* of :math:`b_{tn} > 0` zones, it has one such set
where it runs, and cards of those zones alone; :math:`\zeta(u)` is the zone of card *u*:

.. math::
   \sum_B y_{tnB} = z_{tn} \quad\forall t, n : b_{tn} > 0, \qquad
   a_{tu} \le \sum_{B \ni \zeta(u)} y_{tnB} \quad\forall t, u : n(u) = n.

What it takes of CPU and memory may be split among its zones as the others leave it, and tasks that are not bound take
theirs anywhere. So amounts fit if and only if for every set *W* of zones and every resource *r* the tasks bound within
*W* ask for no more than the :math:`f_{nWr}` that *W* has for them (Hall's condition; whole NICs are split as well, for
the bounds are whole), beside the rows of the whole node:

.. math:: \sum_t d_{tr} \sum_{B \subseteq W} y_{tnB} \le f_{nWr} \quad\forall n, W, r.

Rows that say nothing are left out, and a set of zones that has too little for a task: the upper bound of that *y* is
0. Needs `assignment`, and `capacity` to mean anything.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import combinations
from math import comb, inf
from typing import Any

from pyomo import core as pyo

from placement.instance import Instance, NodeClass
from placement.models.assignment import shape_of
from placement.models.core import Row, Terms, add_rows

NEEDS = ("assignment",)


def add(m: Any, instance: Instance) -> None:
    """Add the variables and rows; nothing for an instance in which no task is bound."""
    if not instance.zoned:
        return
    m.within = pyo.Var(list(_index(m, instance)), domain=pyo.Binary)
    one: dict[Hashable, Row] = {}
    cards: dict[Hashable, Row] = {}
    amounts: dict[Hashable, Row] = {}
    for n in range(instance.nodes):
        node_class = instance.classes[instance.node_class[n]]
        mine = _by_task(m, n)
        for t, chosen in mine.items():
            one[t, n] = (0, [*((1, y) for y in chosen.values()), (-1, m.z[t, n])], 0)
            if shape_of(m, t).gpus:
                for c, zone in enumerate(node_class.zones.card if node_class.zones else ()):
                    covering: Terms = [(-1, y) for bits, y in chosen.items() if bits >> zone & 1]
                    cards[t, n, c] = (-inf, [(1, m.a[t, n, c]), *covering], 0)
        for w, r, bits, have in _sets(instance, node_class):
            within = {t: [y for some, y in chosen.items() if not some & ~bits] for t, chosen in mine.items()}
            asked = {t: shape_of(m, t).demand[r] for t, some in within.items() if some}
            if sum(asked.values()) <= have:
                continue
            inside = [(d, y) for t, d in asked.items() for y in within[t]]
            amounts[n, w, r] = (-inf, inside, have)
            for d, y in inside:
                if d > have:
                    y.setub(0)
    add_rows(m, "lies_within", one)
    add_rows(m, "cards_within", cards)
    add_rows(m, "zone_capacity", amounts)


def choices(instance: Instance, number: int) -> int:
    """Return the most sets of zones that a task may choose among on a node of a class."""
    zones = instance.classes[number].zones
    if zones is None:
        return 0
    return max((comb(zones.count, size) for size in set(instance.bound[:, number].tolist()) if size), default=0)


def chosen(m: Any) -> Iterator[tuple[int, list[int]]]:
    """Yield each bound task with the positions of its zones, in a solution; see `placement.instance.Assignment`."""
    if m.parts.instance.zoned:
        for (t, _, bits), y in m.within.items():
            if y.value:
                yield t, [m.parts.instance.widest + zone for zone in range(bits.bit_length()) if bits >> zone & 1]


def _index(m: Any, instance: Instance) -> Iterator[tuple[int, int, int]]:
    """Yield task, node and set of zones, as bits, of every variable."""
    for t, task in enumerate(m.tasks):
        for n in range(instance.nodes):
            k = int(instance.node_class[n])
            zones, size = instance.classes[k].zones, int(instance.bound[task.shape, k])
            if zones is not None and size and instance.admits_node[task.shape, k]:
                for some in combinations(range(zones.count), size):
                    yield t, n, sum(1 << zone for zone in some)


def _by_task(m: Any, node: int) -> dict[int, dict[int, Any]]:
    """Return the variables of a node by task and set of zones."""
    found: dict[int, dict[int, Any]] = {}
    for (t, n, bits), y in m.within.items():
        if n == node:
            found.setdefault(t, {})[bits] = y
    return found


def _sets(instance: Instance, node_class: NodeClass) -> Iterator[tuple[int, int, int, int]]:
    """Yield number, resource, zones and amount of every row that says something of a node's zones."""
    if node_class.zones is not None:
        for w, (bits, row) in enumerate(zip(instance.zone_sets, node_class.zones.slack, strict=True)):
            if bits >> node_class.zones.count == 0:
                yield from ((w, r, bits, have) for r, have in enumerate(row))
