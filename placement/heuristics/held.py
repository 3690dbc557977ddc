"""Whether the placed tasks of a copy of a group hold what the group asks for, judged by where they lie alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from placement.gang import Ties, slice_ends
from placement.heuristics.numbering import Numbering
from placement.instance import Ints

Nodes = Mapping[tuple[int, int], Sequence[int]]
"""Nodes of the placed tasks by number, for a leaf and a copy of it."""


def copy_held(numbering: Numbering, copy: int, domains: Ints, nodes: Nodes) -> bool:
    """Return whether the tasks of one copy of a group hold what the group asks for.

    Parameters
    ----------
    numbering : Numbering
        Of the group.
    copy : int
    domains : int array (levels, N)
    nodes : mapping
    """
    ties = numbering.group.ties
    if ties is None:
        return True
    index, node = _tasks(numbering, copy, nodes)
    if not len(node):
        return True
    if ties.required > 0 and not _one(domains[ties.required, node]):
        return False
    for level, sizes in ties.slices:
        part = np.searchsorted(slice_ends(sizes, numbering.size), index, side="right")
        if not _one_each(part, domains[level, node]):
            return False
    return _balanced(ties, domains, node) and all(_spread(one, domains, node) for one in ties.spread)


def _tasks(numbering: Numbering, copy: int, nodes: Nodes) -> tuple[Ints, Ints]:
    """Return the number within the copy and the node of each placed task."""
    found = [
        (numbering.index(leaf, inside, number), node)
        for leaf, inside in numbering.inside(copy)
        for number, node in enumerate(nodes.get((leaf, inside), ()))
    ]
    columns = np.array(found, dtype=np.int64).reshape(-1, 2)
    return columns[:, 0], columns[:, 1]


def _one(domains: Ints) -> bool:
    return bool(domains[0] >= 0 and (domains == domains[0]).all())


def _one_each(part: Ints, domains: Ints) -> bool:
    """Return whether all that is in one part lies in one domain."""
    order = np.argsort(part, kind="stable")
    part, domains = part[order], domains[order]
    return bool((domains >= 0).all() and ((domains[1:] == domains[:-1]) | (part[1:] != part[:-1])).all())


def _balanced(ties: Ties, domains: Ints, node: Ints) -> bool:
    if ties.balanced < 0:
        return True
    known, count = np.unique(domains[ties.balanced, node], return_counts=True)
    return bool(known[0] >= 0 and count.max() - count.min() <= ties.balance_unit)


def _spread(one: tuple[int, int, int], domains: Ints, node: Ints) -> bool:
    level, most, fewest = one
    known, count = np.unique(domains[level, node], return_counts=True)
    return bool(known[0] >= 0 and (not most or count.max() <= most) and len(known) >= fewest)
