"""MIG geometries: which profiles a GPU model offers, and at which memory slots an instance of each may start.

The facts are in ``mig.json`` beside this file, each with the sources it was taken from and how far it is to be trusted.
An instance of a profile that starts at slot s occupies slots s to s + size - 1. A set of instances can exist on a card
if and only if no slot is taken twice and the media engines suffice; limits on compute slices, SMs, memory and the
number of instances follow from the slots for every model listed.

Gigabytes in profile names are rounded, and drivers disagree about them: nothing is ever added up from names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, Literal

import msgspec

Confidence = Literal["high", "medium", "low"]

_NAME = re.compile(r"(\d+)g\.(\d+)gb([+-][a-z.]+)?")
_DRIFT = 0.04
"""How far gigabytes in the name of one profile differ between drivers, as a fraction, beside 1 GB."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A MIG profile of one GPU model.

    Attributes
    ----------
    name : str
        As ``nvidia-smi mig -lgip`` prints it, such as ``"1g.5gb+me"``.
    also : tuple of str
        What other drivers call it.
    compute : int
        Compute slices.
    size : int
        Memory slots an instance occupies.
    starts : tuple of int
        Slots it may start at, ascending.
    sm : int or None
        Streaming multiprocessors; None where not published.
    memory : int or None
        MiB that the driver reports; None where not published.
    engines : tuple of int
        Media engines it takes, in the order of `Geometry.engines`.
    confidence : str
        ``"high"``: seen on hardware or in a vendor's table; ``"medium"``: in a vendor's configuration; ``"low"``: taken
        over from a card of the same family.
    sources : tuple of str
        Keys of `sources`.
    """

    name: str
    also: tuple[str, ...]
    compute: int
    size: int
    starts: tuple[int, ...]
    sm: int | None
    memory: int | None
    engines: tuple[int, ...]
    confidence: Confidence
    sources: tuple[str, ...]

    @property
    def plain(self) -> bool:
        """Whether it has neither more nor fewer media engines than its size brings, and no graphics."""
        return self.name.endswith("gb")

    def alone(self, taken: int, starts: Sequence[int] | None = None) -> int:
        """Return how many instances of it fit beside taken slots, as bits, if there are no others.

        They start at any slots, or at some; of instances of one size those that start first leave most room.
        """
        number = 0
        for start in self.starts if starts is None else starts:
            mine = self.bits(start)
            if not taken & mine:
                taken, number = taken | mine, number + 1
        return number

    def bits(self, start: int) -> int:
        """Return the slots of an instance that starts at one of them, as bits."""
        return ((1 << self.size) - 1) << start


@dataclass(frozen=True)
class Geometry:
    """What MIG makes of one GPU model.

    Attributes
    ----------
    model : str
        Name in this catalogue, such as ``"A100-80GB"``.
    aliases : tuple of str
        Other names of the same cards: those of ``nvidia-smi``, of node labels, and short ones.
    architecture : str
    memory : int or None
        MiB of the whole card.
    compute : int
        Compute slices.
    slots : int
        Memory slots.
    engines : tuple of int
        Media engines of the card: decoders, encoders, JPEG units, optical flow units. Where no figures are published,
        a single optical flow unit, which each ``+me`` profile takes.
    reset_to_switch : bool
        Whether switching MIG mode on or off resets the card.
    profiles : tuple of Profile
    confidence : str
    sources : tuple of str
    note : str
    """

    model: str
    aliases: tuple[str, ...]
    architecture: str
    memory: int | None
    compute: int
    slots: int
    engines: tuple[int, ...]
    reset_to_switch: bool
    profiles: tuple[Profile, ...]
    confidence: Confidence
    sources: tuple[str, ...]
    note: str

    @cached_property
    def _by_name(self) -> dict[str, Profile]:
        return {name: profile for profile in self.profiles for name in (*profile.also, profile.name)}

    def profile(self, name: str) -> Profile | None:
        """Return a profile by any of its names, or None.

        Besides the name itself these are those of node labels and resources (``mig-1g.5gb.me``), and names that differ
        in the gigabytes, as drivers do (``7g.79gb``), unless some other card has a profile of just that name.
        """
        if name in self._by_name:
            return self._by_name[name]
        plain = plain_profile(name)
        if plain in self._by_name:
            return self._by_name[plain]
        asked = _NAME.fullmatch(plain)
        if asked is None or plain in _every_name():
            return None
        compute, gigabytes, suffix = int(asked[1]), int(asked[2]), asked[3] or ""
        alike = []
        for profile in self.profiles:
            own = _NAME.fullmatch(profile.name)
            if own is not None and (int(own[1]), own[3] or "") == (compute, suffix):
                alike.append((abs(int(own[2]) - gigabytes), profile.name))
        if not alike or min(alike)[0] > max(1, _DRIFT * gigabytes):
            return None
        return self._by_name[min(alike)[1]]


def plain_profile(name: str) -> str:
    """Return a profile's name as ``nvidia-smi`` writes it, given any spelling of it.

    ``nvidia.com/mig-1g.5gb.me`` and ``mig-1g.5gb.me`` are ``1g.5gb+me``; case does not matter.
    """
    text = name.strip().lower().removeprefix("nvidia.com/").removeprefix("mig-")
    return re.sub(r"gb\.(me\.all|me|gfx)$", r"gb+\1", text)


@cache
def geometries() -> tuple[Geometry, ...]:
    """Return what is known of every model."""
    return tuple(_geometry(model) for model in _facts()["models"])


@cache
def _every_name() -> frozenset[str]:
    return frozenset(name for one in geometries() for profile in one.profiles for name in (profile.name, *profile.also))


@cache
def sources() -> dict[str, dict[str, str]]:
    """Return title, address and kind of each source, by key."""
    found: dict[str, dict[str, str]] = _facts()["sources"]
    return found


@cache
def _facts() -> Any:
    return msgspec.json.decode(files(__package__).joinpath("mig.json").read_bytes())


def _geometry(facts: dict[str, Any]) -> Geometry:
    known = facts["engines"] is not None
    return Geometry(
        model=facts["name"],
        aliases=tuple(facts["aliases"]),
        architecture=facts["architecture"],
        memory=facts["memory_mib"],
        compute=facts["compute"],
        slots=facts["slots"],
        engines=tuple(facts["engines"]) if known else (0, 0, 0, 1),
        reset_to_switch=facts["reset_to_switch"],
        profiles=tuple(
            Profile(
                name=one["name"],
                also=tuple(one.get("also", ())),
                compute=one["compute"],
                size=one["size"],
                starts=tuple(one["starts"]),
                sm=one["sm"],
                memory=one["memory_mib"],
                engines=tuple(one["engines"]) if known else (0, 0, 0, int("+me" in one["name"])),
                confidence=one["confidence"],
                sources=tuple(one["sources"]),
            )
            for one in facts["profiles"]
        ),
        confidence=facts["confidence"],
        sources=tuple(facts["sources"]),
        note=facts["note"],
    )


def _plain_model(name: str) -> str:
    return re.sub(r"[\s_-]+", "-", name.strip().lower()).removeprefix("nvidia-")


@cache
def _by_model() -> dict[str, Geometry]:
    names: dict[str, Geometry] = {}
    for one in geometries():
        for name in (one.model, *one.aliases):
            names.setdefault(_plain_model(name), one)
    return names


@cache
def geometry(model: str) -> Geometry | None:
    """Return what MIG makes of a GPU model, given any of its names, or None if none is known.

    Spaces, dashes, case and a leading ``NVIDIA`` do not matter, nor do the endings that GPU feature discovery adds
    (``-SHARED``, ``-MIG-1g.5gb``). A name that several cards go by, such as ``A100``, is not one of a model.
    """
    plain = re.sub(r"(-shared|-mig-[0-9a-z.+-]+)$", "", _plain_model(model))
    return _by_model().get(plain)


def models() -> tuple[str, ...]:
    """Return the names of all models in the catalogue."""
    return tuple(one.model for one in geometries())


def nearest(name: str, among: Sequence[str]) -> tuple[str, ...]:
    """Return up to three of some names that are most like a name, nearest first."""
    by_plain = {_plain_model(one): one for one in among}
    return tuple(by_plain[one] for one in get_close_matches(_plain_model(name), list(by_plain), n=3, cutoff=0.4))


@cache
def fraction(profile: str) -> Fraction | None:
    """Return what part of a card an instance counts as, or None for a profile that no model in the catalogue has.

    Its compute slices over those of the card; where the same name stands for different parts of different cards, the
    least. It goes into the worth of tasks and into usage, which must not depend on where a task lies.
    """
    found = [one.profile(profile) for one in geometries()]
    parts = [
        Fraction(mine.compute, one.compute) for mine, one in zip(found, geometries(), strict=True) if mine is not None
    ]
    return min(parts, default=None)
