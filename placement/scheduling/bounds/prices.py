r"""A bound from prices of cards over time, valid for continuous time whatever the prices.

With a price :math:`\lambda_r(t) \ge 0` of a unit of resource r at time t, and :math:`G_r(t)` of them there, every
schedule has

.. math:: \sum_j w_j T_j \ge \sum_j \min_{m,\,s} \Big( w_j (s + p_{jm} - r_j) + \sum_r u_{jmr} \int_s^{s + p_{jm}}
    \lambda_r \Big) - \sum_r \int \lambda_r G_r ,

for what jobs hold costs no more than what there is (Lagrangian relaxation of the capacities). Prices are constant
between two of some moments, so the least over s is at one of these, or ends there, or at the first or last start.

A job that may be stopped and keeps its work pays for each part of it where that is done. It does no more than all of
its work in its least run time p, so it ends half of p after the mean time M of its work, and
:math:`w (M + p / 2)` with the price is least where all is done at one moment.

Everything is a whole number here, prices too, so nothing is lost to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from placement.exact.milp.arrays import Floats
from placement.instance import Ints
from placement.scheduling.bounds.area import trivial_bound
from placement.scheduling.bounds.modes import Kind, Mode, Relaxation, in_windows

FINEST = 1 << 40
"""Most steps to a unit of price."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of resources.

    Attributes
    ----------
    moments : int array (B + 1,)
        Ascending, from 0.
    price : float array (R, B)
        Weight for a unit, between two of them; 0 after the last. Negative ones count as 0.
    """

    moments: Ints
    price: np.ndarray


@dataclass(frozen=True, slots=True)
class Priced:
    """What prices say.

    Attributes
    ----------
    bound : int
        On the weighted completion time, in milliseconds.
    start : int array
        For each kind, a start at which its jobs cost least, with what they hold paid.
    mode : int array
        The mode of `Kind.parts` in which they do.
    """

    bound: int
    start: Ints
    mode: Ints


def priced(relaxation: Relaxation, prices: Prices) -> Priced:
    """Return the bound that prices give."""
    kinds = relaxation.kinds
    steps = steps_of(relaxation, prices)
    if not steps or not kinds:
        start = np.array([kind.start for kind in kinds], dtype=np.int64)
        return Priced(trivial_bound(relaxation), start, np.zeros_like(start))
    paid = Paid(prices, steps)
    starts: list[int] = []
    modes: list[int] = []
    total = 0
    for kind in kinds:
        cost, begin, mode = paid.least(kind)
        total += kind.count * cost
        starts.append(begin)
        modes.append(mode)
    total -= sum(paid.there(relaxation))
    return Priced(-(-total // steps), np.array(starts, dtype=np.int64), np.array(modes, dtype=np.int64))


def on_lines(moments: Ints, prices: Floats, pieces: int) -> Prices:
    """Return prices of slots that change on a line between the middles of slots, in steps; the same for one piece."""
    if pieces == 1:
        return Prices(moments, prices)
    steps = np.diff(moments)[:, None] * np.arange(pieces)[None, :] // pieces
    cut = np.unique(np.append((moments[:-1, None] + steps).reshape(-1), moments[-1]))
    middle, of_slot = (cut[:-1] + cut[1:]) / 2, (moments[:-1] + moments[1:]) / 2
    return Prices(cut, np.array([np.interp(middle, of_slot, price) for price in prices]))


def losses(relaxation: Relaxation, prices: Prices) -> dict[int, dict[int, float]]:
    """Return by job, of those that run at a stretch, how much more it costs at least in modes of a run time.

    That is at some prices, and more than in the mode in which it costs least, in milliseconds times weight.
    """
    steps = steps_of(relaxation, prices)
    if not steps:
        return {}
    paid = Paid(prices, steps)
    found: dict[int, dict[int, float]] = {}
    for kind in relaxation.kinds:
        if in_windows(kind):
            cost: dict[int, int] = {}
            for mode in kind.modes:
                each = paid.least(replace(kind, modes=(mode,)))[0]
                cost[mode.run] = min(each, cost.get(mode.run, each))
            least = min(cost.values())
            lost = {run: (each - least) / steps for run, each in cost.items()}
            for job in kind.jobs:
                found[job] = lost
    return found


def steps_of(relaxation: Relaxation, prices: Prices) -> int:
    """Return the steps to a unit of price with which no number leaves 64 bits; 0 where one does anyway."""
    horizon = int(prices.moments[-1])
    most = 1.0
    top = np.maximum(prices.price, 0).max(axis=1, initial=0.0)
    for kind in relaxation.kinds:
        for mode in kind.parts:
            paid = sum(units * (float(top[resource]) + 1) for resource, units in mode.uses)
            most = max(most, (kind.weight + paid) * (2.0 * horizon + kind.start + 2.0 * mode.run))
    steps = FINEST
    while steps and steps * most > 1 << 61:
        steps >>= 1
    return steps


class Paid:
    """What jobs pay, in steps of a unit of price.

    Parameters
    ----------
    prices : Prices
    steps : int
    """

    def __init__(self, prices: Prices, steps: int) -> None:
        self._moments, self._steps = prices.moments, steps
        self._price: Ints = np.floor(np.maximum(prices.price, 0) * steps).astype(np.int64)
        self._known: dict[tuple[tuple[int, int], ...], Paying] = {}

    def there(self, relaxation: Relaxation) -> list[int]:
        """Return what all that there is costs between neighbouring moments."""
        found = [0] * (len(self._moments) - 1)
        for profile, price in zip(relaxation.profiles, self._price, strict=True):
            amounts = pairwise(profile.total(self._moments))
            costs = [(end - begin) * each for (begin, end), each in zip(amounts, price.tolist(), strict=True)]
            found = [one + more for one, more in zip(found, costs, strict=True)]
        return found

    def least(self, kind: Kind) -> tuple[int, int, int]:
        """Return the least that a job of a kind costs, when it then starts and in which mode."""
        first = 0 if kind.kept is None else 1
        each = self._whole if kind.whole else self._parted
        found = [(*each(kind, mode), number) for number, mode in enumerate(kind.modes, first)]
        if kind.kept is None:
            return min(found)
        if not kind.whole:
            found.append((*self._parted(kind, kind.kept), 0))
        cost, start, mode = min(found)
        stopped = max(cost, self._steps * kind.weight * (kind.stopped - kind.release)), start, mode
        kept = self._steps * kind.weight * (kind.kept.run - kind.release)
        kept += int(self.of(kind.kept.uses).until(np.array([kind.kept.run]))[0])
        return min(stopped, (kept, 0, 0))

    def _whole(self, kind: Kind, mode: Mode) -> tuple[int, int]:
        """Return cost and start of a job that runs at a stretch."""
        paying, moments = self.of(mode.uses), self._moments
        end = int(moments[-1])
        last = max(kind.start, min(kind.due - mode.run, end))  # later than the last moment it only costs more
        low, high = np.searchsorted(moments, (kind.start, last), side="right")
        starts = [np.array([kind.start, last], dtype=np.int64), moments[low:high]]
        low, high = np.searchsorted(moments, (kind.start + mode.run, last + mode.run), side="right")
        starts.append(moments[low:high] - mode.run)
        start = np.concatenate(starts)
        total = paying.until(start + mode.run) - paying.until(start)
        total += self._steps * kind.weight * (start + (mode.run - kind.release))
        best = int(total.argmin())
        return int(total[best]), int(start[best])

    def _parted(self, kind: Kind, mode: Mode) -> tuple[int, int]:
        """Return cost and moment of a job whose work is done in parts."""
        low, high = np.searchsorted(self._moments, (kind.start, max(kind.start, kind.due)), side="right")
        start = np.concatenate([[kind.start], self._moments[low:high]])
        each = self.of(mode.uses).price[low - 1 : high]
        total = self._steps * kind.weight * (start - kind.release) + mode.run * each
        best = int(total.argmin())
        return int(total[best]) + self._steps * (kind.weight * kind.least // 2), int(start[best])

    def of(self, uses: Sequence[tuple[int, int]]) -> Paying:
        """Return what it costs to hold so many units of some resources."""
        key = tuple(uses)
        if key not in self._known:
            price = np.zeros(len(self._moments), dtype=np.int64)
            for resource, units in key:
                price[:-1] += units * self._price[resource]
            paid = np.concatenate([[0], np.cumsum(price[:-1] * np.diff(self._moments))])
            self._known[key] = Paying(self._moments, price, paid)
        return self._known[key]


@dataclass(frozen=True, slots=True)
class Paying:
    """What it costs to hold something: for a millisecond from each moment on, and from 0 until each moment."""

    moments: Ints
    price: Ints
    paid: Ints

    def until(self, times: Ints) -> Ints:
        """Return what holding it from 0 until some times costs."""
        place = np.searchsorted(self.moments, times, side="right") - 1
        found: Ints = self.paid[place] + (times - self.moments[place]) * self.price[place]
        return found
