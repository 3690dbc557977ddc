"""From the relaxation to places: pools are packed with what it allots them, and then improved until nothing helps.

Filling a pool node by node comes within some percent of the relaxation; what is missing are cards on nodes that ran out
of something else, and crumbs of cards. Exchanges between nodes (`overfill`), replacements by waiting tasks (`upgrade`)
and other choices on single nodes (`repack`) take care of these. None of it asks a solver, so the time grows with the
tasks alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from placement.evaluate import demand
from placement.exact.layouts.layout import Layout
from placement.exact.layouts.standing import Goals, Standing
from placement.exact.milp.arrays import Floats
from placement.exact.moves.overfill import overfill
from placement.exact.moves.repack import repack
from placement.exact.moves.repair import drop_beyond_limits, drop_excess
from placement.exact.moves.upgrade import upgrade
from placement.exact.packing.gang_fill import fill_gangs, gang_sizes
from placement.exact.packing.pack import pack, scarcity_order
from placement.instance import Bools, Instance, Ints
from placement.models.pooled_gangs import is_single
from placement.solver import Limits

TIED = 8.0
"""How much more it counts to take off a task of a gang."""
WORTH_A_STEP = 3e-5
"""Relative improvement that a step should bring; when each in turn brings less, it is over."""


class Guided:
    """Makes a layout of pools and allotments.

    Parameters
    ----------
    goals : Goals
    pools : sequence of int arrays
        Nodes of each pool.
    allotments : int array (pools, S)
    worth : float array (S,)
        Average worth of one task of each shape.
    limits : Limits
    seed : int
    steps : int
        Most steps of improvement.
    """

    def __init__(
        self,
        goals: Goals,
        pools: Sequence[Ints],
        allotments: Ints,
        worth: Floats,
        limits: Limits,
        seed: int,
        steps: int,
    ) -> None:
        self.goals, self.allotments, self.worth, self.limits, self.seed = goals, allotments, worth, limits, seed
        self.most = steps
        self.instance: Instance = goals.instance
        self.wanted = demand(self.instance)
        self.loose = loose_shapes(self.instance)
        self.gangs = gang_sizes(self.instance)
        self.steps = (self._exchange, self._repack, self._repack)
        self.noise = np.random.default_rng(seed)
        self.layout = Layout(self.instance)
        self.pools = [scarcity_order(self.layout.state, nodes) for nodes in pools]

    def run(self, propose: Callable[[Standing], bool]) -> None:
        """Make a layout; `propose` is told of every standing on the way and says whether to go on."""
        for pool, supply in zip(self.pools, self.allotments.copy(), strict=True):
            pack(self.layout, pool, supply, self.worth, self.limits)
        self._each(lambda pool, waiting: pack(self.layout, pool, waiting, self.worth, self.limits), self._waiting())
        self._improve(self._settle(propose), propose)

    def go_on(self, standing: Standing, propose: Callable[[Standing], bool]) -> None:
        """Improve a copy of a standing that was made in another way."""
        self.layout = standing.layout.copy()
        self._improve(standing.ranks, propose)

    def _improve(self, before: tuple[int, ...] | None, propose: Callable[[Standing], bool]) -> None:
        """Take steps until nothing helps."""
        stale = 0
        for number in range(self.most):
            if before is None or stale == len(self.steps) or self.limits.left <= 0:
                break
            self.steps[number % len(self.steps)]()
            after = self._settle(propose)
            stale = 0 if after is not None and _clearly_better(after, before) else stale + 1
            before = after

    def _waiting(self) -> Ints:
        return self.wanted - self.layout.count

    def _each(self, step: Callable[[Ints, Ints], int], waiting: Ints) -> None:
        for pool in self.pools:
            if self.limits.left > 0:
                step(pool, waiting)

    def _settle(self, propose: Callable[[Standing], bool]) -> tuple[int, ...] | None:
        """Keep the tasks of jobs that run, fill up, and return what that is worth if to go on."""
        Standing.of_layout(self.goals, self.layout, self.seed)
        fill_gangs(self.layout, self.pools, self.gangs, self.worth, self.limits)
        self._each(lambda pool, rest: pack(self.layout, pool, rest, self.worth, self.limits), self._loose_waiting())
        standing = Standing.of_layout(self.goals, self.layout, self.seed)
        return standing.ranks if propose(standing) else None

    # --- steps; only single tasks come and go in them, so that gangs stay whole -------------------------------------

    def _loose_waiting(self) -> Ints:
        return np.where(self.loose, self._waiting(), 0)

    def _exchange(self) -> None:
        """Exchange tasks between nodes to make use of idle cards, and replace tasks by larger ones."""
        worth, loose, limits = self.worth, self.loose, self.limits
        self._each(lambda pool, rest: overfill(self.layout, pool, rest, worth, loose, limits), self._loose_waiting())
        # the rest of a gang would have to go with its task
        dear = np.where(loose, worth, TIED * worth)
        drop_excess(self.layout, dear)
        if self.instance.limits:
            drop_beyond_limits(self.layout, dear)
        waiting = self._loose_waiting()
        self._each(lambda pool, rest: pack(self.layout, pool, rest, worth, limits), waiting)
        self._each(lambda pool, rest: upgrade(self.layout, pool, rest, worth, loose, limits), waiting)

    def _repack(self) -> None:
        """Make other choices on nodes with idle cards."""
        worth, loose, limits = self.worth, self.loose, self.limits
        self._each(
            lambda pool, rest: repack(self.layout, pool, rest, worth, loose, self.noise, limits), self._loose_waiting()
        )


def loose_shapes(instance: Instance) -> Bools:
    """Return the shapes that only jobs of one task have: any one of these tasks can go without a gang falling apart."""
    loose = np.zeros(len(instance.shapes), dtype=np.bool_)
    tied = np.zeros(len(instance.shapes), dtype=np.bool_)
    for job_class in instance.job_classes:
        target = loose if is_single(job_class) else tied
        for leaf in job_class.leaves:
            target[leaf.shape] = True
    return np.asarray(loose & ~tied)


def _clearly_better(after: tuple[int, ...], before: tuple[int, ...]) -> bool:
    """Return whether the first value that differs is better by more than a little."""
    for new, old in zip(after, before, strict=True):
        if new != old:
            return new - old > WORTH_A_STEP * abs(old)
    return False
