"""What is proven of a work: bounds over grids, then by branch and bound where jobs are not too many."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from placement.scheduling.grid import GridBound, best_bound, grid
from placement.scheduling.modes import Relaxation, relaxation
from placement.scheduling.tolls import in_windows
from placement.scheduling.work import Work

if TYPE_CHECKING:
    from placement.scheduling.branching import Tree

Offer = Callable[[dict[int, float]], int]
"""Told when each job starts in a relaxed schedule; returns the value of the best timetable known."""
MOST_JOBS = 400
"""Jobs up to which starts are branched on."""
SLOTS, RATIO = 500, 1.02
"""Least part of the time in which all is done that a slot of the grid is, and how much longer each is than the last."""
NODES = 1200
"""Nodes times jobs where there is no clock."""
GRID_SHARE = 0.3
"""Part of the time of the first bound that grids get where a tree follows."""


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
        self._tree: Tree | None = None
        relaxed = relaxation(work, out)
        if not _branches(relaxed):
            self.grid = best_bound(work, deadline, out)
            self.bound = self.grid.bound
            return
        # loaded where they are needed, for the solver takes a while
        from placement.scheduling.branching import Tree
        from placement.scheduling.starts import Starts

        now = time.monotonic()
        self.grid = best_bound(work, now + GRID_SHARE * (deadline - now), out)
        self.bound = self.grid.bound
        single = replace(
            relaxed, kinds=tuple(replace(kind, jobs=(job,)) for kind in relaxed.kinds for job in kind.jobs)
        )
        horizon = int(grid(single, 2.0, 1)[-1])
        starts = Starts(single, grid(single, RATIO, max(1, horizon // SLOTS)), seed)
        tree = Tree(starts, deadline)
        if tree.root():
            self._tree = tree
            self.grid = GridBound(tree.bound, *starts.said())
        self.bound = max(self.bound, tree.bound)
        self._nodes = NODES // max(1, len(single.kinds))

    @property
    def open(self) -> bool:
        """Whether the bound can still get better."""
        return self._tree is not None and self._tree.open

    def branch(self, value: int, offer: Offer, deadline: float) -> None:
        """Branch on starts until nothing can be better than what is known, or the time is up.

        Parameters
        ----------
        value : int
            Of the best timetable known.
        offer : Offer
        deadline : float
            On the clock of `time.monotonic`; where there is none, a number of nodes that goes by the number of jobs.
        """
        if self._tree is not None:
            self._tree.run(value, offer, deadline, self._nodes if deadline == math.inf else None)
            self.bound = max(self.bound, self._tree.bound)


def _branches(relaxed: Relaxation) -> bool:
    jobs = sum(kind.count for kind in relaxed.kinds)
    counted = [kind for kind in relaxed.kinds if kind.weight and in_windows(kind) and kind.modes[0].uses]
    return 1 < jobs <= MOST_JOBS and len(counted) > 0
