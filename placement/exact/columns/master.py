r"""The master over node columns: bounds in every round of column generation, and whole counts at its end.

Each round prices all node classes at duals between those of the restricted master and those of the best bound so far
(Wentges 1997; Pessoa et al. 2018), and gets a bound from them: with the price :math:`\bar z_k` on the row of every
class no column, known or not, has anything to add, so the duals bound the problem by weak duality alone,

.. math:: UB(\pi, \mu) = \max_t (v - \pi)^\top t + \sum_k N_k \bar z_k(\pi, \mu) + \mu^\top b,

the first term over the relaxed counts of gangs, :math:`\mu` and *b* the duals and right-hand sides of all other rows.
`placement.exact.milp.duality` adds it up with outward rounding. The restricted master's first prices are far from any
good bound, so where another relaxation has prices (see `placement.exact.pools.shadow`) the rounds start from these.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from placement.evaluate import demand
from placement.exact.columns.pricing import Priced, Pricer
from placement.exact.layouts.layout import Layout
from placement.exact.milp import highs
from placement.exact.milp.arrays import Floats, Program, program
from placement.exact.pools.relaxation import Relaxation
from placement.exact.pools.shadow import Shadow
from placement.exact.timing import Timing
from placement.instance import Instance, Ints
from placement.models import node_columns
from placement.models.node_columns import Column, limit_scale, terms_of
from placement.models.pooled_linear import Target, power_of_two
from placement.models.pooled_objective import coefficients
from placement.models.pools import pooling
from placement.solver import Limits
from placement.state import State

STABLE = 0.5
"""How far prices are pulled from the restricted master's to those of the best bound."""
SETTLED = 2e-4
"""Relative growth of the restricted master's value up to which prices are not pulled."""
ENOUGH = 0.1
"""Share of the remaining gap that a round without new columns has to close for another one to be worth it."""
CARE = ((1, 1e-3), (16, 1e-4), (64, 1e-5), (256, 1e-6), (512, 1e-8))
"""Labels of a class in pricing, and the tolerance on values, which the bound loses: more care when less finds nothing.
"""
MANY_CLASSES = 256
"""Node classes from which on the least care is tried: with fewer, the classes' labels take less than all the rest."""
FEW = 0.02
"""New columns, relative to the node classes, that are too few to go on with as little care."""
MOST_COLUMNS = 12_000
"""Columns of the whole-number master."""


@dataclass(frozen=True, slots=True)
class Contents:
    """Whole counts: how many nodes hold each column, and the started tasks they make room for.

    Attributes
    ----------
    columns : list of (Column, int)
    started : int array (T,)
        By row of `leaf_table`.
    in_time : bool
    """

    columns: list[tuple[Column, int]]
    started: Ints
    in_time: bool


