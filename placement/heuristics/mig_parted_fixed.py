"""NVIDIA's MIG manager: every card is cut up beforehand, in one way for all, and its instances are handed out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import ClassVar

from placement.hardware.layouts import Layout, placements
from placement.hardware.mig import Geometry, Profile
from placement.heuristics.mig_rule import MigRule
from placement.mig import Slots

BALANCED = {7: {1: 2, 2: 1, 3: 1}, 4: {1: 2, 2: 1}}
"""Instances of each number of compute slices, by the compute slices of the card."""


class MigPartedFixed(MigRule):
    """The first free instance of the profile among those of the layout ``all-balanced``, cards in order.

    That layout has two ``1g``, one ``2g`` and, on cards of seven compute slices, one ``3g``; of profiles with as many
    compute slices it is the one that fits most often. They start where they leave most open, which on cards of eight
    slots is ``2g`` at 0, ``1g`` at 2 and 3, and ``3g`` at 4. Whatever else is asked for waits, however many cards are
    idle. Beside running instances there is what they leave of the layout; on static cards there are the instances
    that exist; cards of two compute slices have no such layout and get none.

    Source: ``all-balanced`` in ``deployments/systemd/config-default.yaml`` (at 14007872), and the rule that makes it
    for any card, ``balancedFormula`` in ``pkg/mig/builder/balanced.go`` (at ab1c1452), of NVIDIA/mig-parted. Differs
    from the source in: the driver chooses the starts there; a card on which something runs is not cut up at all there
    (``SetMigConfig`` in ``pkg/mig/config/config.go``, at 0197e69f), so its layout is there before the work; instances
    that exist now on cards which are not static count for nothing, as where the manager is told to apply the
    layout; the node is the first with room, where kube-scheduler scores them; and tasks without a profile are placed as
    by first fit.
    """

    name: ClassVar[str] = "mig-parted-fixed"

    def start(self, slots: Slots, state: int, profile: int, starts: Sequence[int]) -> int:
        """Return the lowest start of the layout, or -1 if nothing of it is free."""
        board = slots.cards[state].board
        if board.existing is not None:
            return starts[0]
        mine = slots.profile(slots.cards[state], profile)
        fixed = {start for one, start in balanced(board.geometry) if one == mine}
        return next((start for start in starts if start in fixed), -1)


@cache
def balanced(geometry: Geometry) -> Layout:
    """Return the instances of the layout ``all-balanced`` of a card; none where there is no such layout."""
    wanted = BALANCED.get(geometry.compute, {})
    profiles = [_most_often(geometry, compute) for compute, count in sorted(wanted.items()) for _ in range(count)]
    found = [profile for profile in reversed(profiles) if profile is not None]
    starts = placements(geometry, found) if found and len(found) == len(profiles) else None
    return () if starts is None else tuple(zip(found, starts, strict=True))


def _most_often(geometry: Geometry, compute: int) -> Profile | None:
    """Return the plain profile of so many compute slices that takes the fewest slots, so that most of it fit."""
    plain = [one for one in geometry.profiles if one.compute == compute and one.plain]
    return min(plain, key=lambda one: one.size, default=None)
