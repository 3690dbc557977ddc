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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from operator import add

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
        found = []
        for chosen in combined(options, amount):
            found.append(reduce(add, chosen, Choice()))
            if len(found) > MOST_CHOICES:
                what = f"lending limits of so many queues below {queue} are not honoured in plans"
                left = f"do without queues by --without {self._without}, or state fewer"
                raise UnhonouredError([Problem("queues", what, left)])
        return found


def combined(options: Sequence[Sequence[Choice]], amount: Fraction | None) -> Iterator[tuple[Choice, ...]]:
    """Yield one choice of each option, wherever more than an amount could count of them together.

    That is by what counts at most of each; and where several are chosen that need not be, by the amount too: none of
    those comes to more, or its sum alone, with those that are always chosen, would be too large.
    """
    optional = [Choice() in mine for mine in options]

    def capped(one: Choice, number: int) -> Fraction:
        return one.most if amount is None or not optional[number] else min(one.most, amount)

    rest = [(NOTHING, NOTHING)]
    for number in reversed(range(len(options))):
        most = max(one.most for one in options[number])
        rest.append((rest[-1][0] + most, rest[-1][1] + max(capped(one, number) for one in options[number])))
    rest.reverse()

    def complete(done: tuple[Choice, ...], most: Fraction, less: Fraction, free: int) -> Iterator[tuple[Choice, ...]]:
        number = len(done)
        if amount is not None and (most + rest[number][0] <= amount or (free > 1 and less + rest[number][1] <= amount)):
            return
        if number == len(options):
            yield done
            return
        for one in options[number]:
            more = optional[number] and one != Choice()
            yield from complete((*done, one), most + one.most, less + capped(one, number), free + more)

    return complete((), NOTHING, NOTHING, 0)
