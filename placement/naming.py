"""Names for indices: what an assignment says, as the snapshot calls it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import msgspec
import numpy as np

from placement.collector import collector_paused
from placement.instance import Assignment, Instance, Ints
from placement.links import set_scores
from placement.numa import in_zones, without_zones
from placement.plan import Tasks
from placement.run_time import settled
from placement.snapshot import Job, Node


def job_names(instance: Instance, jobs: Ints) -> list[str]:
    """Return the names of some pending jobs."""
    return _names(instance.snapshot.jobs, instance.job_spec[jobs], instance.job_copy[jobs])


def node_names(instance: Instance, nodes: Ints) -> list[str]:
    """Return the names of some nodes."""
    return _names(instance.snapshot.nodes, instance.node_spec[nodes], instance.node_copy[nodes])


def _names(entries: Sequence[Job] | Sequence[Node], spec: Ints, copy: Ints) -> list[str]:
    places = ((entries[number], within) for number, within in zip(spec.tolist(), copy.tolist(), strict=True))
    return [entry.name if entry.count == 1 else f"{entry.name}-{within}" for entry, within in places]


@collector_paused()
def name_tasks(instance: Instance, assignment: Assignment, settle: bool = True) -> Tasks:
    """Return the placed tasks by name, in the order of the snapshot.

    Of alike cards each gets those that links make the best, unless `settle` is False since others that are not in the
    assignment count on which cards these are; and then what the NUMA zones of its node give it.
    """
    bound = without_zones(instance, assignment)[1]
    starts = _first_slots(instance, assignment)
    assignment = settled(instance, assignment) if settle else without_zones(instance, assignment)[0]
    gpus = _devices(instance, assignment)
    assignment = replace(assignment, node=instance.hosts_of(assignment.node))
    inside = in_zones(instance, assignment, bound, gpus)
    return Tasks(
        job=_repeated(job_names, instance, assignment.job),
        group=_groups(instance, assignment),
        index=assignment.task.tolist(),
        node=_repeated(node_names, instance, assignment.node),
        gpus=gpus,
        links=set_scores(instance, assignment, gpus) or msgspec.UNSET,
        zones=inside.zones or msgspec.UNSET,
        cpu=inside.cpu or msgspec.UNSET,
        memory=inside.memory or msgspec.UNSET,
        nics=inside.nics or msgspec.UNSET,
        cpus=inside.cpus or msgspec.UNSET,
        mig_starts=starts or msgspec.UNSET,
    )


def _repeated(names: Callable[[Instance, Ints], list[str]], instance: Instance, indices: Ints) -> list[str]:
    """Return a name for each index; equal ones are one object."""
    distinct, place = np.unique(indices, return_inverse=True)
    known = names(instance, distinct)
    return [known[number] for number in place.reshape(-1).tolist()]


def _groups(instance: Instance, assignment: Assignment) -> list[str]:
    classes = instance.job_class[assignment.job].tolist()
    leaves = zip(classes, assignment.leaf.tolist(), strict=True)
    return [instance.job_classes[number].leaves[leaf].path for number, leaf in leaves]


def _first_slots(instance: Instance, assignment: Assignment) -> list[list[int]]:
    """Return the first slot of each task's instance, an empty list for tasks without; nothing where none has one."""
    places = np.flatnonzero(assignment.cards >= instance.slot_base)
    if not len(places):
        return []
    row = np.searchsorted(assignment.offset, places, side="right") - 1
    found: list[list[int]] = [[]] * len(assignment)
    for task, start in zip(row.tolist(), (assignment.cards[places] - instance.slot_base).tolist(), strict=True):
        found[task] = [start]
    return found


def _devices(instance: Instance, assignment: Assignment) -> list[list[int]]:
    """Return the device indices of each task's cards, ascending."""
    row = np.repeat(np.arange(len(assignment), dtype=np.int64), np.diff(assignment.offset))
    nodes, place = np.unique(assignment.node[row], return_inverse=True)
    lengths = np.array(
        [len(instance.classes[one].cards) for one in instance.node_class[nodes].tolist()], dtype=np.int64
    )
    first = np.cumsum(lengths) - lengths
    device = np.arange(int(lengths.sum()), dtype=np.int64) - np.repeat(first, lengths)
    for node, begin in zip(nodes.tolist(), first.tolist(), strict=True):
        order = instance.node_cards.get(node)
        if order is not None:
            device[begin : begin + len(order)] = order
    of_row = device[first[place.reshape(-1)] + assignment.cards]
    flat = of_row[np.lexsort((of_row, row))].tolist()
    ends = assignment.offset.tolist()
    return [flat[begin:end] for begin, end in pairwise(ends)]
