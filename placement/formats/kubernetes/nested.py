"""The groups of a gang, one within another, as groups of a job."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from placement.formats.kubernetes.parts import GangGroup
from placement.snapshot import TaskGroup, Topology


def leaves(groups: Sequence[GangGroup], above: str = "") -> Iterator[tuple[str, GangGroup]]:
    """Yield the groups that have pods, each with its path as `Addition.member` says it."""
    for group in groups:
        if group.groups:
            yield from leaves(group.groups, f"{above}{group.name}/")
        else:
            yield f"{above}{group.name}", group


def tree(
    groups: Sequence[GangGroup],
    made: Mapping[str, Sequence[TaskGroup]],
    started: Collection[str],
    judged: Callable[[Topology, int], Topology | None],
    above: str = "",
) -> Iterator[TaskGroup]:
    """Yield the groups of a job, one within another; one of which nothing is left is left out.

    Parameters
    ----------
    groups : sequence of GangGroup
    made : mapping of str to sequence of TaskGroup
        By path, what became of the groups that have pods.
    started : collection of str
        Paths of groups of which some pods run elsewhere: they count as there where only some groups are needed.
    judged : callable
        Returns a topology in the words of the snapshot, for so many tasks, or None where nothing is left of it.
    above : str
        Path of the group that they are in, with a slash.
    """
    for group in groups:
        path = f"{above}{group.name}"
        if not group.groups:
            yield from made.get(path, ())
            continue
        inner = tuple(tree(group.groups, made, started, judged, f"{path}/"))
        if inner:
            topology = None if group.topology is None else judged(group.topology, sum(map(_tasks, inner)))
            least = fewest(group.min_groups, [f"{path}/{one.name}" for one in group.groups], started, len(inner))
            yield TaskGroup(name=group.name, groups=inner, min_groups=least, topology=topology)


def fewest(wanted: int | None, paths: Sequence[str], started: Collection[str], there: int) -> int | None:
    """Return how many of the groups that are there are needed beside those that have started; None for all."""
    if wanted is None:
        return None
    done = sum(any(one == path or one.startswith(f"{path}/") for one in started) for path in paths)
    least = max(1, wanted - done)
    return None if least >= there else least


def _tasks(group: TaskGroup) -> int:
    return group.count * (1 if group.task is not None else sum(map(_tasks, group.groups)))
