"""What the tasks of one node get from each of its NUMA zones, and which NICs.

Zones are given out in three rounds, always as far as all others still find room (`room.py`), and in each round those
that can be in the fewest zones come first. In the first round tasks get NICs below the PCIe switches of their cards,
the switch next from which they have fewest for their cards there; of equal NICs the one of the first rail by name. In
the second they get what the zones of their cards have, that with most of the cards first. In the third they get the
rest: from a zone that has all of it, or of most resources all, and of those the one with least left, or else from the
one that has the largest part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from placement.numa.kinds import RESOURCES, Kind
from placement.numa.room import Room

NICS = RESOURCES.index("nics")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A new task on a node.

    Attributes
    ----------
    within : int
        Zones that it is bound to, as bits by their place in the file; 0 where it is not bound.
    cards : tuple of int
        Device indices.
    amounts : tuple of int
        What it asks for of each of `RESOURCES`, in whole numbers.
    """

    within: int
    cards: tuple[int, ...]
    amounts: tuple[int, ...]


@dataclass(slots=True)
class Given:
    """What a task gets.

    Attributes
    ----------
    amounts : tuple of dict of int to int
        For each of `RESOURCES` how much of it from which zone; nothing where zones do not count it.
    nics : list of int
        Which NICs, by their number in the node's list.
    """

    amounts: tuple[dict[int, int], ...] = field(default_factory=lambda: tuple({} for _ in RESOURCES))
    nics: list[int] = field(default_factory=list)


class Shared:
    """Shares the zones of a node among its new tasks.

    Parameters
    ----------
    kind : Kind
    capacity : sequence of (sequence of int or None)
        For each of `RESOURCES` what each zone has; None where zones do not count it.
    running : sequence of (int, int, int)
        A set of zones as bits, a resource and what running work takes of it within the set.
    held : collection of str
        NICs that running work holds by name.
    wanted : sequence of Wanted
    """

    def __init__(
        self,
        kind: Kind,
        capacity: Sequence[Sequence[int] | None],
        running: Sequence[tuple[int, int, int]],
        held: frozenset[str],
        wanted: Sequence[Wanted],
    ) -> None:
        self.kind, self.wanted = kind, wanted
        everything = (1 << len(kind.ids)) - 1
        self.within = [one.within or everything for one in wanted]
        self.rooms = [
            None
            if zones is None
            else Room(
                zones,
                [(bits, amount) for bits, resource, amount in running if resource == r],
                [(bits, one.amounts[r]) for bits, one in zip(self.within, wanted, strict=True)],
            )
            for r, zones in enumerate(capacity)
        ]
        self.left = [[0 if zones is None else one.amounts[r] for r, zones in enumerate(capacity)] for one in wanted]
        self.given = [Given() for _ in wanted]
        free = [number for number, (name, _, _) in enumerate(kind.nics) if name not in held]
        # tasks of a gang on different nodes come to the same rails, in whatever order these list them
        self.free = sorted(free, key=lambda number: (kind.rails[number], number))

    def result(self) -> list[Given]:
        """Return what each task gets."""
        of_switch = Counter(self.kind.nics[nic][2] for nic in self.free)
        switches = [
            Counter(self.kind.switch[card] for card in one.cards if card in self.kind.switch) for one in self.wanted
        ]
        near = [sum(of_switch[switch] for switch in some) for some in switches]
        narrow = sorted(range(len(self.wanted)), key=lambda task: (self.within[task].bit_count(), near[task], task))
        for task in narrow:
            self._below_switches(task, switches[task])
        for task in narrow:
            zones = Counter(self.kind.card[card] for card in self.wanted[task].cards)
            for zone in sorted(zones, key=lambda zone: (-zones[zone], zone)):
                self._give(task, zone)
        largest = sorted(narrow, key=lambda task: (self.within[task].bit_count(), *[-left for left in self.left[task]]))
        for task in largest:
            self._rest(task)
        return self.given

    def _below_switches(self, task: int, cards: Counter[int]) -> None:
        """Give a task NICs below the PCIe switches of its cards."""
        got: Counter[int] = Counter()
        while self.left[task][NICS] and cards:
            switch = min(cards, key=lambda one: (Fraction(got[one], cards[one]), one))
            nic = next((nic for nic in self.free if self.kind.nics[nic][2] == switch), None)
            if nic is None or not self._limit(task, self.kind.nics[nic][1], NICS):
                del cards[switch]
                continue
            self._take(task, self.kind.nics[nic][1], NICS, 1, [nic])
            got[switch] += 1

    def _rest(self, task: int) -> None:
        """Give a task all that it has not got yet."""
        left = self.left[task]
        while any(left):
            asked = [r for r in range(len(RESOURCES)) if left[r]]
            zones = [zone for zone in range(len(self.kind.ids)) if self.within[task] >> zone & 1]
            able = [zone for zone in zones if any(self._limit(task, zone, r) for r in asked)]
            if able:
                self._give(task, min(able, key=lambda zone: (self._rank(task, zone, asked), zone)))
                continue
            # there is too little in all zones together, which whatever judges the plan will say
            for r in asked:
                self._take(task, zones[0], r, left[r])

    def _rank(self, task: int, zone: int, asked: Sequence[int]) -> tuple[int, bool, Fraction, int]:
        """Return how well a zone gives what a task still asks for; least is best."""
        left, given = self.left[task], self.given[task].amounts
        limits = {r: self._limit(task, zone, r) for r in asked}
        whole = [r for r in asked if limits[r] == left[r]]
        used = any(zone in amounts for amounts in given)
        parts = sum((Fraction(limits[r], left[r]) for r in asked), Fraction(0))
        spare = sum(self._slack(zone, r) for r in asked) if len(whole) == len(asked) else 0
        return -len(whole), not used, -parts, spare

    def _slack(self, zone: int, resource: int) -> int:
        room = self.rooms[resource]
        return 0 if room is None else room.slack[1 << zone]

    def _limit(self, task: int, zone: int, resource: int) -> int:
        room = self.rooms[resource]
        return 0 if room is None else room.limit(zone, self.within[task], self.left[task][resource])

    def _give(self, task: int, zone: int) -> None:
        """Give a task as much from a zone as that can give."""
        for r in range(len(RESOURCES)):
            amount = self._limit(task, zone, r)
            if amount:
                self._take(task, zone, r, amount)

    def _take(self, task: int, zone: int, resource: int, amount: int, nics: Sequence[int] | None = None) -> None:
        room, given = self.rooms[resource], self.given[task]
        assert room is not None
        room.give(zone, self.within[task], amount)
        self.left[task][resource] -= amount
        given.amounts[resource][zone] = given.amounts[resource].get(zone, 0) + amount
        if resource == NICS:
            if nics is None:
                nics = [nic for nic in self.free if self.kind.nics[nic][1] == zone][:amount]
            given.nics += nics
            self.free = [nic for nic in self.free if nic not in nics]
