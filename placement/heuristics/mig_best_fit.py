"""Best fit for MIG: the card with the fewest free slots that has room, and the start that leaves most of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from placement.heuristics.best_fit import BestFit
from placement.heuristics.mig_rule import MigRule, free_slots
from placement.heuristics.rule import MOST
from placement.instance import Ints
from placement.mig import Slots


class MigBestFit(MigRule, BestFit):
    """The fullest card that has room, by free memory slots; there the start after which most can still be created.

    What can be created is counted profile by profile, see `placement.mig.slots.room`; of equal starts it is the
    lowest. Where instances stay as they are, only slots of theirs count. Tasks without a profile are placed by
    `placement.heuristics.best_fit.BestFit`.

    Source: best fit as in bin packing (Johnson, "Near-Optimal Bin Packing Algorithms", 1973), with slots as size. It is
    what schedulers for MIG are compared with; it knows where instances may start, which plain bin packing does not.
    """

    name: ClassVar[str] = "mig-best-fit"

    def start(self, slots: Slots, state: int, profile: int, starts: Sequence[int]) -> int:
        """Return the start that leaves most."""
        return int(slots.best[state, profile])

    def worth(self, slots: Slots, state: int, profile: int, start: int) -> int:
        """Return 100 less the free slots."""
        return MOST - free_slots(slots.cards[state])

    def others(self, shape: int, rows: Ints) -> Ints:
        """Return the scores of best fit."""
        return BestFit.scores(self, shape, rows)