class ColumnMaster:
    """Master of one instance; columns found for one target serve the next.

    Parameters
    ----------
    instance : Instance
    seed : int
    timing : Timing
    """

    def __init__(self, instance: Instance, seed: int, timing: Timing) -> None:
        self.instance, self.seed, self.timing = instance, seed, timing
        self.view = pooling(State(instance), [], elsewhere=demand(instance))
        self.pricer = Pricer(instance)
        self.columns = [Column(k, ()) for k in range(len(instance.classes))]
        self._known = set(self.columns)
        self._classes = np.arange(len(self.columns), dtype=np.int64)
        self._counts = np.zeros((len(self.columns), len(instance.shapes)), dtype=np.int64)
        self.use = np.zeros((len(instance.limits), len(instance.shapes)))
        state = State(instance)
        for q in range(len(instance.limits)):
            self.use[q] = [state.limit_use(s, q) * limit_scale(instance, q) for s in range(len(instance.shapes))]
        self.inside = np.zeros((len(instance.classes), len(instance.limits)))
        for k, node_class in enumerate(instance.classes):
            self.inside[k, list(node_class.limits)] = 1.0
        self.prices: Floats | None = None
        """Of shapes by class, at the best bound of the latest target."""

    def learn(self, layout: Layout) -> None:
        """Take the contents of a layout's nodes as columns."""
        counts = np.zeros((self.instance.nodes, len(self.instance.shapes)), dtype=np.int64)
        for node, spots in enumerate(layout.tasks):
            for shape, _ in spots:
                counts[node, shape] += 1
        self.take(self.instance.node_class, counts)

    def take(self, classes: Ints, counts: Ints) -> list[Column]:
        """Take contents as columns; return those that are new."""
        new: list[Column] = []
        rows: list[int] = []
        for row, k in enumerate(classes.tolist()):
            held = counts[row]
            shapes = np.flatnonzero(held)
            column = Column(k, tuple(zip(shapes.tolist(), held[shapes].tolist(), strict=True)))
            if column not in self._known:
                self._known.add(column)
                new.append(column)
                rows.append(row)
        self.columns += new
        self._classes = np.concatenate([self._classes, classes[rows]])
        self._counts = np.concatenate([self._counts, counts[rows]])
        return new

    def worth(self, prices: Floats) -> Floats:
        """Return what every column is worth at prices of shapes by class."""
        return np.asarray((self._counts * prices[self._classes]).sum(axis=1))

    def best(self, prices: Floats) -> tuple[Floats, Ints]:
        """Return the most that a known column of each class is worth, and its tasks."""
        worth = self.worth(prices)
        order = np.lexsort((worth, self._classes))
        last = order[np.diff(self._classes[order], append=-1) != 0]
        return worth[last], self._counts[last]

    def bounds(
        self, target: Target, held: Mapping[Target, int], gap: float, limits: Limits, near: Shadow | None = None
    ) -> Iterator[int | None]:
        """Yield the best bound on an objective after each round, in units of the instance; None while there is none.

        Parameters
        ----------
        target : Target
        held : mapping of target to int
            Values that must be kept.
        gap : float
            The rounds end when the bound is so near the restricted master's value, relative to it.
        limits : Limits
        near : Shadow, optional
            Prices to start from: what they prove comes before the first round.
        """
        scale = power_of_two(coefficients(self.instance, self.view.leaves, target).tolist())
        relaxation = _ColumnRelaxation(self, self._program({target: scale}, held, self.columns), limits)
        self.pricer.forget()
        if near is not None:
            relaxation.begin(near)
            self.prices = relaxation.center_prices()
            yield None if relaxation.least == math.inf else math.floor(relaxation.least / scale)
        for value, bound in relaxation.rounds():
            self.prices = relaxation.center_prices()
            best = None if bound == math.inf else math.floor(bound / scale)
            yield best
            if bound - value <= gap * abs(value) or (best is not None and math.floor(value / scale + 1e-6) >= best):
                break

    def _program(self, weights: Mapping[Target, float], held: Mapping[Target, int], columns: list[Column]) -> Program:
        began = time.perf_counter()
        model = node_columns.build(self.view, columns, weights, held)
        built = time.perf_counter()
        arrays = program(model)
        self.timing.add("build", built - began)
        self.timing.add("handover", time.perf_counter() - built)
        return arrays

    def contents(
        self,
        target: Target,
        held: Mapping[Target, int],
        *,
        gap: float,
        nodes: int | None,
        time_limit: float,
        options: Mapping[str, object] | None = None,
    ) -> Contents | None:
        """Return whole counts that are best for a target, or None if the solver found none in time."""
        columns = self._promising()
        scale = power_of_two(coefficients(self.instance, self.view.leaves, target).tolist())
        arrays = self._program({target: scale}, held, columns)
        solved = highs.solve(arrays, gap=gap, nodes=nodes, time_limit=time_limit, seed=self.seed, options=options)
        self.timing.add("solve", solved.seconds)
        self.timing.add("handover", solved.handover)
        if solved.x is None:
            return None
        whole = np.round(solved.x).astype(np.int64)
        leaves = len(self.view.leaves)
        first = leaves + len(self.instance.limits)
        used = whole[first : first + len(columns)]
        listed = [(columns[i], int(used[i])) for i in np.flatnonzero(used)]
        return Contents(listed, whole[:leaves], solved.why is not highs.Why.TIME)

    def _promising(self) -> list[Column]:
        """Return the columns with least to lose at the latest prices, the empty ones and the best of each class too."""
        if self.prices is None or len(self.columns) <= MOST_COLUMNS:
            return self.columns
        worth = self.worth(self.prices)
        loss = self.best(self.prices)[0][self._classes] - worth
        loss[: len(self.instance.classes)] = -1.0
        return [self.columns[i] for i in np.sort(np.argsort(loss, kind="stable")[:MOST_COLUMNS])]


