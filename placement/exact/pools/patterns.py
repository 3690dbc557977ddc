"""One-card patterns: enumerated where they are few, priced by dynamic programming where they are many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from placement.exact.milp.arrays import Floats
from placement.instance import Ints
from placement.models.pools import CardGroup, Pattern, Pool, Pooling, SlotType

LEVELS = 1000
"""Units of a card that dynamic programming tells apart; finer shares are rounded down there, which keeps a bound."""

MEMORY_LEVELS = 64
"""The same for device memory, where it binds."""


def maximal(group: CardGroup, slots: Sequence[SlotType], most: Sequence[int], limit: int) -> list[tuple[int, ...]]:
    """Return the maximal patterns of a card: no further part of any type fits.

    Parameters
    ----------
    group : CardGroup
    slots : sequence of SlotType
        Types that may lie on the card.
    most : sequence of int
        Most parts of each type that are of use.
    limit : int
        Stop after this many.

    Returns
    -------
    list of tuple of int
        Parts of each type; complete if shorter than `limit`.
    """
    found: list[tuple[int, ...]] = []
    order = sorted(range(len(slots)), key=lambda i: (-slots[i].units, -slots[i].memory))
    parts = [0] * len(slots)

    def fill(position: int, units: int, memory: int) -> None:
        if len(found) >= limit:
            return
        if position == len(order):
            open_ = any(
                parts[i] < most[i] and slots[i].units <= units and slots[i].memory <= memory for i in range(len(slots))
            )
            if not open_ and any(parts):
                found.append(tuple(parts))
            return
        slot = slots[order[position]]
        room = min(most[order[position]], units // slot.units, memory // slot.memory if slot.memory else units)
        # the last type fills what is left: with one part less there would be room for it
        for count in range(room, -1, -1) if position < len(order) - 1 else (room,):
            parts[order[position]] = count
            fill(position + 1, units - count * slot.units, memory - count * slot.memory)
        parts[order[position]] = 0

    fill(0, group.units, group.memory)
    return found


def fits(group: CardGroup, slots: Sequence[SlotType], parts: Sequence[int]) -> bool:
    """Return whether a card of the group holds these parts at once."""
    units = sum(n * slot.units for n, slot in zip(parts, slots, strict=True))
    memory = sum(n * slot.memory for n, slot in zip(parts, slots, strict=True))
    return units <= group.units and memory <= group.memory


def of_one_type(view: Pooling) -> list[Pattern]:
    """Return, for every card group and slot type, the pattern of as many such parts as fit."""
    return [
        Pattern(k, c, tuple(_alone(group, slot) if i == j else 0 for j in range(len(pool.slots))))
        for k, pool in enumerate(view.pools)
        for c, group in enumerate(pool.groups)
        for i, slot in enumerate(pool.slots)
        if c in slot.groups
    ]


def _alone(group: CardGroup, slot: SlotType) -> int:
    return min(group.units // slot.units, group.memory // slot.memory if slot.memory else group.units)


@dataclass(frozen=True, slots=True)
class _Family:
    """Card groups of one pool that admit the same slot types, so that one table of best values serves them all.

    Attributes
    ----------
    pool : int
    groups : tuple of int
    types : int array
        Slot types in question.
    sizes, memory_sizes : int array
        Their size in levels, rounded down.
    levels, memory_levels : dict of int to int
        Room of each group in levels, rounded down.
    crumbs : int array
        For each type that is smaller than a level: the most parts of it on any card; 0 for the others.
    """

    pool: int
    groups: tuple[int, ...]
    types: Ints
    sizes: Ints
    memory_sizes: Ints
    levels: dict[int, int]
    memory_levels: dict[int, int]
    crumbs: Ints


class Pricer:
    """Finds the most valuable pattern of every card group at given prices of slot types.

    Values are exact where shares and device memory are multiples of a level, and upper bounds otherwise.
    """

    def __init__(self, view: Pooling) -> None:
        self._view = view
        self._families = [family for k, pool in enumerate(view.pools) for family in _families(k, pool)]

    def price(self, prices: Sequence[Floats]) -> Iterator[tuple[Pattern, float]]:
        """Yield, for every card group, a pattern that fits on a card and a value that no pattern exceeds.

        Parameters
        ----------
        prices : sequence of float arrays
            For each pool, the price of one part of each slot type; at least 0.
        """
        values = [prices[family.pool][family.types] for family in self._families]
        for family, value, table in zip(self._families, values, _tables(self._families, values), strict=True):
            pool = self._view.pools[family.pool]
            extra = float(family.crumbs @ value)
            for c in family.groups:
                level, memory = family.levels[c], family.memory_levels[c]
                full = np.zeros(len(pool.slots), dtype=np.int64)
                full[family.types] = _trace(family, table, value, level, memory)
                _trim(pool.groups[c], pool.slots, full, prices[family.pool])
                yield Pattern(family.pool, c, tuple(full.tolist())), float(table[level, memory]) + extra


def _families(k: int, pool: Pool) -> Iterator[_Family]:
    kinds = sorted({group.kind for group in pool.groups})
    for kind in kinds:
        groups = tuple(c for c, group in enumerate(pool.groups) if group.kind == kind)
        types = np.array([i for i, slot in enumerate(pool.slots) if set(groups) & set(slot.groups)], dtype=np.int64)
        if not len(types):
            continue
        slots = [pool.slots[i] for i in types]
        units, step = _levels([pool.groups[c].units for c in groups], [slot.units for slot in slots], LEVELS)
        largest = max(pool.groups[c].units for c in groups)
        # where no mix of parts that fits by units can exceed the memory, it is left out of the table
        binds = any(
            slot.memory * pool.groups[c].units > pool.groups[c].memory * slot.units for slot in slots for c in groups
        )
        room = [pool.groups[c].memory if binds else 0 for c in groups]
        asked = [slot.memory if binds else 0 for slot in slots]
        memory, memory_step = _levels(room, asked, MEMORY_LEVELS)
        sizes = np.array([slot.units // step for slot in slots], dtype=np.int64)
        crumbs = np.array([0 if s else largest // slot.units for s, slot in zip(sizes, slots, strict=True)])
        yield _Family(
            pool=k,
            groups=groups,
            types=types,
            sizes=sizes,
            memory_sizes=np.array([m // memory_step for m in asked], dtype=np.int64),
            levels=dict(zip(groups, units, strict=True)),
            memory_levels=dict(zip(groups, memory, strict=True)),
            crumbs=crumbs,
        )


def _levels(rooms: list[int], sizes: list[int], most: int) -> tuple[list[int], int]:
    """Return the rooms in levels, and the size of one: exact if possible, else so that there are `most` levels."""
    step = int(np.gcd.reduce(sizes)) or 1
    largest = max(rooms)
    if largest // step > most:
        step = -(-largest // most)
    return [room // step for room in rooms], step


def _tables(families: list[_Family], values: list[Floats]) -> list[Floats]:
    """Return, for each family, the best value by room in levels of units and of memory."""
    flat = [i for i, family in enumerate(families) if not any(family.memory_levels.values())]
    lines = dict(zip(flat, _lines([families[i] for i in flat], [values[i] for i in flat]), strict=True))
    return [
        lines[i][:, None] if i in lines else _plane(family, value)
        for i, (family, value) in enumerate(zip(families, values, strict=True))
    ]


def _lines(families: list[_Family], values: list[Floats]) -> Floats:
    """Return the best value by level of units alone, for all families at once."""
    height = 1 + max((max(family.levels.values()) for family in families), default=0)
    types = max((len(value) for value in values), default=0)
    sizes = np.full((len(families), types), height, dtype=np.int64)
    worth = np.full((len(families), types), -np.inf)
    for i, (family, value) in enumerate(zip(families, values, strict=True)):
        useful = (value > 0) & (family.sizes > 0) & (family.sizes < height)
        sizes[i, : len(value)][useful] = family.sizes[useful]
        worth[i, : len(value)][useful] = value[useful]
    # levels below 0 hold minus infinity, so that a part larger than the room never counts
    table = np.full((len(families), 2 * height), -np.inf)
    table[:, height] = 0.0
    rows = np.arange(len(families))[:, None]
    for level in range(height + 1, 2 * height):
        best = (table[rows, level - sizes] + worth).max(axis=1, initial=-np.inf)
        table[:, level] = np.maximum(table[:, level - 1], best)
    return table[:, height:]


def _plane(family: _Family, value: Floats) -> Floats:
    """Return the best value by levels of units and of memory."""
    width = max(family.memory_levels.values()) + 1
    height = max(family.levels.values()) + 1
    table = np.zeros((height, width))
    useful = np.flatnonzero((value > 0) & (family.sizes > 0))
    for level in range(1, height):
        best = table[level - 1].copy()
        for i in useful.tolist():
            size, mem = int(family.sizes[i]), int(family.memory_sizes[i])
            if size <= level and mem < width:
                np.maximum(best[mem:], table[level - size, : width - mem] + value[i], out=best[mem:])
        table[level] = best
    return table


def _trace(family: _Family, table: Floats, value: Floats, level: int, memory: int) -> Ints:
    """Return how many parts of each type make up the best value at some room."""
    parts = np.zeros(len(value), dtype=np.int64)
    while level > 0 and table[level, memory] > 0:
        if table[level, memory] == table[level - 1, memory]:
            level -= 1
            continue
        ok = (value > 0) & (family.sizes > 0) & (family.sizes <= level) & (family.memory_sizes <= memory)
        reached = np.full(len(value), -1.0)
        reached[ok] = table[level - family.sizes[ok], memory - family.memory_sizes[ok]] + value[ok]
        choice = int(reached.argmax())
        parts[choice] += 1
        level -= int(family.sizes[choice])
        memory -= int(family.memory_sizes[choice])
    return parts


def _trim(group: CardGroup, slots: Sequence[SlotType], parts: Ints, prices: Floats) -> None:
    """Take the cheapest parts out until the rest fits; only rounding to levels makes this necessary."""
    while not fits(group, slots, parts.tolist()):
        held = np.flatnonzero(parts)
        parts[held[np.argmin(prices[held])]] -= 1
