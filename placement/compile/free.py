"""What is free of nodes: of one unused node of each kind, and of every node with running work."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from placement.compile.cards import Cards, NodeKinds
from placement.compile.running import Used, on_cards
from placement.index import MOST, numbered, within
from placement.instance import Ints, Zones
from placement.scale import Scale


@dataclass(frozen=True, slots=True)
class Free:
    """What is free of F nodes: first an unused node of each kind, then each node with running work.

    Attributes
    ----------
    amounts : int array (F, R)
        By resource.
    start : int array (F + 1,)
        The cards of row i are ``start[i]`` to ``start[i + 1]``.
    cards : int array (C, 3)
        (kind, free units, free device memory) of each card, in canonical order: sorted within each node.
    device : int array (C,)
        Their device indices.
    alike : int array (F,)
        Rows with the same number are free of the same.
    kind : int array (F,)
        Kind of node.
    zones : list of (Zones or None)
        NUMA zones of each row; empty where no pending task is bound to any.
    zone_order : list of tuple of int
        Place in the file of each canonical zone; an empty tuple where they are in that order.
    """

    amounts: Ints
    start: Ints
    cards: Ints
    device: Ints
    alike: Ints
    kind: Ints
    zones: list[Zones | None] = field(default_factory=list)
    zone_order: list[tuple[int, ...]] = field(default_factory=list)

    def amounts_of(self, row: int) -> tuple[int, ...]:
        """Return the free amount of each resource."""
        return tuple(self.amounts[row].tolist())

    def cards_of(self, row: int) -> tuple[tuple[int, int, int], ...]:
        """Return the cards as `placement.instance.NodeClass` has them."""
        return tuple((kind, units, memory) for kind, units, memory in self._of(self.cards, row).tolist())

    def devices_of(self, row: int) -> tuple[int, ...]:
        """Return the device index of each card."""
        return tuple(self._of(self.device, row).tolist())

    def _of(self, cards: Ints, row: int) -> Ints:
        return cards[self.start[row] : self.start[row + 1]]

    def reordered(self) -> list[bool]:
        """Return which rows have their cards in another order than that of the devices."""
        moved = self.device != within(np.diff(self.start))
        before = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(moved)])
        different: list[bool] = (before[self.start[1:]] > before[self.start[:-1]]).tolist()
        return different


def free(
    kinds: NodeKinds,
    cards: Cards,
    kind_used: Ints,
    used: Used,
    scale: Scale,
    total: dict[str, int],
    apart: bool = False,
    owners: Iterable[tuple[int, int, int]] = (),
) -> Free:
    """Return what is free.

    Parameters
    ----------
    kinds : NodeKinds
    cards : Cards
    kind_used : int array (B,)
        Kind of each node with running work.
    used : Used
    scale : Scale
    total : dict of str to int
        What stands for "no limit" of each resource.
    apart : bool
        Whether MIG cards are nodes of their own, so that here nothing of them is free; see `placement.compile.mig`.
    owners : iterable of (int, int, int)
        Row in `used.nodes`, device index and owner of cards that are somebody's, where tenants are kept apart by card.
    """
    kind = np.concatenate([np.arange(len(kinds.nodes), dtype=np.int64), kind_used])
    idle = len(kinds.nodes)
    columns = []
    for name, unit in scale.resources.items():
        have = [capacity.get(name, Fraction(0)) for capacity in kinds.capacity]
        taken = np.concatenate([np.zeros(idle, dtype=used.demand[name].dtype), used.demand[name]])
        columns.append(_left(have, kind, taken, unit, scale.whole.resources[name], total[name]))
    amounts = np.stack(columns, axis=1) if columns else np.zeros((len(kind), 0), dtype=np.int64)

    counts = cards.counts[kind]
    start = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
    card = np.repeat(cards.start[kind], counts) + within(counts)
    share = on_cards(used, used.card_share, start[idle:], len(card))
    memory = on_cards(used, used.card_memory, start[idle:], len(card))
    whole = [Fraction(1)]
    units_left = _left(whole, np.zeros(len(card), dtype=np.int64), share, scale.card, scale.whole.card, 0)
    memory_left = _left(cards.device_memory, card, memory, scale.memory, scale.whole.memory, cards.unlimited)
    memory_left = np.minimum(memory_left, cards.unlimited)
    if apart:
        units_left[cards.mig[card]] = 0
        memory_left[cards.mig[card]] = 0
    row = np.repeat(np.arange(len(kind), dtype=np.int64), counts)
    kind_of_card = cards.kind[card]
    for node, device, owner in owners:
        place = int(start[idle + node]) + device
        if units_left[place]:  # nobody joins what is on a full one
            kind_of_card[place] = cards.owned(int(kind_of_card[place]), owner)
    order = np.lexsort((memory_left, units_left, kind_of_card, row))  # stable: ties go by device index
    of_card = np.stack([kind_of_card, units_left, memory_left], axis=1)[order]
    return Free(amounts, start, of_card, within(counts)[order], _alike(amounts, start, of_card), kind)


def _left(
    have: Sequence[Fraction | None], kind: Ints, taken: Ints, unit: Fraction, whole: Fraction, no_limit: int
) -> Ints:
    """Return how many whole units are left, rounded down, and no more than `MOST`, which is more than all demand.

    Parameters
    ----------
    have : sequence of Fraction or None
        What there is of each kind, in base units; None is no limit.
    kind : int array
    taken : int array
        What is taken, in units of `whole`.
    unit, whole : Fraction
    no_limit : int
        What stands for no limit.
    """
    limited = np.array([amount is not None for amount in have], dtype=np.bool_)[kind]
    if unit == whole:
        # what is taken is whole in this unit, so it may be taken off after rounding
        rounded = [no_limit if amount is None else min(MOST, math.floor(amount / unit)) for amount in have]
        base = np.array(rounded, dtype=np.int64)[kind]
        return np.where(limited, np.maximum(0, base - taken), base).astype(np.int64)
    known: dict[tuple[int, int], int] = {}
    left = []
    for pair in zip(kind.tolist(), taken.tolist(), strict=True):
        if pair not in known:
            amount = have[pair[0]]
            exact = None if amount is None else (amount - pair[1] * whole) / unit
            known[pair] = no_limit if exact is None else min(MOST, max(0, math.floor(exact)))
        left.append(known[pair])
    return np.array(left, dtype=np.int64)


def _alike(amounts: Ints, start: Ints, cards: Ints) -> Ints:
    """Return the number of each row by what is free, compared as bytes, which is quicker than as numbers."""
    head, tail = amounts.tobytes(), cards.tobytes()
    wide = amounts.itemsize * amounts.shape[1]
    ends = (start * cards.itemsize * 3).tolist()
    rows = ((head[i * wide : (i + 1) * wide], tail[ends[i] : ends[i + 1]]) for i in range(len(amounts)))
    return numbered(rows)[0]
