"""Node patterns: every set of tasks that one node of a class can take at once, card by card.

A pattern is a number of tasks of each shape. It is feasible if the node's resources suffice and the tasks can be
given cards, shares and device memory; all ways to do that are followed, so feasible means feasible, and what a
pattern loses to fragmentation is the least over the ways. Cards that no shape can tell apart count as one kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from placement.evaluate import demand
from placement.instance import Instance, NodeClass

Counts = tuple[int, ...]
"""Tasks of each shape of the instance."""

_Card = tuple[int, int, int]
_Cards = tuple[_Card, ...]
"""Kind (as far as told apart), free units and free device memory of each card, sorted."""

UNLIMITED = -1
"""Device memory of a card on which it can never run out."""


class TooMany(Exception):  # noqa: N818 - not an error: another formulation is needed
    """There are more patterns, or more ways to arrange them, than the limit."""


@dataclass(frozen=True, slots=True)
class ClassPatterns:
    """Patterns of one node class.

    Attributes
    ----------
    counts : tuple of Counts
        The empty pattern first.
    lost : tuple of int
        Least fragmentation of a node with that pattern, as idle units times wanted tasks; see `evaluate.fragmentation`.
        Zeros if it was not asked for.
    """

    counts: tuple[Counts, ...]
    lost: tuple[int, ...]


def enumerate_patterns(
    instance: Instance, *, maximal: bool, fragmentation: bool, limit: int = 20_000, work: int = 100_000
) -> tuple[ClassPatterns, ...]:
    """Return the patterns of every node class.

    Parameters
    ----------
    instance : Instance
    maximal : bool
        Only those to which no wanted task can be added.
    fragmentation : bool
        Whether to work out what each pattern loses.
    limit : int
        Most patterns over all classes.
    work : int
        Most arrangements looked at.

    Raises
    ------
    TooMany
        If a limit is exceeded.
    """
    found = []
    arrangers = [Arranger(instance, number, work) for number in range(len(instance.classes))]
    if sum(arranger.at_least(limit + 1) for arranger in arrangers) > limit:
        raise TooMany(f"more than {limit} patterns")
    for arranger in arrangers:
        arranger.work = work
        ways = arranger.all_patterns(limit)
        limit -= len(ways)
        work = arranger.work
        counts = [c for c in ways if not maximal or arranger.is_maximal(c, ways)]
        lost = [min(arranger.lost(cards, c) for cards in ways[c]) if fragmentation else 0 for c in counts]
        found.append(ClassPatterns(tuple(counts), tuple(lost)))
    return tuple(found)


class Arranger:
    """Arranges tasks on the cards of one node of a class.

    Parameters
    ----------
    instance : Instance
    number : int
        Of the node class.
    work : int
        Most arrangements looked at before `TooMany` is raised.
    """

    def __init__(self, instance: Instance, number: int, work: int = 100_000) -> None:
        self.instance = instance
        self.node_class: NodeClass = instance.classes[number]
        self.work = work
        self.wanted = demand(instance)
        self.shapes = [
            s
            for s in range(len(instance.shapes))
            if self.wanted[s]
            and instance.admits_node[s, number]
            and all(d <= f for d, f in zip(instance.shapes[s].demand, self.node_class.free, strict=True))
        ]
        self.kinds = self._kinds()
        self.start: list[_Card] = [self._card(*card) for card in self.node_class.cards]

    def _kinds(self) -> dict[int, int]:
        """Return a kind for each card kind; those that are healthy and admitted alike share one."""
        alike: dict[tuple[bool, ...], int] = {}
        kinds = {}
        for kind in sorted({kind for kind, _, _ in self.node_class.cards}):
            admits = tuple(bool(self.instance.admits_card[s, kind]) for s in self.shapes)
            key = (self.instance.card_kinds[kind].healthy, *admits)
            kinds[kind] = alike.setdefault(key, kind)
        return kinds

    def _card(self, kind: int, units: int, memory: int) -> _Card:
        tasks = [self.instance.shapes[s] for s in self.shapes if self.instance.shapes[s].gpus]
        parts = units // min((task.units for task in tasks), default=1)
        enough = memory >= parts * max((task.memory for task in tasks), default=0)
        return self.kinds[kind], units, UNLIMITED if enough else memory

    # --- patterns ---------------------------------------------------------------------------------------------

    def all_patterns(self, limit: int) -> dict[Counts, list[_Cards]]:
        """Return every pattern with what the cards can look like under it; the empty pattern first."""
        empty = (0,) * len(self.instance.shapes)
        ways: dict[Counts, list[_Cards]] = {empty: [tuple(sorted(self.start))]}
        free = {empty: self.node_class.free}
        for s in self.shapes:
            asked = self.instance.shapes[s].demand
            for base in list(ways):
                counts = base
                while counts[s] < self.wanted[s]:
                    left = tuple(f - d for f, d in zip(free[counts], asked, strict=True))
                    states = self._one_more(ways[counts], s) if min(left, default=0) >= 0 else []
                    if not states:
                        break
                    counts = _plus(counts, s)
                    ways[counts], free[counts] = states, left
                    if len(ways) > limit:
                        raise TooMany("too many patterns")
        return ways

    def at_least(self, enough: int) -> int:
        """Return a number that the patterns reach or exceed, found quickly; no need to go beyond `enough`."""
        number = self._parts_of_one(enough)
        return number if number >= enough else max(number, self._pairs())

    def _parts_of_one(self, enough: int) -> int:
        """Return how many patterns are part of one that takes tasks of many shapes."""
        counts: Counter[int] = Counter()
        cards, left = tuple(sorted(self.start)), self.node_class.free
        number = 1
        grows = sorted(self.shapes, key=lambda s: (self.instance.shapes[s].gpus, self.instance.shapes[s].units, s))
        while grows and number < enough:
            still = []
            for s in grows:
                task = self.instance.shapes[s]
                after = tuple(f - d for f, d in zip(left, task.demand, strict=True))
                if counts[s] == self.wanted[s] or min(after, default=0) < 0:
                    continue
                if task.gpus:
                    choice = next(iter(self._choices(cards, s)), None)
                    if choice is None:
                        continue
                    cards = choice[1]
                left = after
                counts[s] += 1
                still.append(s)
                number = prod(count + 1 for count in counts.values())
            grows = still
        return number

    def _pairs(self) -> int:
        """Return how many pairs of tasks of two shapes certainly fit: on wholly free cards of one kind."""
        free = Counter(card for card in self.start if card[1] == self.instance.card_units)
        if not free or not self.shapes:
            return 0
        card, there = free.most_common(1)[0]
        tasks = [self.instance.shapes[s] for s in self.shapes if self._has_room(card, s)]
        asked = np.array([task.demand for task in tasks], dtype=np.int64).reshape(
            len(tasks), len(self.instance.resources)
        )
        gpus = np.array([task.gpus for task in tasks], dtype=np.int64)
        fits = gpus[:, None] + gpus[None, :] <= there
        for r, have in enumerate(self.node_class.free):
            fits &= asked[:, None, r] + asked[None, :, r] <= have
        return int(np.triu(fits, 1).sum())

    def is_maximal(self, counts: Counts, ways: dict[Counts, list[_Cards]]) -> bool:
        """Return whether no wanted task can be added to a pattern."""
        return not any(_plus(counts, s) in ways for s in self.shapes)

    def _left(self, counts: Counts) -> list[int]:
        left = list(self.node_class.free)
        for s, count in enumerate(counts):
            if count:
                left = [f - count * d for f, d in zip(left, self.instance.shapes[s].demand, strict=True)]
        return left

    def _one_more(self, states: Iterable[_Cards], shape: int) -> list[_Cards]:
        if not self.instance.shapes[shape].gpus:
            return list(states)
        return sorted({left for cards in states for _, left in self._choices(cards, shape)})

    def _choices(self, cards: _Cards, shape: int) -> list[tuple[_Cards, _Cards]]:
        """Return (cards taken, all cards after) for every way to give a task its cards, equal cards being equal."""
        task = self.instance.shapes[shape]
        room = Counter(card for card in cards if self._has_room(card, shape))
        choices = list(_choose(sorted(room.items()), task.gpus))
        self.work -= len(choices) + 1
        if self.work < 0:
            raise TooMany("too many arrangements on one node")
        found = []
        for taken in choices:
            left = list(cards)
            for kind, units, memory in taken:
                left.remove((kind, units, memory))
                left.append((kind, units - task.units, memory if memory == UNLIMITED else memory - task.memory))
            found.append((taken, tuple(sorted(left))))
        return found

    def _has_room(self, card: _Card, shape: int) -> bool:
        kind, units, memory = card
        task = self.instance.shapes[shape]
        enough = memory == UNLIMITED or memory >= task.memory
        return bool(self.instance.admits_card[shape, kind]) and units >= task.units and enough

    def lost(self, cards: _Cards, counts: Counts) -> int:
        """Return the idle units of a node that each wanted task could not use, summed over the wanted tasks."""
        left = self._left(counts)
        idle = sum(units for kind, units, _ in cards if self.instance.card_kinds[kind].healthy)
        lost = 0
        for s in np.flatnonzero(self.wanted).tolist():
            task = self.instance.shapes[s]
            could_use = 0
            if task.gpus and s in self.shapes and all(f >= d for f, d in zip(left, task.demand, strict=True)):
                usable = [card for card in cards if self._has_room(card, s)]
                if len(usable) >= task.gpus:
                    could_use = sum(units for _, units, _ in usable)
            lost += int(self.wanted[s]) * (idle - could_use)
        return lost

    # --- places -----------------------------------------------------------------------------------------------

    def arrange(self, counts: Counts, fragmentation: bool) -> list[tuple[int, tuple[int, ...]]]:
        """Return (shape, canonical card positions) of each task of a feasible pattern.

        Parameters
        ----------
        counts : Counts
        fragmentation : bool
            Whether to choose the way that loses least; else the first one.
        """
        order = [s for s in self.shapes for _ in range(counts[s])]
        steps: list[dict[_Cards, tuple[_Cards, _Cards]]] = []  # cards after -> (cards before, cards taken)
        states: list[_Cards] = [tuple(sorted(self.start))]
        for s in order:
            step: dict[_Cards, tuple[_Cards, _Cards]] = {}
            for cards in states:
                for taken, left in self._choices(cards, s) if self.instance.shapes[s].gpus else [((), cards)]:
                    step.setdefault(left, (cards, taken))
            steps.append(step)
            states = sorted(step)
        last = min(states, key=lambda cards: (self.lost(cards, counts), cards)) if fragmentation else states[0]
        chosen: list[_Cards] = []
        for step in reversed(steps):
            last, taken = step[last]
            chosen.append(taken)
        return self._positions(order, chosen[::-1])

    def _positions(self, order: list[int], chosen: list[_Cards]) -> list[tuple[int, tuple[int, ...]]]:
        now = list(self.start)
        placed = []
        for s, taken in zip(order, chosen, strict=True):
            task = self.instance.shapes[s]
            positions: list[int] = []
            for card in taken:
                position = next(i for i, mine in enumerate(now) if mine == card and i not in positions)
                positions.append(position)
            for position in positions:
                kind, units, memory = now[position]
                now[position] = (kind, units - task.units, memory if memory == UNLIMITED else memory - task.memory)
            placed.append((s, tuple(sorted(positions))))
        return placed


def _choose(room: Sequence[tuple[_Card, int]], number: int) -> Iterator[_Cards]:
    """Yield every way to choose some cards of (card, how many there are), in order."""
    if not number:
        yield ()
    elif room:
        (card, there), rest = room[0], room[1:]
        for mine in range(min(there, number), -1, -1):
            for others in _choose(rest, number - mine):
                yield (card,) * mine + others


def _plus(counts: Counts, shape: int) -> Counts:
    return (*counts[:shape], counts[shape] + 1, *counts[shape + 1 :])
