"""MIG instances of a card to a layout: which profiles they are, and at which slots they start.

What is not printed follows from what is: the memory and the multiprocessors of an instance leave few profiles, and all
instances of the card have to be able to exist beside one another.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import add

from placement.formats.ledger import Ledger
from placement.formats.nvidia_smi.facts import Card, Instance
from placement.formats.source import File
from placement.hardware.mig import Geometry, Profile
from placement.snapshot import MigInstance
from placement.snapshot.report import show

_FAR = 0.03
"""How far memory may be from the catalogue's, as a fraction: drivers differ by less, and profiles by more."""

MOST_LISTED = 20
"""Instances that a message lists."""

_SLOTS = 8
"""Memory slots of cards that have profiles of one compute slice with two of them."""


def layout(card: Card, geometry: Geometry, file: File, ledger: Ledger) -> tuple[MigInstance, ...]:
    """Return the instances of a card, in the order of the output.

    Where several profiles have the memory that an instance has, those with most compute slices with which all can exist
    are taken; where no slot is printed, the first with which they can.

    Raises
    ------
    InputError
        If they cannot exist on such a card.
    """
    instances = card.instances or []
    if not instances:
        return ()
    place = card.where.removeprefix(f"{file.name}: ")
    choices = [_profiles(one, geometry) for one in instances]
    for one, found in zip(instances, choices, strict=True):
        if not found:
            what = f"a card {show(card.model)} has no MIG profile {_said(one)}"
            raise file.error(what, "print it again, and -lgi too, which names profiles", place)
    # instances with twice the memory for their compute are rare, and older drivers do not know them
    usual = [[one for one in found if one.size <= 1 or one.compute > 1] or found for found in choices]
    if geometry.slots != _SLOTS:
        usual = choices
    starts = [one.start for one in instances]
    found_layout = arranged(geometry, list(zip(usual, starts, strict=True)))
    if found_layout is None:
        found_layout = arranged(geometry, list(zip(choices, starts, strict=True)))
    if found_layout is None:
        listed = ", ".join(map(_said, instances[:MOST_LISTED])) + (", …" if len(instances) > MOST_LISTED else "")
        what = f"these MIG instances cannot exist together on a card {show(card.model)}: {listed}"
        raise file.error(
            what,
            "print it again, and -lgi too, which names profiles and slots",
            place,
        )
    if any(len(found) > 1 for found in choices):
        ledger.assumed("MIG profile of an instance", "the largest with its memory that fits beside others", card.where)
    if any(one.start is None for one in instances):
        ledger.assumed(
            "first slots of MIG instances", "the first possible; `nvidia-smi mig -lgi` says them", card.where
        )
    return tuple(MigInstance(profile=profile.name, start=start) for profile, start in found_layout)


def _said(one: Instance) -> str:
    what = one.profile or (f"of {one.memory} MiB" if one.memory is not None else "of unknown memory")
    what += f" with {one.sm} multiprocessors" if one.sm and not one.profile else ""
    return what if one.start is None else f"{what} at slot {one.start}"


def _profiles(one: Instance, geometry: Geometry) -> list[Profile]:
    """Return the profiles that an instance can be, those with most compute slices first, and plain ones first."""
    if one.profile:
        named = geometry.profile(one.profile)
        return [] if named is None else [named]
    found = [
        profile
        for profile in geometry.profiles
        if (one.memory is None or profile.memory is None or abs(profile.memory - one.memory) <= _FAR * profile.memory)
        and (not one.sm or profile.sm is None or one.sm <= profile.sm)
        and (one.memory is not None or one.sm)
    ]
    known = [profile for profile in found if profile.memory is not None]
    exact = [profile for profile in known if one.sm and profile.sm == one.sm] or known or found
    alike = [profile for profile in exact if profile.engines == one.engines] or exact
    return sorted(alike, key=lambda profile: (-profile.compute, not profile.plain))


def arranged(
    geometry: Geometry, wanted: Sequence[tuple[Sequence[Profile], int | None]]
) -> list[tuple[Profile, int]] | None:
    """Return a profile and a first slot for each instance with which all can exist; None where there are none.

    Parameters
    ----------
    geometry : Geometry
    wanted : sequence of (sequence of Profile, int or None)
        Profiles that an instance can be, in the order in which they are tried, and its slot where it is known.
    """
    least = sum(min(profile.size for profile in profiles) for profiles, _ in wanted)
    if least > geometry.slots:
        return None
    # the large ones first: they have few places
    order = sorted(range(len(wanted)), key=lambda index: -max(profile.size for profile in wanted[index][0]))
    found: dict[int, tuple[Profile, int]] = {}

    def place(position: int, taken: int, engines: tuple[int, ...]) -> bool:
        if position == len(order):
            return True
        index = order[position]
        profiles, known = wanted[index]
        for profile in profiles:
            used = tuple(map(add, engines, profile.engines))
            if any(one > most for one, most in zip(used, geometry.engines, strict=True)):
                continue
            for start in profile.starts:
                if known in (None, start) and not taken & profile.bits(start):
                    found[index] = (profile, start)
                    if place(position + 1, taken | profile.bits(start), used):
                        return True
        return False

    if not place(0, 0, (0,) * len(geometry.engines)):
        return None
    return [found[index] for index in range(len(wanted))]
