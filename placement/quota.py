"""Queues and their quotas: a tree in which queues lend to and borrow from one another, card model by card model.

The rule is that of Kueue's hierarchical cohorts (https://kueue.sigs.k8s.io/docs/concepts/cohort/, and
``pkg/cache/scheduler/resource_node.go`` of kubernetes-sigs/kueue, in older versions ``pkg/cache/resource_node.go``).
For a queue c and a row m, which is a card model or ``"*"``, all models together:

- ``subtree(c, m)`` is its quota and what its children lend it: the sum of ``subtree - guaranteed`` over them;
- ``guaranteed(c, m) = max(0, subtree - lending limit)`` is what it never lends; 0 without a lending limit;
- ``usage(c, m)`` is what the jobs of a queue without children take, and above the sum of
  ``max(0, usage - guaranteed)`` over the children;
- ``usage <= subtree + borrowing limit``, without bound where no limit is stated, and ``usage <= subtree`` at the top.

A model that a queue does not list counts as 0 there, or as its ``"*"`` where it lists that; and ``"*"``, where it is
not listed, as the sum of the listed models. So of quotas ``{"A": 4}`` and ``{"*": 4}`` in one tree up to 8 cards are of
model A, 4 of each other model, and 8 are all. A queue without children that states nothing, and nothing is stated above
it, is in no tree: it has no quota and counts nowhere.

What is over a limit stays. Nothing may be added that makes it worse, while others may use what they do not lend; there
Kueue is stricter and admits nothing in the whole tree below.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from placement import units
from placement.snapshot.queues import Queue

ALL = "*"
"""Stands for all card models together."""

Cards = int | Fraction
"""A number of cards, exact."""


@dataclass(frozen=True, slots=True)
class Short:
    """A limit that is, or would be, exceeded.

    Attributes
    ----------
    queue : str
        Where it binds.
    model : str
        Card model, or `ALL`.
    amount : Cards
        By how many cards.
    kind : str
        What the limit is, ``"quota"`` or ``"share"``.
    also : tuple of (str, str)
        Kinds and queues of more limits, where those on several models, which have another queue or kind, are exceeded
        together.
    """

    queue: str
    model: str
    amount: Cards
    kind: str = "quota"
    also: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        noun = "card" if self.amount == 1 else "cards"
        cards = f"{noun} of all models" if self.model == ALL else f"{noun} of {self.model}"
        limits = (f"the {kind} of queue {queue}" for kind, queue in ((self.kind, self.queue), *self.also))
        return f"{float(self.amount):.12g} {cards} too many for {' and '.join(limits)}"


@dataclass(frozen=True, slots=True)
class QueueLimit:
    """What a limit of an instance stands for that is one of a queue.

    Attributes
    ----------
    queue : str
    model : str
        Card model, or `ALL`.
    kind : str
        ``"share"`` or ``"quota"``.
    scale : int
        Units of the limit's resource that are one card.
    """

    queue: str
    model: str
    kind: str
    scale: int


@dataclass(frozen=True, slots=True)
class Row:
    """What one queue may use of one card model.

    Attributes
    ----------
    subtree, guaranteed : Cards
    limit : Cards, optional
        Most usage; None for no limit.
    """

    subtree: Cards
    guaranteed: Cards
    limit: Cards | None


class Quotas:
    """What queues may use, and what they use now.

    Parameters
    ----------
    queues : sequence of Queue
        Valid ones.
    """

    def __init__(self, queues: Sequence[Queue]) -> None:
        self.queues = tuple(queues)
        self._index = {queue.name: number for number, queue in enumerate(queues)}
        self._parent = [self._index.get(queue.parent, -1) for queue in queues]
        self._children: list[list[int]] = [[] for _ in queues]
        for number, parent in enumerate(self._parent):
            if parent >= 0:
                self._children[parent].append(number)
        self._chains = [tuple(self._up(number)) for number in range(len(queues))]
        self._limited = [bool(self._children[c]) or any(map(self._states, self._chains[c])) for c in range(len(queues))]
        self._named: dict[int, set[str]] = defaultdict(set)
        for number, queue in enumerate(queues):
            stated = {*queue.quota, *queue.borrowing_limit, *queue.lending_limit}
            self._named[self._chains[number][-1]] |= stated
        self._rows: dict[tuple[int, str], Row] = {}
        self._usage: dict[tuple[int, str], Cards] = defaultdict(int)

    def _up(self, number: int) -> Iterator[int]:
        while number >= 0:
            yield number
            number = self._parent[number]

    def _states(self, number: int) -> bool:
        queue = self.queues[number]
        return bool(queue.quota or queue.borrowing_limit or queue.lending_limit)

    # --- the tree ------------------------------------------------------------------------------------------------

    def limited(self, queue: str) -> bool:
        """Return whether what a queue uses counts at all."""
        number = self._index.get(queue)
        return number is not None and self._limited[number] and bool(self._named[self._chains[number][-1]])

    def chain(self, queue: str) -> tuple[str, ...]:
        """Return a queue and all above it, upwards; nothing for one without a quota."""
        return tuple(self.queues[c].name for c in self._chain(queue))

    def _chain(self, queue: str) -> tuple[int, ...]:
        return self._chains[self._index[queue]] if self.limited(queue) else ()

    def row(self, queue: str, model: str) -> Row:
        """Return what a queue may use of a card model, or of `ALL`."""
        return self._row(self._index[queue], model)

    def _row(self, c: int, model: str) -> Row:
        found = self._rows.get((c, model))
        if found is None:
            found = self._rows[c, model] = self._compiled(c, model)
        return found

    def _compiled(self, c: int, model: str) -> Row:
        queue = self.queues[c]
        subtree = quota_of(queue, model)
        for child in self._children[c]:
            if self._limited[child]:
                below = self._row(child, model)
                subtree += below.subtree - below.guaranteed
        lent, borrowed = queue.lending_limit.get(model), queue.borrowing_limit.get(model)
        guaranteed = 0 if lent is None else max(0, subtree - _exact(lent))
        if self._parent[c] < 0:
            return Row(subtree, guaranteed, subtree)
        return Row(subtree, guaranteed, None if borrowed is None else subtree + _exact(borrowed))

    def by_model(self, queue: str) -> bool:
        """Return whether it counts of which models cards of a queue are."""
        return self.limited(queue) and self._named[self._chain(queue)[-1]] != {ALL}

    def rows(self, queue: str, amounts: Mapping[str, Cards]) -> Iterator[tuple[str, Cards]]:
        """Yield the rows in which some cards of a queue count, and how many in each.

        Where a tree states nothing but ``"*"``, that row says all.
        """
        named = self._named[self._chain(queue)[-1]]
        if named != {ALL}:
            yield from amounts.items()
        if ALL in named and amounts:
            yield ALL, sum(amounts.values())

    # --- usage ---------------------------------------------------------------------------------------------------

    def usage(self, queue: str, model: str) -> Cards:
        """Return what counts as used by a queue, or by all below it."""
        return self._usage[self._index[queue], model]

    def change(self, queue: str, amounts: Mapping[str, Cards], sign: int = 1) -> None:
        """Add to what a queue uses of some models, or take away."""
        if not self.limited(queue):
            return
        for model, amount in self.rows(queue, amounts):
            for c, _, before, after in self._steps(queue, model, sign * amount):
                self._usage[c, model] += after - before

    def _steps(self, queue: str, model: str, amount: Cards) -> Iterator[tuple[int, Row, Cards, Cards]]:
        """Yield the queues whose usage changes, upwards, with their rows and their usage before and after."""
        for c in self._chain(queue):
            if not amount:
                return
            row, before = self._row(c, model), self._usage[c, model]
            after = before + amount
            yield c, row, before, after
            amount = max(0, after - row.guaranteed) - max(0, before - row.guaranteed)

    def fits(self, queue: str, amounts: Mapping[str, Cards]) -> bool:
        """Return whether a queue may use so much more, so that nothing is exceeded that was not, or by more."""
        return self.short_by(queue, amounts) is None

    def short_by(self, queue: str, amounts: Mapping[str, Cards]) -> Short | None:
        """Return the first limit, upwards, that would keep a queue from using so much more; None where it may."""
        if not self.limited(queue):
            return None
        for model, amount in self.rows(queue, amounts):
            for c, row, _, after in self._steps(queue, model, amount):
                if row.limit is not None and after > row.limit:
                    return Short(self.queues[c].name, model, after - row.limit)
        return None

    def room(self, queue: str, model: str) -> Cards | None:
        """Return how much more of a model, or of `ALL`, a queue may use now; None for any amount."""
        found = self.tightest(queue, model)
        return None if found is None else found[0]

    def tightest(self, queue: str, model: str) -> tuple[Cards, str] | None:
        """Return the same with the first queue, upwards, whose limit leaves no more."""
        if not self.limited(queue):
            return None
        named = self._named[self._chain(queue)[-1]]
        if named == {ALL}:
            model = ALL
        elif model == ALL and ALL not in named:
            return None
        room: Cards = 0
        owner = -1
        for c in reversed(self._chain(queue)):
            row, used = self._row(c, model), self._usage[c, model]
            if self._parent[c] < 0:
                room, owner = row.subtree - used, c
            else:
                room += max(0, row.guaranteed - used)
                if row.limit is not None and row.limit - used <= room:
                    room, owner = row.limit - used, c
            room = max(0, room)
        return room, self.queues[owner].name

    def over(self) -> list[Short]:
        """Return what is used beyond its limit, in the order of the queues."""
        found = []
        for (c, model), used in sorted(self._usage.items()):
            limit = self._row(c, model).limit
            if limit is not None and used > limit:
                found.append(Short(self.queues[c].name, model, used - limit))
        return found


def quota_of(queue: Queue, model: str) -> Cards:
    """Return the quota that a queue states of a model, or of `ALL`, by what the module's text says."""
    stated = queue.quota.get(model)
    if stated is None and model == ALL:
        return sum(map(_exact, queue.quota.values()))
    return _exact(queue.quota.get(ALL, 0) if stated is None else stated)


def _exact(quantity: units.Quantity) -> Cards:
    value = units.exact(quantity)
    return value.numerator if value.denominator == 1 else value
