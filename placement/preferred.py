"""Preferred levels: by how many levels the copies of groups lie wider than they would like to.

A copy of a group with a preferred level costs the number of levels from the narrowest, no narrower than that, of which
one domain holds all its placed tasks, to the preferred one; a copy without placed tasks costs nothing. The sum over all
copies is the objective ``locality``. `placement.check.groups.preferred` measures the same from the snapshot alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from placement.gang import Branch, Group, leaves
from placement.instance import Assignment, Instance, Ints


@dataclass(frozen=True, slots=True)
class Wish:
    """A group with a preferred level.

    Attributes
    ----------
    job_class : int
    group : Leaf or Branch
    level : int
        The preferred one.
    copies : int
        Copies of the group in a job.
    """

    job_class: int
    group: Group
    level: int
    copies: int


def wishes(instance: Instance) -> list[Wish]:
    """Return the groups of all job classes that prefer a level narrower than the cluster."""
    return [
        Wish(number, group, group.ties.preferred, copies)
        for number, job_class in enumerate(instance.job_classes)
        if job_class.tied
        for group, copies in _groups(job_class.root, 1)
        if group.ties is not None and group.ties.preferred > 0
    ]


def _groups(group: Group, copies: int) -> Iterator[tuple[Group, int]]:
    yield group, copies
    if isinstance(group, Branch):
        for child in group.children:
            yield from _groups(child, copies * group.count)


def locality(instance: Instance, assignment: Assignment) -> int:
    """Return the sum over all copies of all groups of the levels by which they lie wider than they prefer."""
    return sum(int(cost.sum()) for _, _, cost in costs(instance, assignment))


def costs(instance: Instance, assignment: Assignment) -> Iterator[tuple[Wish, Ints, Ints]]:
    """Yield for each wish its copies with placed tasks, numbered over all jobs, and what each of them costs."""
    found = wishes(instance)
    job_class = instance.job_class[assignment.job] if found else assignment.job
    for wish in found:
        copy = np.full(len(assignment), -1, dtype=np.int64)
        mine = job_class == wish.job_class
        for leaf in leaves(wish.group):
            rows = np.flatnonzero(mine & (assignment.leaf == leaf.leaf))
            inside = leaf.count * leaf.copies // wish.copies
            copy[rows] = assignment.job[rows] * wish.copies + assignment.task[rows] // inside
        rows = np.flatnonzero(copy >= 0)
        number, place = np.unique(copy[rows], return_inverse=True)
        cost = np.full(len(number), wish.level, dtype=np.int64)
        for level in range(1, wish.level + 1):
            domain = instance.domains[level, assignment.node[rows]]
            low, high = np.full(len(number), np.iinfo(np.int64).max), np.full(len(number), -1, dtype=np.int64)
            np.minimum.at(low, place, domain)
            np.maximum.at(high, place, domain)
            cost[(low == high) & (low >= 0)] = wish.level - level
        yield wish, number, cost
