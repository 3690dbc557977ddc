"""HAMi's dynamic MIG: instances lie so that half a card stays free in one piece, and small ones fill from the edge."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import ClassVar

from placement.hardware.mig import Geometry
from placement.heuristics.mig_rule import MigRule
from placement.heuristics.rule import MOST
from placement.mig import Slots

Half = tuple[int, int]
"""First slot, and the one behind the last."""


class HamiContiguous(MigRule):
    """The card of which most is taken, and there the start that leaves most halves of it untouched.

    A card is two halves, or one piece if some profile but that of the whole card lies in both. The half in which fewer
    instances can start, the upper one of equals, is kept for instances as large as a half. Of the starts that leave
    equally many halves untouched it is one in the half meant for instances of the size, then the one farthest from the
    middle, then the lowest: on cards of eight slots, seven ``1g`` come to 0, 1, 2, 3, 6, 5 and 4, and a ``3g`` to 4.

    Source: ``migLayout.score``, ``betterMigPlacement`` and ``migReservedRegion`` in
    ``pkg/device/nvidia/mig_topology.go`` of Project-HAMi/HAMi (at cd8afb85), which are to preserve the largest
    contiguous free region, and its policy ``binpack`` for cards (``DeviceListsScore.ComputeScore`` in
    ``pkg/scheduler/policy/gpu_policy.go``, at 0eec44e5). Differs from the source in: a card's use is its slots, there
    memory, cores and tasks are added up, and nodes are compared before the cards in them; a task names its profile,
    where the source takes the smallest with enough memory; there is one instance to a task, so nothing is planned
    together; every profile that the card has is allowed; media engines count; and tasks without a profile are
    placed as by first fit.
    """

    name: ClassVar[str] = "hami-contiguous"

    def start(self, slots: Slots, state: int, profile: int, starts: Sequence[int]) -> int:
        """Return the start that comes first by the order above."""
        card = slots.cards[state]
        mine = slots.profile(card, profile)
        assert mine is not None
        return min(starts, key=lambda start: rank(card.board.geometry, card.bits, start, mine.size))

    def worth(self, slots: Slots, state: int, profile: int, start: int) -> int:
        """Return how many hundredths of the slots are taken then."""
        card = slots.cards[int(slots.after[state, profile, start])]
        return MOST * card.bits.bit_count() // card.board.geometry.slots


def rank(geometry: Geometry, taken: int, start: int, size: int) -> tuple[int, ...]:
    """Return where a start comes in the order of starts; the smallest is best.

    Parameters
    ----------
    geometry : Geometry
    taken : int
        Slots that are taken, as bits.
    start, size : int
        Slots of the new instance.
    """
    parts, kept = halves(geometry)
    taken |= ((1 << size) - 1) << start
    untouched = sum(not taken >> first & (1 << end - first) - 1 for first, end in parts)
    mismatch = distance = 0
    for number, (first, end) in enumerate(parts if len(parts) > 1 else ()):
        if first <= start and start + size <= end:
            mismatch = int((size == end - first) != (number == kept))
            distance = start - first if number else end - (start + size)
    return -untouched, mismatch, -distance, start


@cache
def halves(geometry: Geometry) -> tuple[tuple[Half, ...], int]:
    """Return the pieces of a card, and which of them is kept for instances as large as itself."""
    middle = geometry.slots // 2
    lying = [(start, start + profile.size) for profile in geometry.profiles for start in profile.starts]
    if any(start < middle < end for start, end in lying if end - start < geometry.slots):
        return ((0, geometry.slots),), 0
    parts = (0, middle), (middle, geometry.slots)
    below, above = (sum(first <= start and end <= last for start, end in lying) for first, last in parts)
    return parts, int(above <= below)
