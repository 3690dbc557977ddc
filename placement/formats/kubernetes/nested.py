"""The groups of a gang, one within another, as groups of a job."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from placement.formats.kubernetes.parts import Gang, GangGroup
from placement.snapshot import TaskGroup, Topology

WHOLE = "gang"
"""Name of the group that holds all others, where something is asked of the gang as a whole."""


def leaves(groups: Sequence[GangGroup], above: str = "") -> Iterator[tuple[str, GangGroup]]:
    """Yield the groups that have pods, each with its path as `Addition.member` says it."""
    for group in groups:
        if group.groups:
            yield from leaves(group.groups, f"{above}{group.name}/")
        else:
            yield f"{above}{group.name}", group


def task_groups(gang: Gang, made: Callable[[str, GangGroup], TaskGroup | None]) -> tuple[TaskGroup, ...]:
    """Return the groups of a job.

    Parameters
    ----------
    gang : Gang
    made : callable
        Returns the group of tasks at a path, or None where it has no pods; called in the order of `leaves`.

    Returns
    -------
    tuple of TaskGroup
        Under one called `WHOLE` where the gang has a topology or a `min_groups`. A group of which nothing is left is
        left out.
    """
    found = tuple(_built(gang.groups, "", made))
    least = _least(gang.min_groups, found)
    if not found or (gang.topology in (None, Topology()) and least is None):
        return found
    return (TaskGroup(name=WHOLE, groups=found, min_groups=least, topology=gang.topology),)


def _built(
    groups: Sequence[GangGroup], above: str, made: Callable[[str, GangGroup], TaskGroup | None]
) -> Iterator[TaskGroup]:
    for group in groups:
        if not group.groups:
            leaf = made(f"{above}{group.name}", group)
            if leaf is not None:
                yield leaf
            continue
        inner = tuple(_built(group.groups, f"{above}{group.name}/", made))
        if inner:
            least = _least(group.min_groups, inner)
            yield TaskGroup(name=group.name, groups=inner, min_groups=least, topology=group.topology)


def _least(wanted: int | None, groups: Sequence[TaskGroup]) -> int | None:
    return None if wanted is None or wanted >= len(groups) else wanted
