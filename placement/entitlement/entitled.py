"""What a queue may claim back from others: its quota, or its fair share of all there is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

from placement import units
from placement.hardware import mig
from placement.quota import ALL, quota_of
from placement.snapshot import Gpu, Queue, Snapshot

Reclaim = Literal["quota", "fair_share", "dominant_share"]
RECLAIMS: tuple[str, ...] = get_args(Reclaim)

Entitled = Callable[[str, str], Fraction]
"""Cards of a model, or of `placement.quota.ALL`, that a queue may claim: by queue and model."""

Amounts = Mapping[str, Fraction]
"""Cards by model."""


def by_quota(snapshot: Snapshot) -> Entitled:
    """Return what says of each queue what its quota is."""
    queues = {queue.name: queue for queue in snapshot.queues}
    return lambda queue, model: Fraction(quota_of(queues[queue], model))


def by_fair_share(snapshot: Snapshot, asked: Mapping[str, Sequence[Amounts]]) -> Entitled:
    """Return what says of each queue what its fair share is.

    Of what a parent has, or the cluster, each child gets its quota first, or what it asks for if that is less. What is
    left over goes to those that ask for more, in proportion to their weights, none beyond what it asks for or its
    borrowing limit; and what these do not take to the others in the same way.

    Source: the fair share of KAI-Scheduler, with `Queue.weight` as its over-quota weight (``pkg/scheduler/plugins/
    proportion/resource_division``), whose priorities among queues are left out.

    Parameters
    ----------
    snapshot : Snapshot
    asked : mapping of str to sequence of mapping of str to Fraction
        By queue, what each job in it has or waits for, by card model; `placement.quota.ALL` alone where its model is
        not settled.
    """
    return Shares(snapshot, asked).of


@dataclass(slots=True)
class _Open:
    """A queue that shares in something."""

    share: Fraction
    most: Fraction
    weight: Fraction


class Shares:
    """Fair shares, model by model as they are asked for; see `by_fair_share`.

    Parameters
    ----------
    snapshot : Snapshot
    asked : mapping of str to sequence of mapping of str to Fraction
    """

    def __init__(self, snapshot: Snapshot, asked: Mapping[str, Sequence[Amounts]]) -> None:
        self._queues = snapshot.queues
        self._asked = asked
        self._there: dict[str, Fraction] = {}
        for node in snapshot.nodes:
            for gpu in node.gpus:
                if gpu.health == "healthy":
                    for row in (gpu.model, ALL):
                        self._there[row] = self._there.get(row, Fraction(0)) + node.count * gpu.count * _offered(gpu)
        self._known: dict[str, dict[str, Fraction]] = {}

    def of(self, queue: str, model: str) -> Fraction:
        """Return the share of a queue."""
        if model not in self._known:
            self._known[model] = self._shares(model)
        return self._known[model][queue]

    def _shares(self, model: str) -> dict[str, Fraction]:
        shares: dict[str, Fraction] = {}
        self._divide("", self._there.get(model, Fraction(0)), model, shares)
        return shares

    def _divide(self, parent: str, total: Fraction, model: str, shares: dict[str, Fraction]) -> None:
        children = [queue for queue in self._queues if queue.parent == parent]
        parts = [self._open(queue, model) for queue in children]
        _fill(parts, total)
        for queue, part in zip(children, parts, strict=True):
            shares[queue.name] = part.share
            self._divide(queue.name, part.share, model, shares)

    def _open(self, queue: Queue, model: str) -> _Open:
        quota, demand = Fraction(quota_of(queue, model)), self._demand(queue.name, model)
        limit = queue.borrowing_limit.get(model)
        most = demand if limit is None else min(demand, quota + units.exact(limit))
        return _Open(min(quota, demand), most, units.exact(queue.weight))

    def _demand(self, queue: str, model: str) -> Fraction:
        own = sum((_row(amounts, model) for amounts in self._asked.get(queue, ())), Fraction(0))
        return own + sum((self._demand(one.name, model) for one in self._queues if one.parent == queue), Fraction(0))


def _offered(gpu: Gpu) -> Fraction:
    """Return how much of a card can be used: where instances stay as they are, these."""
    if not (gpu.mig_enabled and gpu.mig_static):
        return Fraction(1)
    return sum((mig.fraction(one.profile) or Fraction(0) for one in gpu.mig_layout), Fraction(0))


def _row(amounts: Amounts, model: str) -> Fraction:
    return sum(amounts.values(), Fraction(0)) if model == ALL else amounts.get(model, Fraction(0))


def _fill(parts: Sequence[_Open], total: Fraction) -> None:
    """Share out what is left over by weight, until all of it is taken or nobody wants more."""
    left = total - sum((part.share for part in parts), Fraction(0))
    while left > 0:
        wanting = [part for part in parts if part.share < part.most and part.weight > 0]
        if not wanting:
            return
        weights = sum((part.weight for part in wanting), Fraction(0))
        step = min(left, *((part.most - part.share) * weights / part.weight for part in wanting))
        for part in wanting:
            part.share += step * part.weight / weights
        left -= step