class _ColumnRelaxation(Relaxation):
    """The linear relaxation of a master in the solver, while columns are added."""

    def __init__(self, master: ColumnMaster, arrays: Program, limits: Limits) -> None:
        super().__init__(arrays, master.seed, master.timing, {"presolve": "off"})
        self.master, self.limits = master, limits
        instance = master.instance
        self.cover = self.rows_of("cover", len(instance.shapes))
        self.nodes = self.rows_of("nodes", len(instance.classes))
        self.limit = self.rows_of("limits", len(instance.limits))
        self.center: Floats | None = None
        self.least = math.inf
        self.value = -math.inf
        self.care = 0 if len(instance.classes) >= MANY_CLASSES else 1

    def begin(self, near: Shadow) -> None:
        """Bound the problem at prices that another relaxation found; the rounds start near them."""
        began = time.perf_counter()
        y = self.duals_named(near.others)
        listed = self.cover >= 0
        y[self.cover[listed]] = near.shape[listed]
        y[self.nodes] = self.master.pricer.relaxed(self._prices(y)) + 1e-12 * float(y.max(initial=0.0))
        self.least, self.center = self.bound(y), y
        self.timing.add("price", time.perf_counter() - began)

    def rounds(self) -> Iterator[tuple[float, float]]:
        """Yield the value over the known columns and the best bound over all of them, round by round."""
        while self.limits.left > 0:
            solved = self.solve(self.limits.left)
            if solved.row_duals is None or solved.objective is None:
                return
            grown = solved.objective - self.value
            self.value = solved.objective
            duals = np.maximum(solved.row_duals, 0.0)
            # where the master hardly moves any more its own prices are the better ones
            pulled = STABLE if self.center is not None and grown > SETTLED * abs(self.value) else 0.0
            new: list[Column] = []
            while self.limits.left > 0:
                before = self.least
                new = self._price(duals, pulled)
                yield self.value, self.least
                if new or self.least <= self.value * (1 + 1e-12):
                    break
                # nothing new: first the master's own prices, then a wider search
                if pulled:
                    pulled = 0.0
                elif self.care + 1 < len(CARE):
                    self.care += 1
                elif before - self.least <= ENOUGH * (self.least - self.value):
                    return
            if not pulled and len(new) < FEW * len(self.nodes) and self.care + 2 < len(CARE):
                self.care += 1
            self._add(new)

    def _price(self, duals: Floats, pulled: float) -> list[Column]:
        """Price all classes at duals pulled towards the best ones; return new columns, with the bound improved."""
        began = time.perf_counter()
        master = self.master
        y = duals if self.center is None or not pulled else pulled * self.center + (1 - pulled) * duals
        prices = self._prices(y)
        value, counts = master.best(prices)
        width, tolerance = CARE[self.care]
        priced = master.pricer.price(prices, value, counts, width=width, tolerance=tolerance, limits=self.limits)
        y = y.copy()
        # a price that is a difference may be off by the rounding of its terms
        y[self.nodes] = priced.bound + 1e-12 * float(y.max(initial=0.0))
        bound = self.bound(y)
        if bound < self.least:
            self.least, self.center = bound, y
        new = self._attractive(duals, priced)
        self.timing.add("price", time.perf_counter() - began)
        return new

    def _prices(self, y: Floats) -> Floats:
        """Return the price of a task of each shape on each class: what it is worth less what it takes of limits."""
        cover = np.where(self.cover >= 0, y[self.cover], 0.0)
        return np.asarray(cover[None] - self.master.inside @ (y[self.limit][:, None] * self.master.use))

    def center_prices(self) -> Floats | None:
        """Return the prices of the best bound."""
        return None if self.center is None else self._prices(self.center)

    def _attractive(self, duals: Floats, priced: Priced) -> list[Column]:
        worth = (priced.counts * self._prices(duals)).sum(axis=1)
        charged = duals[self.nodes]
        which = np.flatnonzero(worth > charged + 1e-9 * np.maximum(1.0, worth))
        return self.master.take(which, priced.counts[which])

    def _add(self, columns: list[Column]) -> None:
        if not columns:
            return
        rows = {"cover": self.cover, "nodes": self.nodes, "limits": self.limit}
        start, index, value = [0], [], []
        for column in columns:
            for (name, number), coefficient in terms_of(self.master.instance, column).items():
                if rows[name][number] >= 0:
                    index.append(int(rows[name][number]))
                    value.append(coefficient)
            start.append(len(index))
        sizes = [float(self.master.instance.classes[column.node_class].size) for column in columns]
        self.add_columns(sizes, start, index, value)
