"""Cards that tasks share: which tasks do, and by how much longer they run for it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from placement.durations import RunTime
from placement.instance import Bools, CardKind, Instance

ONE = Fraction(1)


def parted(instance: Instance, shape: int) -> bool:
    """Return whether a task asks for less than the whole of its cards."""
    task = instance.shapes[shape]
    return task.gpus > 0 and (task.counts_whole or task.units < instance.card_units)


def parted_leaves(instance: Instance) -> Bools:
    """Return which leaves of each job class are of such tasks, shape (job classes, most leaves)."""
    lengths = [len(job_class.leaves) for job_class in instance.job_classes]
    found = np.zeros((len(lengths), max(lengths, default=0)), dtype=np.bool_)
    for number, job_class in enumerate(instance.job_classes):
        found[number, : lengths[number]] = [parted(instance, leaf.shape) for leaf in job_class.leaves]
    return found


def sharing_factor(kind: CardKind, run: RunTime | None) -> Fraction:
    """Return the factor of a card for tasks that share it.

    It is what their job states; else what was measured of its workload on such cards; else what is usual for the card.
    """
    if kind.slowdown is None:
        return ONE
    if run is None:
        return kind.slowdown
    return dict(run.measured).get(kind.model, kind.slowdown) if run.shared is None else run.shared
