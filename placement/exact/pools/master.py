"""The pooled master: bounds by column generation, and whole counts that guide the places."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from placement.exact.milp import highs
from placement.exact.milp.arrays import Floats, Program, program
from placement.exact.pools.allot import charges
from placement.exact.pools.patterns import Pricer, of_one_type
from placement.exact.pools.relaxation import PoolRelaxation
from placement.exact.pools.rounding import is_large, parts_by_domain, rounded
from placement.exact.pools.shadow import Shadow, shadow
from placement.exact.timing import Timing
from placement.instance import Ints
from placement.models import pooled
from placement.models.pooled_cards import row_numbers
from placement.models.pooled_linear import Prices, Target, power_of_two
from placement.models.pooled_objective import coefficients
from placement.models.pooled_topology import Options
from placement.models.pools import Pattern, Pooling
from placement.solver import Limits

STEPS = ((0.85, 2e-3), (0.93, 1e-2))
"""Price of filling a pool of several nodes beyond these levels, for each of its cards."""
PRICES = 12
"""How many of the latest prices stand for the patterns in bounds on whole counts."""


THRIFT = 0.05
"""What using all resources of a pool costs, relative to what filling all of its cards is worth at least."""
LEAST_RATE = 1e-3
"""Least worth of a card that the above is taken from, relative to the largest."""
RESOLUTION = 1e4
"""Largest ratio of worths at which the solver's own bound is believed."""


def resolvable(worth: Iterable[int]) -> bool:
    """Return whether the solver can tell the least worth from nothing beside the largest.

    It drops what is below an absolute tolerance of about 1e-7, and worths are scaled to at most 1; where the ratio is
    too large, its bound on whole counts may leave the small ones out. Bounds from duals are recomputed and stay.
    """
    positive = [value for value in worth if value]
    return not positive or max(positive) <= RESOLUTION * min(positive)


@dataclass(frozen=True, slots=True)
class Counts:
    """Whole counts of the pooled model.

    Attributes
    ----------
    room : int array (P,)
        Tasks by pair of the view.
    started : int array (T,)
        Started tasks by leaf of the view.
    cards : list of (Pattern, int)
        Cards by pattern, those with none left out.
    bound : float, optional
        No counts over the model's patterns are better in its objective.
    in_time : bool
        Whether the search ended by itself or by its limit on nodes, not by the clock.
    x : float array
        The same as a point of the model, without what was paid for filling pools.
    """

    room: Ints
    started: Ints
    cards: list[tuple[Pattern, int]]
    bound: float | None
    in_time: bool
    x: Floats


