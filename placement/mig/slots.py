"""What is on MIG cards, as states that creating and destroying instances change.

All that matters of a card is which of its memory slots are taken and, where profiles with media extensions are about,
which of its media engines. Cards of one model with the same of both are in one state, and tables over the states say
what fits and what becomes of it; so many cards are looked at in one array operation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from placement.hardware.mig import Geometry, Profile

STARTS = 16
"""More than there are memory slots on any card."""

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Engines = tuple[int, ...]


@dataclass(frozen=True)
class Board:
    """What can be on a card: its geometry, and the instances that exist where they stay as they are.

    Attributes
    ----------
    geometry : Geometry
    existing : tuple of (str, int), optional
        Profile and first slot of each; absent where instances are created and destroyed.
    watched : bool
        Whether media engines can run out: only profiles with media extensions, or without engines, make them.
    """

    geometry: Geometry
    existing: tuple[tuple[str, int], ...] | None
    watched: bool

    def __hash__(self) -> int:
        """Go by the name of the model alone: cards are looked up often, and a geometry is large."""
        return hash((self.geometry.model, self.existing, self.watched))

    def starts(self, profile: Profile) -> tuple[int, ...]:
        """Return the slots at which an instance may start."""
        if self.existing is None:
            return profile.starts
        return tuple(sorted(start for name, start in self.existing if name == profile.name))


@dataclass(frozen=True, slots=True)
class Card:
    """What is on one card: its board, taken slots as bits, and media engines in use where they are watched."""

    board: Board
    bits: int
    engines: Engines

    def plus(self, profile: Profile, start: int) -> Card | None:
        """Return the card with one more instance, or None where there is no room for it."""
        mine = profile.bits(start)
        engines = tuple(used + more for used, more in zip(self.engines, profile.engines, strict=False))
        if self.bits & mine or any(
            used > there for used, there in zip(engines, self.board.geometry.engines, strict=False)
        ):
            return None
        return Card(self.board, self.bits | mine, engines)


def most(board: Board, profile: Profile) -> int:
    """Return how many instances of one profile an empty card has at most."""
    number = profile.alone(0, board.starts(profile))
    limits = [there // need for there, need in zip(board.geometry.engines, profile.engines, strict=True) if need]
    return min([number, *limits]) if board.watched else number


def card(board: Board, instances: Iterable[tuple[Profile, int]]) -> Card:
    """Return what is on a card with some instances; what there is too much of is carried."""
    bits, engines = 0, [0] * len(board.geometry.engines)
    for profile, start in instances:
        bits |= profile.bits(start)
        engines = [used + more for used, more in zip(engines, profile.engines, strict=True)]
    return Card(board, bits, tuple(engines) if board.watched else ())


class Slots:
    """All states that cards can come to from where they are, and what leads from one to another.

    Parameters
    ----------
    profiles : sequence of str
        Profiles that tasks ask for, as `placement.hardware.mig.plain_profile` writes them; P of them.
    cards : iterable of Card
        States that cards are in now.

    Attributes
    ----------
    profiles : tuple of str
    cards : list of Card
        By state; Z of them.
    meant : dict of (str, str) to Profile
        What a model means by a profile that is asked for; pairs that it does not have are absent.
    takes : bool array (Z + 1, P)
        Whether there is room for an instance; the last row, of what is no MIG card, is False.
    best : int array (Z, P)
        Where to start it so that most is left: see `room`; -1 where there is none.
    after, before : int arrays (Z, P, STARTS)
        State with one more and with one less; -1 where there is none.
    left : int array (Z,)
        `room` of each.
    """

    def __init__(self, profiles: Sequence[str], cards: Iterable[Card]) -> None:
        self.profiles = tuple(profiles)
        self.meant: dict[tuple[str, str], Profile] = {}
        self._unknown: set[tuple[str, str]] = set()
        self._following: dict[tuple[int, int], tuple[int, ...]] = {}
        self._absent: set[tuple[str, str]] = set()
        self.cards: list[Card] = []
        self._number: dict[Card, int] = {}
        steps: list[tuple[int, int, int, int]] = []
        for one in cards:
            self._intern(one)
        state = 0
        while state < len(self.cards):
            steps += [(state, p, start, after) for p, start, after in self._grown(self.cards[state])]
            state += 1
        shape = len(self.cards), len(self.profiles), STARTS
        self.after: Ints = np.full(shape, -1, dtype=np.int64)
        self.before: Ints = np.full(shape, -1, dtype=np.int64)
        for state, p, start, after in steps:
            self.after[state, p, start] = after
            self.before[after, p, start] = state
        self.left: Ints = np.array([room(one.board.geometry, one.bits) for one in self.cards], dtype=np.int64)
        self.takes: Bools = np.zeros((len(self.cards) + 1, len(self.profiles)), dtype=np.bool_)
        self.takes[:-1] = (self.after >= 0).any(axis=2)
        worth = np.where(self.after >= 0, self.left[self.after], -1)
        self.best: Ints = np.where(self.takes[:-1], worth.argmax(axis=2), -1)

    def profile(self, card: Card, p: int) -> Profile | None:
        """Return what a card means by a profile that is asked for, or None if it has none of that name."""
        key = card.board.geometry.model, self.profiles[p]
        if key not in self.meant and key not in self._absent:
            found = card.board.geometry.profile(self.profiles[p])
            if found is None:
                self._absent.add(key)
            else:
                self.meant[key] = found
        return self.meant.get(key)

    def following(self, state: int, p: int) -> tuple[int, ...]:
        """Return the states that one more instance of a profile can lead to, each once for each start."""
        found = self._following.get((state, p))
        if found is None:
            found = tuple(after for after in self.after[state, p].tolist() if after >= 0)
            self._following[state, p] = found
        return found

    def number(self, card: Card) -> int:
        """Return the state of a card that is in one."""
        return self._number[card]

    def _intern(self, card: Card) -> int:
        number = self._number.setdefault(card, len(self.cards))
        if number == len(self.cards):
            self.cards.append(card)
        return number

    def _grown(self, card: Card) -> Iterable[tuple[int, int, int]]:
        for p in range(len(self.profiles)):
            profile = self.profile(card, p)
            for start in () if profile is None else card.board.starts(profile):
                assert profile is not None
                after = card.plus(profile, start)
                if after is not None:
                    yield p, start, self._intern(after)


@cache
def room(geometry: Geometry, bits: int) -> int:
    """Return what can still be created on a card beside taken slots: slots of each profile alone, over all profiles.

    For each profile without media extensions as many instances as fit if there are no others, times its size.
    """
    return sum(profile.size * profile.alone(bits) for profile in geometry.profiles if profile.plain)
