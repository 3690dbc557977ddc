"""What a search has: a layout, the tasks that are started by it, and what that is worth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placement.exact.layouts.gangs import startable, surplus
from placement.exact.layouts.layout import Layout
from placement.instance import Assignment, Instance, Ints
from placement.models.pooled_linear import Target
from placement.models.pooled_objective import coefficients
from placement.models.pools import leaf_rows, leaf_table


class Goals:
    """The targets of a run, in order, and what a task of each leaf counts in them.

    Attributes
    ----------
    instance : Instance
    targets : tuple of Target
    leaves : int array (T, 5)
        See `leaf_table`.
    worth : int array (G, T)
        For each target, what one task of each leaf counts.
    """

    def __init__(self, instance: Instance, targets: Sequence[Target]) -> None:
        self.instance = instance
        self.targets = tuple(targets)
        self.leaves = leaf_table(instance)
        self.worth: Ints = np.array([coefficients(instance, self.leaves, t) for t in targets], dtype=np.int64)

    def ranks(self, started: Ints) -> tuple[int, ...]:
        """Return the value of each target, in units of the instance."""
        return tuple((self.worth @ started).tolist())

    def by_shape(self, started: Ints) -> Ints:
        """Return the started tasks of each shape."""
        total = np.bincount(self.leaves[:, 2], started, minlength=len(self.instance.shapes))
        return total.astype(np.int64)


class Standing:
    """A placement and what is started by it.

    Attributes
    ----------
    layout : Layout
        Every task in it belongs to a started job.
    started : int array (T,)
        Started tasks by row of `leaf_table`.
    ranks : tuple of int
        What they are worth.
    """

    def __init__(self, goals: Goals, layout: Layout, started: Ints) -> None:
        self.goals = goals
        self.layout = layout
        self.started = started
        self.ranks = goals.ranks(started)

    def start(self, started: Ints) -> None:
        """Replace what is started, after the layout has changed to hold it."""
        self.started = started
        self.ranks = self.goals.ranks(started)
        prune(self.layout, started)

    @classmethod
    def of_assignment(cls, goals: Goals, assignment: Assignment) -> Standing:
        """Return the standing of an assignment."""
        instance = goals.instance
        started = np.bincount(leaf_rows(instance, assignment), minlength=len(goals.leaves)).astype(np.int64)
        return cls(goals, Layout.of(instance, assignment), started)

    @classmethod
    def of_layout(cls, goals: Goals, layout: Layout, seed: int) -> Standing:
        """Return the best standing with the tasks of a layout; those of use to nobody are taken off."""
        started = startable(layout, goals.targets, seed)
        prune(layout, started)
        return cls(goals, layout, started)


def prune(layout: Layout, started: Ints) -> None:
    """Take tasks off that belong to no started job."""
    extra = surplus(layout, started)
    if not (extra > 0).any():
        return
    for node, spots in enumerate(layout.tasks):
        for position in range(len(spots) - 1, -1, -1):
            shape = spots[position][0]
            if extra[shape] > 0:
                layout.remove(node, position)
                extra[shape] -= 1
