"""What a copy of a group needs of the domain that holds it, at least: a cheap test before it is tried."""

from __future__ import annotations

from collections.abc import Iterable

from placement.gang import Group, Leaf
from placement.heuristics.domains import Need


def tasks_to_start(leaf: Leaf) -> int:
    """Return the tasks without which a copy of a leaf cannot run."""
    spread = leaf.ties.spread if leaf.ties is not None else ()
    return max([leaf.minimum, *(fewest for _, _, fewest in spread)])


def need(leaf: Leaf, tasks: int, depth: int = 0) -> Need:
    """Return the need of some tasks of a leaf, with its slices from some depth on as far as they come out even."""
    cuts: list[tuple[int, int]] = []
    for level, sizes in leaf.ties.slices[depth:] if leaf.ties is not None else ():
        whole = cuts[-1][1] if cuts else tasks
        if len(sizes) > 1 or whole % sizes[0]:
            break
        cuts.append((level, sizes[0]))
    return Need(leaf.shape, tasks, tuple(cuts))


def needs_of(group: Group) -> list[Need]:
    """Return what a copy of a group needs, a need for each shape; nothing where it may run in several ways."""
    if isinstance(group, Leaf):
        return [need(group, tasks_to_start(group))]
    return [Need(one.shape, one.tasks * group.minimum, one.slices) for one in needs_of_member(group)]


def needs_of_member(group: Group) -> list[Need]:
    """Return what one member of a group needs."""
    if isinstance(group, Leaf):
        return [need(group, 1, len(group.ties.slices) if group.ties is not None else 0)]
    return needs_of_all(group.children) if group.min_groups == len(group.children) else []


def needs_of_all(groups: Iterable[Group]) -> list[Need]:
    """Return what a copy of each of some groups needs together."""
    by_shape: dict[int, Need] = {}
    for group in groups:
        for one in needs_of(group):
            other = by_shape.get(one.shape)
            by_shape[one.shape] = one if other is None else Need(one.shape, one.tasks + other.tasks)
    return list(by_shape.values())
