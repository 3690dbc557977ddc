"""Zones for tasks whose cards are chosen already, and cards for tasks whose zone is.

Rules that deal tasks out to cards, or exchange one task for another on the same cards, look at cards and at nodes; what
a task that is bound to NUMA zones takes of them is settled here. See `placement.instance.Zones`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from placement.exact.layouts.layout import Layout
from placement.instance import Bools, Instance, Ints
from placement.state import State

STEPS = 2000
"""Most choices of cards that are tried for the tasks of one zone."""


def cards_of(instance: Instance, positions: Sequence[int]) -> tuple[int, ...]:
    """Return the cards among what a task takes, without the zones."""
    return tuple(p for p in positions if p < instance.widest)


def zones_of(instance: Instance, positions: Sequence[int]) -> int:
    """Return the zones among what a task takes, as bits."""
    return sum(1 << p - instance.widest for p in positions if p >= instance.widest)


def zone_positions(instance: Instance, bits: int) -> list[int]:
    """Return the positions that stand for some zones, given as bits."""
    return [instance.widest + zone for zone in range(bits.bit_length()) if bits >> zone & 1]


class ZoneRoom:
    """What some nodes have within their zones, for many of them at a time: copies, to take of.

    Attributes
    ----------
    slack : int array (n, M, R)
        See `State.slack`.
    choices : list of int
        0 for tasks that are not bound, and all sets of zones that some task may be bound to, as bits.
    """

    def __init__(self, state: State, nodes: Ints, shapes: Ints) -> None:
        instance = state.instance
        self.zone, self.slack = state.zone[nodes], state.slack[nodes]
        of_node = instance.node_class[nodes]
        counts = [0 if c.zones is None else c.zones.count for c in instance.classes]
        self._needed = instance.bound[shapes].T[of_node]
        self._count = np.array(counts, dtype=np.int64)[of_node]
        self._sets_over = state.sets_over
        zones = range(int(self._count.max(initial=0)))
        self.choices = [
            sum(1 << zone for zone in some)
            for size in np.unique(np.append(self._needed, 0)).tolist()
            for some in itertools.combinations(zones, size)
        ]

    @classmethod
    def of(cls, state: State, nodes: Ints, shapes: Ints) -> ZoneRoom | None:
        """Return what there is to know, or None where no task is bound."""
        instance = state.instance
        if not instance.zoned or not instance.bound[np.ix_(shapes, np.unique(instance.node_class[nodes]))].any():
            return None
        return cls(state, nodes, shapes)

    def binds(self, bits: int, some: Ints, active: Ints) -> Bools:
        """Return on which nodes which tasks may be bound to just these zones, as (nodes, shapes)."""
        fits: Bools = self._needed[np.ix_(active, some)] == bits.bit_count()
        return np.asarray(fits & (bits >> self._count[active] == 0)[:, None])

    def inside(self, bits: int, active: Ints) -> Bools:
        """Return the cards in these zones, all for none, as (nodes, C)."""
        zone = self.zone[active]
        return np.asarray(bits >> zone & 1 == 1) if bits else np.ones(zone.shape, dtype=np.bool_)

    def room(self, bits: int, active: Ints) -> Ints:
        """Return what tasks bound to these zones may still take of each resource, as (nodes, R)."""
        if not bits:
            return np.full((len(active), self.slack.shape[2]), np.iinfo(np.int64).max)
        room: Ints = self.slack[active][:, self._sets_over(bits)].min(axis=1)
        return room

    def take(self, rows: Ints, zones: Ints, demand: Ints) -> None:
        """Take what one task on each of some nodes demands of the zones it is bound to."""
        for bits in np.unique(zones[zones > 0]).tolist():
            mine = zones == bits
            self.slack[np.ix_(rows[mine], self._sets_over(bits))] -= demand[mine][:, None]


def bound_on(layout: Layout, shape: int, node: int, cards: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return what a task takes on given cards: these, and the zones it is bound to if it is.

    Of several sets of zones that hold the cards, the one is taken of which least is left then. None if no set has
    enough for it.
    """
    instance, state = layout.instance, layout.state
    k = instance.node_class[node]
    size, zones = int(instance.bound[shape, k]) if instance.zoned else 0, instance.classes[k].zones
    if not size or zones is None:
        return cards
    within = {zones.card[card] for card in cards}
    best: tuple[list[int], tuple[int, ...]] | None = None
    for some in itertools.combinations(range(zones.count), size):
        if not within <= set(some):
            continue
        bits = sum(1 << zone for zone in some)
        left: Ints = state.slack[node, state.sets_over(bits)] - state.demand[shape]
        if (left >= 0).all():
            rank = (left.min(axis=0).tolist(), some)
            best = rank if best is None else min(best, rank)
    return None if best is None else (*cards, *(instance.widest + zone for zone in best[1]))


def into_zone(layout: Layout, node: int, zone: int, tasks: Sequence[int]) -> bool:
    """Place tasks that are bound to one zone in a given one, all or none; False too when the steps do not suffice."""
    instance, state = layout.instance, layout.state
    shapes = instance.shapes
    order = sorted(tasks, key=lambda s: (-shapes[s].gpus * shapes[s].units, -shapes[s].memory, s))
    left = STEPS

    def place(position: int) -> bool:
        nonlocal left
        if position == len(order):
            free: bool = (state.slack[node] >= 0).all() and (state.free[node] >= 0).all()
            return free
        shape = order[position]
        usable = np.flatnonzero(state.usable(shape, np.array([node]))[0] & (state.zone[node] == zone)).tolist()
        rooms = {c: (int(state.units[node, c]), int(state.memory[node, c]), int(state.kind[node, c])) for c in usable}
        seen = set()
        for cards in itertools.combinations(sorted(usable, key=lambda c: (rooms[c], c)), shapes[shape].gpus):
            like = tuple(rooms[c] for c in cards)
            left -= like not in seen
            if like in seen or left < 0:
                continue
            seen.add(like)
            layout.place(shape, node, (*sorted(cards), instance.widest + zone))
            if place(position + 1):
                return True
            layout.remove(node, len(layout.tasks[node]) - 1)
        return False

    return place(0)
