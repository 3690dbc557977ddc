"""Free runs: the stretches of free memory slots on MIG cards, counted by kind, and instances dealt out to them.

An instance lies in one run, and what is on one run does not matter to another. So cards need not be told apart: only
how many runs there are between which slots, on which model, and which tasks their cards admit. Media engines are shared
by all runs of a card; where they can run out a whole card is one kind of run, and what it can hold is listed.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from placement.hardware.mig import Geometry, Profile
from placement.mig.slots import Card, Slots, room

T = TypeVar("T")

MOST_CONTENTS = 20_000
"""Contents of one card that are listed."""


class TooMany(Exception):  # noqa: N818 - not an error: what is asked for is left to others
    """A card can hold too many different things."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an instance of a profile may lie in a run.

    Attributes
    ----------
    profile : int
        See `Slots.profiles`.
    start, size : int
        First slot and number of slots.
    loss : int
        How much room of the run an instance takes there, if it is alone in it; see `placement.mig.slots.room`. Of
        runs alike it is least in a short one, and within a run at the slot that leaves most.
    """

    profile: int
    start: int
    size: int
    loss: int = 0


@dataclass(frozen=True, slots=True)
class Run:
    """A kind of free run.

    Attributes
    ----------
    admits : bytes
        Which items its cards admit, as a mask; see `placement.models.mig`.
    places : tuple of Place
        For instances of the profiles asked for.
    state : int
        State of the whole card where what it can hold is listed; -1 where the slots alone say what fits.
    """

    admits: bytes
    places: tuple[Place, ...]
    state: int = -1

    @property
    def slots(self) -> range:
        """From the first slot that some instance can take to the last."""
        ends = [place.start + place.size for place in self.places]
        return range(min(place.start for place in self.places), max(ends))


def runs_of(slots: Slots, state: int, admits: bytes, whole: bool = False) -> Iterator[Run]:
    """Yield the free runs of a card, or the whole of it as one; those that no instance fits in are left out."""
    card = slots.cards[state]
    places = [
        Place(p, start, profile.size)
        for p, profile in _profiles(slots, card)
        for start in card.board.starts(profile)
        if card.plus(profile, start) is not None
    ]
    if card.board.watched or whole:
        if places:
            yield Run(admits, tuple(places), state)
        return
    for first, end in _free(card):
        mine = [place for place in places if first <= place.start and place.start + place.size <= end]
        if mine:
            yield Run(admits, tuple(_with_loss(card.board.geometry, first, end, mine)))


def _with_loss(geometry: Geometry, first: int, end: int, places: Sequence[Place]) -> Iterator[Place]:
    """Yield the places of a run with what each loses of the room in it."""
    beside = ~(((1 << end) - 1) & ~((1 << first) - 1)) & ((1 << geometry.slots) - 1)
    whole = room(geometry, beside)
    for place in places:
        left = room(geometry, beside | ((1 << place.size) - 1) << place.start)
        yield replace(place, loss=whole - left)


def _profiles(slots: Slots, card: Card) -> Iterator[tuple[int, Profile]]:
    for p in range(len(slots.profiles)):
        profile = slots.profile(card, p)
        if profile is not None:
            yield p, profile


def _free(card: Card) -> Iterator[tuple[int, int]]:
    """Yield first slot and end of each stretch of free slots; an instance that stays is one by itself."""
    if card.board.existing is not None:
        for name, start in card.board.existing:
            profile = card.board.geometry.profile(name)
            if profile is not None and not card.bits & profile.bits(start):
                yield start, start + profile.size
        return
    first = 0
    for slot in range(card.board.geometry.slots + 1):
        if slot == card.board.geometry.slots or card.bits >> slot & 1:
            if slot > first:
                yield first, slot
            first = slot + 1


def contents(slots: Slots, state: int) -> list[tuple[int, ...]]:
    """Return how many instances of each profile a card can take at once: the contents to which none can be added.

    Raises
    ------
    TooMany
        If there are more than `MOST_CONTENTS`.
    """
    empty = (0,) * len(slots.profiles)
    reached: dict[tuple[int, ...], set[int]] = {empty: {state}}
    todo = [empty]
    maximal: list[tuple[int, ...]] = []
    while todo:
        counts = todo.pop()
        grown = False
        for p in range(len(slots.profiles)):
            more = (*counts[:p], counts[p] + 1, *counts[p + 1 :])
            after = {one for card in reached[counts] for one in slots.following(card, p)}
            if not after:
                continue
            grown = True
            if more not in reached:
                reached[more] = set()
                todo.append(more)
            if not after <= reached[more]:
                reached[more] |= after
                if more not in todo:
                    todo.append(more)
            if len(reached) > MOST_CONTENTS:
                raise TooMany
        if not grown:
            maximal.append(counts)
    return sorted(set(maximal))


def arranged(slots: Slots, state: int, counts: Sequence[int]) -> list[tuple[int, int]]:
    """Return profile and first slot of each instance of a content, so that most room is left.

    Raises
    ------
    ValueError
        If the card cannot hold it.
    """
    todo = [p for p, count in enumerate(counts) for _ in range(count)]
    ways: dict[int, list[tuple[int, int]]] = {state: []}
    for p in todo:
        grown: dict[int, list[tuple[int, int]]] = {}
        for card, taken in ways.items():
            for start, after in enumerate(slots.after[card, p].tolist()):
                if after >= 0:
                    grown.setdefault(after, [*taken, (p, start)])
        ways = grown
    if not ways:
        raise ValueError(f"a card in state {state} does not hold {tuple(counts)}")
    return ways[max(ways, key=lambda card: (int(slots.left[card]), -card))]


def dealt(intervals: Iterable[tuple[int, int, T]], runs: int) -> list[list[tuple[int, T]]]:
    """Return the instances of each of some equal runs, given those in all of them as (first slot, size, what it is).

    Intervals of which at most so many cover any slot can be given that many colours: they are taken from left to right,
    each gets a run that is free again, and there always is one (interval graphs are perfect). Runs in front are taken
    first, so that as many as possible stay wholly free.

    Raises
    ------
    ValueError
        If some slot is covered more often than there are runs.
    """
    found: list[list[tuple[int, T]]] = [[] for _ in range(runs)]
    free = list(range(runs))
    ends: list[tuple[int, int]] = []
    for start, size, what in sorted(intervals, key=lambda interval: (interval[0], -interval[1])):
        while ends and ends[0][0] <= start:
            heapq.heappush(free, heapq.heappop(ends)[1])
        if not free:
            raise ValueError(f"slot {start} is taken more than {runs} times")
        run = heapq.heappop(free)
        found[run].append((start, what))
        heapq.heappush(ends, (start + size, run))
    return found
