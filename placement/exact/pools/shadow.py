r"""What tasks are worth by the relaxation over pools, where prices of single node classes are to start.

In that relaxation a task of shape *s* costs :math:`c_{sk}` in pool *k*: the duals of the cards and resources that it
takes there. Of its room at most :math:`m_{sk}` tasks can be had there, and of the started ones at most :math:`N_l` of
each leaf *l*, worth :math:`v_l` beside what its gang costs. The dual :math:`\pi_s` of the row that links them adds

.. math:: f_s(\pi_s) = \sum_{l:\,\mathrm{shape}(l)=s} N_l\,(v_l - \pi_s)^+ + \sum_k m_{sk}\,(\pi_s - c_{sk})^+

to the bound. Its least is often flat: where one pool has room for all tasks, any price between cost and worth will do,
and the solver names one of them. Nodes know nothing of the number of tasks in all, so each of them would gain from a
price above the cost; the lowest price of those with the least is the one that says as much about nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from placement.exact.milp.arrays import Floats, Program
from placement.instance import Ints
from placement.models.pools import Pooling, leaf_table

LINK = "room_for_started_tasks"
"""The rows that link room and started tasks."""
SHARED = ("gangs[", "kept[")
"""Rows that a model over pools and one over columns have alike, by the beginning of their names."""


@dataclass(frozen=True, slots=True)
class Shadow:
    """Duals of one relaxation.

    Attributes
    ----------
    shape : float array (S,)
        Of one task of each shape.
    others : dict of str to float
        Of the other rows that all models over the same jobs have, by name.
    """

    shape: Floats
    others: dict[str, float]


def shadow(view: Pooling, program: Program, rows: Mapping[str, int], duals: Floats) -> Shadow:
    """Return prices from duals of a relaxation over pools.

    Parameters
    ----------
    view : Pooling
    program : Program
        The relaxation: its first columns are the room by pair of the view, the next ones the tasks by leaf, and the
        rows that link them have the numbers of shapes.
    rows : mapping of str to int
        Rows by name.
    duals : float array (rows,)
    """
    pairs, leaves = len(view.shape), len(view.leaves)
    charged = np.bincount(program.index, program.value * duals[program.row_of], minlength=len(program.cost))
    named = {name: float(duals[row]) for name, row in rows.items()}
    shapes = len(view.instance.shapes)
    price: Floats = np.array([named.get(f"{LINK}[{s}]", 0.0) for s in range(shapes)])
    cost = charged[:pairs] + price[view.shape]
    task = slice(pairs, pairs + leaves)
    worth = program.cost[task] - charged[task] + price[view.leaves[:, 2]]
    # a leaf of the view has no more tasks than there is room for, and beside nodes all that wait count
    wanted = leaf_table(view.instance)[view.rows, 3]
    lowest = [
        _lowest(cost[room], view.most[room], worth[tasks], wanted[tasks])
        for room, tasks in ((view.shape == s, view.leaves[:, 2] == s) for s in range(shapes))
    ]
    return Shadow(np.array(lowest), {name: dual for name, dual in named.items() if name.startswith(SHARED)})


def _lowest(cost: Floats, most: Ints, worth: Floats, wanted: Ints) -> float:
    """Return the lowest price at which to pay more for room costs as much as it saves."""
    for price in np.unique(np.concatenate([cost, worth]).clip(0.0)).tolist():
        if most[cost <= price].sum() >= wanted[worth > price].sum():
            return float(price)
    return 0.0
