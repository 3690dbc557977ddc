"""What card units say of whether a job fits, without looking at nodes."""

from __future__ import annotations

import math
from itertools import product

from placement.gang import is_flat
from placement.instance import JobClass
from placement.scheduling.work import Work

MOST_WAYS = 64
"""Numbers of tasks of each of several groups that are told apart."""


def members(one: JobClass) -> range:
    """Return with how many of its tasks, whichever, a job runs; nothing where that is one number or hard to say."""
    if len(one.leaves) != 1 or one.leaves[0].copies != 1 or one.affinity:
        return range(0)
    leaf = one.leaves[0]
    loose = leaf.ties is None or not (leaf.ties.slices or leaf.ties.spread or leaf.ties.balanced >= 0)
    return range(leaf.minimum, leaf.count + 1) if loose and leaf.minimum < leaf.count else range(0)


def fewer(one: JobClass) -> list[tuple[int, ...]]:
    """Return with how many tasks of each leaf a gang of several groups runs, whichever, fewest first.

    Nothing where that is one number of each, or it is hard to say. Where there are many ways, of each group as few as
    it needs or all, or some way between.
    """
    loose = is_flat(one.root) and not one.tied and len(one.leaves) > 1
    if not loose or all(leaf.minimum == leaf.count for leaf in one.leaves):
        return []
    each: list[list[int]] = [list(range(leaf.minimum, leaf.count + 1)) for leaf in one.leaves]
    while math.prod(map(len, each)) > MOST_WAYS:
        longest = max(each, key=len)
        if len(longest) < 3:
            return []
        longest[:] = [*longest[:-1:2], longest[-1]]
    return sorted(product(*each), key=lambda counts: (sum(counts), counts))


def counts_say_it(work: Work) -> bool:
    """Return whether a job surely does not fit where fewer card units are free than it needs.

    That is not so where cards take MIG instances or count as more than they are, or running work overfills some.
    """
    instance = work.instance
    if instance.slots is not None or instance.crowded:
        return False
    used: dict[tuple[int, int], int] = {}
    for job, ongoing in work.ongoing.items():
        leaves = instance.job_classes[int(instance.job_class[job])].leaves
        for leaf, _, (node, cards) in ongoing.tasks:
            for card in cards:
                if card < instance.widest:
                    used[node, card] = used.get((node, card), 0) + instance.shapes[leaves[leaf].shape].units
    return all(units <= instance.card_units for units in used.values())
