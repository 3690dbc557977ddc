"""What is proven of a work: bounds over grids, then by branch and bound where jobs are not too many."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from placement.instance import Ints
from placement.scheduling.bounds.grid import GRIDS, GridBound, bound_of, grid
from placement.scheduling.bounds.modes import Relaxation, in_windows, relaxation
from placement.scheduling.bounds.prices import losses
from placement.scheduling.work import Work

if TYPE_CHECKING:
    from placement.scheduling.bounds.branching import Offer, Tree
    from placement.scheduling.bounds.remaining import Ends

MOST_JOBS = 400
"""Jobs up to which ends are branched on."""
MOST_MIXED = 80
"""The same where all jobs have several modes: no inequality tells of them, and the bound's grids are finer."""
GRIDS_BEFORE = 4
"""Grids of the first bound where branching follows, which has columns between their moments."""
RATIO, LEAST_SLOT, MOST_SLOT = 1.04, 25, 8
"""Where all jobs are there from the start: how many times as long each moment of the tree's grid is as the last; parts
of the mean completion time that a slot of it is, at least and at most."""
RATIO_COMING, SLOTS_COMING = 1.02, 500
"""Where jobs come one after the other, the ratio, and the least part of the time in which all is done, up to the next
power of two, that a slot is."""
NODES = 600
"""Nodes times jobs where there is no clock."""


class Proof:
    """Bounds that get better.

    Parameters
    ----------
    work : Work
    deadline : float
        Of the first bound, on the clock of `time.monotonic`.
    out : collection of int
        Jobs that get no start.
    seed : int

    Attributes
    ----------
    bound : int
        On `Timetable.value`, in milliseconds; of every timetable in which all jobs end that were not left out.
    grid : GridBound
        What a linear program says of starts.
    """

    def __init__(self, work: Work, deadline: float, out: Collection[int], seed: int) -> None:
        self._relaxed, self._seed = relaxation(work, out), seed
        self._tree: Tree | None = None
        self.grid = bound_of(self._relaxed, deadline, GRIDS_BEFORE if self.branches else len(GRIDS))
        self.bound = self.grid.bound

    def losses(self) -> dict[int, dict[int, float]]:
        """Return what jobs lose in their modes at the prices that prove the bound; see `prices.losses`."""
        if self.grid.prices is None or all(len(kind.modes) < 2 for kind in self._relaxed.kinds):
            return {}
        return losses(self._relaxed, self.grid.prices)

    @property
    def branches(self) -> bool:
        """Whether ends may be branched on."""
        counted = [kind for kind in self._relaxed.kinds if kind.weight and in_windows(kind) and kind.modes[0].uses]
        most = MOST_JOBS if any(len(kind.modes) == 1 for kind in counted) else MOST_MIXED
        return 1 < self._jobs <= most and len(counted) > 0

    @property
    def coming(self) -> bool:
        """Whether jobs come one after the other."""
        return any(kind.start for kind in self._relaxed.kinds)

    def _grid(self, single: Relaxation) -> Ints:
        if self.coming:
            return grid(single, RATIO_COMING, max(1, int(grid(single, 2.0, 1)[-1]) // SLOTS_COMING))
        mean = self.bound // max(1, sum(kind.weight for kind in single.kinds))
        return grid(single, RATIO, mean // LEAST_SLOT, max(1, mean // MOST_SLOT))

    @property
    def _jobs(self) -> int:
        return sum(kind.count for kind in self._relaxed.kinds)

    def root(self, deadline: float) -> bool:
        """Lift the bound by inequalities; return whether that came to an end, so that there is more to branch on.

        Parameters
        ----------
        deadline : float
            On the clock of `time.monotonic`.
        """
        # loaded where they are needed, for the solver takes a while
        from placement.scheduling.bounds.branching import Tree
        from placement.scheduling.bounds.starts import Starts

        kinds = tuple(replace(kind, jobs=(job,)) for kind in self._relaxed.kinds for job in kind.jobs)
        single = replace(self._relaxed, kinds=kinds)
        starts = Starts(single, self._grid(single), self._seed)
        tree = Tree(starts, deadline, keep=self.coming)
        done = tree.root()
        self.bound = max(self.bound, tree.bound)
        if done:
            self._tree = tree
            self.grid = GridBound(tree.bound, *starts.said(), self.grid.prices)
        return done

    def ends(self, value: int) -> Ends | None:
        """Return what is proven of when jobs end in any timetable no worse than a value; None before `root`."""
        return None if self._tree is None else self._tree.ends(value)

    @property
    def open(self) -> bool:
        """Whether the bound can still get better."""
        return self._tree is not None and self._tree.open

    def branch(self, value: int, offer: Offer, deadline: float) -> None:
        """Branch on ends until nothing can be better than what is known, or the time is up.

        Parameters
        ----------
        value : int
            Of the best timetable known.
        offer : Offer
        deadline : float
            On the clock of `time.monotonic`; where there is none, a number of nodes that goes by the number of jobs.
        """
        tree = self._tree
        if tree is None:
            return

        def told(means: dict[int, float]) -> int:
            self.bound = max(self.bound, tree.bound)
            return offer(means)

        tree.run(value, told, deadline, NODES // self._jobs if deadline == math.inf else None)
        self.bound = max(self.bound, tree.bound)
