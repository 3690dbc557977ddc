"""Which cards and NUMA zones of a node some tasks take: a depth-first search for where the quick rules fail.

What is left of cards and zones is all that the remaining tasks see, so a state from which they found no way is not
searched again: without this, tasks that are alike are tried in every order. And a state is left where the remaining
tasks ask for more than parts of their sizes can fill of the cards: contents that fill a node to the last unit have few
ways, and a card with a unit too many in it shows long before the last task has no place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations

import numpy as np

from placement.exact.layouts.layout import Layout
from placement.exact.packing.pack import FINEST, best_filling
from placement.instance import Ints

Room = tuple[int, int, int, int]
"""Kind, free units and free device memory of a card, and its zone."""


def arrange(layout: Layout, node: int, tasks: list[int], steps: int = 5000) -> bool:
    """Place tasks of given shapes on a node, all or none.

    Parameters
    ----------
    layout : Layout
        Changed in place if a way is found.
    node : int
    tasks : list of int
        Shapes.
    steps : int
        Most choices to try.

    Returns
    -------
    bool
        Whether they are placed; False also when the steps did not suffice.
    """
    state = layout.state
    need = state.demand[tasks].sum(axis=0)
    if (state.free[node] < need).any():
        return False
    search = _Search(layout, node, tasks, steps)
    if not search.place(0):
        return False
    for shape, spot in zip(search.order, search.chosen, strict=True):
        layout.place(shape, node, spot)
    return True


class _Search:
    """The search on one node.

    Attributes
    ----------
    order : list of int
        Shapes of the tasks as they are placed: those that are bound to zones first, and large ones first.
    chosen : list of tuple of int
        What each of them takes, by position; see `placement.instance.Assignment`.
    rooms : list of Room
        What is left of the cards.
    slack : int array (M, R)
        What tasks bound within sets of zones may still take.
    """

    def __init__(self, layout: Layout, node: int, tasks: list[int], steps: int) -> None:
        self.instance, state = layout.instance, layout.state
        number = int(self.instance.node_class[node])
        node_class, self.shapes = self.instance.classes[number], self.instance.shapes
        self.size: list[int] = self.instance.bound[:, number].tolist()
        self.order = sorted(tasks, key=self._largest_first)
        sizes = [self.shapes[s].gpus * self.shapes[s].units for s in self.order]
        self.rest = [sum(sizes[first:]) for first in range(len(sizes))]
        self.hopeless: set[tuple[int, tuple[Room, ...], bytes]] = set()
        self.chosen: list[tuple[int, ...]] = []
        self.zones = 0 if node_class.zones is None else node_class.zones.count
        of_card = (0,) * len(node_class.cards) if node_class.zones is None else node_class.zones.card
        self.rooms: list[Room] = [
            (int(state.kind[node, c]), int(state.units[node, c]), int(state.memory[node, c]), zone)
            for c, zone in enumerate(of_card)
        ]
        self.slack: Ints = state.slack[node].copy()
        self.demand, self.sets_over = state.demand, state.sets_over
        self.left = steps

    def _largest_first(self, s: int) -> tuple[bool, int, int, int]:
        task = self.shapes[s]
        return not self.size[s], -task.gpus * task.units, -task.memory, s

    def place(self, position: int) -> bool:
        """Place the tasks from a position on; return whether there is a way."""
        if position == len(self.order):
            return True
        key = (position, tuple(sorted(self.rooms)), self.slack.tobytes())
        # most nodes are arranged without a dead end, and then need no tables
        if key in self.hopeless or (self.hopeless and self._most(position) < self.rest[position]):
            self.hopeless.add(key)
            return False
        shape = self.order[position]
        for bits in self._zone_choices(shape):
            rows = self.sets_over(bits) if bits else None
            for cards in _choices(self._usable(shape, bits), self.rooms, self.shapes[shape].gpus):
                self.left -= 1
                if self.left < 0:
                    return False
                zones = (self.instance.widest + zone for zone in range(bits.bit_length()) if bits >> zone & 1)
                self.chosen.append((*sorted(cards), *zones))
                self._take(shape, cards, rows, 1)
                if self.place(position + 1):
                    return True
                self._take(shape, cards, rows, -1)
                self.chosen.pop()
        self.hopeless.add(key)
        return False

    def _most(self, position: int) -> int:
        """Return how much of the cards parts like the remaining tasks' can fill at most."""
        sizes = tuple(sorted({self.shapes[s].units for s in self.order[position:] if self.shapes[s].gpus}))
        filling = _filling(sizes, self.instance.card_units)
        return sum(filling[units] for _, units, _, _ in self.rooms)

    def _take(self, shape: int, cards: tuple[int, ...], rows: Ints | None, sign: int) -> None:
        """Take what a task needs, or with sign -1 give it back."""
        task = self.shapes[shape]
        for c in cards:
            kind, units, memory, zone = self.rooms[c]
            self.rooms[c] = (kind, units - sign * task.units, memory - sign * task.memory, zone)
        if rows is not None:
            self.slack[rows] -= sign * self.demand[shape]

    def _usable(self, shape: int, bits: int) -> list[int]:
        """Return the cards with room for one task's share, those with least left first."""
        task, admits = self.shapes[shape], self.instance.admits_card[shape]
        usable = [
            c
            for c, (kind, units, memory, zone) in enumerate(self.rooms)
            if admits[kind] and units >= task.units and memory >= task.memory and (not bits or bits >> zone & 1)
        ]
        usable.sort(key=lambda c: (self.rooms[c][1], self.rooms[c][2], c))
        return usable

    def _zone_choices(self, shape: int) -> Iterator[int]:
        """Yield the sets of zones, as bits, that a task may be bound to; 0 where it is not bound."""
        if not self.size[shape]:
            yield 0
            return
        tried = set()
        single = all(not bits & (bits - 1) for bits in self.instance.zone_sets)
        for some in combinations(range(self.zones), self.size[shape]):
            bits = sum(1 << zone for zone in some)
            rows = self.sets_over(bits)
            if (self.slack[rows] < self.demand[shape]).any():
                continue
            if single:  # zones that are alike are interchangeable
                cards = tuple(sorted(room[:3] for room in self.rooms if bits >> room[3] & 1))
                alike = cards, self.slack[rows].tobytes()
                if alike in tried:
                    continue
                tried.add(alike)
            yield bits


def _choices(usable: list[int], rooms: list[Room], count: int, first: int = 0) -> Iterator[tuple[int, ...]]:
    """Yield the ways to choose some usable cards; equal cards are taken in order."""
    if not count:
        yield ()
        return
    tried: set[Room] = set()
    for i in range(first, len(usable) - count + 1):
        room = rooms[usable[i]]
        if room in tried:
            continue
        tried.add(room)
        for rest in _choices(usable, rooms, count - 1, i + 1):
            yield (usable[i], *rest)


@lru_cache(maxsize=4096)
def _filling(sizes: tuple[int, ...], units: int) -> Sequence[int]:
    """Return, for each room of a card, the most that parts of these sizes fill of it, or may fill."""
    if units > FINEST:
        return range(units + 1)
    return tuple(best_filling(np.array(sizes, dtype=np.int64), units).tolist())
