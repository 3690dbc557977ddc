r"""Pricing: the most valuable content of a node of every class, and a value that no content exceeds.

For prices :math:`p_{ks} \ge 0` of a task of shape *s* on a node of class *k*,

.. math:: z_k = \max \Big\{ \sum_s p_{ks} a_s : a \text{ fits on a node of class } k \Big\},

with whole cards, shares that do not add up across cards, device memory and all resources. Branch and bound, breadth
first, over many classes at once: tasks are decided in turn, largest first, and a label (see
`placement.exact.columns.labels`) that cannot beat its class's best content by more than a tolerance is dropped, where
`placement.exact.columns.cardbound` says what the tasks still to come can add. If a class has more labels than the width
allowed, the least promising are given up and their bounds kept, so :math:`\bar z_k \ge z_k` whatever the width.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from placement.evaluate import demand
from placement.exact.columns.cardbound import CardBound
from placement.exact.columns.labels import Labels, Nodes, joined
from placement.exact.columns.multipliers import multipliers
from placement.exact.milp.arrays import Floats
from placement.instance import Bools, Instance, Ints
from placement.solver import Limits

CUTS = (0.0, 0.4, 0.7)
"""Where in the order of tasks the rest gets prices of resources of its own."""
FRESH, AGAIN = 3, 1
"""Rounds of improving prices of resources: the first time, and when those of the last pricing are at hand."""
LEAST_CLASSES, MOST_STEPS = 24, 2.5
"""Classes of one search on average, and steps of all relative to those of one over all classes, to split it."""
SAFE = 1 + 1e-9
"""What values in double precision are widened by to be bounds."""


@dataclass(frozen=True, slots=True)
class Priced:
    """What pricing found.

    Attributes
    ----------
    value : float array (K,)
        Of the best content known of each class.
    counts : int array (K, S)
        That content.
    bound : float array (K,)
        No content of the class is worth more.
    """

    value: Floats
    counts: Ints
    bound: Floats


class Pricer:
    """Prices the node classes of one instance, again and again.

    Parameters
    ----------
    instance : Instance
    """

    def __init__(self, instance: Instance) -> None:
        self.nodes = Nodes(instance)
        self.wanted = demand(instance)
        self.takes = self.nodes.takes.T & (self.wanted > 0)
        plain, zoned = self.nodes.plain, self.nodes.zoned
        admits = self.nodes.admits.T & (self.wanted > 0)
        alike = [np.flatnonzero(some) for some in (plain, ~plain & ~zoned, zoned)]
        self.batches = [_Batch(classes, {}) for some in alike for classes in _parts(admits, some)]

    def forget(self) -> None:
        """Start afresh with prices of resources: those of another objective are of no use."""
        for batch in self.batches:
            batch.charges.clear()

    def relaxed(self, prices: Floats) -> Floats:
        """Return for each class a value that no content exceeds, shape (K,), without a search for any; see `price`."""
        prices = self._positive(prices)
        most = np.zeros(len(prices))
        for batch, mine in self._worthwhile(prices):
            most[mine] = _Run(self, prices, mine, batch.charges).relaxed()
        return most * SAFE

    def _positive(self, prices: Floats) -> Floats:
        return np.where(self.takes, np.maximum(prices, 0.0), 0.0)

    def _worthwhile(self, prices: Floats) -> Iterator[tuple[_Batch, Ints]]:
        """Yield each batch and its classes but for those on which nothing is worth anything."""
        for batch in self.batches:
            mine = batch.classes[(prices[batch.classes] > 0).any(axis=1)]
            if len(mine):
                yield batch, mine

    def price(
        self,
        prices: Floats,
        value: Floats,
        counts: Ints,
        *,
        width: int,
        tolerance: float,
        limits: Limits | None = None,
    ) -> Priced:
        """Return the best contents and bounds.

        Parameters
        ----------
        prices : float array (K, S)
            Of one task of each shape on each class; what is not positive is left out.
        value : float array (K,)
            Of contents known before, at these prices; 0 for none.
        counts : int array (K, S)
            Those contents.
        width : int
            Labels that are kept of each class.
        tolerance : float
            Relative; contents that are better by less need not be found.
        limits : Limits, optional
            At the deadline the search is given up; bounds are bounds all the same.
        """
        prices = self._positive(prices)
        best = _Best(value.copy(), counts.astype(np.int64), np.zeros(len(value)), tolerance)
        for batch, mine in self._worthwhile(prices):
            _Run(self, prices, mine, batch.charges).run(best, width, limits or Limits())
        return Priced(best.value, best.counts, np.maximum(best.value * (1 + tolerance), best.dropped) * SAFE)


def _parts(admits: Bools, classes: Ints) -> list[Ints]:
    """Return classes apart by the tasks that they admit, or all of them together where that would be more steps.

    A search goes through all tasks that some of its classes take, at a cost for each step and one for each class in it.
    """
    kinds, kind = np.unique(admits[classes], axis=0, return_inverse=True)
    if len(classes) < LEAST_CLASSES * len(kinds) or kinds.sum() > MOST_STEPS * kinds.any(axis=0).sum():
        return [classes]
    return [classes[kind.ravel() == number] for number in range(len(kinds))]


@dataclass(frozen=True, slots=True)
class _Batch:
    """Node classes whose labels have the same columns, and the prices of resources found last, by cut."""

    classes: Ints
    charges: dict[float, Floats]


@dataclass(slots=True)
class _Best:
    """The best content of each class so far, and the most that labels given up could have become."""

    value: Floats
    counts: Ints
    dropped: Floats
    tolerance: float

    def enough(self) -> Floats:
        """Return what a label has to be able to exceed."""
        return np.asarray(np.maximum(self.value * (1 + self.tolerance), self.dropped))

    def see(self, labels: Labels) -> None:
        """Take labels that are better."""
        better = np.flatnonzero(labels.value > self.value[labels.node])
        if not len(better):
            return
        order = better[np.lexsort((labels.value[better], labels.node[better]))]
        node = labels.node[order]
        last = order[np.append(node[1:] != node[:-1], True)]
        self.value[labels.node[last]] = labels.value[last]
        self.counts[labels.node[last]] = labels.counts[last]

    def give_up(self, node: Ints, reach: Floats) -> None:
        """Note what labels could have become."""
        np.maximum.at(self.dropped, node, reach)


class _Run:
    """One search over some node classes."""

    def __init__(self, pricer: Pricer, prices: Floats, which: Ints, charges: dict[float, Floats]) -> None:
        self.nodes, self.which, self.prices, self.charges = pricer.nodes, which, prices, charges
        self.wanted = pricer.wanted
        need = self.nodes.need
        size = (need / np.maximum(self.nodes.room[which].mean(axis=0), 1e-9)).max(axis=1)
        order = np.lexsort((np.arange(len(size)), -size))
        self.order = order[(prices[which][:, order] > 0).any(axis=0)]
        self.bound = CardBound(self.nodes, which, self.order, prices[which][:, self.order], self.wanted[self.order])

    def relaxed(self) -> Floats:
        """Return what contents are worth at most at the prices of resources for all tasks."""
        return np.asarray(self.bound.root(self._charge(CUTS[0])[:, None])[:, 0])

    def _charge(self, cut: float) -> Floats:
        """Return prices of resources for the tasks from a cut of the order on, near the last ones if there are any."""
        charges = self.charges
        first = int(cut * len(self.order))
        known = cut in charges
        if not known:
            rest = self.prices[self.which][:, self.order]
            rest[:, :first] = 0.0
            need, room = self.nodes.need[self.order], self.nodes.room[self.which]
            charges[cut] = np.zeros((len(self.prices), need.shape[1] - 2))
            charges[cut][self.which] = multipliers(rest, need.astype(np.float64), room.astype(np.float64))[:, :-2]
        charge = self.bound.improved(charges[cut][self.which], first, AGAIN if known else FRESH)
        charges[cut][self.which] = charge
        return charge

    def run(self, best: _Best, width: int, limits: Limits) -> None:
        """Search; `best` has what was found."""
        self.best = best
        self.bound.fix(np.stack([self._charge(cut) for cut in CUTS], axis=1))
        labels = self.nodes.empty(self.which)
        root = self.bound.reach(labels, 0)
        for step, shape in enumerate(self.order.tolist()):
            if limits.left <= 0:
                self.best.give_up(labels.node, self.bound.reach(labels, step))
                break
            price = self.prices[:, shape]
            front = labels.take(price[labels.node] > 0)
            grown = [labels]
            for _ in range(int(self.wanted[shape])):
                front = self.nodes.with_one_more(front, shape, price)
                if not len(front):
                    break
                self.best.see(front)
                front = self._narrowed(front, step, width)
                grown.append(front)
            labels = self._narrowed(joined(grown), step + 1, width)
            if not len(labels):
                break
        missed = self.nodes.inexact[self.which]
        self.best.give_up(self.which[missed], root[missed])

    def _narrowed(self, labels: Labels, step: int, width: int) -> Labels:
        """Drop labels that cannot win, equal ones but the best, and those beyond the width."""
        reach = self.bound.reach(labels, step)
        keep = np.flatnonzero(reach > self.best.enough()[labels.node])
        labels, reach = labels.take(keep), reach[keep]
        if not len(labels):
            return labels
        unique = _unique(labels)
        labels, reach = labels.take(unique), reach[unique]
        order = np.lexsort((-reach, labels.node))
        node = labels.node[order]
        first = np.flatnonzero(np.append(True, node[1:] != node[:-1]))
        rank = np.arange(len(node)) - np.repeat(first, np.diff(np.append(first, len(node))))
        lost = order[rank >= width]
        self.best.give_up(labels.node[lost], reach[lost])
        return labels.take(order[rank < width]) if len(lost) else labels


def _unique(labels: Labels) -> Ints:
    """Return the most valuable of the labels that have the same room, card by card."""
    state = np.concatenate([labels.node[:, None], labels.room, labels.cards, labels.zones], axis=1)
    odd = np.random.default_rng(0).integers(1, 2**62, size=state.shape[1], dtype=np.int64) * 2 + 1
    mixed = (state.view(np.uint64) * odd.view(np.uint64)).sum(axis=1, dtype=np.uint64)
    order = np.lexsort((-labels.value, mixed))
    # equal numbers are only a hint: the states themselves decide
    same = (state[order[1:]] == state[order[:-1]]).all(axis=1)
    return np.asarray(order[np.append(True, ~same)])
