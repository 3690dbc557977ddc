"""The area bound: what the whole cluster's free amounts allow if nothing else binds. Valid, and milliseconds."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from placement.instance import Bools, Instance, Ints
from placement.solver import Bound

Floats = npt.NDArray[np.float64]


def area_bounds(instance: Instance) -> tuple[Bound, ...]:
    r"""Return bounds on the ``value`` of each priority and on ``tasks``.

    With :math:`v_i` the worth of task i, :math:`r_i` what it takes of one resource (card units among them) and
    :math:`C` what is free of it in the whole cluster, every plan's started tasks S satisfy
    :math:`\sum_{i \in S} r_i \le C`, so its value is at most the fractional knapsack

    .. math:: \max \sum_i v_i x_i \quad \text{s.t.} \quad \sum_i r_i x_i \le C,\ 0 \le x_i \le 1,

    solved by taking the tasks in order of :math:`v_i / r_i` (Dantzig 1957). The smallest over the resources is taken.
    """
    kinds, counts, values, priorities = _tasks(instance)
    if not len(kinds):
        return ()
    use, free = _use(instance), _free(instance)
    bounds = []
    for priority in instance.priorities:
        tier = np.flatnonzero(np.equal(priorities, priority))
        best = min(_knapsack(values[tier], use[kinds[tier], r], counts[tier], free[r]) for r in range(len(free)))
        bounds.append(Bound("value", priority, best * float(instance.value_unit)))
    ones = np.ones(len(kinds))
    bounds.append(Bound("tasks", None, min(_knapsack(ones, use[kinds, r], counts, free[r]) for r in range(len(free)))))
    return tuple(bounds)


def _tasks(instance: Instance) -> tuple[Ints, Floats, Floats, Ints]:
    """Return shape, count, worth and priority of every leaf whose shape some node class admits at all."""
    somewhere: Bools = np.asarray(instance.admits_node.any(axis=1))
    rows = [
        (leaf.shape, leaf.count * leaf.copies * job_class.size, leaf.value, job_class.priority)
        for job_class in instance.job_classes
        for leaf in job_class.leaves
        if somewhere[leaf.shape]
    ]
    table = np.array(rows, dtype=np.int64).reshape(-1, 4)
    return table[:, 0], table[:, 1].astype(np.float64), table[:, 2].astype(np.float64), table[:, 3]


def _use(instance: Instance) -> Floats:
    """Return what a task of each shape takes of each resource; card units are the last column."""
    rows = [(*shape.demand, shape.gpus * shape.units) for shape in instance.shapes]
    return np.array(rows, dtype=np.float64).reshape(-1, len(instance.resources) + 1)


def _free(instance: Instance) -> Floats:
    rows = []
    for node_class in instance.classes:
        cards = sum(units for kind, units, _ in node_class.cards if instance.card_kinds[kind].healthy)
        rows.append([amount * node_class.size for amount in (*node_class.free, cards)])
    table: Floats = np.array(rows, dtype=np.float64).reshape(-1, len(instance.resources) + 1)
    return np.asarray(table.sum(axis=0))


def _knapsack(values: Floats, use: Floats, counts: Floats, capacity: float) -> float:
    """Return the optimum of the fractional knapsack, never below it by rounding."""
    density = np.divide(values, use, out=np.full(len(use), np.inf), where=use > 0)
    order = np.argsort(-density, kind="stable")
    taken = counts[order] * use[order]
    before = np.concatenate([[0.0], np.cumsum(taken)[:-1]])
    share = np.clip(np.divide(capacity - before, taken, out=np.ones(len(taken)), where=taken > 0), 0.0, 1.0)
    return float((share * counts[order] * values[order]).sum()) * (1 + 1e-12)
