"""How tasks lie on the cards of one node: every set of tasks that one node of a class can take at once.

A pattern is a number of tasks of each shape. All ways to give its tasks cards, shares and device memory are followed,
in states: what is left of the cards, where equal states are alike. Cards that no shape can tell apart count as one
kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import Any, TypeVar

import numpy as np

from placement.evaluate import demand
from placement.instance import Instance, NodeClass, Shape

Counts = tuple[int, ...]
"""Tasks of each shape of the instance."""

Card = tuple[int, int, int]
Cards = tuple[Card, ...]
"""Kind (as far as told apart), free units and free device memory of each card, sorted."""

State = tuple[Any, ...]
"""What is left of a node. Here its cards; where tasks are bound to NUMA zones, more."""

Taken = tuple[Any, ...]
"""What one task takes in a state."""

T = TypeVar("T")

UNLIMITED = -1
"""Device memory of a card on which it can never run out."""


class TooMany(Exception):  # noqa: N818 - not an error: another formulation is needed
    """There are more patterns, or more ways to arrange them, than the limit."""


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
        self.start: list[Card] = [self._card(*card) for card in self.node_class.cards]

    def _kinds(self) -> dict[int, int]:
        """Return a kind for each card kind; those that are healthy and admitted alike share one."""
        alike: dict[tuple[bool, ...], int] = {}
        kinds = {}
        for kind in sorted({kind for kind, _, _ in self.node_class.cards}):
            admits = tuple(bool(self.instance.admits_card[s, kind]) for s in self.shapes)
            key = (self.instance.card_kinds[kind].healthy, *admits)
            kinds[kind] = alike.setdefault(key, kind)
        return kinds

    def _card(self, kind: int, units: int, memory: int) -> Card:
        tasks = [self.instance.shapes[s] for s in self.shapes if self.instance.shapes[s].gpus]
        parts = units // min((task.units for task in tasks), default=1)
        enough = memory >= parts * max((task.memory for task in tasks), default=0)
        return self.kinds[kind], units, UNLIMITED if enough else memory

    # --- patterns ---------------------------------------------------------------------------------------------

    def all_patterns(self, limit: int) -> dict[Counts, list[State]]:
        """Return every pattern with the states there can be under it; the empty pattern first."""
        empty = (0,) * len(self.instance.shapes)
        ways: dict[Counts, list[State]] = {empty: [self.begin()]}
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
        state, left = self.begin(), self.node_class.free
        number = 1
        grows = sorted(self.shapes, key=lambda s: (self.instance.shapes[s].gpus, self.instance.shapes[s].units, s))
        while grows and number < enough:
            still = []
            for s in grows:
                task = self.instance.shapes[s]
                after = tuple(f - d for f, d in zip(left, task.demand, strict=True))
                if counts[s] == self.wanted[s] or min(after, default=0) < 0:
                    continue
                choice = next(iter(self.ways(state, s)), None)
                if choice is None:
                    continue
                state, left = choice[1], after
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
        tasks = [self.instance.shapes[s] for s in self.shapes if self.has_room(card, s)]
        asked = np.array([task.demand for task in tasks], dtype=np.int64).reshape(
            len(tasks), len(self.instance.resources)
        )
        gpus = np.array([task.gpus for task in tasks], dtype=np.int64)
        fits = gpus[:, None] + gpus[None, :] <= there
        for r, have in enumerate(self.node_class.free):
            fits &= asked[:, None, r] + asked[None, :, r] <= have
        return int(np.triu(fits, 1).sum())

    def is_maximal(self, counts: Counts, ways: dict[Counts, list[State]]) -> bool:
        """Return whether no wanted task can be added to a pattern."""
        return not any(_plus(counts, s) in ways for s in self.shapes)

    def _left(self, counts: Counts) -> list[int]:
        left = list(self.node_class.free)
        for s, count in enumerate(counts):
            if count:
                left = [f - count * d for f, d in zip(left, self.instance.shapes[s].demand, strict=True)]
        return left

    def _one_more(self, states: Iterable[State], shape: int) -> list[State]:
        return sorted({left for state in states for _, left in self.ways(state, shape)})

    def begin(self) -> State:
        """Return the state of a node without new tasks."""
        return tuple(sorted(self.start))

    def cards_of(self, state: State) -> Cards:
        """Return the cards in a state."""
        return state

    def ways(self, state: State, shape: int) -> list[tuple[Taken, State]]:
        """Return (cards taken, state after) for every way to give a task its cards, equal cards being equal."""
        gpus = self.instance.shapes[shape].gpus
        if not gpus:
            return [((), state)]
        room = [(card, there) for card, there in sorted(Counter(state).items()) if self.has_room(card, shape)]
        choices = list(choose(room, gpus))
        self.worked(len(choices) + 1)
        return [(taken, self.without(state, taken, shape)) for taken in choices]

    def worked(self, steps: int) -> None:
        """Count what was looked at."""
        self.work -= steps
        if self.work < 0:
            raise TooMany("too many arrangements on one node")

    def without(self, cards: Cards, taken: Iterable[Card], shape: int) -> Cards:
        """Return what is left of cards when a task of a shape takes some of them."""
        left, task = list(cards), self.instance.shapes[shape]
        for card in taken:
            left.remove(card)
            left.append(less(card, task))
        left.sort()
        return tuple(left)

    def has_room(self, card: Card, shape: int) -> bool:
        """Return whether a task may take its share of a card."""
        kind, units, memory = card
        task = self.instance.shapes[shape]
        enough = memory == UNLIMITED or memory >= task.memory
        return bool(self.instance.admits_card[shape, kind]) and units >= task.units and enough

    def lost(self, state: State, counts: Counts) -> int:
        """Return the idle units of a node that each wanted task could not use, summed over the wanted tasks."""
        left, cards = self._left(counts), self.cards_of(state)
        idle = sum(units for kind, units, _ in cards if self.instance.card_kinds[kind].healthy)
        lost = 0
        for s in np.flatnonzero(self.wanted).tolist():
            task = self.instance.shapes[s]
            could_use = 0
            if task.gpus and s in self.shapes and all(f >= d for f, d in zip(left, task.demand, strict=True)):
                usable = [card for card in cards if self.has_room(card, s)]
                if len(usable) >= task.gpus:
                    could_use = sum(units for _, units, _ in usable)
            lost += int(self.wanted[s]) * (idle - could_use)
        return lost

    # --- places -----------------------------------------------------------------------------------------------

    def arrange(self, counts: Counts, fragmentation: bool) -> list[tuple[int, tuple[int, ...]]]:
        """Return (shape, canonical positions of what it takes) for each task of a feasible pattern.

        Parameters
        ----------
        counts : Counts
        fragmentation : bool
            Whether to choose the way that loses least; else the first one.
        """
        order = [s for s in self.shapes for _ in range(counts[s])]
        steps: list[dict[State, tuple[State, Taken]]] = []  # state after -> (state before, what is taken)
        states = [self.begin()]
        for s in order:
            step: dict[State, tuple[State, Taken]] = {}
            for state in states:
                for taken, left in self.ways(state, s):
                    step.setdefault(left, (state, taken))
            steps.append(step)
            states = sorted(step)
        last = min(states, key=lambda state: (self.lost(state, counts), state)) if fragmentation else states[0]
        chosen: list[Taken] = []
        for step in reversed(steps):
            last, taken = step[last]
            chosen.append(taken)
        return self.positions(order, chosen[::-1])

    def positions(self, order: Sequence[int], chosen: Sequence[Taken]) -> list[tuple[int, tuple[int, ...]]]:
        """Return (shape, canonical positions) of tasks of some shapes, in order, that take what was chosen."""
        now = list(self.start)
        placed = []
        for s, taken in zip(order, chosen, strict=True):
            positions: list[int] = []
            for card in taken:
                position = next(i for i, mine in enumerate(now) if mine == card and i not in positions)
                positions.append(position)
            for position in positions:
                now[position] = less(now[position], self.instance.shapes[s])
            placed.append((s, tuple(sorted(positions))))
        return placed


def choose(room: Sequence[tuple[T, int]], number: int) -> Iterator[tuple[T, ...]]:
    """Yield every way to choose some of (card, how many there are), in order."""
    if not number:
        yield ()
    elif room:
        (card, there), rest = room[0], room[1:]
        for mine in range(min(there, number), -1, -1):
            for others in choose(rest, number - mine):
                yield (card,) * mine + others


def less(card: Card, task: Shape) -> Card:
    """Return what is left of a card of which a task takes its share."""
    kind, units, memory = card
    return kind, units - task.units, memory if memory == UNLIMITED else memory - task.memory


def _plus(counts: Counts, shape: int) -> Counts:
    return (*counts[:shape], counts[shape] + 1, *counts[shape + 1 :])
