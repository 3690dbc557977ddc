"""What a queue may claim back by dominant shares: of all models at once, at a pace that goes by the largest part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction

from placement.entitlement.entitled import Amounts, Entitled, Shares
from placement.quota import ALL
from placement.snapshot import Snapshot

Totals = Mapping[str, Fraction]
"""Cards by model."""


def by_dominant_share(snapshot: Snapshot, asked: Mapping[str, Sequence[Amounts]]) -> Entitled:
    """Return what says of each queue what it may claim by dominant shares.

    Of what a parent has, or the cluster, each child gets its quota first, or what it asks for if that is less. What is
    left over goes to those that ask for more, of all models in proportion to how many more of each, at such a pace that
    the dominant share of each over its weight grows alike: the largest part of any model that it is given beyond its
    quota. No queue gets more of a model than it asks for or its borrowing limit, and of a model that has run out nobody
    gets more: from then on it sets nobody's pace, however much of it is asked for.

    Where cards are all of one model, that is `placement.entitlement.entitled.by_fair_share`; the row
    `placement.quota.ALL`, cards of any model, is always shared as there.

    Source: dominant resource fairness (Ghodsi, Zaharia, Hindman, Konwinski, Shenker and Stoica, NSDI 2011), with card
    models as the resources; that what lies within the quota does not count is Kueue's (``pkg/cache/scheduler/
    fair_sharing.go``). There a queue stops as soon as one of its resources has run out, for its tasks need all of them;
    here its jobs are of one model each, and it goes on with the others.

    Parameters
    ----------
    snapshot : Snapshot
    asked : mapping of str to sequence of mapping of str to Fraction
        As for `placement.entitlement.entitled.by_fair_share`.
    """
    return _Dominant(snapshot, asked).of


@dataclass(slots=True)
class _Pace:
    """A queue that is given more of some models.

    Attributes
    ----------
    wants : dict of str to Fraction
        How many more cards of each model it asks for.
    weight : Fraction
    given : dict of str to Fraction
    """

    wants: dict[str, Fraction]
    weight: Fraction
    given: dict[str, Fraction]

    def speed(self, totals: Totals, out: Set[str]) -> Fraction:
        """Return which part of what it asks for it is given while the dominant share over the weight grows by 1.

        It is 0 where all models that it asks for are out.
        """
        largest = max(
            (amount / totals[model] for model, amount in self.wants.items() if model not in out), default=None
        )
        return Fraction(0) if largest is None else self.weight / largest


class _Dominant(Shares):
    """Dominant shares, all models at once."""

    def _shares(self, model: str) -> dict[str, Fraction]:
        if model == ALL or model not in self._there:
            return super()._shares(model)
        totals = {one: amount for one, amount in self._there.items() if one != ALL}
        self._known |= {one: {} for one in totals}
        self._divide_all("", totals)
        return self._known[model]

    def _divide_all(self, parent: str, totals: Totals) -> None:
        children = [queue for queue in self._queues if queue.parent == parent]
        left = dict(totals)
        paces = []
        for queue in children:
            parts = {model: self._open(queue, model) for model in totals}
            for model, part in parts.items():
                left[model] -= part.share
            wants = {model: part.most - part.share for model, part in parts.items() if part.most > part.share}
            weight = next((part.weight for part in parts.values()), Fraction(0))
            paces.append(_Pace(wants, weight, {model: part.share for model, part in parts.items()}))
        _give(paces, totals, left)
        for queue, pace in zip(children, paces, strict=True):
            for model, amount in pace.given.items():
                self._known[model][queue.name] = amount
            self._divide_all(queue.name, pace.given)


def _give(paces: Sequence[_Pace], totals: Totals, left: dict[str, Fraction]) -> None:
    """Give what is left over, until nobody wants any of what is left."""
    done = [Fraction(0)] * len(paces)
    out = {model for model, amount in left.items() if amount <= 0}
    while True:
        speeds = [pace.speed(totals, out) for pace in paces]
        active = [number for number, speed in enumerate(speeds) if speed and done[number] < 1]
        if not active:
            return
        rates: dict[str, Fraction] = {}
        for number in active:
            for model, amount in paces[number].wants.items():
                if model not in out:
                    rates[model] = rates.get(model, Fraction(0)) + speeds[number] * amount
        step = min(
            *((1 - done[number]) / speeds[number] for number in active),
            *(left[model] / rate for model, rate in rates.items()),
        )
        for number in active:
            done[number] += step * speeds[number]
            for model, amount in paces[number].wants.items():
                if model not in out:
                    paces[number].given[model] += step * speeds[number] * amount
        for model, rate in rates.items():
            left[model] -= step * rate
            if left[model] == 0:
                out.add(model)
