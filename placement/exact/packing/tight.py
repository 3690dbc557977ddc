r"""Where nothing may be left over: nodes and zones filled to the last core, by sums that come out exactly.

If the pending tasks ask for as much of a resource as the nodes concerned have, a plan that places all of them leaves
nothing of it anywhere: contents of a node that leave some cannot be part of such a plan. So only contents that use all
of it are listed, and where amounts are fine-grained these are few. The same holds up to what is left in all: where
demand is below capacity by less than the smallest task, no content of such a plan leaves more than that. With *x* the
nodes that hold each content, every task is then covered once,

.. math:: \sum_c a_{sc} x_c = d_s \quad \forall s, \qquad \sum_{c \in C_b} x_c \le N_b \quad \forall b,

where the bins *b* are NUMA zones, for tasks that are bound to one, and whole nodes, for contents with some task that is
not; a whole node takes its zones with it. A solution places everything, which no plan can exceed. That there is none
proves nothing, for contents are listed up to a number of tasks only.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placement.evaluate import demand
from placement.exact.layouts.layout import Layout
from placement.exact.layouts.within import into_zone
from placement.exact.ledger import Ledger
from placement.exact.milp import highs
from placement.exact.milp.arrays import Program
from placement.exact.packing.arrange import arrange
from placement.exact.packing.sums import Sums, TooManyError
from placement.exact.timing import Timing
from placement.instance import Bools, Instance, Ints

MOST_BINS = 64
"""Kinds of bins; with more, each has too little in common with the others."""
MOST_CONTENTS = 100_000
MOST_WORK = 8_000_000
"""Halves of contents times kinds of bins; see `placement.exact.packing.sums`."""
NODES = 2_000
"""Branch-and-bound nodes for the choice of contents."""
TRIES = 20
"""Choices made; contents for which no cards are found are left out of the next one."""
MOST_SUM = 2.0**62
SHARE = 0.4
"""Of the time left."""


def fill_exactly(ledger: Ledger, timing: Timing) -> bool:
    """Place all pending tasks where they ask for all there is of something; return whether the ledger has them all.

    Where nothing is asked for to the last, this is a comparison of sums.
    """
    spare = left_over(ledger.instance)
    if spare is None or not ledger.instance.exact or not ledger.limits.left:
        return False
    began = time.perf_counter()
    layout = _Tight(ledger, spare).run()
    timing.add("price", time.perf_counter() - began)
    if layout is None:
        return False
    ledger.propose(layout)
    worth, wanted = ledger.goals.worth, ledger.goals.leaves[:, 3]
    if (ledger.standing.started < wanted).any() or (worth < 0).any():
        return False
    for focus, most in enumerate((worth @ wanted).tolist()):
        ledger.prove(focus, most)
    ledger.tell("exact sums", at_once=True)
    return True


def left_over(instance: Instance) -> Ints | None:
    """Return what is left of each resource, and of card units last, if all tasks run.

    Returns
    -------
    int array (R + 1,) or None
        -1 where that is not less than what the smallest task takes, or what nobody counts. None where it is so
        everywhere, or where there is not enough for all tasks.
    """
    wanted = demand(instance)
    shapes = np.flatnonzero(wanted)
    if not len(shapes) or instance.tied or not instance.admits_node[shapes].any(axis=1).all():
        return None
    need = needs(instance)
    asked = wanted @ need
    classes = np.flatnonzero(instance.admits_node[shapes].any(axis=0)).tolist()
    usable: list[bool] = np.any(instance.admits_card[shapes], axis=0).tolist()
    room: Ints = np.array([_room(instance, k, usable) for k in classes], dtype=np.int64).reshape(-1, len(asked))
    size = np.array([instance.classes[k].size for k in classes], dtype=np.int64)
    # what a node has as much of as all tasks ask for cannot run out, and sums must fit 64 bits
    counted = (room < asked).all(axis=0) & (asked > 0) & (size.astype(np.float64) @ room.astype(np.float64) < MOST_SUM)
    rest = np.where(counted, size @ np.where(counted, room, 0) - asked, -1)
    if (rest[counted] < 0).any():
        return None
    least = np.where(need[shapes] > 0, need[shapes], np.iinfo(np.int64).max).min(axis=0)
    tight: Ints = np.where(counted & (rest < least), rest, -1)
    return tight if (tight >= 0).any() else None


def needs(instance: Instance) -> Ints:
    """Return what one task of each shape takes of each resource, and of card units last."""
    rows = [(*shape.demand, shape.gpus * shape.units) for shape in instance.shapes]
    return np.array(rows, dtype=np.int64).reshape(len(rows), len(instance.resources) + 1)


def _room(instance: Instance, k: int, usable: Sequence[bool]) -> tuple[int, ...]:
    node_class = instance.classes[k]
    return (*node_class.free, sum(units for kind, units, _ in node_class.cards if usable[kind]))


@dataclass(frozen=True, slots=True)
class _Kind:
    """Nodes that can hold the same, and which kind of zone each of their zones is; -1 for none."""

    number: int
    nodes: list[int]
    zones: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Content:
    """Tasks, by shape, for a bin: a kind of node or a kind of zone."""

    bin: int
    tasks: tuple[int, ...]


class _Tight:
    """One attempt at placing everything.

    Bins are numbered: kinds of nodes and kinds of zones in the order in which they are met.
    """

    def __init__(self, ledger: Ledger, spare: Ints) -> None:
        self.ledger, self.instance = ledger, ledger.instance
        self.limits = ledger.share(SHARE)
        self.wanted = demand(self.instance)
        self.need = needs(self.instance)
        self.sharp: Bools = spare >= 0
        self.loose: Ints = np.where(spare < 0, np.iinfo(np.int64).max, spare)
        """Most that a bin may leave of each resource."""
        self.usable: list[bool] = np.any(self.instance.admits_card[self.wanted > 0], axis=0).tolist()
        self.bins: dict[object, int] = {}
        self.count: list[int] = []
        self.asks: list[tuple[Ints, Ints, Bools, Bools]] = []
        """For each bin its room, what it may leave, the shapes it may take, and of these one or more of some."""
        self.kinds = self._kinds()

    # --- bins ----------------------------------------------------------------------------------------------------

    def _kinds(self) -> list[_Kind]:
        kinds: dict[int, _Kind] = {}
        for k, node_class in enumerate(self.instance.classes):
            admitted: Bools = self.instance.admits_node[:, k] & (self.wanted > 0)
            if not admitted.any():
                continue
            in_zone: Bools = admitted & (self.instance.bound[:, k] == 1)
            zones = self._zones(k, in_zone) if in_zone.any() else ()
            some = admitted & ~in_zone if zones else admitted
            room = np.array(_room(self.instance, k, self.usable), dtype=np.int64)
            key = (node_class.free, node_class.cards, node_class.zones, admitted.tobytes(), in_zone.tobytes())
            number = self._bin((key, node_class.limits), node_class.size, (room, self.loose, admitted, some))
            kind = kinds.setdefault(number, _Kind(number, [], zones))
            kind.nodes.extend(node_class.nodes.tolist())
        return list(kinds.values())

    def _zones(self, k: int, in_zone: Bools) -> tuple[int, ...]:
        """Return the kinds of the zones of a node class; none where zones need not be full for the node to be."""
        node_class, sets = self.instance.classes[k], self.instance.zone_sets
        zones = node_class.zones
        assert zones is not None
        rooms = []
        for zone in range(zones.count):
            row = zones.slack[sets.index(1 << zone)] if 1 << zone in sets else (*node_class.free,)
            cards = tuple(card for card, of in zip(node_class.cards, zones.card, strict=True) if of == zone)
            units = sum(units for kind, units, _ in cards if self.usable[kind])
            rooms.append((np.array([*row, units], dtype=np.int64), cards))
        # zones do not count every resource, and running work may take of it wherever it lies
        whole = np.array(_room(self.instance, k, self.usable), dtype=np.int64)
        full: Bools = np.sum([np.minimum(room, whole) for room, _ in rooms], axis=0) == whole
        if not full[self.sharp].all():
            return ()
        found = []
        for room, cards in rooms:
            key = (tuple(room.tolist()), cards, in_zone.tobytes())
            found.append(self._bin(key, node_class.size, (room, self.loose, in_zone, in_zone)))
        return tuple(found)

    def _bin(self, key: object, count: int, asks: tuple[Ints, Ints, Bools, Bools]) -> int:
        number = self.bins.setdefault(key, len(self.bins))
        if number == len(self.count):
            self.count.append(0)
            self.asks.append(asks)
        self.count[number] += count
        return number

    # --- contents ------------------------------------------------------------------------------------------------

    def run(self) -> Layout | None:
        """Return a layout with all tasks, or None if none is found."""
        if len(self.count) > MOST_BINS:
            return None
        try:
            contents = self._contents()
        except TooManyError:
            return None
        for _ in range(TRIES):
            chosen = self._chosen(contents)
            if chosen is None:
                return None
            layout = Layout(self.instance)
            misfits = self._place(layout, chosen)
            if not misfits:
                return layout if not len(layout.over_full()) else None
            contents = [content for content in contents if content not in misfits]
        return None

    def _contents(self) -> list[_Content]:
        most = np.array([room for room, _, _, _ in self.asks]).max(axis=0)
        sums = Sums(self.need, self.wanted, most)
        found: list[_Content] = []
        if sums.halves * len(self.asks) > MOST_WORK:
            raise TooManyError
        for number, (room, loose, allowed, some) in enumerate(self.asks):
            if not some.any():
                continue
            for rows in sums.sets(room, loose, allowed):
                fine = rows[some[rows].any(axis=1)]
                if len(found) + len(fine) > MOST_CONTENTS or not self.limits.left:
                    raise TooManyError
                found += [_Content(number, tuple(tasks)) for tasks in fine.tolist()]
        return found

    def _chosen(self, contents: list[_Content]) -> list[tuple[_Content, int]] | None:
        """Return contents, and how many bins hold each, that cover every task once."""
        zones_of = {kind.number: Counter(kind.zones) for kind in self.kinds}
        shapes = np.flatnonzero(self.wanted)
        row_of = {int(s): row for row, s in enumerate(shapes)}
        entries: list[tuple[int, int, int]] = []
        for column, content in enumerate(contents):
            entries += [(row_of[s], column, times) for s, times in Counter(content.tasks).items()]
            entries.append((len(shapes) + content.bin, column, 1))
            for zone, times in zones_of.get(content.bin, {}).items():
                entries.append((len(shapes) + zone, column, times))
        lower: Ints = np.concatenate([self.wanted[shapes], np.zeros(len(self.count), dtype=np.int64)])
        upper: Ints = np.concatenate([self.wanted[shapes], np.array(self.count, dtype=np.int64)])
        most: Ints = np.array([self.count[content.bin] for content in contents], dtype=np.int64)
        program = _program(entries, lower, upper, most)
        solved = highs.solve(program, nodes=NODES, time_limit=self.limits.left, seed=self.ledger.seed)
        if solved.x is None:
            return None
        used = np.round(solved.x).astype(np.int64)
        return [(contents[i], int(used[i])) for i in np.flatnonzero(used).tolist()]

    # --- places --------------------------------------------------------------------------------------------------

    def _place(self, layout: Layout, chosen: list[tuple[_Content, int]]) -> set[_Content]:
        """Put contents into nodes and zones; return those that no cards are found for."""
        misfits: set[_Content] = set()
        waiting: dict[int, list[_Content]] = defaultdict(list)
        for content, times in chosen:
            waiting[content.bin] += [content] * times
        for kind in self.kinds:
            for node in kind.nodes:
                if waiting[kind.number]:
                    content = waiting[kind.number].pop()
                    if not arrange(layout, node, list(content.tasks)):
                        misfits.add(content)
                    continue
                for zone, number in enumerate(kind.zones):
                    if waiting[number]:
                        content = waiting[number].pop()
                        if not into_zone(layout, node, zone, content.tasks):
                            misfits.add(content)
        return misfits


def _program(entries: list[tuple[int, int, int]], lower: Ints, upper: Ints, most: Ints) -> Program:
    """Return the program without an objective that has these entries (row, column, value)."""
    table = np.array(sorted(entries), dtype=np.int64).reshape(-1, 3)
    start = np.zeros(len(lower) + 1, dtype=np.int32)
    np.cumsum(np.bincount(table[:, 0], minlength=len(lower)), out=start[1:])
    columns = len(most)
    return Program(
        sense=1,
        cost=np.zeros(columns),
        lower=np.zeros(columns),
        upper=most.astype(np.float64),
        integer=np.ones(columns, dtype=np.bool_),
        start=start,
        index=table[:, 1].astype(np.int32),
        value=table[:, 2].astype(np.float64),
        row_lower=lower.astype(np.float64),
        row_upper=upper.astype(np.float64),
    )
