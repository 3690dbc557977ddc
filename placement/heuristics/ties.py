"""Gangs whose tasks are tied together: which domains they may use, and a bounded search for domains that hold them.

A group that says where its tasks may lie is placed in a region, the rows of a domain, and each group in it within that
region. Domains that could hold a copy are tried one after the other, and what was placed in one is taken back before
the next. What regions leave open, such as the most tasks in a domain, shuts domains out task by task. What the search
does not look at, such as slices of different levels that lie across one another, is judged when a copy is placed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from placement.gang import Branch, Group, Leaf, Ties
from placement.heuristics.cuts import Cut
from placement.heuristics.domain_order import MOST_TRIES, DomainOrder
from placement.heuristics.domains import Domains, Need, Region
from placement.heuristics.gangs import Places
from placement.heuristics.held import copy_held, unit
from placement.heuristics.needs import need, needs_of, needs_of_all, needs_of_member, tasks_to_start
from placement.heuristics.numbering import bounds
from placement.heuristics.regions import RegionGang
from placement.heuristics.tallies import Sides
from placement.instance import JobClass


class TiedGang(RegionGang):
    """The tasks of one job that are tied together."""

    def __init__(self, job_class: JobClass, places: Places, domains: Domains, order: DomainOrder) -> None:
        super().__init__(job_class, places, domains, order)
        self._regions: dict[tuple[str, int], Region] = {}
        self._pins: dict[tuple[int, int], dict[str, Region]] = {}

    def start(self) -> bool:
        """Place what the job needs to run so that all ties hold, or nothing."""
        return self._all_or_nothing(lambda: super(TiedGang, self).start() and self._held())

    def grow(self) -> None:
        """Place more tasks of a job that runs, unless that breaks a tie."""

        def more() -> bool:
            super(TiedGang, self).grow()
            return self._held()

        self._all_or_nothing(more)

    # --- a copy of a group ---------------------------------------------------------------------------------------

    def _start(self, group: Group, copy: int) -> bool:
        numbering = self._numberings[group.path]

        def attempt() -> bool:
            return self._inside(group, copy) and copy_held(numbering, copy, self._domains.of_node, self._nodes)

        for region in self._choices(group, self._pinned(group, copy)):
            if self._in(region, attempt):
                self._regions[group.path, copy] = region
                return True
        return False

    def _inside(self, group: Group, copy: int) -> bool:
        """Place what a copy of a group needs within the present region."""
        ties = group.ties or Ties()
        if ties.balanced >= 0:
            # a balanced group does not grow, so it takes all that it can get at once
            least = tasks_to_start(group) if isinstance(group, Leaf) else group.minimum
            return any(self._balanced(group, ties, copy, members) for members in dict.fromkeys((group.count, least)))
        if isinstance(group, Leaf):
            return self._fill(group, copy, tasks_to_start(group))
        return super()._start(group, copy)

    def _choices(self, group: Group, outside: Region) -> Iterator[Region]:
        """Yield the regions to try for a copy of a group, the best one first."""
        ties = group.ties or Ties()
        required = max(ties.required, 0)
        for level in range(max(ties.preferred, required), required - 1, -1):
            if level:
                yield from self._holding(level, needs_of(group), outside)
            else:
                yield outside

    # --- slices --------------------------------------------------------------------------------------------------

    def _fill(self, leaf: Leaf, copy: int, tasks: int) -> bool:
        """Place the next tasks of a copy within the present region, or none."""
        start = self._placed[leaf.leaf][copy]
        return self._all_or_nothing(partial(self._span, leaf, copy, 0, (start, start + tasks)))

    def _span(self, leaf: Leaf, copy: int, depth: int, span: tuple[int, int]) -> bool:
        """Place the tasks of some numbers, those of each slice from some depth on in one domain."""
        slices = _slices(leaf)
        if depth == len(slices):
            if self._order.descends:
                level = self._region.level + 1 if self._region.level else self._domains.levels - 1
                return self._deal(leaf, copy, level, span[1] - span[0])
            return all(self._one(leaf, copy) for _ in range(*span))
        sizes = slices[depth][1]
        ends = bounds(sizes, leaf.count).tolist()
        for first, last in zip([0, *ends], ends, strict=False):
            part = max(span[0], first), min(span[1], last)
            if part[0] < part[1]:
                alike = max(1, (span[1] - part[0]) // (part[1] - part[0])) if len(sizes) == 1 else 1
                regions = self._for_slice(leaf, copy, depth, (first, *part), alike)
                if not any(self._in(region, partial(self._span, leaf, copy, depth + 1, part)) for region in regions):
                    return False
        return True

    def _deal(self, leaf: Leaf, copy: int, level: int, tasks: int) -> bool:
        """Place tasks in the domains of a level in the order of the rule, as many in each as there is room for."""
        if level == self._domains.levels:
            return all(self._one(leaf, copy) for _ in range(tasks))
        first = not self._region.level
        while tasks:
            outside = self._open(leaf, copy, self._region, 1, level)
            among = self._candidates(level, [Need(leaf.shape, 1)], outside)
            if not len(among.numbers):
                return False
            best = int(self._order.deal(among, tasks, first=first)[0])
            first, part = False, min(tasks, int(among.room[best]))
            region = self._domains.inside(level, int(among.numbers[best]), outside)
            if not self._in(region, partial(self._deal, leaf, copy, level + 1, part)):
                return False
            tasks -= part
        return True

    def _for_slice(
        self, leaf: Leaf, copy: int, depth: int, numbers: tuple[int, int, int], alike: int
    ) -> Iterator[Region]:
        """Yield the regions to try for part of a slice of which the numbers are given: its first, and the part's.

        So many slices `alike` are still to be placed, this one included.
        """
        level = _slices(leaf)[depth][0]
        first, start, end = numbers
        if start > first:
            domain = int(self._domains.of_node[level, self._nodes[leaf.leaf, copy][first]])
            return iter([self._domains.inside(level, domain, self._region)])
        outside = self._open(leaf, copy, self._region, end - start, level)
        among = self._candidates(level, [need(leaf, end - start, depth + 1)], outside)
        order = self._order.order(among, alike).tolist()
        if start:  # a domain that is in use is filled before another one is
            used = int(self._domains.of_node[level, self._nodes[leaf.leaf, copy][start - 1]])
            place = int(np.searchsorted(among.numbers, used))
            if place < len(among.numbers) and among.numbers[place] == used:
                order = [place, *(position for position in order if position != place)]
        return self._tried(level, among, order, outside)

    def _in_slices(self, cuts: Sequence[Cut], group: Branch, member: int) -> bool:
        """Start a member in a domain for each slice that begins with it."""
        if not cuts:
            return super()._start_member(group, member)
        cut, *rest = cuts
        where, begun = cut.begun(member, self._numberings[group.path].size // group.count)
        if begun:  # and each of its tasks will be kept in its domain
            return self._in_slices(rest, group, member)
        regions = self._holding(cut.level, cut.needed(where[1]), self._region)
        return any(self._in(region, partial(self._in_slices, rest, group, member)) for region in regions)

    # --- balance -------------------------------------------------------------------------------------------------

    def _balanced(self, group: Group, ties: Ties, copy: int, members: int) -> bool:
        """Place members of a copy so that its domains have equal numbers of them, as nearly as may be."""
        size = unit(ties) if isinstance(group, Leaf) else 1
        units = -(-members // size)
        needs = [need(group, size)] if isinstance(group, Leaf) else needs_of_member(group)
        among = self._candidates(ties.balanced, needs, self._region)
        order = np.lexsort((among.numbers, -among.room))
        room, numbers = among.room[order].tolist(), among.numbers[order].tolist()
        fewest = max([1, *(few for level, _, few in ties.spread if level == ties.balanced)])
        tries = 0
        for domains in range(fewest, min(units, len(numbers)) + 1):
            share = [units // domains + (number < units % domains) for number in range(domains)]
            if needs and any(wanted > has for wanted, has in zip(share, room, strict=False)):
                continue
            ends = [min(members, end * size) for end in np.cumsum(share).tolist()]
            tries += 1
            if self._all_or_nothing(partial(self._shares, group, copy, ties.balanced, numbers, ends)):
                return True
            if tries == MOST_TRIES:
                break
        return False

    def _shares(self, group: Group, copy: int, level: int, numbers: Sequence[int], ends: Sequence[int]) -> bool:
        """Place members up to each of some numbers in a domain of its own."""
        for domain, start, end in zip(numbers, [0, *ends], ends, strict=False):
            region = self._domains.inside(level, domain, self._region)
            if not self._in(region, partial(self._members, group, copy, start, end)):
                return False
        return True

    def _members(self, group: Group, copy: int, start: int, end: int) -> bool:
        if isinstance(group, Leaf):
            return self._fill(group, copy, end - start)
        before = copy * group.count
        return all(self._start_member(group, member) for member in range(before + start, before + end))

    # --- affinity ------------------------------------------------------------------------------------------------

    def _start_member(self, group: Branch, member: int) -> bool:
        here = [number for number, sides in enumerate(self._sides) if sides.parent is group]
        return self._pin(here, group, member)

    def _pin(self, affinities: Sequence[int], group: Branch, member: int) -> bool:
        """Start a member with its groups kept in domains that hold both sides of some affinities."""
        if not affinities:
            cuts = self._cuts.whole_members(group.path, self._numberings[group.path].size // group.count)
            return self._in_slices(cuts, group, member)
        number, *rest = affinities
        for pins in self._pin_choices(self._sides[number], member):
            self._pins[number, member] = pins
            if self._all_or_nothing(partial(self._pin, rest, group, member)):
                return True
        self._pins.pop((number, member), None)
        return False

    def _pin_choices(self, sides: Sides, member: int) -> Iterator[dict[str, Region]]:
        a, b = sides.groups
        outside = self._meet(self._region, (a.path, b.path) if sides.affinity.together else (a.path,), member)
        if sides.affinity.together:
            enough: list[tuple[Group, ...]] = [sides.groups]
            if sides.parent.min_groups < len(sides.parent.children):
                enough += [(a,), (b,)]  # one of both may be all that the member needs
            for groups in enough:
                for region in self._holding(sides.affinity.level, needs_of_all(groups), outside):
                    yield {a.path: region, b.path: region}
            return
        # the rule alone may spread one group over all domains and leave none to the other
        yield {}
        for region in self._holding(sides.affinity.level, needs_of(a), outside):
            yield {a.path: region}

    def _meet(self, region: Region, paths: Sequence[str], member: int) -> Region:
        """Return what lies within a region and within all that some groups of a member are kept in."""
        for number in range(len(self._sides)):
            pins = self._pins.get((number, member), {})
            for path in paths:
                region = region.meet(pins[path]) if path in pins else region
        return region

    def _pinned(self, group: Group, copy: int) -> Region:
        """Return what of the present region a copy of a group is kept in."""
        region = self._region
        for number, sides in enumerate(self._sides):
            for side, tally in zip(sides.groups, sides.tallies, strict=True):
                if side is group:
                    leaf = next(iter(tally.copies))
                    member = copy * self._numberings[group.path].copies[leaf] // tally.copies[leaf]
                    pins = self._pins.get((number, member), {})
                    region = region.meet(pins[group.path]) if group.path in pins else region
        return region

    # --- growing -------------------------------------------------------------------------------------------------

    def _grow(self, group: Group, copy: int) -> None:
        ties = group.ties or Ties()
        if ties.balanced >= 0:
            return
        outside, self._region = self._region, self._regions[group.path, copy]
        if isinstance(group, Leaf) and ties.slices:
            self._grow_slices(group, copy)
        else:
            super()._grow(group, copy)
        self._region = outside

    def _grow_slices(self, leaf: Leaf, copy: int) -> None:
        """Place whole slices as long as there is room, and what fits of one that is begun."""
        ends = bounds(_slices(leaf)[0][1], leaf.count).tolist()
        for first, last in zip([0, *ends], ends, strict=False):
            placed = self._placed[leaf.leaf][copy]
            if placed < last and not self._fill(leaf, copy, last - placed):
                while placed > first and self._fill(leaf, copy, 1):
                    pass
                return


def _slices(leaf: Leaf) -> tuple[tuple[int, tuple[int, ...]], ...]:
    return leaf.ties.slices if leaf.ties is not None else ()
