"""A gang that is placed region by region: where each of its tasks may go next, and which domains could hold more."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from placement.gang import Branch, Group, Leaf
from placement.heuristics.cuts import Cut, Cuts
from placement.heuristics.domain_order import Candidates, DomainOrder
from placement.heuristics.domains import Domains, Need, Region
from placement.heuristics.gangs import Gang, Places, Spot
from placement.heuristics.held import copy_held
from placement.heuristics.numbering import Numbering
from placement.heuristics.tallies import Sides, spreads
from placement.instance import JobClass

MOST_TRIES_OF_A_JOB = 512
"""Tries that fail in one job, after which each group has one more."""


class RegionGang(Gang):
    """The tasks of one job, placed within the present region.

    Parameters
    ----------
    job_class : JobClass
    places : Places
    domains : Domains
    order : DomainOrder
    """

    def __init__(self, job_class: JobClass, places: Places, domains: Domains, order: DomainOrder) -> None:
        super().__init__(job_class, places)
        self._domains = domains
        self._order = order
        self._region = domains.everywhere
        self._nodes: dict[tuple[int, int], list[int]] = {}
        self._numberings = dict(_numberings(job_class.root))
        self._spreads = spreads(self._numberings)
        self._cuts = Cuts(self._numberings.values())
        self._sides = [Sides.of(affinity, job_class) for affinity in job_class.affinity]
        self._tries = 0

    # --- what is placed ------------------------------------------------------------------------------------------

    def _one(self, leaf: Leaf, copy: int) -> bool:
        region = self._open(leaf, copy, self._region, 1, self._domains.levels - 1)
        for cut, (scope, part) in self._cuts.around(leaf.leaf, copy, self._placed[leaf.leaf][copy]):
            region = self._in_slice(cut, scope, part, region)
        spot = self._places.place(leaf.shape, region.mask)
        if spot is None:
            return False
        self._record(leaf.leaf, copy, spot)
        return True

    def _record(self, leaf: int, copy: int, spot: Spot) -> None:
        super()._record(leaf, copy, spot)
        self._cuts.add(leaf, copy, self._placed[leaf][copy] - 1, spot[0])
        self._nodes.setdefault((leaf, copy), []).append(spot[0])
        self._count(leaf, copy, spot, 1)

    def _forget(self, leaf: int, copy: int, spot: Spot) -> None:
        super()._forget(leaf, copy, spot)
        self._cuts.remove(leaf, copy, self._placed[leaf][copy])
        self._nodes[leaf, copy].pop()
        self._count(leaf, copy, spot, -1)

    def _count(self, leaf: int, copy: int, spot: Spot, tasks: int) -> None:
        for tally in (*self._spreads, *(tally for sides in self._sides for tally in sides.tallies)):
            tally.add(leaf, copy, int(self._domains.of_node[tally.level, spot[0]]), tasks)

    def _held(self) -> bool:
        """Return whether all ties hold, in groups that were started and grown since."""
        whole = self._numberings[""].copies
        return all(sides.held() for sides in self._sides) and all(
            copy_held(numbering, copy, self._domains.of_node, self._nodes)
            for numbering in self._numberings.values()
            if numbering.group.ties is not None
            for copy in range(_copies(numbering, whole))
        )

    # --- where more may go ----------------------------------------------------------------------------------------

    def _in(self, region: Region, attempt: Callable[[], bool]) -> bool:
        """Return whether an attempt within a region succeeds; otherwise take it back."""
        outside, self._region = self._region, region
        try:
            return self._all_or_nothing(attempt)
        finally:
            self._region = outside

    def _open(self, leaf: Leaf, copy: int, region: Region, tasks: int, level: int) -> Region:
        """Return what is open of a region to some tasks of a copy that are placed in one domain of a level."""
        for tally in self._spreads:
            if leaf.leaf in tally.copies and tally.level <= level:
                shut = tally.shut(leaf.leaf, copy, tasks, decided=tally.level <= region.level)
                region = self._domains.without(tally.level, shut, region)
        for sides in self._sides:
            if sides.affinity.level <= level and (shut := sides.shut(leaf.leaf, copy)):
                region = self._domains.without(sides.affinity.level, shut - {-1}, region, others=True)
        return region

    def _in_slice(self, cut: Cut, scope: int, part: int, region: Region) -> Region:
        """Return the part of a region that a task of a slice may use: the slice's domain, or the best for all of it."""
        nodes = cut.nodes.get((scope, part))
        if nodes:
            return self._domains.inside(cut.level, int(self._domains.of_node[cut.level, nodes[0]]), region)
        return next(self._holding(cut.level, cut.needed(part), region), self._domains.nowhere)

    def _holding(self, level: int, needs: list[Need], outside: Region) -> Iterator[Region]:
        """Yield the domains of a level that could hold some tasks."""
        wanted = 1
        if len(needs) == 1:  # room can be told more finely than in multiples of all tasks
            one = needs[0]
            size = one.slices[0][1] if one.slices else 1
            wanted, needs = one.tasks // size, [Need(one.shape, size, one.slices)]
        among = self._candidates(level, needs, outside, wanted)
        return self._tried(level, among, self._order.order(among, wanted).tolist(), outside)

    def _candidates(self, level: int, needs: list[Need], outside: Region, least: int = 1) -> Candidates:
        """Return the domains of a level that could hold some tasks at least so many times."""
        if needs:
            numbers, room = self._domains.room(level, needs[0], outside)
            room = room // needs[0].tasks
        else:
            numbers = self._domains.all(level, outside)
            room = np.full(len(numbers), least)
        for one in needs[1:]:
            some, tasks = self._domains.room(level, one, outside)
            numbers, left, right = np.intersect1d(numbers, some, assume_unique=True, return_indices=True)
            room = np.minimum(room[left], tasks[right] // one.tasks)
        numbers, room = numbers[room >= least], room[room >= least]
        return Candidates(numbers, room, self._domains.idle(level, numbers, outside))

    def _tried(self, level: int, among: Candidates, order: list[int], outside: Region) -> Iterator[Region]:
        for position in order:
            yield self._domains.inside(level, int(among.numbers[position]), outside)
            self._tries += 1
            if self._tries > MOST_TRIES_OF_A_JOB:
                return


def _numberings(group: Group) -> Iterator[tuple[str, Numbering]]:
    """Yield the numbering of each group of a job by its path."""
    yield group.path, Numbering(group)
    for child in group.children if isinstance(group, Branch) else ():
        yield from _numberings(child)


def _copies(numbering: Numbering, whole: dict[int, int]) -> int:
    """Return how many copies of a group a job has that has so many copies of each leaf."""
    leaf, copies = next(iter(numbering.copies.items()))
    return whole[leaf] // copies
