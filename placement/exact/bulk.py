"""Many tasks laid out at once: what `Layout.place` does one by one, in a few array operations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from placement.collector import collector_paused
from placement.exact.layout import Layout
from placement.exact.standing import Goals, Standing
from placement.instance import Assignment, Instance, Ints


def laid_out(instance: Instance, shape: Ints, node: Ints, cards: Sequence[tuple[int, ...]]) -> Layout:
    """Return the layout of tasks given by column.

    Parameters
    ----------
    instance : Instance
    shape, node : int arrays (T,)
    cards : sequence of tuples of int
        Cards of each task, by position in the node.
    """
    layout = Layout(instance)
    with collector_paused():
        for one, host, positions in zip(shape.tolist(), node.tolist(), cards, strict=True):
            layout.tasks[host].append((one, positions))
    layout.count += np.bincount(shape, minlength=len(layout.count))
    state = layout.state
    for r in np.flatnonzero(state.demand.any(axis=0)).tolist():
        np.subtract.at(state.free[:, r], node, state.demand[shape, r])
    lengths = np.fromiter(map(len, cards), dtype=np.int64, count=len(cards))
    card = np.fromiter(chain.from_iterable(cards), dtype=np.int64, count=int(lengths.sum()))
    row = np.repeat(np.arange(len(cards)), lengths)
    of_task = np.array([(task.units, task.memory) for task in instance.shapes], dtype=np.int64).reshape(-1, 2)[shape]
    np.subtract.at(state.units, (node[row], card), of_task[row, 0])
    np.subtract.at(state.memory, (node[row], card), of_task[row, 1])
    _count_in_limits(layout, shape, node)
    return layout


def _count_in_limits(layout: Layout, shape: Ints, node: Ints) -> None:
    """Take what tasks use of every limit row that their node counts in."""
    instance, limits = layout.instance, layout.state.limits
    if not len(limits):
        return
    shapes = len(instance.shapes)
    use = np.array([[layout.state.limit_use(s, q) for s in range(shapes)] for q in range(len(limits))], dtype=np.int64)
    pair, times = np.unique(instance.node_class[node] * shapes + shape, return_counts=True)
    for number, count in zip(pair.tolist(), times.tolist(), strict=True):
        rows = list(instance.classes[number // shapes].limits)
        limits[rows] -= count * use[rows, number % shapes]


def standing_of(goals: Goals, assignment: Assignment) -> Standing:
    """Return what `Standing.of_assignment` does, in a fraction of the time where there are many tasks."""
    instance = goals.instance
    lengths = np.array([len(job_class.leaves) for job_class in instance.job_classes], dtype=np.int64)
    first = np.cumsum(lengths) - lengths
    row = first[instance.job_class[assignment.job]] + assignment.leaf
    started = np.bincount(row, minlength=len(goals.leaves)).astype(np.int64)
    offset, flat = assignment.offset.tolist(), assignment.cards.tolist()
    cards = [tuple(flat[offset[i] : offset[i + 1]]) for i in range(len(assignment))]
    return Standing(goals, laid_out(instance, goals.leaves[row, 2], assignment.node, cards), started)
