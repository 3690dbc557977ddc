"""What nodes have too little of beside the work that is on them: why a job waits though an empty node could take it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placement.instance import ANY, Assignment, Instance, JobClass, Shape
from placement.refusals import too_little
from placement.state import State

MOST_TASKS, MOST_LOOKS = 20_000, 2**24
"""New tasks, and pairs of a class of jobs and a node, up to which plans are looked at."""


def shortages(instance: Instance, assignment: Assignment, classes: Sequence[int]) -> dict[int, str]:
    """Return for classes of jobs what nodes lack, and how many of them.

    A class is left out where each of its tasks has room somewhere, and only not all of them at once; all are where MIG
    cards or tenants decide, and where a plan is large.

    Parameters
    ----------
    instance : Instance
    assignment : Assignment
        The work of a plan, beside that which runs.
    classes : sequence of int
        Of jobs that could run on empty nodes.
    """
    large = len(assignment) > MOST_TASKS or len(classes) * len(instance.node_class) > MOST_LOOKS
    if not classes or large or instance.slots is not None or instance.apart is not None:
        return {}
    state = State(instance)
    state.apply(assignment)
    found = {number: _of_class(instance, state, instance.job_classes[number]) for number in classes}
    return {number: text for number, text in found.items() if text}


def _of_class(instance: Instance, state: State, job_class: JobClass) -> str:
    """Return what the first of the groups lacks that has no room for a single task; empty if there is none."""
    for leaf in job_class.leaves:
        nodes = np.flatnonzero(instance.admits_node[leaf.shape].take(instance.node_class))
        if not len(nodes) or state.has_room(leaf.shape, nodes).any():
            continue
        short = state.free[nodes] < state.demand[leaf.shape]
        # the last column stands for what is of cards or zones and not of the node as a whole
        first = np.where(short.any(axis=1), short.argmax(axis=1), short.shape[1])
        texts = [*(too_little(name) for name in instance.resources), _within(instance.shapes[leaf.shape])]
        kinds, count = np.unique(first, return_counts=True)
        return "; ".join(f"{count[i]}: {texts[kinds[i]]}" for i in np.argsort(-count, kind="stable").tolist())
    return ""


def _within(task: Shape) -> str:
    if task.numa != ANY:
        return "too little is free within its NUMA zones"
    return "too few cards are free" if task.gpus > 1 else "no card has enough free"
