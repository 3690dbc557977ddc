"""Partial contents of many nodes at once, and what putting one more task in makes of them.

A label is what one node of some class holds so far: the room that is left, card by card where shares or several kinds
of cards make it matter, and the tasks. All labels are rows of the same arrays, so that one numpy call serves all
node classes; a search node by node in Python would be all overhead.

Where tasks are bound to one NUMA zone, a label has what each zone has left as well, and a bound task makes a label for
every zone, but one for zones alike by now. Tasks bound to several zones at once are taken for unbound: more contents
are found than there are, so bounds are bounds, and who places a content sees whether it is one.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, fields

import numpy as np

from placement.evaluate import demand
from placement.exact.milp.arrays import Floats
from placement.instance import Bools, Instance, Ints
from placement.state import State

MOST_WAYS = 300
"""Ways to choose the cards of one task that are followed; beyond, a node counts as inexact."""
ZONE_BITS = 3
"""Bits for the zone of a card."""


@dataclass(slots=True)
class Labels:
    """Rows of partial contents.

    Attributes
    ----------
    node : int array (n,)
        Node class.
    room : int array (n, Q)
        What is left: resources, units on cards, wholly free cards.
    cards : int array (n, C)
        Cards as one number each (kind, free units, free memory), ascending; no columns where they do not matter.
    value : float array (n,)
    counts : int array (n, S)
        Tasks of each shape.
    zones : int array (n, Z * R')
        What tasks bound to each zone may still take, zone by zone; no columns where none is.
    """

    node: Ints
    room: Ints
    cards: Ints
    value: Floats
    counts: Ints
    zones: Ints

    def take(self, which: Ints | Bools) -> Labels:
        """Return some of the rows, copied."""
        # written out, not field by field: nothing else here is called as often
        return Labels(
            self.node[which],
            self.room[which],
            self.cards[which],
            self.value[which],
            self.counts[which],
            self.zones[which],
        )

    def __len__(self) -> int:
        return len(self.node)


def joined(parts: list[Labels]) -> Labels:
    """Return the rows of all parts."""
    if len(parts) == 1:
        return parts[0]
    return Labels(*(np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(Labels)))


class Nodes:
    """The node classes of an instance as arrays, and the tasks they could take.

    Attributes
    ----------
    takes : bool array (S, K)
        Whether one task of a shape has room on a node of the class when nothing new is there.
    admits : bool array (S, K)
        Whether a shape may lie on such a node and on some card of it, whatever is free there.
    need : int array (S, Q)
    room : int array (K, Q)
        In the order of `Labels.room`: of the resources only those that can run out first, then units, then whole cards.
    zoned : bool array (K,)
        Nodes on which some task is bound to a zone.
    inexact : bool array (K,)
        Nodes with too many ways to choose cards; only their relaxation is a bound.
    """

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        state = State(instance)
        state.limits[:] = np.iinfo(np.int64).max  # limits have rows of their own
        first = np.array([c.nodes[0] for c in instance.classes], dtype=np.int64)
        takes = [state.fits(shape, first) for shape in range(len(instance.shapes))]
        self.takes: Bools = np.array(takes, dtype=np.bool_).reshape(len(takes), len(first))
        self.gpus = np.array([s.gpus for s in instance.shapes], dtype=np.int64)
        self.units = np.array([s.units if s.gpus else 0 for s in instance.shapes], dtype=np.int64)
        self.memory = np.array([s.memory if s.gpus else 0 for s in instance.shapes], dtype=np.int64)
        present = np.zeros((len(first), state.admits_card.shape[1]), dtype=np.bool_)
        present[np.arange(len(first))[:, None], state.kind[first]] = True
        on_cards = state.admits_card @ present.T
        self.admits: Bools = instance.admits_node & (on_cards | (self.gpus == 0)[:, None])
        self.is_whole: Bools = (self.units == instance.card_units) & (self.gpus > 0)
        units, kind = state.units[first], state.kind[first]
        whole = (units == instance.card_units) & (kind >= 0)
        kept = _kept(state.demand, state.free[first], self.takes)
        on_cards = np.stack([self.gpus * self.units, np.where(self.is_whole, self.gpus, 0)], axis=1)
        self.need: Ints = np.concatenate([state.demand[:, kept], on_cards], axis=1)
        used = np.stack([units.sum(axis=1), whole.sum(axis=1)], axis=1)
        self.room: Ints = np.concatenate([state.free[first][:, kept], used], axis=1)
        self._zones(state, first)
        self._pack(state, first)
        self._alike(state, first, whole)

    def _zones(self, state: State, first: Ints) -> None:
        """Note what zones have room for, and which tasks are bound to one."""
        instance = self.instance
        self.in_zone: Bools = self.takes & (instance.bound == 1)
        self.zoned: Bools = self.in_zone.any(axis=0)
        counts = [0 if c.zones is None else c.zones.count for c in instance.classes]
        self._count: Ints = np.array(counts, dtype=np.int64)
        singles = [row for row, bits in enumerate(instance.zone_sets) if bits.bit_count() == 1]
        room = state.slack[first][:, singles]
        bound = self.in_zone.any(axis=1)
        # what is there for all bound tasks at once binds nobody
        asked = demand(instance)[bound] @ state.demand[bound]
        binding = (room[self.zoned] < asked).any(axis=(0, 1)) & (asked > 0)
        self.zone_need: Ints = state.demand[:, binding]
        self.zone_room: Ints = room[:, :, binding].reshape(len(first), len(singles) * int(binding.sum()))
        self.zone_of = state.zone[first]
        cards = state.kind.shape[1]
        zones = int(self._count.max(initial=0))
        even = zones > 1 and not cards % zones and (self._count[self.zoned] == zones).all()
        block = np.arange(cards) // max(1, cards // max(1, zones))
        self._even = bool(even and self.zoned.any() and (self.zone_of[self.zoned] == block).all())
        """Whether zones are blocks of equally many columns, which can then be sorted."""

    def _pack(self, state: State, first: Ints) -> None:
        """Write every card as one number; device memory is left out where nobody asks for it."""
        memory = state.memory[first] if self.memory.any() else np.zeros_like(state.memory[first])
        # more than all tasks on a card could take is as good as unlimited, and takes fewer bits
        most = int(self.memory.max(initial=0)) * max(1, self.instance.card_units)
        memory = np.minimum(memory, most)
        self.memory_bits = int(memory.max(initial=0)).bit_length()
        self.unit_bits = int(self.instance.card_units).bit_length()
        kind = np.maximum(state.kind[first], 0)
        self.kind_bits = len(self.instance.card_kinds).bit_length()
        self.packs = self.memory_bits + self.unit_bits + self.kind_bits + ZONE_BITS < 62
        self.admits_card: Bools = state.admits_card[:, : max(1, len(self.instance.card_kinds))]
        if not self.packs:
            kind, memory = np.zeros_like(kind), np.zeros_like(memory)
            self.memory_bits = 0
        code = (((kind << self.unit_bits) | state.units[first]) << self.memory_bits) | memory
        self.card_bits = self.kind_bits + self.unit_bits + self.memory_bits
        if self.zoned.any():
            # cards of one zone stay together
            code[self.zoned] |= self.zone_of[self.zoned] << self.card_bits
        self.cards: Ints = np.sort(code, axis=1)
        self.part: Ints = (self.units << self.memory_bits) | (self.memory if self.packs else 0)

    def _alike(self, state: State, first: Ints, whole: Bools) -> None:
        """Note where all wholly free cards are alike, and where cards do not matter beside their number."""
        shares = self.takes[(self.gpus > 0) & ~self.is_whole].any(axis=0)
        number = np.arange(len(first))
        position = whole.argmax(axis=1) if whole.shape[1] else np.zeros(len(first), dtype=np.int64)
        self.alike: Bools = np.ones(len(first), dtype=np.bool_)
        if whole.shape[1]:
            for table in (state.kind[first], state.memory[first]):
                self.alike &= ((table == table[number, position][:, None]) | ~whole).all(axis=1)
        self.plain: Bools = self.alike & ~shares & ~self.zoned
        self.inexact: Bools = np.zeros(len(first), dtype=np.bool_)
        if not self.packs:
            self.inexact |= ~self.plain

    def empty(self, which: Ints) -> Labels:
        """Return one empty label of each of some node classes, all plain or none, all zoned or none."""
        cards = self.cards[which]
        if self.plain[which].all():
            cards = cards[:, :0]
        return Labels(
            node=which,
            room=self.room[which],
            cards=cards,
            value=np.zeros(len(which)),
            counts=np.zeros((len(which), len(self.need)), dtype=np.int32),
            zones=self.zone_room[which] if self.zoned[which].any() else self.zone_room[which, :0],
        )

    def with_one_more(self, labels: Labels, shape: int, price: Floats) -> Labels:
        """Return what labels can become with one more task of a shape, worth `price` on each node class."""
        some = labels.take((labels.room >= self.need[shape]).all(axis=1))
        zoned = len(some) and self.zoned[some.node[0]]
        some = self._in_zones(some, shape) if zoned else self._in_node(some, shape)
        some.value += price[some.node]
        some.counts[:, shape] += 1
        return some

    def _in_node(self, some: Labels, shape: int, zone: int | None = None) -> Labels:
        """Return what labels with enough resources become with one more task, on cards of one zone if it is given."""
        if self.gpus[shape] and some.cards.shape[1]:
            return self._on_cards(some, shape, zone)
        some.room -= self.need[shape]
        return some

    def _in_zones(self, some: Labels, shape: int) -> Labels:
        """Return what labels of nodes with zones become: where the task is bound, each of the zones may take it."""
        bound = self.in_zone[shape, some.node]
        parts = [self._in_node(some.take(~bound), shape)]
        some = some.take(bound)
        zones, width = int(self._count[some.node].max(initial=0)), self.zone_need.shape[1]
        marks = self._marks(some) if self._even else None
        for zone in range(zones):
            columns = slice(zone * width, (zone + 1) * width)
            fits = (zone < self._count[some.node]) & (some.zones[:, columns] >= self.zone_need[shape]).all(axis=1)
            if marks is not None and zone:
                fits &= (marks[:, :zone] != marks[:, zone : zone + 1]).all(axis=1)
            mine = some.take(fits)
            mine.zones[:, columns] -= self.zone_need[shape]
            parts.append(self._in_node(mine, shape, zone))
        grown = joined(parts)
        if self._even:
            self._sort_zones(grown)
        return grown

    def _blocks(self, labels: Labels) -> tuple[Ints, Ints]:
        """Return what zones have left, and their cards but for the number of the zone, as (n, Z, …)."""
        shape = len(labels), int(self._count.max(initial=0))
        cards = labels.cards & ((1 << self.card_bits) - 1)
        room = labels.zones.reshape(*shape, labels.zones.shape[1] // shape[1])
        return room, cards.reshape(*shape, cards.shape[1] // shape[1])

    def _marks(self, labels: Labels) -> Ints:
        """Return a number for each zone, equal for zones that are alike by now."""
        both = np.concatenate(self._blocks(labels), axis=2)
        count, zones, width = both.shape
        numbers = np.zeros(count * zones, dtype=np.int64)
        if count and width:
            table = both.reshape(-1, width)
            order = np.lexsort(table.T)
            table = table[order]
            numbers[order[1:]] = np.cumsum((table[1:] != table[:-1]).any(axis=1))
        return numbers.reshape(count, zones)

    def _sort_zones(self, labels: Labels) -> None:
        """Put the zones of each label in an order that depends on what they have left alone."""
        room, cards = self._blocks(labels)
        order = np.argsort(self._marks(labels), axis=1, kind="stable")[:, :, None]
        number = np.arange(order.shape[1])[None, :, None] << self.card_bits
        labels.zones = np.take_along_axis(room, order, axis=1).reshape(labels.zones.shape)
        labels.cards = (np.take_along_axis(cards, order, axis=1) | number).reshape(labels.cards.shape)

    def _on_cards(self, some: Labels, shape: int, zone: int | None = None) -> Labels:
        """Return every way to give one task its cards, equal cards being equal; resources are taken, too."""
        open_ = self._open(some.cards, shape)
        if zone is not None:
            open_ &= some.cards >> self.card_bits == zone
        enough = open_.sum(axis=1) >= self.gpus[shape]
        some, open_ = some.take(enough), open_[enough]
        if self.is_whole[shape]:
            simple = self.alike[some.node] & (~self.zoned[some.node] | (zone is not None))
            first = some.take(simple)
            chosen = open_[simple]
            chosen &= np.cumsum(chosen, axis=1) <= self.gpus[shape]
            parts = [self._taken(first, shape, chosen)]
            some, open_ = some.take(~simple), open_[~simple]
        else:
            parts = []
        width = some.cards.shape[1]
        # with zones there is no end to the ways unless columns are left out in which nothing is open
        zoned = self.zoned[some.node].any()
        columns = np.flatnonzero(open_.any(axis=0)).tolist() if zoned else range(width)
        ways = itertools.islice(itertools.combinations(columns, int(self.gpus[shape])), MOST_WAYS + 1)
        for number, way in enumerate(ways if len(some) else ()):
            if number == MOST_WAYS:
                self.inexact[some.node] = True
                break
            fine = open_[:, list(way)].all(axis=1)
            for c in way:
                if c and c - 1 not in way:
                    fine &= some.cards[:, c] != some.cards[:, c - 1]
            mine = some.take(fine)
            chosen = np.zeros((len(mine), width), dtype=np.bool_)
            chosen[:, list(way)] = True
            parts.append(self._taken(mine, shape, chosen))
        return joined(parts) if parts else some.take(np.zeros(len(some), dtype=np.bool_))

    def _open(self, cards: Ints, shape: int) -> Bools:
        units = (cards >> self.memory_bits) & ((1 << self.unit_bits) - 1)
        open_: Bools = units >= self.units[shape]
        if self.packs:
            if self.memory[shape]:
                open_ &= (cards & ((1 << self.memory_bits) - 1)) >= self.memory[shape]
            if not self.admits_card[shape].all():
                kind = cards >> (self.memory_bits + self.unit_bits) & ((1 << self.kind_bits) - 1)
                open_ &= self.admits_card[shape][kind]
        return open_

    def _taken(self, some: Labels, shape: int, chosen: Bools) -> Labels:
        """Take the chosen cards of each label, which are its own copy."""
        units = (some.cards >> self.memory_bits) & ((1 << self.unit_bits) - 1)
        some.room -= self.need[shape]
        if not self.is_whole[shape]:
            some.room[:, -1] -= (chosen & (units == self.instance.card_units)).sum(axis=1)
        some.cards -= np.where(chosen, self.part[shape], 0)
        some.cards.sort(axis=1)
        return some


def _kept(demand: Ints, free: Ints, takes: Bools) -> Ints:
    """Return the resources that can run out first on some node: the others follow from one that is kept."""
    share = demand[:, None, :] / np.maximum(free[None], 1)
    kept = list(range(demand.shape[1]))
    for r in range(demand.shape[1] - 1, -1, -1):
        others = [o for o in kept if o != r]
        if not others:
            continue
        below = share[:, :, [r]] <= share[:, :, others] * (1 - 1e-12)
        implied = np.asarray((below | ~takes[:, :, None]).all(axis=0))
        if np.asarray(implied.any(axis=1)).all():
            kept.remove(r)
    return np.array(kept, dtype=np.int64)
