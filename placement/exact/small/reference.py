"""Small instances to the end, task by task: the reference model, phase by phase, with proven bounds.

It names every task and so knows of all that ties tasks to one another, and of what nodes are left like. It has a
variable for every task on every node and card, which is why only small instances are solved by it.
"""

from __future__ import annotations

from typing import Any

from placement import models
from placement.exact.small.classes import Phases
from placement.instance import Assignment, Instance
from placement.models import numa
from placement.solver import Limits, Report, Result, silent

MOST_VARIABLES = 600
"""Tasks times nodes, cards and choices of NUMA zones that are few enough: so many took 5 seconds at most on one core,
and seldom more than one; half as many again took up to 20."""


MOST_TIMED = 300
"""The same where it counts how long jobs run, which is harder to prove: twice as many took a minute and more."""
TIMED_NODES = 20_000
"""Branch-and-bound nodes of a phase then, if nothing else is said."""


def is_small(instance: Instance, most: int = MOST_VARIABLES) -> bool:
    """Return whether an instance is small enough to be solved task by task."""
    wanted = sum(leaf.count * leaf.copies * c.size for c in instance.job_classes for leaf in c.leaves)
    places = (c.size * (1 + len(c.cards) + numa.choices(instance, k)) for k, c in enumerate(instance.classes))
    return wanted * sum(places) <= most


def solve_reference(
    instance: Instance,
    objectives: tuple[str, ...],
    limits: Limits,
    seed: int = 0,
    start: Assignment | None = None,
    report: Report = silent,
) -> Result | None:
    """Solve an instance task by task; see `placement.exact.small.classes.solve_configurations`.

    Returns
    -------
    Result or None
        None if an objective is one that the model does not have, or the solver fails.
    """
    if any(objective not in models.REFERENCE.objectives for objective in objectives):
        return None
    return _TaskByTask(instance, objectives, limits, seed, start, report).run()


class _TaskByTask(Phases):
    """The phases over the reference model."""

    formulation = models.REFERENCE

    def place(self, model: Any) -> Assignment:
        return _named(model)


def _named(model: Any) -> Assignment:
    """Return the assignment that the values of a reference model stand for."""
    cards: dict[int, list[int]] = {}
    for (t, _, card), variable in model.a.items():
        if variable.value:
            cards.setdefault(t, []).append(card)
    for t, positions in numa.chosen(model):
        cards.setdefault(t, []).extend(positions)
    return Assignment.of(
        (task.job, task.leaf, task.number, n, tuple(cards.get(t, ())))
        for (t, n), variable in model.z.items()
        if variable.value
        for task in [model.tasks[t]]
    )
