"""Other orders in which the groups of a gang may be placed, for where that of the file leaves no room for the last.

Groups of small tasks that come first may lie where alone the large ones of a later group fit, or those that are bound
to some nodes. So groups with the fewest nodes are tried first (least flexible first), and then those with the largest
tasks (first fit decreasing; Johnson, 1973).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from placement.gang import Branch, Group, Leaf, leaves
from placement.instance import Instance, JobClass

Key = Callable[[Leaf], tuple[int, ...]]


def other_orders(instance: Instance, job_class: JobClass) -> tuple[JobClass, ...]:
    """Return a job class with its groups in other orders, none of which is that of the file; two at most.

    Groups change places only where all of them are needed, for else the first ones are those that run. Leaves keep
    their indices. Of a class with affinities there are none.

    Parameters
    ----------
    instance : Instance
    job_class : JobClass
    """
    if len(job_class.leaves) < 2 or job_class.affinity:
        return ()

    def nodes(leaf: Leaf) -> int:
        return _nodes(instance, leaf.shape)

    def units(leaf: Leaf) -> int:
        return instance.shapes[leaf.shape].of_cards

    keys: tuple[Key, ...] = (lambda leaf: (nodes(leaf), -units(leaf)), lambda leaf: (-units(leaf), nodes(leaf)))
    found: list[Branch] = []
    for key in keys:
        root = _ordered(job_class.root, key)
        if root not in (job_class.root, *found):
            found.append(root)
    return tuple(replace(job_class, root=root) for root in found)


def _nodes(instance: Instance, shape: int) -> int:
    """Return how many nodes have the cards that a task may use, whoever uses them now."""
    found = 0
    for number, one in enumerate(instance.classes):
        if instance.admits_node[shape, number]:
            cards = sum(1 for kind, _, _ in one.cards if instance.admits_card[shape, kind])
            found += one.size if one.slots >= 0 or cards >= instance.shapes[shape].gpus else 0
    return found


def _ordered(branch: Branch, key: Key) -> Branch:
    """Return a branch with the groups in it, and below, by the least key of a leaf of each."""
    children: list[Group] = [child if isinstance(child, Leaf) else _ordered(child, key) for child in branch.children]
    if branch.min_groups == len(children):
        children.sort(key=lambda child: min(key(leaf) for leaf in leaves(child)))
    return replace(branch, children=tuple(children))
