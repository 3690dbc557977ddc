r"""What tasks that are bound to one NUMA zone leave no room for, counted over the zones of a pool.

Pools count what nodes have free in all, which forgets zones: that is a relaxation, and its bounds hold. Tasks that lie
within one zone on every node of a pool that could take them allow for more. Let *s* be their shapes, :math:`d_{sr}`
what one takes of *r*, which is a resource that zones count or wholly free cards, of which tasks of whole cards take
:math:`d_{sr} = g_s`; and :math:`f_{izr}` what zone *z* of node *i* has of it for tasks bound within. Every placement
has :math:`\sum_s d_{sr} n_{siz} \le f_{izr}` with :math:`n_{siz}` such tasks in a zone, so for every :math:`u > 0`

.. math:: \sum_s \lfloor d_{sr} / u \rfloor\, n_{siz} \;\le\; \lfloor f_{izr} / u \rfloor, \qquad
   \sum_s \lfloor d_{sr} / u \rfloor\, n_{sk} \;\le\; \sum_{i \in k} \sum_z \lfloor f_{izr} / u \rfloor,

for the left side of the first is whole and at most :math:`f_{izr} / u`, and the second is the sum of it. The amounts
*u* are those that the tasks take. Running work can only lessen what zones have beside others (see
`placement.instance.Zones`), so :math:`f_{izr}` is never too small. And of one shape alone a node takes no more than
its zones do, one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placement.instance import Bools, Instance, Ints
from placement.state import State

MOST_AMOUNTS = 8
"""Amounts of each resource for which there is a row: the largest, since what is small leaves little over."""


@dataclass(frozen=True, slots=True)
class ZoneRow:
    """A row over tasks that are bound to one zone.

    Attributes
    ----------
    weight : dict of int to int
        By shape: how often what a task takes holds the amount of the row; those of 0 left out.
    room : int
        What the zones of the pool have room for.
    """

    weight: dict[int, int]
    room: int


def zone_counts(instance: Instance, nodes: Ints) -> Ints:
    """Return how many zones each node has, 0 where they do not matter."""
    counts = [0 if c.zones is None else c.zones.count for c in instance.classes]
    return np.array(counts, dtype=np.int64)[instance.node_class[nodes]]


def most_within(state: State, some: Ints, nodes: Ints, parts: Ints, room: Ints) -> Ints:
    """Return the most tasks of some shapes on each of some nodes, where tasks lie within one zone.

    Parameters
    ----------
    state : State
    some : int array (S,)
        Shapes.
    nodes : int array (N,)
    parts : int array (S, N, C)
        How many parts of one task each card has room for.
    room : int array (S, N)
        The most tasks as far as whole nodes tell.
    """
    instance = state.instance
    gpus = np.array([instance.shapes[s].gpus for s in some.tolist()], dtype=np.int64)[:, None]
    asked = state.demand[some][:, None, :]
    counts, zone = zone_counts(instance, nodes), state.zone[nodes]
    within = np.zeros_like(room)
    for number in range(int(counts.max(initial=0))):
        inside = np.where((zone == number)[None], parts, 0)
        cards = np.where((inside > 0).sum(axis=2) >= gpus, inside.sum(axis=2) // np.maximum(gpus, 1), 0)
        slack = np.maximum(state.slack[nodes, instance.zone_sets.index(1 << number)], 0)
        amounts = np.where(asked > 0, slack[None] // np.maximum(asked, 1), np.iinfo(np.int32).max)
        fits = amounts.min(axis=2, initial=np.iinfo(np.int32).max)
        fits = np.where(gpus > 0, np.minimum(fits, cards), fits)
        within += np.where(number < counts, fits, 0)
    single = instance.bound[some][:, instance.node_class[nodes]] == 1
    return np.where(single, np.minimum(room, within), room)


def zone_rows(state: State, nodes: Ints, times: Ints, shapes: Sequence[int], there: Bools) -> tuple[ZoneRow, ...]:
    """Return the rows of a pool.

    Parameters
    ----------
    state : State
    nodes, times : int arrays (N,)
        See `placement.models.pools.Pool`.
    shapes : sequence of int
        Those that some node of the pool could take.
    there : bool array (shapes, N)
        Which nodes could take them.
    """
    instance = state.instance
    bound = instance.bound[list(shapes)][:, instance.node_class[nodes]]
    single = [s for s, mine in zip(shapes, ((bound == 1) | ~there).all(axis=1).tolist(), strict=True) if mine]
    rows: list[ZoneRow] = []
    if not single:
        return ()
    counts = zone_counts(instance, nodes)
    cards = {s: instance.shapes[s].gpus for s in single if instance.shapes[s].units == instance.card_units}
    rows += _rows(cards, _free_cards(state, nodes, counts), times)
    free = _slack(state, nodes, counts)
    for r in range(len(instance.resources)):
        rows += _rows({s: instance.shapes[s].demand[r] for s in single}, free[:, :, r], times)
    return tuple(rows)


def _free_cards(state: State, nodes: Ints, counts: Ints) -> Ints:
    """Return the wholly free cards of each zone of some nodes."""
    whole = (state.units[nodes] == state.instance.card_units) & (state.kind[nodes] >= 0)
    zones = range(int(counts.max(initial=0)))
    return np.stack([(whole & (state.zone[nodes] == zone)).sum(axis=1) for zone in zones], axis=1).astype(np.int64)


def _slack(state: State, nodes: Ints, counts: Ints) -> Ints:
    """Return what each zone of some nodes has for tasks bound within it, by resource."""
    zones = range(int(counts.max(initial=0)))
    rows = [state.instance.zone_sets.index(1 << zone) for zone in zones]
    there = np.array([counts > zone for zone in zones], dtype=np.bool_).T
    return np.where(there[:, :, None], np.maximum(state.slack[nodes][:, rows], 0), 0).astype(np.int64)


def _rows(asked: dict[int, int], free: Ints, times: Ints) -> list[ZoneRow]:
    """Return the rows of one resource, given what one task of each shape takes and zones of nodes have."""
    amounts = sorted({amount for amount in asked.values() if amount > 1}, reverse=True)[:MOST_AMOUNTS]
    return [
        ZoneRow({s: amount // u for s, amount in asked.items() if amount >= u}, int(times @ (free // u).sum(axis=1)))
        for u in amounts
    ]
