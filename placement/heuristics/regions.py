"""A gang that is placed region by region: where each of its tasks may go next, and which domains could hold more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np

from placement.gang import Branch, Group, Leaf
from placement.heuristics.cuts import Cut, Cuts
from placement.heuristics.domain_order import Asked, Candidates, DomainOrder
from placement.heuristics.domains import Domains, Need, Region
from placement.heuristics.gangs import Gang, Places, Spot
from placement.heuristics.held import copy_held
from placement.heuristics.numbering import Numbering
from placement.heuristics.tallies import Sides, Tally, spreads
from placement.instance import JobClass

Choice = TypeVar("Choice")
Counted = TypeVar("Counted")

MOST_TRIES_OF_A_JOB = 512
"""Choices that may fail in one job, and as many more as it has copies of groups; then only the first of each is tried.

So the search ends in time however deep choices lie within choices.
"""


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
        self._cuts = Cuts(self._numberings.values())
        self._sides = [Sides.of(affinity, job_class) for affinity in job_class.affinity]
        # by leaf, since each placed task asks: what counts it, what spreads it, and what it must lie apart from
        self._spreads = _by_leaf((tally, tally) for tally in spreads(self._numberings))
        self._apart = _by_leaf((t, one) for one in self._sides if not one.affinity.together for t in one.tallies)
        self._sided = _by_leaf((tally, tally) for one in self._sides for tally in one.tallies)
        self._tries = 0
        self._most_tries = MOST_TRIES_OF_A_JOB + sum(leaf.copies for leaf in job_class.leaves)

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
        for tally in (*self._spreads.get(leaf, ()), *self._sided.get(leaf, ())):
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

    # --- choices ---------------------------------------------------------------------------------------------------

    def _any(self, choices: Iterable[Choice], attempt: Callable[[Choice], bool]) -> bool:
        """Return whether an attempt succeeds with one of some choices, the first of which is tried in any case."""
        for choice in choices:
            if attempt(choice):
                return True
            if self._spent():
                return False
        return False

    def _spent(self) -> bool:
        """Count a choice that failed; return whether there have been so many that no other one is to be tried."""
        self._tries += 1
        return self._tries > self._most_tries

    def _any_in(self, regions: Iterable[Region], attempt: Callable[[], bool]) -> bool:
        """Return whether an attempt succeeds within one of some regions."""
        return self._any(regions, lambda region: self._in(region, attempt))

    def _in(self, region: Region, attempt: Callable[[], bool]) -> bool:
        """Return whether an attempt within a region succeeds; otherwise take it back."""
        outside, self._region = self._region, region
        try:
            return self._all_or_nothing(attempt)
        finally:
            self._region = outside

    # --- where more may go ----------------------------------------------------------------------------------------

    def _open(self, leaf: Leaf, copy: int, region: Region, tasks: int, level: int) -> Region:
        """Return what is open of a region to some tasks of a copy that are placed in one domain of a level."""
        for tally in self._spreads.get(leaf.leaf, ()):
            if tally.level <= level:
                shut = tally.shut(leaf.leaf, copy, tasks, decided=tally.level <= region.level)
                region = self._domains.without(tally.level, shut, region)
        apart: dict[int, set[int]] = {}
        for sides in self._apart.get(leaf.leaf, ()):
            if sides.affinity.level <= level:
                apart.setdefault(sides.affinity.level, {-1}).update(sides.shut(leaf.leaf, copy))
        for wide, shut in apart.items():
            if len(shut) > 1:
                region = self._domains.without(wide, shut, region, others=True)
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
        spare = room
        if not self._order.descends:
            spare = self._domains.idle(level, numbers, outside)
        elif len(needs) == 1 and needs[0].tasks > 1:
            known, tasks = self._domains.room(level, Need(needs[0].shape, 1), outside)
            spare = tasks[np.searchsorted(known, numbers)]
        return Candidates(numbers, room, spare, Asked(self._domains, level, needs, outside))

    def _tried(self, level: int, among: Candidates, order: list[int], outside: Region) -> Iterator[Region]:
        for position in order:
            yield self._domains.inside(level, int(among.numbers[position]), outside)


def _by_leaf(pairs: Iterable[tuple[Tally, Counted]]) -> dict[int, list[Counted]]:
    """Return what belongs to each tally by the leaves that count there."""
    found: dict[int, list[Counted]] = {}
    for tally, what in pairs:
        for leaf in tally.copies:
            found.setdefault(leaf, []).append(what)
    return found


def _numberings(group: Group) -> Iterator[tuple[str, Numbering]]:
    """Yield the numbering of each group of a job by its path."""
    yield group.path, Numbering(group)
    for child in group.children if isinstance(group, Branch) else ():
        yield from _numberings(child)


def _copies(numbering: Numbering, whole: dict[int, int]) -> int:
    """Return how many copies of a group a job has that has so many copies of each leaf."""
    leaf, copies = next(iter(numbering.copies.items()))
    return whole[leaf] // copies
