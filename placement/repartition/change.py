"""What has to be done on one card to get from one layout to another, and who stands in the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from placement.hardware.layouts import Instance, Layout, in_order
from placement.hardware.mig import Geometry
from placement.repartition.times import Times


@dataclass(frozen=True, slots=True)
class State:
    """Whether MIG mode of a card is on, and the instances on it."""

    on: bool
    layout: Layout = ()


@dataclass(frozen=True, slots=True)
class Holder:
    """A job that uses a card: one of its MIG instances, or, where `instance` is None, the card itself."""

    job: str
    instance: Instance | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """What is done on one card.

    Attributes
    ----------
    kept, destroyed, created : Layout
        Instances. One is kept if the same profile starts at the same slot before and after. Nothing is resized or
        moved: that is destroying one instance and creating another.
    switch : str
        ``"on"`` or ``"off"`` if MIG mode is switched; else empty.
    blocked_by : tuple of Holder
        Jobs that use what would have to go. If there are any, nothing is done: everything is kept.
    """

    kept: Layout = ()
    destroyed: Layout = ()
    created: Layout = ()
    switch: Literal["", "on", "off"] = ""
    blocked_by: tuple[Holder, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.destroyed or self.created or self.switch)

    def seconds(self, times: Times, resets: bool) -> float:
        """Return how long it takes, one step after another.

        Parameters
        ----------
        times : Times
        resets : bool
            Whether switching MIG mode resets the card.
        """
        switch = 0.0 if not self.switch else times.reset if resets else times.switch
        return times.destroy * len(self.destroyed) + times.create * len(self.created) + switch

    def gain(self, geometry: Geometry) -> Fraction:
        """Return what part of the card becomes usable as wanted.

        It is the compute slices of the instances created over those of the card; 1 where MIG mode is switched off, for
        then the whole card can be used again.
        """
        if self.switch == "off":
            return Fraction(1)
        return Fraction(sum(profile.compute for profile, _ in self.created), geometry.compute)


def change(present: State, wanted: State, holders: Sequence[Holder] = ()) -> Change:
    """Return what gets a card from one state to another with as much kept as possible.

    An instance can go only if no task uses it; its neighbours may go on running. Switching MIG mode takes the whole
    card: every instance goes first, and no task may use any of it (NVIDIA MIG User Guide, Getting Started).

    Parameters
    ----------
    present, wanted : State
        Layouts that can exist on the card.
    holders : sequence of Holder
        The jobs on it now.
    """
    if present.on != wanted.on:
        if holders:
            return Change(kept=present.layout, blocked_by=tuple(holders))
        return Change(destroyed=present.layout, created=wanted.layout, switch="on" if wanted.on else "off")
    stay = {*wanted.layout}
    destroyed = tuple(one for one in present.layout if one not in stay)
    blocked_by = tuple(holder for holder in holders if holder.instance in destroyed)
    if blocked_by:
        return Change(kept=present.layout, blocked_by=blocked_by)
    there = {*present.layout}
    return Change(
        kept=in_order(stay & there),
        destroyed=destroyed,
        created=tuple(one for one in wanted.layout if one not in there),
    )
