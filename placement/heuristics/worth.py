"""An order of jobs for a greedy rule that aims at the objectives: much worth for little of the cluster comes first."""

from __future__ import annotations

import math

import numpy as np

from placement.instance import Instance, Ints, JobClass

COUNTED = ("value", "tasks")
"""The objectives that each started job adds to."""
LEAST = 1e-12
"""Share of the cluster that a job takes at least; some ask for nothing."""


def by_worth(instance: Instance, objectives: tuple[str, ...]) -> Ints:
    r"""Return the pending jobs, those first that bring much for what they take.

    Where ``tasks`` is the first objective of `COUNTED`, they come by falling :math:`n / s` and otherwise, priority by
    priority, by falling :math:`v / \sqrt{s}`. Here n are the tasks of a job, v is their value, and s is the largest
    share that they take of anything that is free in the cluster. Of equals the first to arrive comes first. Value
    mostly grows with size: by :math:`v / s` small jobs would come between large ones, which then find no room.

    Source: the greedy order for combinatorial auctions of Lehmann, O'Callaghan and Shoham ("Truth Revelation in
    Approximately Efficient Combinatorial Auctions", J. ACM 49, 2002), with the dominant share of Ghodsi et al.
    (NSDI'11) for the size.

    Parameters
    ----------
    instance : Instance
    objectives : tuple of str
        In order.

    Returns
    -------
    int array (J,)
    """
    by_value = next((name for name in objectives if name in COUNTED), "value") == "value"
    shares = _shares(instance)
    keys = []
    for job_class in instance.job_classes:
        size = _size(job_class, shares)
        value = sum(leaf.count * leaf.copies * leaf.value for leaf in job_class.leaves)
        tasks = sum(leaf.count * leaf.copies for leaf in job_class.leaves)
        keys.append((job_class.priority, value / math.sqrt(size)) if by_value else (0, tasks / size))
    rank = {key: number for number, key in enumerate(sorted(set(keys), reverse=True))}
    of_class = np.array([rank[key] for key in keys], dtype=np.int64)
    return instance.arrival[np.argsort(of_class[instance.job_class[instance.arrival]], kind="stable")]


def _size(job_class: JobClass, shares: list[list[float]]) -> float:
    """Return the largest share of anything that all tasks of a job take."""
    wanted = [[leaf.count * leaf.copies * share for share in shares[leaf.shape]] for leaf in job_class.leaves]
    taken: list[float] = [sum(column) for column in zip(*wanted, strict=True)]
    return max(LEAST, *taken)


def _shares(instance: Instance) -> list[list[float]]:
    """Return which share of each resource and of the cards that are free one task of each shape takes."""
    free = [0] * (len(instance.resources) + 1)
    for node_class in instance.classes:
        cards = sum(units for _, units, _ in node_class.cards)
        for number, amount in enumerate((*node_class.free, cards)):
            free[number] += amount * node_class.size
    return [
        [amount / max(1, total) for amount, total in zip((*shape.demand, shape.of_cards), free, strict=True)]
        for shape in instance.shapes
    ]
