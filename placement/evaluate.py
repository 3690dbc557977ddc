"""What an assignment is worth, from the instance: the numbers by which the engine chooses among methods.

`placement.check.objective` recomputes the same from the snapshot alone; the two share no code.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from placement.instance import Assignment, Instance
from placement.state import State

SENSE: dict[str, int] = {"value": 1, "tasks": 1, "fragmentation": -1, "whole_nodes": 1, "nodes": -1}
"""+1 where more is better, -1 where less is."""


@dataclass(frozen=True, slots=True)
class Score:
    """Value of one objective, or of one priority of it, in its own unit.

    Units: ``value`` in GPU-milli times weight, ``tasks`` and nodes in items, ``fragmentation`` in GPU-milli.
    """

    objective: str
    priority: int | None
    value: Fraction

    @property
    def rank(self) -> Fraction:
        """The value with its sign turned so that more is better."""
        return self.value * SENSE[self.objective]


def scores(instance: Instance, assignment: Assignment, objectives: tuple[str, ...]) -> tuple[Score, ...]:
    """Return the value of every objective in order; ``value`` yields one score per priority, highest first."""
    state: State | None = None
    found: list[Score] = []
    for objective in objectives:
        if objective == "value":
            found += _values(instance, assignment)
            continue
        if objective == "tasks":
            value = Fraction(len(assignment))
        else:
            if state is None:
                state = State(instance)
                state.apply(assignment)
            if objective == "fragmentation":
                value = fragmentation(instance, state)
            elif objective == "whole_nodes":
                value = Fraction(int(whole_nodes(instance, state).sum()))
            else:
                value = Fraction(_nodes_used(instance, assignment))
        found.append(Score(objective, None, value))
    return tuple(found)


def better(a: tuple[Score, ...], b: tuple[Score, ...]) -> bool:
    """Return whether the first scores are better, in order."""
    return [s.rank for s in a] > [s.rank for s in b]


def _values(instance: Instance, assignment: Assignment) -> list[Score]:
    totals = dict.fromkeys(instance.priorities, 0)
    classes = instance.job_class[assignment.job]
    for number, job_class in enumerate(instance.job_classes):
        mine = assignment.leaf[classes == number]
        counts = np.bincount(mine, minlength=len(job_class.leaves))
        totals[job_class.priority] += sum(int(c) * leaf.value for c, leaf in zip(counts, job_class.leaves, strict=True))
    return [Score("value", priority, total * instance.value_unit) for priority, total in totals.items()]


def _nodes_used(instance: Instance, assignment: Assignment) -> int:
    used = np.zeros(instance.nodes, dtype=np.bool_)
    for node_class in instance.classes:
        if node_class.in_use:
            used[node_class.nodes] = True
    used[assignment.node] = True
    return int(used.sum())


def whole_nodes(instance: Instance, state: State) -> np.ndarray:
    """Return which nodes have healthy cards that are all wholly free, as a mask of shape (N,)."""
    healthy = np.array([kind.healthy for kind in instance.card_kinds] + [False])[state.kind]
    free = healthy & (state.units == instance.card_units)
    return np.asarray(healthy.any(axis=1) & (free == healthy).all(axis=1))


def demand(instance: Instance) -> np.ndarray:
    """Return how many tasks of each shape the pending jobs want, shape (S,)."""
    wanted = np.zeros(len(instance.shapes), dtype=np.int64)
    for job_class in instance.job_classes:
        for leaf in job_class.leaves:
            wanted[leaf.shape] += leaf.count * leaf.copies * job_class.size
    return wanted


def fragmentation(instance: Instance, state: State) -> Fraction:
    r"""Return the idle GPU that the pending jobs' tasks could not use, in GPU-milli.

    With :math:`R_n` the idle GPU of node n and :math:`p_m` the share of shape m among all wanted tasks,

    .. math:: F = \sum_n \sum_m p_m F_n(m),

    where :math:`F_n(m) = R_n` if m takes no card or cannot run on what is free on n, and otherwise the idle GPU on
    those cards that m cannot use. Source: Weng et al., "Beware of Fragmentation" (ATC'23), section 3; here every
    resource and every filter counts in "cannot run", not CPU and model alone.
    """
    wanted = demand(instance)
    total = int(wanted.sum())
    if not total:
        return Fraction(0)
    healthy = np.array([kind.healthy for kind in instance.card_kinds] + [False])[state.kind]
    idle = np.where(healthy, state.units, 0)
    everywhere = np.arange(instance.nodes)
    amount = 0
    for shape in np.flatnonzero(wanted):
        task = instance.shapes[shape]
        lost = idle.sum(axis=1)
        if task.gpus:
            runs = instance.admits_node[shape][instance.node_class]
            runs = runs & (state.free >= state.demand[shape]).all(axis=1)
            usable = state.usable(int(shape), everywhere)
            runs &= usable.sum(axis=1) >= task.gpus
            lost = np.where(runs, np.where(usable, 0, idle).sum(axis=1), lost)
        amount += int(lost.sum()) * int(wanted[shape])
    return Fraction(amount * 1000, total * instance.card_units)
