"""Which MIG instances running work and a plan's tasks hold, card by card."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import add

import numpy as np

from placement.check.case.load import Load, Taken
from placement.check.exact import Bools, Ints, numbered, numbers, sums
from placement.check.facts.facts import Facts
from placement.check.facts.uses import Rows, Uses
from placement.check.filters.mig_cards import existing, profile_of
from placement.hardware.mig import Profile, geometry

BITS = 62
"""Slots that a column of bits has room for; no card has as many."""


@dataclass(frozen=True, slots=True)
class Held:
    """An instance that a task holds.

    Attributes
    ----------
    new : bool
        Whether the task is new.
    row : int
        Of the task, among the running or the new ones.
    profile : Profile
    start : int
        One that the profile has.
    """

    new: bool
    row: int
    profile: Profile
    start: int

    @property
    def slots(self) -> range:
        """The slots it takes."""
        return range(self.start, self.start + self.profile.size)


@dataclass(frozen=True, slots=True)
class _Instances:
    """Instances in columns: the card of each by position in the load, its profile by number, its slot, and its task."""

    card: Ints
    profile: Ints
    start: Ints
    new: Bools
    row: Ints

    def with_new(self, other: _Instances) -> _Instances:
        """Return these and, behind them, others."""
        return _Instances(
            np.concatenate([self.card, other.card]),
            np.concatenate([self.profile, other.profile]),
            np.concatenate([self.start, other.start]),
            np.concatenate([self.new, other.new]),
            np.concatenate([self.row, other.row]),
        )


class Slots:
    """The instances of tasks that have a card with their profile, and a slot at which the profile may start.

    Parameters
    ----------
    facts : Facts
    load : Load
        Of the running tasks and the rows.
    rows : Rows
    starts : list of list of int, or None
        By row of the plan.

    Attributes
    ----------
    states : list of (int, tuple of int)
        What is taken of a card: slots as bits, and media engines; first nothing of either.
    state : int array
        Which of these each card of the load is in.
    sound : bool array
        Which rows have an instance, and one that exists already where instances stay as they are.
    """

    def __init__(self, facts: Facts, load: Load, rows: Rows, starts: Sequence[Sequence[int]] | None) -> None:
        self._facts, self._load = facts, load
        self._profiles: list[Profile] = []
        self._kind: Ints = np.array([fact.kind for fact in facts.cards], dtype=np.int64)
        self.sound: Bools = np.zeros(len(rows), dtype=np.bool_)
        places = facts.places
        held = self._held(False, load.running, [places[row].mig_starts for row in asking(facts, load.running.uses)])
        if starts is not None:
            of_row = rows.number.tolist()
            held = held.with_new(self._held(True, load.new, [starts[of_row[row]] for row in asking(facts, rows)]))
        self._all = held
        self._add_up()

    def _held(self, new: bool, part: Taken, starts: list[Sequence[int]]) -> _Instances:
        """Return the instances of running or new tasks, given the slots of those that ask for one."""
        facts, uses, none = self._facts, part.uses, np.zeros(0, dtype=np.int64)
        rows = np.array(asking(facts, uses), dtype=np.int64)
        first, ends = np.searchsorted(uses.row, [rows, rows + 1])
        one = np.fromiter((len(some) == 1 for some in starts), dtype=np.bool_, count=len(starts)) & (ends == first + 1)
        if not one.any():
            return _Instances(none, none, none, none.astype(np.bool_), none)
        start = numbers([some[0] for some, single in zip(starts, one.tolist(), strict=True) if single])
        rows, first = rows[one], first[one]
        card = self._load.first_card[part.node[rows]] + uses.device[first]
        fact = self._load.card[card]
        # what a card means by a profile goes by what the task asks for and by what the card is
        kinds = int(self._kind.max(initial=0)) + 1
        pair = facts.shape_of_leaf[uses.leaf[rows]] * kinds + self._kind[fact]
        _, example, sort = np.unique(pair, return_index=True, return_inverse=True)
        number, allowed = np.empty(len(example), dtype=np.int64), np.zeros(len(example), dtype=np.int64)
        legal = np.zeros(len(example), dtype=np.int64)
        for place, row in enumerate(example.tolist()):
            task, gpu = facts.shapes[int(pair[row]) // kinds].task, facts.cards[int(fact[row])].gpu
            profile = profile_of(task, gpu)
            number[place] = len(self._profiles)
            if profile is not None:
                self._profiles.append(profile)
                there = existing(profile, gpu) if gpu.mig_static else profile.starts
                legal[place] = _bits(profile.starts)
                allowed[place] = legal[place] & _bits(there)
        sort = sort.reshape(-1)
        can = (start >= 0) & (start < BITS)
        at = np.where(can, start, 0)
        fits = can & (legal[sort] >> at & 1 > 0)
        if new:
            self.sound[rows] = can & (allowed[sort] >> at & 1 > 0)
        return _Instances(card[fits], number[sort][fits], start[fits], np.full(int(fits.sum()), new), rows[fits])

    def _add_up(self) -> None:
        """Work out what is taken of each card."""
        held, cards = self._all, len(self._load.card)
        size = np.array([profile.bits(0) for profile in self._profiles], dtype=np.int64)
        engines = np.array([profile.engines for profile in self._profiles], dtype=np.int64)
        engines = engines.reshape(len(self._profiles), -1 if self._profiles else 0)
        bits = size[held.profile] << held.start if len(held.card) else held.start
        taken = np.zeros(cards, dtype=np.int64)
        np.bitwise_or.at(taken, held.card, bits)
        # slots that no two instances share add up to themselves
        self._twice: Bools = sums(held.card, bits, cards) != taken
        used = np.array([sums(held.card, column[held.profile], cards) for column in engines.T], dtype=np.int64)
        self._used: Ints = used.reshape(engines.shape[1], cards).T
        self.states: list[tuple[int, tuple[int, ...]]] = [(0, ())]
        self.state: Ints = np.zeros(cards, dtype=np.int64)
        some = np.unique(held.card)
        if len(some):
            number, example = numbered([taken[some], *self._used[some].T])
            self.state[some] = number + 1
            self.states += [(int(taken[card]), tuple(self._used[card].tolist())) for card in some[example].tolist()]

    def crowded(self) -> Iterator[tuple[int, list[Held]]]:
        """Yield the cards on which a new instance shares a slot, or media engines run out, with all their instances.

        Cards are positions in the load; those that running tasks are on come first, and so do running instances.
        """
        held = self._all
        most = np.zeros((len(self._facts.cards), self._used.shape[1]), dtype=np.int64)
        for fact in np.unique(self._load.card[np.unique(held.card)]).tolist():
            known = geometry(self._facts.cards[fact].gpu.model)
            assert known is not None
            most[fact] = known.engines
        wrong = self._twice | (self._used > most[self._load.card]).any(axis=1)
        mine = wrong[held.card]
        rows: dict[int, list[Held]] = {}
        columns = [column[mine].tolist() for column in (held.card, held.profile, held.start, held.new, held.row)]
        for card, profile, start, new, row in zip(*columns, strict=True):
            rows.setdefault(card, []).append(Held(new, row, self._profiles[profile], start))
        yield from ((card, some) for card, some in rows.items() if some[-1].new)


def _bits(slots: Iterable[int]) -> int:
    """Return slots as bits."""
    return sum(1 << slot for slot in set(slots) if slot < BITS)


def asks(facts: Facts, uses: Uses) -> Bools:
    """Return which tasks ask for a MIG instance."""
    profiled = np.array([bool(shape.gpus and shape.task.mig_profile) for shape in facts.shapes], dtype=np.bool_)
    return np.array(profiled[facts.shape_of_leaf[uses.leaf]], dtype=np.bool_)


def asking(facts: Facts, uses: Uses) -> list[int]:
    """Return the rows of tasks that ask for a MIG instance."""
    found: list[int] = np.flatnonzero(asks(facts, uses)).tolist()
    return found


def taken(held: list[Held]) -> tuple[int, tuple[int, ...]]:
    """Return slots, as bits, and media engines that some instances of one card take."""
    slots, engines = 0, (0,) * len(held[0].profile.engines)
    for one in held:
        slots |= one.profile.bits(one.start)
        engines = tuple(map(add, engines, one.profile.engines))
    return slots, engines
