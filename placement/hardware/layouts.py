"""Which MIG instances can exist together on a card, and where wanted ones can go beside those that are there.

An instance is its profile and the memory slot it starts at; a layout is a set of them, in the order of their slots. It
can exist if every start is one that its profile has, no slot is taken twice and the media engines suffice: what
``nvidia-smi mig -lgipp`` lists, and what the driver for dynamic resource allocation in Kubernetes counts (one counter
for each memory slot). The sources of each profile are in `placement.hardware.mig`.

An instance is not moved: where others lie decides whether a wanted one has a place, however much is free in sum.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from placement.hardware.mig import Geometry, Profile

Instance = tuple[Profile, int]
"""A profile and the slot where an instance of it starts."""
Layout = tuple[Instance, ...]
"""Instances in ascending order of their slots."""

ENGINES = ("decoder", "encoder", "JPEG unit", "optical flow unit")
"""Media engines, in the order of `placement.hardware.mig.Geometry.engines`."""


def candidates(geometry: Geometry, profiles: Sequence[Profile] | None = None) -> Layout:
    """Return every instance that could exist on an empty card, by slot; those of some profiles, or of all."""
    among = geometry.profiles if profiles is None else profiles
    return in_order((profile, start) for profile in among for start in profile.starts)


def in_order(instances: Iterable[Instance]) -> Layout:
    """Return instances in ascending order of their slots."""
    return tuple(sorted(instances, key=lambda one: (one[1], one[0].name)))


def feasible(geometry: Geometry, profiles: Sequence[Profile] | None = None) -> Iterator[Layout]:
    """Yield every layout that can exist, but for the empty one; of some profiles, or of all."""
    among = candidates(geometry, profiles)

    def beyond(layout: Layout, first: int, engines: tuple[int, ...]) -> Iterator[Layout]:
        for profile, start in among:
            if start < first:
                continue
            left = _less(engines, profile)
            if min(left) >= 0:
                larger = (*layout, (profile, start))
                yield larger
                yield from beyond(larger, start + profile.size, left)

    return beyond((), 0, geometry.engines)


def maximal(geometry: Geometry, profiles: Sequence[Profile] | None = None) -> Iterator[Layout]:
    """Yield every layout to which no further instance can be added; of some profiles, or of all.

    One whose instances stand badly can be maximal though the same instances, elsewhere, leave room for more: of an
    A100, ``3g`` at slot 0 beside ``2g`` and ``1g`` is, for ``3g`` at slot 0 leaves a slot over that nothing starts at.
    """
    among = candidates(geometry, profiles)
    for layout in feasible(geometry, profiles):
        if not any(fits(geometry, layout, one) for one in among):
            yield layout


def multiset(layout: Iterable[Instance]) -> tuple[str, ...]:
    """Return the names of the profiles in a layout, sorted and each as often as it occurs."""
    return tuple(sorted(profile.name for profile, _ in layout))


def fits(geometry: Geometry, layout: Iterable[Instance], instance: Instance) -> bool:
    """Return whether an instance can be created beside those of a layout that exists."""
    profile, start = instance
    used, engines = _state(geometry, layout)
    return start in profile.starts and not used & profile.bits(start) and min(_less(engines, profile)) >= 0


def openness(geometry: Geometry, layout: Iterable[Instance]) -> int:
    """Return how much a layout leaves open: the compute slices of every instance that could be added, summed.

    The instances are counted one by one, as if each were the only one. Of two layouts with the same instances, the one
    that leaves more open blocks fewer wishes.
    """
    used, engines = _state(geometry, layout)
    return sum(
        profile.compute * sum(not used & profile.bits(start) for start in profile.starts)
        for profile in geometry.profiles
        if min(_less(engines, profile)) >= 0
    )


def arrangements(
    geometry: Geometry, profiles: Sequence[Profile], fixed: Iterable[Instance] = ()
) -> Iterator[tuple[int, ...]]:
    """Yield every choice of starts for wanted instances beside those that stay.

    Parameters
    ----------
    geometry : Geometry
    profiles : sequence of Profile
        One for each wanted instance.
    fixed : iterable of Instance
        Instances that stay where they are; they can exist together.

    Yields
    ------
    tuple of int
        Starts in the order of `profiles`. Instances of one profile are alike and get ascending starts, so that no two
        choices are the same layout.
    """
    order = sorted(range(len(profiles)), key=lambda k: (-profiles[k].size, profiles[k].name))
    starts = [0] * len(profiles)

    def place(number: int, used: int, engines: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if number == len(order):
            yield tuple(starts)
            return
        k = order[number]
        profile = profiles[k]
        left = _less(engines, profile)
        if min(left) < 0:
            return
        alike = number > 0 and profiles[order[number - 1]].name == profile.name
        for start in profile.starts:
            if not used & profile.bits(start) and not (alike and start < starts[order[number - 1]]):
                starts[k] = start
                yield from place(number + 1, used | profile.bits(start), left)

    return place(0, *_state(geometry, fixed))


def placements(
    geometry: Geometry, profiles: Sequence[Profile], fixed: Iterable[Instance] = ()
) -> tuple[int, ...] | None:
    """Return starts for wanted instances beside those that stay, or None if there is no place for all of them.

    Of all choices it is one that leaves most open (see `openness`), and of these the one with the lowest starts.

    Parameters
    ----------
    geometry : Geometry
    profiles : sequence of Profile
        One for each wanted instance.
    fixed : iterable of Instance
        Instances that stay where they are; they can exist together.

    Returns
    -------
    tuple of int or None
        Starts in the order of `profiles`.

    Examples
    --------
    >>> from placement.hardware.mig import geometry
    >>> card = geometry("A100-40GB")
    >>> wanted = [card.profile(name) for name in ("3g.20gb", "1g.5gb", "1g.5gb")]
    >>> placements(card, wanted)
    (4, 0, 1)
    >>> placements(card, [card.profile("4g.20gb")], fixed=[(card.profile("3g.20gb"), 0)]) is None
    True
    """
    stay = tuple(fixed)

    def rank(starts: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
        return -openness(geometry, (*stay, *zip(profiles, starts, strict=True))), starts

    return min(arrangements(geometry, profiles, stay), key=rank, default=None)


def clash(geometry: Geometry, instances: Iterable[Instance]) -> str | None:
    """Return why instances cannot exist together on a card, as a clause for a message; None if they can.

    The first reason found is given: a start that the profile does not have, two instances that take a slot, or media
    engines that do not suffice.

    Examples
    --------
    >>> from placement.hardware.mig import geometry
    >>> card = geometry("A100-40GB")
    >>> three, one = card.profile("3g.20gb"), card.profile("1g.5gb")
    >>> clash(card, [(three, 4), (one, 0)]) is None
    True
    >>> clash(card, [(three, 4), (one, 5)])
    '3g.20gb at slots 4 to 7 and 1g.5gb at slot 5 both take slot 5'
    >>> clash(card, [(three, 2)])
    '3g.20gb cannot start at slot 2: on A100-40GB it starts at 0 or 4'
    """
    placed = in_order(instances)
    for profile, start in placed:
        if start not in profile.starts:
            starts = " or ".join(map(str, profile.starts))
            return f"{profile.name} cannot start at slot {start}: on {geometry.model} it starts at {starts}"
    for before, after in pairwise(placed):
        # by ascending start, whoever takes a slot twice does so with the next one at the latest
        if before[1] + before[0].size > after[1]:
            return f"{_where(before)} and {_where(after)} both take slot {after[1]}"
    for kind, name in enumerate(ENGINES):
        needed, there = sum(profile.engines[kind] for profile, _ in placed), geometry.engines[kind]
        if needed > there:
            counts = Counter(profile.name for profile, _ in placed if profile.engines[kind])
            users = ", ".join(f"{count} x {user}" for user, count in sorted(counts.items()))
            return f"{users} take {needed} {name}{'' if needed == 1 else 's'} together, and the card has {there}"
    return None


def _where(instance: Instance) -> str:
    profile, start = instance
    slots = f"slot {start}" if profile.size == 1 else f"slots {start} to {start + profile.size - 1}"
    return f"{profile.name} at {slots}"


def _state(geometry: Geometry, layout: Iterable[Instance]) -> tuple[int, tuple[int, ...]]:
    """Return the slots that instances take, as bits, and the media engines they leave."""
    used, engines = 0, geometry.engines
    for profile, start in layout:
        used |= profile.bits(start)
        engines = _less(engines, profile)
    return used, engines


def _less(engines: tuple[int, ...], profile: Profile) -> tuple[int, ...]:
    return tuple(have - need for have, need in zip(engines, profile.engines, strict=True))
