"""Which share or quota of a queue a job that waits would exceed, beside the other work of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from placement.gang import least_of
from placement.instance import Assignment, Bools, Instance, Ints, JobClass
from placement.quota import ALL, QueueLimit, Short


def beyond(instance: Instance, assignment: Assignment, classes: Sequence[int]) -> dict[int, Short]:
    """Return for classes of jobs by how much they ask for more than is left to their queue; nothing for others.

    Parameters
    ----------
    instance : Instance
    assignment : Assignment
        The work of a plan, beside that which runs.
    classes : sequence of int
        Of jobs that wait.

    Returns
    -------
    dict of int to Short
        With the first limit that alone keeps the jobs of a class out, wherever they are placed.
    """
    rows = [row for row, limit in enumerate(instance.limits) if limit.queue is not None]
    if not rows or not classes:
        return {}
    limits = [frozenset(one.limits) for one in instance.classes]
    inside = {row: np.array([row in mine for mine in limits], dtype=np.bool_) for row in rows}
    shapes, of_class = _shapes(instance, assignment), instance.node_class[assignment.node]
    left = {}
    of_resource: dict[int, list[int]] = {}
    for row in rows:
        resource = instance.limits[row].resource
        each = np.array([shape.demand[resource] for shape in instance.shapes], dtype=np.int64)
        left[row] = instance.limits[row].capacity - int(each[shapes][inside[row][of_class]].sum())
        of_resource.setdefault(resource, []).append(row)
    found = {}
    for number in classes:
        one = instance.job_classes[number]
        for resource, mine in of_resource.items():
            if any(instance.shapes[leaf.shape].demand[resource] for leaf in one.leaves):
                short = _short(instance, one, resource, {row: inside[row] for row in mine}, left)
                if short is not None:
                    found[number] = short
                    break
    return found


def _shapes(instance: Instance, assignment: Assignment) -> Ints:
    """Return the shape of each task of an assignment."""
    most = max((len(one.leaves) for one in instance.job_classes), default=0)
    table = np.zeros((len(instance.job_classes), most), dtype=np.int64)
    for number, one in enumerate(instance.job_classes):
        for leaf in one.leaves:
            table[number, leaf.leaf] = leaf.shape
    found: Ints = table[instance.job_class[assignment.job], assignment.leaf]
    return found


def _short(
    instance: Instance, one: JobClass, resource: int, inside: dict[int, Bools], left: dict[int, int]
) -> Short | None:
    """Return what has less left than the least that a job needs of it: limits of one queue on some models, or on all.

    Sets of models are those that tasks of each group may be on, and all of them together.
    """
    takes = [instance.shapes[leaf.shape].demand[resource] for leaf in one.leaves]
    counts = [_where(instance, leaf.shape, inside) for leaf in one.leaves]
    sets = sorted({places for places in counts if places}, key=sorted)
    everywhere = [frozenset(row for row in inside if _limit(instance, row).model == ALL)]
    for chosen in (*sets, frozenset[int]().union(*sets), *everywhere):
        of_leaf = [
            take if chosen in everywhere or (places and places <= chosen) else 0
            for take, places in zip(takes, counts, strict=True)
        ]
        more = least_of(one.root, of_leaf) - sum(left[row] for row in chosen)
        if chosen and more > 0:
            limit = _limit(instance, min(chosen))
            models = ", ".join(sorted(_limit(instance, row).model for row in chosen))
            cards = Fraction(more) * instance.resource_units[resource] / limit.scale
            return Short(limit.queue, models, cards, limit.kind)
    return None


def _where(instance: Instance, shape: int, inside: dict[int, Bools]) -> frozenset[int]:
    """Return the limits on models that a task of a shape counts in one of, wherever it is; none if it may in none."""
    profile = instance.shapes[shape].profile >= 0
    cards = [
        (one.slots >= 0) == profile
        and any(profile or instance.admits_card[shape, kind] for kind in {kind for kind, _, _ in one.cards})
        for one in instance.classes
    ]
    possible = instance.admits_node[shape] & np.array(cards, dtype=np.bool_)
    found = [row for row in inside if _limit(instance, row).model != ALL and (inside[row] & possible).any()]
    if not found or (possible & ~np.any([inside[row] for row in found], axis=0)).any():
        return frozenset()
    return frozenset(found)


def _limit(instance: Instance, row: int) -> QueueLimit:
    found = instance.limits[row].queue
    assert found is not None
    return found
