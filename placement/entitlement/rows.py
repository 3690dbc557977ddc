"""What queues may still take in a plan, as sums of what queues without queues below them take.

A share is such a row by itself: all queues below one together take at most its share. A quota is one for each choice of
the queues that keep something, see `placement.entitlement.choices`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from placement.entitlement.asked import Asked, asked, share_of
from placement.entitlement.choices import Choices
from placement.quota import ALL, Quotas
from placement.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class QueueRow:
    """What some queues may take together of a card model.

    Attributes
    ----------
    queues : frozenset of str
        Those that take jobs.
    model : str
        Card model, or `placement.quota.ALL`.
    room : Fraction
        Cards that new work may take, at least 0.
    owner : str
        The queue that it is a limit of.
    kind : str
        ``"share"`` or ``"quota"``.
    """

    queues: frozenset[str]
    model: str
    room: Fraction
    owner: str
    kind: str


def queue_rows(snapshot: Snapshot) -> tuple[QueueRow, ...]:
    """Return the rows of a snapshot that pending jobs could exceed, in a fixed order; of quotas alone without shares.

    Parameters
    ----------
    snapshot : Snapshot
        A valid one. What its running work uses above a limit takes that limit's place.

    Raises
    ------
    UnhonouredError
        If lending limits make too many rows.
    """
    what = asked(snapshot)
    rows: dict[tuple[frozenset[str], str], QueueRow] = {}
    shares = () if snapshot.policy.shares == "quota" else _shares(snapshot, what)
    for row in (*shares, *_quotas(snapshot, what)):
        key = row.queues, row.model
        most = sum((what.wanted[queue][row.model] for queue in row.queues), Fraction(0))
        if row.room < most and (key not in rows or row.room < rows[key].room):
            rows[key] = row
    return tuple(rows.values())


def _shares(snapshot: Snapshot, what: Asked) -> Iterator[QueueRow]:
    share = share_of(snapshot, what)
    models = sorted({gpu.model for node in snapshot.nodes for gpu in node.gpus})
    below = _below(snapshot)
    room: dict[tuple[str, str], Fraction] = {}
    for queue in reversed(_outermost_first(snapshot)):
        children = [one.name for one in snapshot.queues if one.parent == queue]
        for model in _counted(snapshot, queue, models):
            used = sum((what.used[leaf][model] for leaf in below[queue]), Fraction(0))
            room[queue, model] = max(Fraction(0), share(queue, model) - used)
            # what all queues below may take says it already, where that is no more
            if not children or sum(room[child, model] for child in children) > room[queue, model]:
                yield QueueRow(frozenset(below[queue]), model, room[queue, model], queue, "share")


def _counted(snapshot: Snapshot, queue: str, models: list[str]) -> list[str]:
    """Return the models, and `ALL`, in which what a queue takes counts: `ALL` alone where its tree states no other."""
    parent = {one.name: one.parent for one in snapshot.queues}

    def top(name: str) -> str:
        return top(parent[name]) if parent[name] else name

    named = {
        model
        for one in snapshot.queues
        if top(one.name) == top(queue)
        for model in (*one.quota, *one.borrowing_limit, *one.lending_limit)
    }
    if named == {ALL}:
        return [ALL]
    return [*models, ALL] if ALL in named else models


def _below(snapshot: Snapshot) -> dict[str, list[str]]:
    """Return for each queue those below it, or itself, that take jobs."""
    found: dict[str, list[str]] = {}
    for queue in reversed(_outermost_first(snapshot)):
        children = [one.name for one in snapshot.queues if one.parent == queue]
        found[queue] = [leaf for child in children for leaf in found[child]] if children else [queue]
    return found


def _outermost_first(snapshot: Snapshot) -> list[str]:
    found = [""]
    for name in found:
        found += [queue.name for queue in snapshot.queues if queue.parent == name]
    return found[1:]


def _quotas(snapshot: Snapshot, what: Asked) -> Iterator[QueueRow]:
    quotas = Quotas(snapshot.queues)
    models = sorted({gpu.model for node in snapshot.nodes for gpu in node.gpus})
    for queue, leaves in _below(snapshot).items():
        if leaves == [queue]:
            quotas.change(queue, {model: what.used[queue][model] for model in models})
    choices = Choices(snapshot, quotas, what)
    for one in snapshot.queues:
        if not quotas.limited(one.name):
            continue
        for model, _ in quotas.rows(one.name, dict.fromkeys(models, 1)):
            limit = quotas.row(one.name, model).limit
            if limit is not None:
                most = Fraction(max(limit, quotas.usage(one.name, model)))
                for choice in choices.above(one.name, model, most):
                    used = sum((what.used[leaf][model] for leaf in choice.queues), Fraction(0))
                    yield QueueRow(choice.queues, model, most + choice.kept - used, one.name, "quota")
