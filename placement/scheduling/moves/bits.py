"""Free cards of every node over time, as bits of whole numbers: what takes one move of a job a few operations.

Of each node there is a bit for each number of cards, set if so many are free (a thermometer code). Then "and" gives the
fewest that are free at two times, the set bits of all multiples of a task's cards are the tasks that fit, and taking
cards from a node moves its bits down.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import and_

import numpy as np

from placement.instance import Bools, Ints
from placement.scheduling.counts import Counted, Kind, Nodes, Profile, Small

Held = tuple[tuple[int, int], ...]
"""Bits of some nodes, and by how many they move down."""

Run = Callable[[int, Kind, Nodes], int]
"""Returns how long a job runs on some nodes of a kind."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What jobs of a class ask for on nodes of one kind.

    Attributes
    ----------
    kind : Kind
    tasks, cards : int
    fits : int
        The bits of which one is set for each task that fits.
    nodes : int
        One bit for each node.
    """

    kind: Kind
    tasks: int
    cards: int
    fits: int
    nodes: int


class Bits:
    """How cards of nodes are laid out as bits.

    Parameters
    ----------
    work : Counted
    nodes : int array, optional
        The nodes that there are bits for, rising; else all. The fewer, the faster.
    """

    def __init__(self, work: Counted, nodes: Ints | None = None) -> None:
        self._work = work
        self._nodes = np.arange(len(work.free)) if nodes is None else nodes
        self._names: list[int] | None = None if len(self._nodes) == len(work.free) else self._nodes.tolist()
        self.count, self.most = len(self._nodes), int(work.free[self._nodes].max(initial=0))
        self._column = sum(1 << level * self.count for level in range(self.most))
        self._asks: dict[tuple[int, int], Ask] = {}

    def ask(self, number: int, kind: int) -> Ask:
        """Return what jobs of a class ask for on nodes of one of their kinds, given both numbers."""
        key = number, kind
        if key not in self._asks:
            gang = self._work.gangs[number]
            one = gang.kinds[kind]
            nodes = _packed(np.isin(self._nodes, one.nodes))
            # of a task that is alone a node needs to show but one
            levels = range(gang.cards, self.most + 1, gang.cards) if gang.tasks > 1 else (gang.cards,)
            fits = sum(nodes << (level - 1) * self.count for level in levels)
            self._asks[key] = Ask(one, gang.tasks, gang.cards, fits, nodes)
        return self._asks[key]

    def row(self, free: Small) -> int:
        """Return the bits of free cards by node; fewer than none are none."""
        return _packed(free[self._nodes] >= np.arange(1, self.most + 1)[:, None])

    def named(self, places: Nodes) -> Nodes:
        """Return the nodes of places among the bits."""
        names = self._names
        return places if names is None else tuple((names[place], tasks) for place, tasks in places)

    def choose(self, free: int, ask: Ask) -> Nodes:
        """Return places of nodes for all tasks, as `best_fit` does, given bits that show that they fit."""
        count, nodes = self.count, ask.nodes
        if ask.tasks == 1:
            level = free >> (ask.cards - 1) * count
            while True:
                above = level >> count
                exact = level & ~above & nodes
                if exact:
                    return (((exact & -exact).bit_length() - 1, 1),)
                level = above
        left = ask.tasks
        found: list[tuple[int, int]] = []
        for most in range(self.most // ask.cards, 0, -1):
            for cards in range(most * ask.cards, (most + 1) * ask.cards):
                level = free >> (cards - 1) * count
                exact = level & ~(level >> count) & nodes
                while exact:
                    bit = exact & -exact
                    exact ^= bit
                    tasks = most if most < left else left
                    found.append((bit.bit_length() - 1, tasks))
                    left -= tasks
                    if not left:
                        found.sort()
                        return tuple(found)
        raise AssertionError("the tasks fit")

    def held(self, places: Nodes, cards: int) -> Held:
        """Return what tasks of so many cards hold at some places."""
        if len(places) == 1:
            ((place, tasks),) = places
            return ((self._column << place, tasks * cards * self.count),)
        by: dict[int, int] = {}
        for place, tasks in places:
            by[tasks] = by.get(tasks, 0) | self._column << place
        return tuple((mask, tasks * cards * self.count) for tasks, mask in by.items())

    def needed(self, held: Held) -> int:
        """Return the bits that are set where what is held is free."""
        return reduce(lambda found, one: found | one[0] & ((1 << one[1]) - 1), held, 0)


def _packed(bits: Bools) -> int:
    """Return a whole number of these bits, lowest first."""
    return int.from_bytes(np.packbits(bits, bitorder="little").tobytes(), "little")


class Future:
    """Free cards over time, of which jobs take some.

    Parameters
    ----------
    bits : Bits
    times, rows : list of int
        When anything changes, and the bits from then on.
    """

    __slots__ = ("_bits", "_rows", "_times")

    def __init__(self, bits: Bits, times: list[int], rows: list[int]) -> None:
        self._bits, self._times, self._rows = bits, times, rows

    @classmethod
    def of(cls, bits: Bits, profile: Profile) -> Future:
        """Return the free cards of a profile."""
        return cls(bits, profile.times(), [bits.row(free) for free in profile.free()])

    def copy(self) -> Future:
        """Return one that changes by itself."""
        return Future(self._bits, self._times.copy(), self._rows.copy())

    def take(self, held: Held, start: int, end: int) -> None:
        """Hold cards for a time."""
        if end <= start:
            return
        times, rows = self._times, self._rows
        first = bisect_left(times, start)
        if first == len(times) or times[first] != start:
            times.insert(first, start)
            rows.insert(first, rows[first - 1])
        last = bisect_left(times, end, first)
        if last == len(times) or times[last] != end:
            times.insert(last, end)
            rows.insert(last, rows[last - 1])
        for mask, shift in held:
            others = ~mask
            rows[first:last] = [row & others | (row & mask) >> shift for row in rows[first:last]]

    def earliest(self, job: int, ask: Ask, after: int, run: Run | None = None) -> tuple[int, int, Nodes, Held] | None:
        """Return when a job may start and end first, its nodes, and what it holds; None where that is never.

        Parameters
        ----------
        job : int
        ask : Ask
            Of its class.
        after : int
        run : callable, optional
            Tells how long it runs on its nodes, if that may be longer than on the best.
        """
        times, rows, bits = self._times, self._rows, self._bits
        fits, tasks, length = ask.fits, ask.tasks, ask.kind.least
        count = len(times)
        first = bisect_right(times, after) - 1
        start, place = after, first
        stop, free = start + length, fits
        while True:
            both = free & rows[place]
            if both.bit_count() >= tasks:
                free = both
            else:
                free = fits & rows[place]
                if free.bit_count() < tasks:
                    place += 1
                    while place < count and (rows[place] & fits).bit_count() < tasks:
                        place += 1
                    if place == count:
                        return None
                    first = place
                    free = fits & rows[place]
                else:
                    # not all of the rows so far go together with this one: the last ones that do
                    first = place
                    while True:
                        both = free & rows[first - 1]
                        if both.bit_count() < tasks:
                            break
                        free = both
                        first -= 1
                start = times[first]
                stop = start + length
            place += 1
            if place < count and times[place] < stop:
                continue
            places = bits.choose(reduce(and_, rows[first:place]), ask)
            held, nodes = bits.held(places, ask.cards), bits.named(places)
            end = stop if run is None else start + run(job, ask.kind, nodes)
            if end <= stop or self._holds(bits.needed(held), first, end):
                return start, end, nodes, held
            place = first + 1
            if place == count:
                return None
            first, start, free = place, times[place], fits
            stop = start + length

    def _holds(self, needed: int, first: int, end: int) -> bool:
        return all(row & needed == needed for row in self._rows[first : bisect_left(self._times, end)])
