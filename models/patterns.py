"""Node patterns: every set of tasks that one node of a class can take at once, card by card.

A pattern is a number of tasks of each shape. It is feasible if the node's resources suffice and the tasks can be
given cards, shares and device memory; all ways to do that are followed, so feasible means feasible, and what a
pattern loses to fragmentation is the least over the ways; see `placement.models.arranger`.
"""

from __future__ import annotations

from dataclasses import dataclass

from placement.instance import Instance
from placement.models.arranger import Arranger as Arranger
from placement.models.arranger import Counts as Counts
from placement.models.arranger import TooMany as TooMany
from placement.models.zoned_arranger import ZonedArranger


@dataclass(frozen=True, slots=True)
class ClassPatterns:
    """Patterns of one node class.

    Attributes
    ----------
    counts : tuple of Counts
        The empty pattern first.
    lost : tuple of int
        Least fragmentation of a node with that pattern, as idle units times wanted tasks; see `evaluate.fragmentation`.
        Zeros if it was not asked for.
    """

    counts: tuple[Counts, ...]
    lost: tuple[int, ...]


def enumerate_patterns(
    instance: Instance, *, maximal: bool, fragmentation: bool, limit: int = 20_000, work: int = 100_000
) -> tuple[ClassPatterns, ...]:
    """Return the patterns of every node class.

    Parameters
    ----------
    instance : Instance
    maximal : bool
        Only those to which no wanted task can be added.
    fragmentation : bool
        Whether to work out what each pattern loses.
    limit : int
        Most patterns over all classes.
    work : int
        Most arrangements looked at.

    Raises
    ------
    TooMany
        If a limit is exceeded.
    """
    found = []
    arrangers = [arranger(instance, number, work) for number in range(len(instance.classes))]
    if sum(one.at_least(limit + 1) for one in arrangers) > limit:
        raise TooMany(f"more than {limit} patterns")
    for one in arrangers:
        one.work = work
        ways = one.all_patterns(limit)
        limit -= len(ways)
        work = one.work
        counts = [c for c in ways if not maximal or one.is_maximal(c, ways)]
        lost = [min(one.lost(state, c) for state in ways[c]) if fragmentation else 0 for c in counts]
        found.append(ClassPatterns(tuple(counts), tuple(lost)))
    return tuple(found)


def arranger(instance: Instance, number: int, work: int = 100_000) -> Arranger:
    """Return what arranges tasks on a node of a class.

    Parameters
    ----------
    instance : Instance
    number : int
        Of the node class.
    work : int
        Most arrangements looked at before `TooMany` is raised.
    """
    return (ZonedArranger if instance.bound[:, number].any() else Arranger)(instance, number, work)
