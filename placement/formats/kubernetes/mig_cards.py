"""MIG instances that a node offers: which cards hold them, and at which slots.

Resources and labels say how many instances of each profile a node has, and not where they are. As they stay as they
are, any legal arrangement of them offers tasks the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from placement.hardware import mig
from placement.hardware.layouts import arrangements, placements
from placement.hardware.mig import Geometry, Profile
from placement.snapshot.fields import MOST_CARDS

MOST_STEPS = 20_000
"""Choices that the search for a distribution tries."""

MOST_SEARCHED = 64
"""Instances up to which it is searched; more are given to cards one after the other."""

Holds = tuple[str, ...]
"""Profiles of the instances on a card, sorted."""

Layout = tuple[tuple[str, int], ...]
"""Profile and first slot of each instance on a card, by slot."""


@lru_cache(maxsize=4096)
def distributed(model: str, wanted: tuple[tuple[str, int], ...], cards: int | None) -> tuple[Layout, ...] | None:
    """Return the layout of each card of a node, those with the most slots taken first.

    Parameters
    ----------
    model : str
        One of which the MIG geometry is known.
    wanted : tuple of (str, int)
        Instances by profile.
    cards : int, optional
        How many cards there are; None for the fewest that hold them.

    Returns
    -------
    tuple of Layout or None
        None where no legal layouts hold them.

    Examples
    --------
    >>> distributed("A100-40GB", (("3g.20gb", 1), ("1g.5gb", 2)), 1)
    ((('1g.5gb', 0), ('1g.5gb', 1), ('3g.20gb', 4)),)
    """
    geometry = mig.geometry(model)
    if geometry is None:
        return None
    counts: dict[str, int] = {}
    for name, count in wanted:
        profile = geometry.profile(name)
        if profile is None:
            return None
        counts[profile.name] = counts.get(profile.name, 0) + count
    sizes = {name: _profile(geometry, name).size for name in counts}
    slots = sum(sizes[name] * count for name, count in counts.items())
    fewest = max(1, -(-slots // geometry.slots))
    if cards is not None and not fewest <= cards <= MOST_CARDS:
        return None
    for number in range(fewest, MOST_CARDS + 1) if cards is None else (cards,):
        found = _even(geometry, counts, number) or _uneven(geometry, counts, number)
        if found is not None:
            return tuple(_layout(geometry, holds) for holds in found)
        if cards is None and number > sum(counts.values()):
            break
    return None


def _even(geometry: Geometry, counts: dict[str, int], cards: int) -> list[Holds] | None:
    """Return the same instances for each card: what one configuration for all of them makes."""
    if any(count % cards for count in counts.values()):
        return None
    holds = tuple(sorted(name for name, count in counts.items() for _ in range(count // cards)))
    return [holds] * cards if _fits(geometry.model, holds) else None


def _uneven(geometry: Geometry, counts: dict[str, int], cards: int) -> list[Holds] | None:
    """Return the instances of each card, the largest given first to the first card that takes them."""
    order = sorted(counts, key=lambda name: (-_profile(geometry, name).size, name))
    instances = [name for name in order for _ in range(counts[name])]
    held: list[Holds] = [()] * cards
    left = [MOST_STEPS]

    def place(number: int) -> bool:
        if number == len(instances):
            return True
        tried: set[Holds] = set()
        for card in range(cards):
            before = held[card]
            if before in tried or left[0] <= 0:
                continue
            tried.add(before)
            left[0] -= 1
            after = tuple(sorted((*before, instances[number])))
            if _fits(geometry.model, after):
                held[card] = after
                if place(number + 1):
                    return True
                held[card] = before
        return False

    if len(instances) <= MOST_SEARCHED:
        return held if place(0) else None
    for name in instances:
        for card in range(cards):
            after = tuple(sorted((*held[card], name)))
            if _fits(geometry.model, after):
                held[card] = after
                break
        else:
            return None
    return held


@lru_cache(maxsize=65536)
def _fits(model: str, holds: Holds) -> bool:
    geometry = mig.geometry(model)
    if geometry is None or len(holds) > geometry.slots:
        return False
    return next(arrangements(geometry, _profiles(geometry, holds)), None) is not None


def _layout(geometry: Geometry, holds: Holds) -> Layout:
    """Return instances at the slots that leave most open."""
    starts = placements(geometry, _profiles(geometry, holds)) or ()
    return tuple(sorted(zip(holds, starts, strict=True), key=lambda one: one[1]))


def _profiles(geometry: Geometry, holds: Sequence[str]) -> list[Profile]:
    return [_profile(geometry, name) for name in holds]


def _profile(geometry: Geometry, name: str) -> Profile:
    profile = geometry.profile(name)
    assert profile is not None  # names are those of the geometry
    return profile
