"""Running MIG instances that leave their cards, put on the places that were counted for them.

Counts know nothing of hosts. Where none of the places of its sort has a host with what a mover asks for, it goes home,
and whatever was to have its slots does without them; in the end all of them can be at home, so there is always a way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from placement.exact.layouts.layout import Layout
from placement.exact.mig.places import Items, Spot, has_room
from placement.instance import Instance
from placement.state import State


@dataclass(frozen=True, slots=True)
class Mover:
    """A running task on a MIG instance that may move.

    Attributes
    ----------
    job, leaf, task : int
        As in `Assignment`; the job is one of those that wait in the instance.
    shape : int
    node, start : int
        Card and slot where it is.
    cost : float
        Of moving it, in the instance's unit of value.
    """

    job: int
    leaf: int
    task: int
    shape: int
    node: int
    start: int
    cost: float

    @property
    def home(self) -> Spot:
        """Where it is."""
        return self.node, self.start


def at_home(instance: Instance, movers: Sequence[Mover]) -> set[tuple[int, int]]:
    """Return shapes of movers that ask for more than their host has free without movers, and classes of its cards."""
    free = {number: np.array(one.free, dtype=np.int64) for number, one in enumerate(instance.classes)}
    short: dict[int, set[int]] = defaultdict(set)
    for mover in movers:
        if (free[int(instance.node_class[mover.node])] < instance.shapes[mover.shape].demand).any():
            short[int(instance.host[mover.node])].add(mover.shape)
    cards = np.flatnonzero(np.isin(instance.host, list(short)))
    return {(shape, int(instance.node_class[card])) for card in cards for shape in short[int(instance.host[card])]}


class Settling:
    """Movers on their way.

    Parameters
    ----------
    fresh : Instance
        With what waits; on its cards there are no movers.
    movers : sequence of Mover
    items : list of (int, list of int)
        Profile and shapes of each item.
    """

    def __init__(self, fresh: Instance, movers: Sequence[Mover], items: Items) -> None:
        assert fresh.slots is not None
        self.fresh, self.movers, self.items, self.slots = fresh, movers, items, fresh.slots
        self._item_of = {shape: item for item, (_, shapes) in enumerate(items) for shape in shapes}
        self.layout = Layout(fresh)
        self.places = [mover.home for mover in movers]
        self.left: dict[int, list[Spot]] = {}

    def settle(self, leaving: set[int], spots: Mapping[int, Sequence[Spot]]) -> None:
        """Put all movers somewhere; `places` says where, `left` which places of each item are left for others."""
        home = set(range(len(self.movers))) - leaving
        while stuck := self._stuck(home, leaving - home, spots):
            home |= stuck

    def _stuck(self, home: set[int], leaving: set[int], spots: Mapping[int, Sequence[Spot]]) -> set[int]:
        """Put these at home and those elsewhere, and return for which of those there is no place."""
        self.layout = Layout(self.fresh)
        self.places = [mover.home for mover in self.movers]
        for number in home:
            self._put(self.layout.state, number)
        self.left = {
            item: [spot for spot in mine if self._is_free(self.items[item][0], spot)] for item, mine in spots.items()
        }
        for number in sorted(leaving):
            mover, mine = self.movers[number], self._left_for(number)
            if mover.home in mine:  # where one like it was to be: it may as well stay
                mine.remove(mover.home)
                self._put(self.layout.state, number)
                home.add(number)
        placed: set[int] = set()
        for number in sorted(leaving - home):
            mover, mine = self.movers[number], self._left_for(number)
            if not has_room(self.layout.state, mover.shape, mover.node):
                # its host is overfilled, before anybody comes to it: on another card of it that is so as at home
                spot = next((one for one in mine if self._on_its_host(number, one)), None)
                if spot is not None:
                    self._take(number, spot)
                    placed.add(number)
        stuck = set()
        for number in sorted(leaving - home - placed, key=lambda number: (-self._asks(number), number)):
            mover, mine = self.movers[number], self._left_for(number)
            spot = next((one for one in mine if has_room(self.layout.state, mover.shape, one[0])), None)
            if spot is None:
                stuck.add(number)
            else:
                self._take(number, spot)
        return stuck

    def return_home(self) -> None:
        """Take movers home whose old places are free once it is known what starts, costly ones first."""
        state = self.layout.state
        away = [number for number, mover in enumerate(self.movers) if self.places[number] != mover.home]
        away.sort(key=lambda number: (-self.movers[number].cost, number))
        changed = True
        while changed:
            changed = False
            for number in away:
                mover, place = self.movers[number], self.places[number]
                if place == mover.home:
                    continue
                self._put(state, number, sign=-1)
                if self._is_free(self.fresh.shapes[mover.shape].profile, mover.home) and (
                    self._on_its_host(number, place) or has_room(state, mover.shape, mover.node)
                ):
                    self.places[number], changed = mover.home, True
                self._put(state, number)

    def _take(self, number: int, spot: Spot) -> None:
        """Put a mover on a place that is left."""
        self._left_for(number).remove(spot)
        self.places[number] = spot
        self._put(self.layout.state, number)

    def _on_its_host(self, number: int, spot: Spot) -> bool:
        return bool(self.fresh.host[spot[0]] == self.fresh.host[self.movers[number].node])

    def _put(self, state: State, number: int, sign: int = 1) -> None:
        node, start = self.places[number]
        state.place(self.movers[number].shape, node, (0, self.fresh.slot_base + start), sign=sign)

    def _left_for(self, number: int) -> list[Spot]:
        return self.left.setdefault(self._item_of[self.movers[number].shape], [])

    def _is_free(self, profile: int, spot: Spot) -> bool:
        node, start = spot
        return bool(self.slots.after[self.layout.state.slots[node], profile, start] >= 0)

    def _asks(self, number: int) -> int:
        return sum(self.fresh.shapes[self.movers[number].shape].demand)