class Master:
    """One pooling with its patterns; they are kept from one objective to the next."""

    def __init__(self, view: Pooling, seed: int, timing: Timing) -> None:
        self.view = view
        self.patterns: list[Pattern] = of_one_type(view)
        self._known = set(self.patterns)
        self._pricer = Pricer(view)
        self._prices: list[Prices] = []
        """Prices met on the way, the latest last."""
        self._relaxed: Floats = np.zeros(0)
        """Room by pair in the latest relaxation."""
        self._seed = seed
        self._timing = timing
        self._bounded: tuple[Target, Program, dict[str, int], Floats] | None = None
        """The target bounded last, its relaxation, the rows of that by name, and the duals of the best bound."""
        self._last: tuple[object, Program] | None = None
        """The program built last, and what it was built for."""

    # --- bounds --------------------------------------------------------------------------------------------------

    def bounds(self, target: Target, held: Mapping[Target, int], limits: Limits) -> Iterator[int]:
        """Yield ever better bounds on an objective, in units of the instance; patterns are added on the way.

        Parameters
        ----------
        target : Target
        held : mapping of target to int
            Values that must be kept.
        limits : Limits
            The loop ends at the deadline, and when no pattern is missing.
        """
        scale = power_of_two(coefficients(self.view.instance, self.view.leaves, target).tolist())
        arrays = self._program({target: scale}, held, ())
        relaxation = PoolRelaxation(self.view, arrays, self._seed, self._timing, self.missing)
        best = math.inf
        while limits.left > 0:
            solved = relaxation.priced(limits.left)
            if solved is None:
                return
            self._relaxed = relaxation.room
            value, bound, missing = solved
            if math.floor(bound / scale) < best:
                best = math.floor(bound / scale)
                self._bounded = target, arrays, relaxation.row_number, relaxation.duals
                yield int(best)
            if not missing or math.floor(value / scale + 1e-6) >= best:
                return
            relaxation.add(missing)

    def _program(
        self,
        weights: Mapping[Target, float],
        held: Mapping[Target, int],
        steps: tuple[tuple[float, float], ...],
        prices: tuple[Prices, ...] = (),
    ) -> Program:
        # prices differ from call to call; without any, a choice of domains is made from one program again and again
        key = None if prices else (tuple(weights.items()), tuple(held.items()), steps, len(self.patterns))
        if key is not None and self._last is not None and self._last[0] == key:
            return self._last[1]
        began = time.perf_counter()
        model = pooled.build(self.view, self.patterns, weights, held, steps, prices)
        built = time.perf_counter()
        arrays = program(model)
        self._timing.add("build", built - began)
        self._timing.add("handover", time.perf_counter() - built)
        if key is not None:
            self._last = key, arrays
        return arrays

    def missing(self, prices: list[Floats], charged: Floats) -> tuple[list[Pattern], Floats]:
        """Return patterns worth more than their card is charged, and each card's true price.

        Parameters
        ----------
        prices : list of float arrays
            For each pool, the price of a part of each slot type.
        charged : float array
            Price of a card of each group, pool by pool.
        """
        _, first = row_numbers(self.view)
        true_price = np.zeros(first[-1])
        found: list[Pattern] = []
        for pattern, value in self._pricer.price(prices):
            row = first[pattern.pool] + pattern.group
            true_price[row] = value
            if value > charged[row] + 1e-9 * max(1.0, value):
                found += [p for p in self._likewise(pattern) if self._take(p)]
        self._prices.append((np.concatenate(prices) if prices else np.zeros(0), true_price))
        return found, true_price

    def whole_bound(
        self, target: Target, held: Mapping[Target, int], *, gap: float, nodes: int, time_limit: float
    ) -> tuple[int | None, bool]:
        """Return a bound on an objective from whole counts at the latest prices, and whether it came in time."""
        worth = coefficients(self.view.instance, self.view.leaves, target).tolist()
        if not resolvable(worth):
            return None, True
        scale = power_of_two(worth)
        arrays = self._program({target: scale}, held, (), tuple(self._prices[-PRICES:]))
        solved = highs.solve(arrays, gap=gap, nodes=nodes, time_limit=time_limit, seed=self._seed)
        self._timing.add("solve", solved.seconds)
        self._timing.add("handover", solved.handover)
        bound = None if solved.bound is None else math.floor(solved.bound / scale + 1e-6)
        return bound, solved.why is not highs.Why.TIME

    def shadow(self, target: Target) -> Shadow | None:
        """Return what tasks are worth at the best bound on a target; None where another target was bounded last.

        There is no answer either where there are domain limits: this model and the one over columns charge for them in
        different units.
        """
        if self._bounded is None or self._bounded[0] != target or self.view.instance.limits:
            return None
        return shadow(self.view, *self._bounded[1:])

    def idle_price(self) -> Floats:
        """Return for each pool what its cards are worth at most at the latest prices, on average and per unit."""
        _, first = row_numbers(self.view)
        price = self._prices[-1][1] if self._prices else np.ones(first[-1])
        found = np.zeros(len(self.view.pools))
        for k, pool in enumerate(self.view.pools):
            units = sum(group.count * group.units for group in pool.groups)
            counts = np.array([group.count for group in pool.groups], dtype=np.float64)
            found[k] = float(counts @ price[first[k] : first[k + 1]]) / max(1, units)
        return found

    def _take(self, pattern: Pattern) -> bool:
        if pattern in self._known or not any(pattern.parts):
            return False
        self._known.add(pattern)
        self.patterns.append(pattern)
        return True

    def _likewise(self, pattern: Pattern) -> Iterator[Pattern]:
        """Yield a pattern, and what it comes to in other pools with equal cards, where it is likely wanted too."""
        yield pattern
        if len(self.view.pools) > 32:
            return
        source = self.view.pools[pattern.pool]
        room = (source.groups[pattern.group].units, source.groups[pattern.group].memory)
        parts = {(s.units, s.memory): n for s, n in zip(source.slots, pattern.parts, strict=True) if n}
        for k, pool in enumerate(self.view.pools):
            for c, group in enumerate(pool.groups):
                if k != pattern.pool and (group.units, group.memory) == room:
                    left = dict(parts)
                    same = tuple(left.pop((s.units, s.memory), 0) if c in s.groups else 0 for s in pool.slots)
                    yield Pattern(k, c, same)

    # --- whole counts --------------------------------------------------------------------------------------------

    def counts(
        self,
        weights: Mapping[Target, float],
        held: Mapping[Target, int],
        *,
        gap: float,
        nodes: int,
        time_limit: float,
        start: Counts | None = None,
        fixed: Ints | None = None,
        near: bool = False,
    ) -> Counts | None:
        """Return whole counts over the patterns known so far, or None if the solver found none in time.

        Parameters
        ----------
        weights : mapping of target to float
            What to maximise.
        held : mapping of target to int
            Values that must be kept.
        gap, nodes, time_limit
            When to stop.
        start : Counts, optional
            Counts over the same patterns that keep the held values.
        fixed : int array (T,), optional
            Started tasks by leaf of the view that are decided already; -1 for the others.
        near : bool
            Whether to look only near the latest relaxation: rooms that it leaves empty stay so, and the others change
            by little, but for what the start has. Much faster, and good where there are many rooms.
        """
        arrays = self._program(weights, held, ())
        if fixed is not None:
            arrays = self._with_fixed(arrays, fixed)
        if near and len(self._relaxed):
            arrays = self._near_relaxation(arrays, start)
        point = None if start is None or len(start.x) != len(arrays.cost) else start.x
        return self._solve(arrays, gap, nodes, time_limit, point, 0)

    def counts_by_domain(
        self, weights: Mapping[Target, float], found: Options, *, gap: float, time_limit: float
    ) -> Counts | None:
        """Return whole counts made a few domains at a time, or None where that is no help or time is out.

        Parameters
        ----------
        weights : mapping of target to float
            What to maximise.
        found : Options
            The units that the model counts.
        gap, time_limit
            When to stop.
        """
        began = time.perf_counter()
        if not is_large(self.view, self.patterns, found):
            return None
        arrays = self._program(weights, {}, ())
        parts = parts_by_domain(self.view, self.patterns, found, len(arrays.cost))
        if parts is None:
            return None
        solving = time.perf_counter()
        point = rounded(arrays, parts, gap=gap, seed=self._seed, time_limit=time_limit - (solving - began))
        self._timing.add("solve", time.perf_counter() - solving)
        return None if point is None else self._counted(point.x, 0, point.bound, point.in_time)

    def thrifty_room(self, weights: Mapping[Target, float], limits: Limits) -> Floats | None:
        """Return the room by pair of a relaxed optimum that is sparing with resources, or None if out of time.

        See `placement.exact.pools.allot`. What room is charged is small beside the least that filling a card is worth.
        """
        view = self.view
        arrays = self._program(weights, {}, ())
        shapes = view.instance.shapes
        units = np.array([shapes[s].gpus * shapes[s].units for s in view.leaves[:, 2].tolist()], dtype=np.float64)
        worth = sum(weight * coefficients(view.instance, view.leaves, target) for target, weight in weights.items())
        per_unit = (worth / np.maximum(units, 1))[(units > 0) & (worth > 0)]
        cost = arrays.cost.copy()
        if len(per_unit):
            rate = THRIFT * max(float(per_unit.min()), LEAST_RATE * float(per_unit.max()))
            cost[: len(view.shape)] -= rate * charges(view)
        relaxed = replace(arrays, cost=cost, integer=np.zeros(len(cost), dtype=np.bool_))
        solved = highs.solve(relaxed, time_limit=limits.left, seed=self._seed)
        self._timing.add("solve", solved.seconds)
        self._timing.add("handover", solved.handover)
        return None if solved.x is None else solved.x[: len(view.shape)]

    def _near_relaxation(self, arrays: Program, start: Counts | None) -> Program:
        """Return the program with every room near that of the relaxation, or between it and the start's."""
        room = self._relaxed
        used = room > 1e-6
        low = np.where(used, np.maximum(np.floor(room) - 1, 0), 0)
        high = np.where(used, np.ceil(room) + 1, 0)
        if start is not None:
            low, high = np.minimum(low, start.room), np.maximum(high, start.room)
        lower, upper = arrays.lower.copy(), arrays.upper.copy()
        lower[: len(room)] = low
        upper[: len(room)] = np.minimum(high, upper[: len(room)])
        return replace(arrays, lower=lower, upper=upper)

    def _with_fixed(self, arrays: Program, fixed: Ints) -> Program:
        columns = len(self.view.shape) + np.flatnonzero(fixed >= 0)
        lower, upper = arrays.lower.copy(), arrays.upper.copy()
        lower[columns] = upper[columns] = fixed[fixed >= 0]
        return replace(arrays, lower=lower, upper=upper)

    def balanced(
        self,
        weights: Mapping[Target, float],
        held: Mapping[Target, int],
        start: Counts,
        *,
        nodes: int,
        time_limit: float,
    ) -> Counts | None:
        """Return counts that keep the held values and fill pools of several nodes as evenly as is easily possible.

        Parameters
        ----------
        weights : mapping of target to float
            What may be worth filling pools for; a unit compares with the prices in `STEPS`.
        held : mapping of target to int
        start : Counts
            Counts over the same patterns that keep the held values.
        nodes, time_limit
            When to stop.
        """
        arrays = self._program(weights, held, STEPS)
        before = len(self.view.shape) + len(self.view.leaves) + len(self.patterns)
        filling = len(arrays.cost) - len(start.x)
        if not filling:
            return None
        full = arrays.upper[before : before + filling]
        point = np.concatenate([start.x[:before], full, start.x[before:]])
        return self._solve(arrays, 0.01 if weights else 0.2, nodes, time_limit, point, filling)

    def _solve(
        self, arrays: Program, gap: float, nodes: int, time_limit: float, start: Floats | None, filling: int
    ) -> Counts | None:
        if start is not None and arrays.violation(start) is not None:
            start = None
        solved = highs.solve(arrays, gap=gap, nodes=nodes, time_limit=time_limit, seed=self._seed, start=start)
        self._timing.add("solve", solved.seconds)
        self._timing.add("handover", solved.handover)
        if solved.x is None:
            return None
        return self._counted(solved.x, filling, solved.bound, solved.why is not highs.Why.TIME)

    def _counted(self, x: Floats, filling: int, bound: float | None, in_time: bool) -> Counts:
        """Return a point of the model as counts; `filling` columns of it are what was paid for filling pools."""
        pairs, leaves = len(self.view.shape), len(self.view.leaves)
        before = pairs + leaves + len(self.patterns)
        whole = np.round(x[:before]).astype(np.int64)
        used = whole[pairs + leaves :]
        return Counts(
            room=whole[:pairs],
            started=whole[pairs : pairs + leaves],
            cards=[(self.patterns[i], int(used[i])) for i in np.flatnonzero(used)],
            bound=bound,
            in_time=in_time,
            x=np.concatenate([x[:before], x[before + filling :]]),
        )
