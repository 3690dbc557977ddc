"""MISO: every instance goes to the least loaded card, so that whoever comes next can be given a large one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from placement.heuristics.best_fit import BestFit
from placement.heuristics.mig_rule import MigRule, free_slots
from placement.heuristics.rule import MOST
from placement.instance import Ints
from placement.mig import Slots


class Miso(MigRule, BestFit):
    """The card with most free slots that has room; there the start after which most can still be created.

    MISO runs jobs together by MPS for a while, predicts from that how fast each would be on which slice, and then
    cuts each card so that its jobs together are fastest. A new job goes to the least loaded card that can hold it.

    Source: Li et al., "MISO: Exploiting Multi-Instance GPU Capability on Multi-Tenant Systems for Machine Learning",
    SoCC 2022 (arXiv:2207.11428), of which what is published as text was at hand, and no code. Differs from it in what a
    snapshot leaves to decide: a task states its profile, so that slices are not chosen by predicted speed, and what
    runs stays in its instance, where MISO cuts the card anew around it. What is left of the rule is where it puts a
    job, which is the opposite of packing. Load is counted in memory slots. Tasks without a profile are placed by
    `placement.heuristics.best_fit.BestFit`.
    """

    name: ClassVar[str] = "miso"

    def start(self, slots: Slots, state: int, profile: int, starts: Sequence[int]) -> int:
        """Return the start that leaves most."""
        return int(slots.best[state, profile])

    def worth(self, slots: Slots, state: int, profile: int, start: int) -> int:
        """Return the free slots, less 100."""
        return free_slots(slots.cards[state]) - MOST

    def others(self, shape: int, rows: Ints) -> Ints:
        """Return the scores of best fit."""
        return BestFit.scores(self, shape, rows)
