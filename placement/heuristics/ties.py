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

from placement.gang import Branch, Group, Leaf, Ties, slice_ends
from placement.heuristics.balance import ends, even_splits
from placement.heuristics.cuts import Cut
from placement.heuristics.domain_order import DomainOrder
from placement.heuristics.domains import Domains, Need, Region
from placement.heuristics.gangs import Places
from placement.heuristics.held import copy_held
from placement.heuristics.needs import need, needs_of, needs_of_all, needs_of_member, tasks_to_start
from placement.heuristics.numbering import parts
from placement.heuristics.regions import RegionGang
from placement.instance import JobClass


class TiedGang(RegionGang):
    """The tasks of one job that are tied together."""

    def __init__(self, job_class: JobClass, places: Places, domains: Domains, order: DomainOrder) -> None:
        super().__init__(job_class, places, domains, order)
        self._tied = job_class.tied
        self._homes: dict[tuple[str, int], tuple[int, int]] = {}
        """Level of the domain in which a copy of a group was started, and a row of the domain."""
        self._ends: dict[tuple[int, int], list[int]] = {}
        self._pins: dict[tuple[int, int], dict[str, Region]] = {}
        """Regions in which groups are kept, for an affinity and a member of the group it is judged in."""
        self._judged: dict[str, list[int]] = {}
        """Affinities that are judged for each member of a group."""
        self._named: dict[str, dict[int, int]] = {}
        """Affinities that name a group, and how many copies of it a member has that each is judged for."""
        for number, sides in enumerate(self._sides):
            self._judged.setdefault(sides.parent.path, []).append(number)
            for group, tally in zip(sides.groups, sides.tallies, strict=True):
                leaf, copies = next(iter(tally.copies.items()))
                one = self._numberings[group.path].copies[leaf]
                self._named.setdefault(group.path, {})[number] = copies // one

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
        def attempt() -> bool:
            return self._inside(group, copy) and self._copy_held(group, copy)

        def at(choice: tuple[int, Region]) -> bool:
            level, region = choice
            if not self._in(region, attempt):
                return False
            self._homes[group.path, copy] = level, int(region.rows[0]) if level else -1
            return True

        outside = self._pinned(group, copy, self._region)
        shares = self._shares_of_rule(group, copy, outside)
        return shares or self._any(self._choices(group, outside), at)

    def _shares_of_rule(self, group: Group, copy: int, outside: Region) -> bool:
        """Place what a copy of a leaf needs in the domains that the rule names, if it names some."""
        if not isinstance(group, Leaf):
            return False
        shares = self._order.shares(group, tasks_to_start(group), self._domains, outside)
        if shares is None:
            return False
        level, parts_of = shares

        def attempt() -> bool:
            inside = (
                self._in(self._domains.inside(level, domain, outside), partial(self._fill, group, copy, tasks))
                for domain, tasks in parts_of
            )
            return all(inside) and self._copy_held(group, copy)

        if not self._in(outside, attempt):
            return False
        self._homes[group.path, copy] = 0, -1
        return True

    def _copy_held(self, group: Group, copy: int) -> bool:
        return copy_held(self._numberings[group.path], copy, self._domains.of_node, self._nodes)

    def _inside(self, group: Group, copy: int) -> bool:
        """Place what a copy of a group needs within the present region."""
        ties = group.ties or Ties()
        least = tasks_to_start(group) if isinstance(group, Leaf) else group.minimum
        if ties.balanced >= 0:
            return self._balanced(group, ties, copy, least)
        if isinstance(group, Leaf):
            return self._fill(group, copy, least)
        return super()._start(group, copy)

    def _choices(self, group: Group, outside: Region) -> Iterator[tuple[int, Region]]:
        """Yield the regions to try for a copy of a group, the best one first, and the level of each."""
        for level in self._order.levels(group, self._domains, tied=self._tied):
            regions = self._holding(level, needs_of(group), outside) if level else iter([outside])
            yield from ((level, region) for region in regions)

    # --- slices --------------------------------------------------------------------------------------------------

    def _fill(self, leaf: Leaf, copy: int, tasks: int) -> bool:
        """Place the next tasks of a copy within the present region, or none."""
        start = self._placed[leaf.leaf][copy]
        return self._all_or_nothing(partial(self._span, leaf, copy, 0, (start, start + tasks)))

    def _span(self, leaf: Leaf, copy: int, depth: int, span: tuple[int, int]) -> bool:
        """Place the tasks of some numbers, those of each slice from some depth on in one domain."""
        slices = _slices(leaf)
        start, end = span
        if self._order.descends and self._order.anew and not depth and _can_be_dealt(slices, span):
            dealt = self._all_or_nothing(partial(self._deal, leaf, copy, end - start))
            if dealt or not slices:  # slices may still be placed one by one, since each looks at what the others shut
                return dealt
        if depth == len(slices):
            if self._order.descends:
                return self._deal_below(leaf, copy, self._region.level, end - start)
            return all(self._one(leaf, copy) for _ in range(*span))
        for first, last in parts(self._ends_of(leaf, depth), start, end):
            part = max(start, first), min(end, last)
            alike = max(1, (end - part[0]) // (part[1] - part[0])) if len(slices[depth][1]) == 1 else 1
            regions = self._for_slice(leaf, copy, depth, (first, *part), alike)
            if not self._any_in(regions, partial(self._span, leaf, copy, depth + 1, part)):
                return False
        return True

    def _ends_of(self, leaf: Leaf, depth: int) -> list[int]:
        """Return the numbers at which the slices of some depth end."""
        if (leaf.leaf, depth) not in self._ends:
            self._ends[leaf.leaf, depth] = slice_ends(_slices(leaf)[depth][1], leaf.count)
        return self._ends[leaf.leaf, depth]

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
        return self._any_in(regions, partial(self._in_slices, rest, group, member))

    # --- dealing, for rules that descend ---------------------------------------------------------------------------

    def _deal(self, leaf: Leaf, copy: int, tasks: int) -> bool:
        """Deal whole slices, or single tasks, out to narrower and narrower domains in the order of the rule.

        At each level all of them are dealt out anew, to the domains within any of those chosen before.
        """
        slices = _slices(leaf)
        narrowest, size = (slices[0][0], slices[0][1][0]) if slices else (self._domains.levels - 1, 1)
        level, region, wanted = self._region.level, self._region, tasks // size
        dealt: list[tuple[int, int]] = []
        for level in range(self._first_level(leaf), narrowest + 1):
            if dealt:
                region = self._domains.within(level - 1, [domain for domain, _ in dealt], region)
            region = self._open(leaf, copy, region, size, level)
            among = self._candidates(level, [need(leaf, size)], region)
            filled = among.filled(self._order.deal(among, wanted, first=not (self._region.level or dealt)), wanted)
            if not filled:
                return False
            dealt = [(int(among.numbers[position]), part * size) for position, part in filled]
        if not dealt:
            return self._deal_below(leaf, copy, level, tasks)
        return self._dealt(leaf, copy, level, dealt, region)

    def _first_level(self, leaf: Leaf) -> int:
        """Return the widest level at which tasks are dealt out: the nodes' where the group asks for nothing."""
        if self._region.level:
            return self._region.level + 1
        asks = leaf.ties is not None and (leaf.ties.preferred > 0 or leaf.ties.slices)
        return 1 if asks else self._domains.levels - 1

    def _deal_below(self, leaf: Leaf, copy: int, level: int, tasks: int) -> bool:
        """Deal tasks out within the present region, a domain of a level, to narrower ones with least room first."""
        level += 1
        if level == self._domains.levels:
            return all(self._one(leaf, copy) for _ in range(tasks))
        region = self._open(leaf, copy, self._region, 1, level)
        among = self._candidates(level, [Need(leaf.shape, 1)], region)
        filled = among.filled(self._order.below(among, tasks), tasks)
        dealt = [(int(among.numbers[position]), part) for position, part in filled]
        return bool(dealt) and self._dealt(leaf, copy, level, dealt, region)

    def _dealt(self, leaf: Leaf, copy: int, level: int, dealt: Sequence[tuple[int, int]], region: Region) -> bool:
        """Place in some domains of a level as many tasks as each was dealt."""
        return all(
            self._in(self._domains.inside(level, domain, region), partial(self._deal_below, leaf, copy, level, tasks))
            for domain, tasks in dealt
        )

    # --- balance -------------------------------------------------------------------------------------------------

    def _balanced(self, group: Group, ties: Ties, copy: int, least: int) -> bool:
        """Place as many members of a copy as its domains can hold in equal numbers, as nearly as may be.

        A balanced group does not grow, so it takes all that it can get at once.
        """
        size = ties.balance_unit if isinstance(group, Leaf) else 1
        needs = [need(group, size)] if isinstance(group, Leaf) else needs_of_member(group)
        among = self._candidates(ties.balanced, needs, self._region)
        order = np.lexsort((among.numbers, -among.room))
        numbers = among.numbers[order].tolist()
        units = -(-group.count // size)
        room = np.minimum(among.room[order], units) if needs else np.full(len(order), units)
        fewest = max([1, *(few for level, _, few in ties.spread if level == ties.balanced)])

        def attempt(split: tuple[int, int]) -> bool:
            members, some = split
            # the last domains take most, so those with most room come last
            where = numbers[some - 1 :: -1]
            shares = partial(self._shares, group, copy, ties.balanced, where, ends(members, some, size))
            return self._all_or_nothing(lambda: shares() and self._copy_held(group, copy))

        return self._any(even_splits(room, group.count, least, size, fewest), attempt)

    def _shares(self, group: Group, copy: int, level: int, numbers: Sequence[int], upto: Sequence[int]) -> bool:
        """Place members up to each of some numbers in a domain of its own."""
        for domain, start, end in zip(numbers, [0, *upto], upto, strict=False):
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
        cuts, judged = self._cuts.whole_members(group.path), self._judged.get(group.path)
        start = partial(self._in_slices, cuts, group, member)
        if not judged:
            return start()
        return self._any(self._pinnings(judged, member), lambda _: self._all_or_nothing(start))

    def _pinnings(self, judged: Sequence[int], member: int) -> Iterator[None]:
        """Keep the groups of a member in domains that hold both sides of some affinities, one way after the other.

        There may be more affinities than calls can be nested.
        """
        for number in judged:
            self._pins.pop((number, member), None)
        open_choices: list[Iterator[dict[str, Region]]] = []
        while True:
            if len(open_choices) == len(judged):
                yield
            else:
                open_choices.append(self._pin_choices(judged[len(open_choices)], member))
            while (pins := next(open_choices[-1], None)) is None:
                open_choices.pop()
                self._pins.pop((judged[len(open_choices)], member), None)
                if not open_choices or self._spent():
                    return
            self._pins[judged[len(open_choices) - 1], member] = pins

    def _pin_choices(self, number: int, member: int) -> Iterator[dict[str, Region]]:
        sides = self._sides[number]
        a, b = sides.groups
        outside = self._region
        for group in sides.groups if sides.affinity.together else (a,):
            outside = self._pinned(group, member * self._named[group.path][number], outside)
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

    def _pinned(self, group: Group, copy: int, region: Region) -> Region:
        """Return what of a region a copy of a group is kept in."""
        for number, copies in self._named.get(group.path, {}).items():
            pins = self._pins.get((number, copy // copies))
            if pins is not None and group.path in pins:
                region = region.meet(pins[group.path])
        return region

    # --- growing -------------------------------------------------------------------------------------------------

    def _grow(self, group: Group, copy: int) -> None:
        if group.ties is not None and group.ties.balanced >= 0:
            return
        outside = self._region
        for region in self._wider(group, copy):
            self._region = region
            if isinstance(group, Leaf) and self._placed[group.leaf][copy] == group.count:
                break
            if isinstance(group, Leaf) and _slices(group):
                self._grow_slices(group, copy)
            else:
                super()._grow(group, copy)
        self._region = outside

    def _wider(self, group: Group, copy: int) -> Iterator[Region]:
        """Yield the region in which a copy was started, and the wider ones around it that it may use as well."""
        outside = self._pinned(group, copy, self._region)
        required = max(group.ties.required, 0) if group.ties is not None else 0
        home, row = self._homes[group.path, copy]
        for level in range(home, required - 1, -1):
            domain = int(self._domains.of_row[level, row])
            if not level:
                yield outside
            elif domain >= 0:
                yield self._domains.inside(level, domain, outside)

    def _grow_slices(self, leaf: Leaf, copy: int) -> None:
        """Place whole slices as long as there is room, and what fits of one that is begun."""
        placed = self._placed[leaf.leaf]
        for first, last in parts(self._ends_of(leaf, 0), placed[copy], leaf.count):
            if not self._fill(leaf, copy, last - placed[copy]):
                while first < placed[copy] < last and self._fill(leaf, copy, 1):
                    pass
                return


def _slices(leaf: Leaf) -> tuple[tuple[int, tuple[int, ...]], ...]:
    return leaf.ties.slices if leaf.ties is not None else ()


def _can_be_dealt(slices: Sequence[tuple[int, tuple[int, ...]]], span: tuple[int, int]) -> bool:
    """Return whether tasks of some numbers are whole slices of one size and level, or are not cut at all."""
    if not slices:
        return True
    sizes = slices[0][1]
    return len(slices) == len(sizes) == 1 and not span[0] % sizes[0] and not span[1] % sizes[0]
