r"""A bound from prices of cards over time and of cover inequalities, valid for continuous time whatever the prices.

To the prices of `placement.scheduling.bounds.prices` come multipliers of inequalities over spans of time
(`placement.scheduling.bounds.spans`). An inequality holds of every schedule, so

.. math:: \sum_j w_j T_j \ge \sum_j \min_s \Big( w_j (s + p_j - r_j) + \int \lambda + \sum_c \mu_c a_{cj} y_{cj}(s)
    \Big) - \int \lambda G - \sum_c \mu_c b_c .

What a job pays for it is again an integral of a price over a time, one that ends or begins earlier than its run by the
length of the inequality. The price is constant between two moments, so the least is where one of these times begins or
ends at a moment.

Everything is a whole number, prices too, so nothing is lost to rounding.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from placement.exact.milp.arrays import Floats
from placement.instance import Ints
from placement.scheduling.bounds.modes import NO_END, Kind, Mode, Relaxation, in_windows
from placement.scheduling.bounds.prices import FINEST, Paid, Prices
from placement.scheduling.bounds.spans import Span


@dataclass(frozen=True, slots=True)
class Windows:
    """When jobs of each kind may end: not when they start, for what a job does in several modes ends at one time.

    Attributes
    ----------
    first, last : int array
        Of jobs that run at a stretch; others may end as their kinds say. The last are `NO_END` for no such time.
    """

    first: Ints
    last: Ints


def whole_windows(relaxed: Relaxation) -> Windows:
    """Return the windows in which all ends lie."""
    first = np.array([kind.start + kind.least for kind in relaxed.kinds], dtype=np.int64)
    return Windows(first, np.array([kind.due for kind in relaxed.kinds], dtype=np.int64))


@dataclass(frozen=True, slots=True)
class Tolled:
    """What prices say.

    Attributes
    ----------
    bound : int
        On the weighted completion time, in milliseconds; -1 where the prices are too large to tell.
    start, mode : int array
        For each kind, a start at which its jobs cost least, and the mode of `Kind.parts`.
    windows : Windows
        In which all schedules that are no worse than a value lie.
    """

    bound: int
    start: Ints
    mode: Ints
    windows: Windows


def tolled(
    relaxed: Relaxation,
    prices: Prices,
    spans: Sequence[Span],
    multipliers: Floats,
    windows: Windows,
    value: int = -1,
) -> Tolled:
    """Return the bound that prices and multipliers give.

    Parameters
    ----------
    relaxed : Relaxation
    prices : Prices
        Its moments are those between which `spans` begin and end too.
    spans : sequence of Span
    multipliers : float array
        Weight times milliseconds, by span; negative ones count as 0.
    windows : Windows
    value : int, optional
        Of the best schedule known, in milliseconds; -1 where none is.
    """
    return Tolls(relaxed, prices, spans, multipliers).bound(windows, value)


@dataclass(frozen=True, slots=True)
class _Way:
    """What a job costs in one mode, by its start; on a line between neighbouring starts, which ascend."""

    part: int
    run: int
    start: Ints
    cost: Ints

    def ends(self, most: int) -> tuple[int, int]:
        """Return between which ends it may cost no more than so much, which it does somewhere."""
        good = np.flatnonzero(self.cost <= most)
        low, high = int(good[0]), int(good[-1])
        first = int(self.start[low - 1]) + 1 if low else int(self.start[0])
        last = int(self.start[high + 1]) - 1 if high + 1 < len(self.start) else NO_END
        return first + self.run, last + self.run


Key = tuple[int, int]
"""A resource, and a length."""
Table = tuple[int, Ints]
"""A length, and what is paid from 0 until each moment."""


class Tolls:
    """What jobs pay, in steps of a millisecond times weight.

    Parameters
    ----------
    relaxed : Relaxation
    prices : Prices
    spans : sequence of Span
    multipliers : float array

    Attributes
    ----------
    steps : int
        To a unit of price; 0 where the prices are too large to tell anything.
    """

    def __init__(self, relaxed: Relaxation, prices: Prices, spans: Sequence[Span], multipliers: Floats) -> None:
        self._relaxed, self._moments = relaxed, prices.moments
        some = np.flatnonzero(multipliers > 0).tolist()
        self._spans = [spans[number] for number in some]
        rate = np.array([multipliers[number] / (spans[number].end - spans[number].begin) for number in some])
        self.steps = self._fine(prices, rate)
        self._rate: list[int] = np.floor(rate * self.steps).astype(np.int64).tolist()
        self._paid = Paid(prices, self.steps)
        self._through: dict[Key, Ints] = {}
        self._anytime: dict[Key, Ints] = {}
        if self.steps:
            self._tables()

    def _fine(self, prices: Prices, rate: Floats) -> int:
        """Return the steps to a unit of price with which no number leaves 64 bits; 0 where one does anyway."""
        horizon, kinds = float(self._moments[-1]), self._relaxed.kinds
        top = np.maximum(prices.price, 0).max(axis=1, initial=0.0)
        extra = np.zeros(len(kinds))
        for span, each in zip(self._spans, rate.tolist(), strict=True):
            extra += span.coefficient * (each + 1)
        most = 1.0
        for kind, more in zip(kinds, extra.tolist(), strict=True):
            for mode in kind.parts:
                paid = sum(units * (float(top[resource]) + 1) for resource, units in mode.uses)
                reach = 2.0 * horizon + kind.start + 2.0 * mode.run
                most = max(most, (kind.weight + paid + more) * reach)
        steps = FINEST
        while steps and steps * most > 1 << 61:
            steps >>= 1
        return steps

    def _tables(self) -> None:
        """Make tables of what each kind pays from 0 until each moment, by resource and length."""
        size = len(self._relaxed.kinds), len(self._moments)
        change: dict[tuple[Key, bool], Ints] = defaultdict(lambda: np.zeros(size, dtype=np.int64))
        for span, rate in zip(self._spans, self._rate, strict=True):
            table = span.resource, span.length
            first, last = np.searchsorted(self._moments, (span.begin, span.end)).tolist()
            others = span.coefficient * rate
            if span.anytime >= 0:
                mine = change[table, True][span.anytime]
                mine[first] += others[span.anytime]
                mine[last] -= others[span.anytime]
                others[span.anytime] = 0
            through = change[table, False]
            through[:, first] += others
            through[:, last] -= others
        lengths = np.diff(self._moments)
        for (table, anytime), changes in change.items():
            paid = np.zeros(size, dtype=np.int64)
            np.cumsum(np.cumsum(changes, axis=1)[:, :-1] * lengths, axis=1, out=paid[:, 1:])
            (self._anytime if anytime else self._through)[table] = paid

    def bound(self, windows: Windows, value: int) -> Tolled:
        """Return the bound for some windows, and narrower ones for what is better than a value."""
        kinds = self._relaxed.kinds
        start, which = np.zeros(len(kinds), dtype=np.int64), np.zeros(len(kinds), dtype=np.int64)
        if not self.steps:
            return Tolled(-1, start, which, windows)
        least: list[int] = []
        total = -self.worth()[-1]
        ways: dict[int, list[_Way]] = {}
        for number, kind in enumerate(kinds):
            if in_windows(kind):
                ways[number] = self._ways(number, kind, int(windows.first[number]), int(windows.last[number]))
                best = min(ways[number], key=lambda way: int(way.cost.min()))
                cost = int(best.cost.min())
                start[number], which[number] = best.start[best.cost.argmin()], best.part
            else:
                cost, start[number], which[number] = self._paid.least(kind)
            total += kind.count * cost
            least.append(cost)
        narrow = windows
        room = value * self.steps - total
        if value >= 0 and room >= 0:
            first_, last_ = windows.first.copy(), windows.last.copy()
            for number, of_job in ways.items():
                if kinds[number].count == 1:
                    most = least[number] + room
                    ends = [way.ends(most) for way in of_job if way.cost.min() <= most]
                    first_[number] = max(first_[number], min(low for low, _ in ends))
                    last_[number] = min(last_[number], max(high for _, high in ends))
            narrow = Windows(first_, last_)
        return Tolled(max(0, -(-total // self.steps)), start, which, narrow)

    def worth(self) -> list[int]:
        """Return what all there is, and what inequalities allow, costs from 0 until each moment."""
        lengths = np.diff(self._moments).tolist()
        change = [0] * (len(lengths) + 1)
        for span, rate in zip(self._spans, self._rate, strict=True):
            first, last = np.searchsorted(self._moments, (span.begin, span.end)).tolist()
            change[first] += rate * span.most
            change[last] -= rate * span.most
        there, rates = self._paid.there(self._relaxed), accumulate(change[:-1])
        each = [cost + rate * length for cost, rate, length in zip(there, rates, lengths, strict=True)]
        return list(accumulate(each, initial=0))

    def _ways(self, number: int, kind: Kind, first: int, last: int) -> list[_Way]:
        """Return what the modes cost in which a job of a kind may end in its window; any where none may."""
        found = []
        for part, mode in enumerate(kind.modes):
            low, high = max(kind.start, first - mode.run), last - mode.run
            if low <= high:
                found.append(_Way(part, mode.run, *self._costs(number, kind, mode, low, high)))
        low = max(kind.start, first - kind.modes[0].run)
        return found or [_Way(0, kind.modes[0].run, *self._costs(number, kind, kind.modes[0], low, low))]

    def _costs(self, number: int, kind: Kind, mode: Mode, first: int, last: int) -> tuple[Ints, Ints]:
        """Return starts of a job of a kind in a mode between two, and costs; see `_Way`."""
        moments, run = self._moments, mode.run
        plain, through, anytime = self.tables(number, mode)
        # later it only costs more
        end = int(moments[-1]) + max([0, *(length for length, _ in anytime)])
        last = max(first, min(last, end))
        offsets = {0, -run, *(length - run for length, _ in through), *(length for length, _ in anytime)}
        starts = [np.array([first, last])]
        for offset in offsets:
            low, high = np.searchsorted(moments, (first - offset, last - offset), side="right")
            starts.append(moments[low:high] + offset)
        start = np.unique(np.concatenate(starts))
        total = self.until(plain, start + run) - self.until(plain, start)
        for length, paid in through:
            total += self.until(paid, start + (run - length)) - self.until(paid, start)
        for length, paid in anytime:
            total += self.until(paid, start + run) - self.until(paid, np.maximum(start - length, 0))
        total += self.steps * kind.weight * (start + (run - kind.release))
        return start, total

    def tables(self, number: int, mode: Mode) -> tuple[Ints, list[Table], list[Table]]:
        """Return what a job of a kind pays from 0 until each moment for what it does in a mode.

        Returns
        -------
        (int array, list, list)
            What it pays wherever it runs; lengths and tables of what it pays where it runs on for so long; and of what
            it pays where it runs at any moment of that.
        """
        resources = {resource for resource, _ in mode.uses}
        through = [(length, paid[number]) for (of, length), paid in self._through.items() if of in resources]
        anytime = [(length, paid[number]) for (of, length), paid in self._anytime.items() if of in resources]
        # what has no length is paid with the cards
        plain: Ints = self._paid.of(mode.uses).paid + sum(paid for length, paid in through if not length)
        through = [(length, paid) for length, paid in through if 0 < length < mode.run and paid[-1]]
        return plain, through, [(length, paid) for length, paid in anytime if paid[-1]]

    def until(self, paid: Ints, times: Ints) -> Ints:
        """Return what is paid from 0 until some times, given that until each moment."""
        moments = self._moments
        place = np.minimum(np.searchsorted(moments, times, side="right"), len(moments) - 1)
        before = place - 1
        gone = np.minimum(times, moments[-1]) - moments[before]
        rate = (paid[place] - paid[before]) // (moments[place] - moments[before])
        found: Ints = paid[before] + gone * rate
        return found
