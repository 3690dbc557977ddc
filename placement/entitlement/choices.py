r"""What counts as used by a queue, as sums of what those below it use that take jobs.

Where a queue *d* keeps :math:`g_d` cards to itself, what counts of its usage above it is :math:`\max(0, u_d - g_d)`
(see `placement.quota`), and the sum of those is at most *L* where

.. math::

    \sum_{d \in D} (u_d - g_d) \le L \quad\text{for every set } D \text{ of the queues below.}

Of most queues it is known whether they are in *D* where the sum is largest: one whose running work alone uses what it
keeps always is, and one that with all that it waits for cannot use more never is. Of the sets that remain, those count
whose sum could be larger than *L*, given what each queue may use by what it asks for, by its own limits and by *L*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from placement.entitlement.asked import Asked
from placement.errors import Problem, UnhonouredError
from placement.quota import Quotas
from placement.snapshot import Snapshot

MOST_CHOICES = 1024
"""Choices of queues that keep something, below one queue."""

NOTHING = Fraction(0)


@dataclass(frozen=True, slots=True)
class Choice:
    """A set of queues that take jobs.

    Attributes
    ----------
    queues : frozenset of str
    kept : Fraction
        What of their usage does not count.
    most : Fraction
        More than this of it never counts.
    """

    queues: frozenset[str] = frozenset()
    kept: Fraction = NOTHING
    most: Fraction = NOTHING

    def __add__(self, other: Choice) -> Choice:
        return Choice(self.queues | other.queues, self.kept + other.kept, self.most + other.most)


class Choices:
    """The sets of queues below each queue, of which the largest sum is what counts as used by it.

    Parameters
    ----------
    snapshot : Snapshot
    quotas : Quotas
        With what running work uses.
    what : Asked
    """

    def __init__(self, snapshot: Snapshot, quotas: Quotas, what: Asked) -> None:
        self._quotas, self._what = quotas, what
        self._without = "queues" if snapshot.policy.shares == "quota" else "policy.shares --without queues"
        self._children: dict[str, list[str]] = {queue.name: [] for queue in snapshot.queues}
        for queue in snapshot.queues:
            if queue.parent and quotas.limited(queue.name):
                self._children[queue.parent].append(queue.name)
        self._leaves = {queue.name for queue in snapshot.queues} - {queue.parent for queue in snapshot.queues}
        self._known: dict[tuple[str, str], list[Choice]] = {}

    def above(self, queue: str, model: str, amount: Fraction) -> list[Choice]:
        """Return the sets of which more than an amount could count as used by a queue.

        Raises
        ------
        UnhonouredError
            If they are too many.
        """
        if queue in self._leaves:
            return [one for one in self._of(queue, model) if one.most > amount]
        return self._sums(queue, [self._options(child, model) for child in self._children[queue]], amount)

    def _of(self, queue: str, model: str) -> list[Choice]:
        """Return all sets of queues below a queue that matter above it."""
        if (queue, model) not in self._known:
            if queue in self._leaves:
                alone = Choice(frozenset({queue}), NOTHING, self._what.of(queue, model))
                self._known[queue, model] = [alone]
            else:
                options = [self._options(child, model) for child in self._children[queue]]
                self._known[queue, model] = self._sums(queue, options, None)
        return self._known[queue, model]

    def _options(self, queue: str, model: str) -> list[Choice]:
        """Return the sets below a queue whose sums, less what it keeps, are what counts above it."""
        row, used = self._quotas.row(queue, model), self._quotas.usage(queue, model)
        kept, limit = Fraction(row.guaranteed), None if row.limit is None else Fraction(max(row.limit, used))
        found = []
        for one in self._of(queue, model):
            most = one.most if limit is None else min(one.most, limit)
            found.append(Choice(one.queues, one.kept + kept, most - kept))
        if kept > used:
            found = [one for one in found if one.most > 0]
            found.append(Choice())
        return found

    def _sums(self, queue: str, options: Sequence[list[Choice]], amount: Fraction | None) -> list[Choice]:
        """Return one choice of each, added up, of which more than an amount could count; all without an amount."""
        found = combined(options, amount)
        if found is None:
            what = f"lending limits of so many queues below {queue} are not honoured in plans"
            left = f"do without queues by --without {self._without}, or state fewer"
            raise UnhonouredError([Problem("queues", what, left)])
        return found


def combined(options: Sequence[Sequence[Choice]], amount: Fraction | None) -> list[Choice] | None:
    """Return one choice of each option, added up, wherever more than an amount could count; None for too many.

    That is by what counts at most of each; and where several are chosen that need not be, by the amount too: none of
    those comes to more, or its sum alone, with those that are always chosen, would be too large.
    """
    settled = [mine[0] for mine in options if len(mine) == 1]
    base = Choice(
        frozenset().union(*(one.queues for one in settled)),
        sum((one.kept for one in settled), NOTHING),
        sum((one.most for one in settled), NOTHING),
    )
    states = [_State(base, base.most, 0)]
    still = [mine for mine in options if len(mine) > 1]
    rest = sum((max(one.most for one in mine) for mine in still), NOTHING)
    rest_capped = sum((max(_capped(one, mine, amount) for one in mine) for mine in still), NOTHING)
    for mine in still:
        rest -= max(one.most for one in mine)
        rest_capped -= max(_capped(one, mine, amount) for one in mine)
        states = [
            state
            for before in states
            for state in (before.joined(one, mine, amount) for one in mine)
            if amount is None or state.reaches(amount, rest, rest_capped)
        ]
        # those with at most one choice that need not be may come to nothing
        if len(states) > MOST_CHOICES + len(still):
            return None
    found = [state.sum for state in states if amount is None or state.reaches(amount, NOTHING, NOTHING)]
    return found if len(found) <= MOST_CHOICES else None


@dataclass(frozen=True, slots=True)
class _State:
    """Choices of some options, added up.

    Attributes
    ----------
    sum : Choice
    capped : Fraction
        What counts of it at most where none that need not be chosen comes to more than the amount.
    free : int
        How many of them need not be chosen.
    """

    sum: Choice
    capped: Fraction
    free: int

    def joined(self, one: Choice, mine: Sequence[Choice], amount: Fraction | None) -> _State:
        """Return the state with a choice of one more option."""
        more = Choice() in mine and one != Choice()
        return _State(self.sum + one, self.capped + _capped(one, mine, amount), self.free + more)

    def reaches(self, amount: Fraction, rest: Fraction, rest_capped: Fraction) -> bool:
        """Return whether more than an amount could count, with what the other options come to at most."""
        return self.sum.most + rest > amount and (self.free < 2 or self.capped + rest_capped > amount)


def _capped(one: Choice, mine: Sequence[Choice], amount: Fraction | None) -> Fraction:
    return min(one.most, amount) if amount is not None and Choice() in mine else one.most
