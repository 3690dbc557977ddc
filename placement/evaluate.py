"""What an assignment is worth, from the instance: the numbers by which the engine chooses among methods.

`placement.check.objective` recomputes the same from the snapshot alone; the two share no code.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from placement.instance import Assignment, Instance, Ints
from placement.preferred import locality, wishes
from placement.run_time import run_time
from placement.state import State

SENSE: dict[str, int] = {
    "value": 1,
    "tasks": 1,
    "locality": -1,
    "run_time": -1,
    "fragmentation": -1,
    "whole_nodes": 1,
    "nodes": -1,
    "mig_cards": -1,
}
"""+1 where more is better, -1 where less is."""


def wished_for(instance: Instance) -> dict[str, bool]:
    """Return for each objective that is 0 unless some pending job asks for it whether one does."""
    return {"locality": bool(wishes(instance)), "run_time": instance.timed}


@dataclass(frozen=True, slots=True)
class Score:
    """Value of one objective, or of one priority of it, in its own unit.

    Units: ``value`` in GPU-milli times weight, ``tasks``, nodes and cards in items, ``locality`` in levels,
    ``run_time`` in seconds times weight, ``fragmentation`` in GPU-milli.
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
        elif objective == "locality":
            value = Fraction(locality(instance, assignment))
        elif objective == "run_time":
            value = Fraction(run_time(instance, assignment), 1000)
        elif objective == "nodes":
            value = Fraction(_nodes_used(instance, assignment))
        elif objective == "mig_cards":
            value = Fraction(mig_cards(instance, assignment))
        else:
            if state is None:
                state = State(replace(instance, apart=None))  # idle GPU is lost or not whosever the tasks beside it are
                state.apply(assignment)
            measure = fragmentation if objective == "fragmentation" else _whole
            value = measure(instance, state)
        found.append(Score(objective, None, value))
    return tuple(found)


def better(a: tuple[Score, ...], b: tuple[Score, ...]) -> bool:
    """Return whether the first scores are better, in order."""
    return [s.rank for s in a] > [s.rank for s in b]


def _values(instance: Instance, assignment: Assignment) -> list[Score]:
    totals = dict.fromkeys(instance.priorities, 0)
    worth = [(job_class.priority, leaf.value) for job_class in instance.job_classes for leaf in job_class.leaves]
    lengths = np.array([len(job_class.leaves) for job_class in instance.job_classes], dtype=np.int64)
    first = np.cumsum(lengths) - lengths
    placed = np.bincount(first[instance.job_class[assignment.job]] + assignment.leaf, minlength=len(worth))
    for count, (priority, value) in zip(placed.tolist(), worth, strict=True):
        totals[priority] += count * value
    return [Score("value", priority, total * instance.value_unit) for priority, total in totals.items()]


def _nodes_used(instance: Instance, assignment: Assignment) -> int:
    in_use = np.array([node_class.in_use for node_class in instance.classes], dtype=np.bool_)
    used = in_use[instance.node_class[: instance.hosts]]
    used[instance.hosts_of(assignment.node)] = True
    return int(used.sum())


def mig_cards(instance: Instance, assignment: Assignment) -> int:
    """Return how many MIG cards have an instance that a task uses, running work included."""
    cards = np.unique(assignment.node[assignment.node >= instance.hosts])
    empty = np.array([not one.in_use for one in instance.classes], dtype=np.bool_)
    return instance.mig_cards + int(empty[instance.node_class[cards]].sum())


def _whole(instance: Instance, state: State) -> Fraction:
    return Fraction(int(whole_nodes(instance, state).sum()))


def whole_nodes(instance: Instance, state: State) -> np.ndarray:
    """Return which nodes have healthy cards that are all wholly free, as a mask; MIG cards are those of their hosts."""
    healthy = np.array([kind.healthy for kind in instance.card_kinds] + [False])[state.kind]
    free = healthy & (state.units == instance.card_units)
    if instance.slots is None:
        return np.asarray(healthy.any(axis=1) & (free == healthy).all(axis=1))
    # MIG cards are nodes of their own, and what hosts say of them does not count
    sliced = np.array([False] * (len(instance.card_kinds) + 1))
    sliced[[one.cards[0][0] for one in instance.classes if one.slots >= 0]] = True
    counts = healthy & (~sliced[state.kind] | (state.slots >= 0)[:, None])
    whole, some = np.ones(instance.hosts, dtype=np.bool_), np.zeros(instance.hosts, dtype=np.bool_)
    np.logical_and.at(whole, instance.host, (free == counts).all(axis=1))
    np.logical_or.at(some, instance.host, counts.any(axis=1))
    return whole & some


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
    nodes, alike = _states(instance, state, idle)
    idle = idle[nodes]
    lost = idle.sum(axis=1)
    of_class, free = instance.node_class[nodes], state.free[nodes]
    amount = total * int((lost * alike).sum())
    for shape in np.flatnonzero(wanted):
        task = instance.shapes[shape]
        if task.gpus:
            usable = state.usable(int(shape), nodes)
            runs = usable.sum(axis=1) >= task.gpus
        elif task.profile >= 0 and instance.slots is not None:
            runs = instance.slots.takes[state.slots[nodes], task.profile]
            usable = np.ones_like(idle, dtype=np.bool_)
        if task.gpus or task.profile >= 0:
            runs &= instance.admits_node[shape][of_class] & (free >= state.demand[shape]).all(axis=1)
            amount -= int((np.where(usable, idle, 0).sum(axis=1) * alike)[runs].sum()) * int(wanted[shape])
    return Fraction(amount * 1000, total * instance.card_units)


def _states(instance: Instance, state: State, idle: Ints) -> tuple[Ints, Ints]:
    """Return nodes with idle cards, one for each state that some are in, and how many are in it.

    A state is what is free of the node and of its idle cards, in any order, and which shapes the node admits; of a MIG
    card its state besides.
    """
    nodes = np.flatnonzero((idle > 0).any(axis=1))
    cards = np.stack([state.kind[nodes], state.units[nodes], state.memory[nodes]], axis=-1)
    cards[idle[nodes] <= 0] = -1
    slots = state.slots[nodes] if instance.slots is not None else np.zeros(len(nodes), dtype=np.int64)
    sort = _numbered(cards.reshape(-1, 3)).reshape(cards.shape[:2])
    sort.sort(axis=1)
    admits = _numbered(np.packbits(instance.admits_node, axis=0).T)[instance.node_class[nodes]]
    number = _numbered(np.column_stack([admits, slots, state.free[nodes], sort]))
    _, first, count = np.unique(number, return_index=True, return_counts=True)
    return nodes[first], count


def _numbered(rows: np.ndarray) -> Ints:
    """Return a number for each row, equal where the rows are."""
    text, wide = np.ascontiguousarray(rows).tobytes(), rows.itemsize * rows.shape[1]
    known: dict[bytes, int] = {}
    number = [known.setdefault(text[at : at + wide], len(known)) for at in range(0, wide * len(rows), wide or 1)]
    return np.array(number, dtype=np.int64)
