"""How tasks lie on the cards and in the NUMA zones of one node, where some tasks are bound to zones.

A state is what each zone has left: its cards, and what tasks bound within it may still take. Where tasks are bound to
single zones and nothing is counted for several together, zones that are alike are interchangeable, and states have
them in order; else a state also has what is left of each set of zones (see `placement.instance.Zones`), and zones keep
their numbers. Amounts that can never run out are left out of the state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations

from placement.instance import Instance, Zones
from placement.models.arranger import UNLIMITED, Arranger, Card, Cards, State, Taken, choose, less

_Zone = tuple[int, Cards, tuple[int, ...]]
"""Number, 0 where zones are interchangeable; cards; and what tasks bound to the zone may take of each resource."""


class ZonedArranger(Arranger):
    """Arranges tasks on the cards and in the zones of one node of a class; see `Arranger`.

    A state is (what is left of sets of zones, zones); what a task takes is (zones it is bound to, cards with their
    zones), by place in the state before.
    """

    def __init__(self, instance: Instance, number: int, work: int = 100_000) -> None:
        super().__init__(instance, number, work)
        zones = self.node_class.zones
        assert zones is not None, "a class on which a task is bound has zones"
        self.zones: Zones = zones
        self.size: list[int] = instance.bound[:, number].tolist()
        needed = [
            sum(int(self.wanted[s]) * instance.shapes[s].demand[r] for s in self.shapes if self.size[s])
            for r in range(len(instance.resources))
        ]
        single = {bits: row for bits, row in zip(instance.zone_sets, zones.slack, strict=True) if not bits & (bits - 1)}
        self.numbered = not self._interchangeable(single)
        self.alone: list[tuple[int, ...]] = [()] * zones.count
        self.sets: list[tuple[int, int, int]] = []  # zones as bits, resource, and what tasks bound within may take
        if self.numbered:
            self.sets = [
                (bits, r, have)
                for bits, row in zip(instance.zone_sets, zones.slack, strict=True)
                for r, have in enumerate(row)
                if bits >> zones.count == 0 and have < needed[r]
            ]
        else:
            self.alone = [
                tuple(have if have < most else UNLIMITED for have, most in zip(single[1 << zone], needed, strict=True))
                for zone in range(zones.count)
            ]
        self.over: dict[int, list[int]] = {}

    def _interchangeable(self, single: dict[int, tuple[int, ...]]) -> bool:
        """Return whether what single zones have says all that sets of zones do."""
        if any(self.size[s] > 1 for s in self.shapes):
            return False
        for bits, row in zip(self.instance.zone_sets, self.zones.slack, strict=True):
            inside = [single[1 << zone] for zone in range(self.zones.count) if bits >> zone & 1]
            if bits >> self.zones.count == 0 and any(
                have < sum(parts) for have, *parts in zip(row, *inside, strict=True)
            ):
                return False
        return True

    def _pairs(self) -> int:
        """Return 0: pairs are counted by cards, and zones may part them."""
        return 0

    # --- states -----------------------------------------------------------------------------------------------

    def begin(self) -> State:
        """Return the state of a node without new tasks."""
        return tuple(have for _, _, have in self.sets), tuple(sorted(self._zones()))

    def _zones(self) -> list[_Zone]:
        cards: list[list[Card]] = [[] for _ in range(self.zones.count)]
        for card, zone in zip(self.start, self.zones.card, strict=True):
            cards[zone].append(card)
        return [
            (zone if self.numbered else 0, tuple(sorted(mine)), self.alone[zone]) for zone, mine in enumerate(cards)
        ]

    def cards_of(self, state: State) -> Cards:
        """Return the cards in a state."""
        return tuple(card for _, cards, _ in state[1] for card in cards)

    def ways(self, state: State, shape: int) -> list[tuple[Taken, State]]:
        """Return (zones and cards taken, state after) for every way to give a task both, equal ones being equal."""
        zones: tuple[_Zone, ...] = state[1]
        found: list[tuple[Taken, State]] = []
        for within in self._within(state, shape):
            there = Counter((place, card) for place in within or range(len(zones)) for card in zones[place][1])
            room = [(spot, count) for spot, count in sorted(there.items()) if self.has_room(spot[1], shape)]
            choices = list(choose(room, self.instance.shapes[shape].gpus))
            self.worked(len(choices) + 1)
            found += [((within, cards), self._after(state, shape, within, cards)[0]) for cards in choices]
        return found

    def _within(self, state: State, shape: int) -> Iterator[tuple[int, ...]]:
        """Yield the zones that a task may be bound to, by place in the state; none where it is not bound."""
        if not self.size[shape]:
            yield ()
            return
        asked = self.instance.shapes[shape].demand
        left, zones = state
        for some in combinations(range(len(zones)), self.size[shape]):
            if not self.numbered:
                if some[0] and zones[some[0]] == zones[some[0] - 1]:
                    continue
                amounts = zip(zones[some[0]][2], asked, strict=True)
                fits = all(have == UNLIMITED or have >= amount for have, amount in amounts)
            else:
                fits = all(left[i] >= asked[self.sets[i][1]] for i in self._sets_over(some))
            if fits:
                yield some

    def _sets_over(self, some: Sequence[int]) -> list[int]:
        """Return which of the sets hold all of some zones."""
        bits = sum(1 << zone for zone in some)
        if bits not in self.over:
            self.over[bits] = [i for i, (over, _, _) in enumerate(self.sets) if not bits & ~over]
        return self.over[bits]

    def _after(
        self, state: State, shape: int, within: tuple[int, ...], cards: Sequence[tuple[int, Card]]
    ) -> tuple[State, list[int]]:
        """Return the state after a task took some cards, and the places that its zones had before."""
        asked = self.instance.shapes[shape].demand
        left, zones = list(state[0]), list(state[1])
        for place in {place for place, _ in cards}:
            number, mine, alone = zones[place]
            zones[place] = (number, self.without(mine, [card for other, card in cards if other == place], shape), alone)
        if self.numbered:
            for i in self._sets_over(within) if within else ():
                left[i] -= asked[self.sets[i][1]]
        elif within:
            number, mine, alone = zones[within[0]]
            rest = (have if have == UNLIMITED else have - amount for have, amount in zip(alone, asked, strict=True))
            zones[within[0]] = (number, mine, tuple(rest))
        order = sorted(range(len(zones)), key=lambda place: (zones[place], place))
        return (tuple(left), tuple(zones[place] for place in order)), order

    # --- places -----------------------------------------------------------------------------------------------

    def positions(self, order: Sequence[int], chosen: Sequence[Taken]) -> list[tuple[int, tuple[int, ...]]]:
        """Return (shape, canonical positions) of tasks of some shapes, in order, that take what was chosen."""
        begin = self._zones()
        zone_at = sorted(range(len(begin)), key=lambda zone: (begin[zone], zone))  # by place in the state
        state, now = self.begin(), list(self.start)
        placed = []
        for s, (within, cards) in zip(order, chosen, strict=True):
            positions: list[int] = []
            for place, card in cards:
                positions.append(
                    next(
                        i
                        for i, mine in enumerate(now)
                        if mine == card and self.zones.card[i] == zone_at[place] and i not in positions
                    )
                )
            for position in positions:
                now[position] = less(now[position], self.instance.shapes[s])
            bound = sorted(self.instance.widest + zone_at[place] for place in within)
            placed.append((s, (*sorted(positions), *bound)))
            state, moved = self._after(state, s, within, cards)
            zone_at = [zone_at[place] for place in moved]
        return placed
