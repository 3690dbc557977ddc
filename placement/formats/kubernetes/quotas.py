"""Quotas and limits of cards that are stated queue by queue, as Volcano and KAI do, in the words of a snapshot.

There a queue has a quota and a limit of its own, and beyond its quota it uses what is free. A snapshot's queue uses
more than its quota only as what it borrows below one parent (`placement.quota`). So all queues get a common parent with
more cards than there are, and

- a queue that takes jobs has its quota, and may borrow up to its limit;
- a queue above others has what its quota is more than theirs together, and may borrow up to its limit too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from fractions import Fraction

from placement.errors import InputError
from placement.formats.kubernetes.parts import Gang
from placement.formats.ledger import Ledger
from placement.quota import ALL
from placement.snapshot import Queue
from placement.snapshot.report import show
from placement.units import Quantity, exact

ROOT = "all queues"
"""Name of the parent of all queues, where one has a quota or a limit."""

PLENTY = 1_000_000
"""Cards of the parent of all queues: more than there are, for it limits nothing."""

MOST_DEPTH = 100
"""Levels of queues."""

_DECIMAL = Context(prec=60)


@dataclass(frozen=True, slots=True)
class Entitlement:
    """What a queue may use of cards.

    Attributes
    ----------
    name : str
    where : str
        Place of the object that says so.
    parent : str
        Empty at the top.
    quota : Fraction, optional
        What it may always have; None: any amount.
    limit : Fraction, optional
        What it may have at most; None: no limit.
    weight : float
        Share of what is left over.
    """

    name: str
    where: str
    parent: str = ""
    quota: Fraction | None = Fraction(0)
    limit: Fraction | None = None
    weight: float = 1.0


def amount(quantity: Quantity, where: str) -> Fraction:
    """Return a quantity exactly.

    Raises
    ------
    InputError
        If it is none.
    """
    try:
        return exact(quantity)
    except ValueError as why:
        raise InputError.one(str(why), "correct the quantity", path=where) from None


def queues(stated: Sequence[Entitlement], ledger: Ledger) -> tuple[Queue, ...]:
    """Return the queues of a snapshot.

    Parameters
    ----------
    stated : sequence of Entitlement
        Of different names.
    ledger : Ledger
        Gets the parents that are not there, and the quotas that a limit above them cuts.

    Raises
    ------
    InputError
        If the parents go round.
    """
    known = {one.name: one for one in stated}
    below: dict[str, list[Entitlement]] = {"": []}
    for one in stated:
        parent = one.parent
        if parent and parent not in known:
            ledger.contradiction("a queue whose parent is not there", "it has no parent", one.where)
            parent = ""
        below.setdefault(parent, []).append(one)
    if not any(one.quota != 0 or one.limit is not None for one in stated):
        found = [Queue(name=one.name, parent=_parent(one, known), weight=one.weight) for one in _down("", below, 0)]
    else:
        found = [Queue(name=ROOT, quota={ALL: PLENTY})]
        found += (queue for one in below[""] for queue in _Tree(below, ledger).of(one, ROOT, None)[0])
    _refuse_rounds(stated, {queue.name for queue in found})
    order = {one.name: number for number, one in enumerate(stated)}
    return tuple(sorted(found, key=lambda queue: order.get(queue.name, -1)))


def _parent(one: Entitlement, known: Mapping[str, Entitlement]) -> str:
    return one.parent if one.parent in known else ""


def _down(name: str, below: Mapping[str, list[Entitlement]], depth: int) -> Iterator[Entitlement]:
    for one in below.get(name, ()):
        _refuse_depth(one, depth)
        yield one
        yield from _down(one.name, below, depth + 1)


def _refuse_depth(one: Entitlement, depth: int) -> None:
    if depth > MOST_DEPTH:
        raise InputError.one(f"queues lie more than {MOST_DEPTH} deep", "nest them less deeply", path=one.where)


def _refuse_rounds(stated: Sequence[Entitlement], reached: set[str]) -> None:
    """Refuse queues that no way from the top leads to."""
    for one in stated:
        if one.name not in reached:
            what = f"the parents of queue {show(one.name)} go round"
            raise InputError.one(what, "correct `parent`", path=one.where)


class _Tree:
    """Quotas from the top down; each level keeps to what the limits above it leave."""

    def __init__(self, below: Mapping[str, list[Entitlement]], ledger: Ledger) -> None:
        self._below = below
        self._ledger = ledger

    def of(self, one: Entitlement, parent: str, room: Fraction | None, depth: int = 0) -> tuple[list[Queue], Fraction]:
        """Return a queue with all below it, and the cards that they have as quotas together.

        Parameters
        ----------
        one : Entitlement
        parent : str
            Name of its parent in the snapshot.
        room : Fraction, optional
            What the limits above leave for it; None for any amount.
        depth : int
        """
        _refuse_depth(one, depth)
        room = min((part for part in (room, one.limit) if part is not None), default=None)
        wanted = Fraction(PLENTY) if one.quota is None else one.quota
        if room is not None and wanted > room:
            if one.quota is not None:
                self._ledger.contradiction(
                    "a quota beyond a limit of the queue or of one above it", "the limit", one.where
                )
            wanted = room
        found: list[Queue] = []
        together = Fraction(0)
        for child in self._below.get(one.name, ()):
            left = None if room is None else room - together
            queues, has = self.of(child, one.name, left, depth + 1)
            found += queues
            together += has
        own = max(Fraction(0), wanted - together)
        total = own + together
        # usage beyond what is above would be stopped there anyway, so only a queue's own limit is stated
        borrowed = {} if one.limit is None else {ALL: _quantity(max(Fraction(0), one.limit - total))}
        quota = {ALL: _quantity(own)}
        queue = Queue(name=one.name, parent=parent, quota=quota, borrowing_limit=borrowed, weight=one.weight)
        return [queue, *found], total


def _quantity(value: Fraction) -> Quantity:
    """Return an amount of cards, which is a decimal, as a quantity."""
    if value.denominator == 1:
        return value.numerator
    return format(_DECIMAL.divide(Decimal(value.numerator), Decimal(value.denominator)), "f")


def queued(gangs: Sequence[Gang], known: Sequence[Queue], ledger: Ledger) -> tuple[Gang, ...]:
    """Return gangs that are in no queue where theirs takes no jobs, or is not there."""
    if not known:
        return tuple(gangs)
    names = {queue.name for queue in known}
    parents = {queue.parent for queue in known}
    found = []
    for gang in gangs:
        if gang.queue and gang.queue not in names:
            ledger.unsupported("a queue that is not there", "its jobs are planned as if they were in none", gang.where)
            gang = replace(gang, queue="")
        elif gang.queue in parents:
            ledger.unsupported(
                "a job in a queue that has queues below it", "it is planned as if it were in none", gang.where
            )
            gang = replace(gang, queue="")
        found.append(gang)
    return tuple(found)
