r"""Assignment: every task on one node and on cards of that node, device by device.

Sets: tasks *t* of all pending jobs, nodes *n*, cards *u* with their node :math:`n(u)`; :math:`g_t` cards are wanted
by *t*. Variables, all 0 or 1:

- :math:`z_{tn}`: task *t* runs on node *n*,
- :math:`a_{tu}`: task *t* uses card *u*; only for tasks that want cards.

.. math::
   \sum_n z_{tn} \le 1 \quad\forall t, \qquad
   \sum_{u:\, n(u) = n} a_{tu} = g_t\, z_{tn} \quad\forall t, n : g_t > 0.

The second row makes the cards distinct and of one node. Needs nothing; adds ``z``, ``a``, ``m.tasks`` and what each
leaf has placed. One variable a task and card: for tiny instances and tests.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

from pyomo import core as pyo

from placement.instance import Instance, Shape
from placement.models.core import Parts, Terms, add_rows

NEEDS: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PendingTask:
    """One task of a pending job.

    Attributes
    ----------
    job, leaf, number : int
        As in `Assignment`: number within the leaf, over all its copies.
    shape : int
    """

    job: int
    leaf: int
    number: int
    shape: int


def add(m: Any, instance: Instance) -> None:
    """Add the variables and rows."""
    parts: Parts = m.parts
    m.tasks = pending_tasks(instance)
    nodes = range(instance.nodes)
    m.cards = [(n, c) for n in nodes for c in range(len(instance.classes[instance.node_class[n]].cards))]
    with_cards = [t for t, task in enumerate(m.tasks) if instance.shapes[task.shape].gpus]
    m.z = pyo.Var([(t, n) for t in range(len(m.tasks)) for n in nodes], domain=pyo.Binary)
    m.a = pyo.Var([(t, *card) for t in with_cards for card in m.cards], domain=pyo.Binary)
    add_rows(m, "once", {t: (-inf, [(1, m.z[t, n]) for n in nodes], 1) for t in range(len(m.tasks))})
    on_node: dict[tuple[int, int], Terms] = {(t, n): [] for t in with_cards for n in nodes}
    for t in with_cards:
        for n, c in m.cards:
            on_node[t, n].append((1, m.a[t, n, c]))
    rows = {
        (t, n): (0, [*terms, (-instance.shapes[m.tasks[t].shape].gpus, m.z[t, n])], 0)
        for (t, n), terms in on_node.items()
    }
    add_rows(m, "distinct_cards", rows)
    for job_class in range(len(instance.job_classes)):
        for leaf in range(len(instance.job_classes[job_class].leaves)):
            parts.placed[job_class, leaf] = []
    for t, task in enumerate(m.tasks):
        parts.placed[int(instance.job_class[task.job]), task.leaf] += [(1, m.z[t, n]) for n in nodes]


def pending_tasks(instance: Instance) -> list[PendingTask]:
    """Return all tasks of pending jobs, by job, leaf and number."""
    return [
        PendingTask(job, leaf.leaf, number, leaf.shape)
        for job in sorted(job for one in instance.job_classes for job in one.jobs.tolist())
        for leaf in instance.job_classes[instance.job_class[job]].leaves
        for number in range(leaf.count * leaf.copies)
    ]


def shape_of(m: Any, task: int) -> Shape:
    """Return the shape of a task by its number in the model."""
    shape: Shape = m.parts.instance.shapes[m.tasks[task].shape]
    return shape
