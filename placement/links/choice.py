"""The pass over an assignment that chooses among alike cards.

Cards of a node are alike when they are of one kind and have as many units and as much device memory left, and, where
some task is bound to NUMA zones on nodes of the class, are in one zone. Exchanging
what new tasks put on two of them changes nothing that any rule or objective sees but the paths between the cards of a
task. First the sum of the scores of the tasks' own sets is made best, then the score of all wholly free cards that
stay free, as one set; so single cards and shares are taken where they break the least. It is exact on nodes of up to 16
cards, or 8 where tasks that take fractions of several cards overlap in part (`exact.py`). On larger nodes it is greedy
with improvement by exchanges (`swaps.py`). An arrangement that is as good stays as it is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from placement.instance import Assignment, Bools, Instance, Ints
from placement.links import exact, swaps
from placement.links.scale import Tables, ordered

Rows = list[tuple[int, ...]]
"""Canonical card positions of each task on a node."""
_Place = tuple[tuple[int, int], tuple[int, ...] | None, tuple[tuple[int, int, int], ...], tuple[int, ...] | None]
"""What nodes have in common that are solved alike: tables of pairs, order of the cards, what they are, their zones."""


def by_links(instance: Instance, assignment: Assignment, *, within_zones: bool = False) -> Assignment:
    """Return the assignment with alike cards exchanged so that the cards of each task are near one another.

    Nothing else changes: not the node of any task, nor how many cards it has of those alike. Nodes that list neither
    paths nor zones, or whose pairs of cards are all alike, are left as they are.

    Parameters
    ----------
    instance : Instance
    assignment : Assignment
        Of cards alone; see `placement.numa.without_zones`.
    within_zones : bool
        Whether cards of different NUMA zones are never exchanged.
    """
    lengths = np.diff(assignment.offset)
    # a MIG card is a node by itself: of what lies on it nothing can be exchanged
    rows = np.flatnonzero((lengths > 0) & (assignment.node < instance.hosts) & ordered(instance, assignment.node))
    if not len(rows):
        return assignment
    rows = rows[np.argsort(assignment.node[rows], kind="stable")]
    lengths = lengths[rows]
    ends = np.cumsum(lengths)
    flat = np.arange(int(ends[-1]), dtype=np.int64) + np.repeat(assignment.offset[rows] - ends + lengths, lengths)
    of_node = assignment.node[rows]
    first = np.concatenate([[0], np.flatnonzero(np.diff(of_node)) + 1, [len(rows)]])
    first_card = np.concatenate([[0], ends])[first]
    before = assignment.cards[flat]
    after = before.copy()
    chooser = _Chooser(instance, within_zones)
    bounds = zip(pairwise(first.tolist()), pairwise(first_card.tolist()), of_node[first[:-1]].tolist(), strict=True)
    for (begin, end), (start, stop), node in bounds:
        after[start:stop] = chooser.cards(node, lengths[begin:end], before[start:stop])
    cards = assignment.cards.copy()
    cards[flat] = after
    return replace(assignment, cards=cards)


class _Chooser:
    """Chooses the cards of one node after the other; what is alike is solved once."""

    def __init__(self, instance: Instance, within_zones: bool) -> None:
        self.instance, self.within_zones = instance, within_zones
        self.tables = Tables(instance)
        self._known: dict[tuple[object, ...], Ints] = {}
        self._solved: dict[tuple[object, ...], tuple[list[int], int]] = {}

    def cards(self, node: int, lengths: Ints, cards: Ints) -> Ints:
        """Return the cards that the tasks on a node get, given those they have, one task after the other."""
        pairs = self.tables.of(node)
        same = self.tables.zones(node)
        node_class = self.instance.classes[int(self.instance.node_class[node])]
        zones = None if node_class.zones is None else node_class.zones.card
        if self.within_zones and zones is None:
            zones = self._zones(node)
        place = ((id(pairs), id(same)), self.instance.node_cards.get(node), node_class.cards, zones)
        key = (*place, lengths.tobytes(), cards.tobytes())
        if key not in self._known:
            ends = np.cumsum(lengths)[:-1]
            rows = [tuple(part.tolist()) for part in np.split(cards, ends)]
            pairs = pairs if same is None else _decided_by_zone(pairs, same, len(rows))
            off_diagonal = pairs[~np.eye(len(pairs), dtype=np.bool_)]
            moved = rows if len(set(off_diagonal.tolist())) < 2 else self._moved(pairs, place, rows)
            self._known[key] = np.array([card for row in moved for card in row], dtype=np.int64)
        return self._known[key]

    def _zones(self, node: int) -> tuple[int, ...] | None:
        """Return the zone of each card of a node, in canonical order."""
        listed = self.instance.snapshot.nodes[int(self.instance.node_spec[node])].zones
        of_card = {card: number for number, zone in enumerate(listed) for card in zone.gpus}
        order = self.instance.node_cards.get(node, range(len(of_card)))
        return tuple(of_card[device] for device in order) if of_card else None

    def _moved(self, pairs: Ints, place: _Place, rows: Rows) -> Rows:
        _, order, cards, zones = place
        near = pairs if order is None else pairs[np.ix_(order, order)]
        alike = list(zip(cards, zones or (0,) * len(cards), strict=True))
        numbers = {card: number for number, card in enumerate(dict.fromkeys(alike))}
        group = np.array([numbers[card] for card in alike], dtype=np.int64)
        kinds = self.instance.card_kinds
        free = np.array([units == self.instance.card_units and kinds[kind].healthy for kind, units, _ in cards])
        free[[card for row in rows for card in row]] = False
        sets = Counter(tuple(sorted({*row})) for row in rows if len({*row}) > 1)
        disjoint = sum(map(len, sets)) == len({card for cards in sets for card in cards})
        if disjoint and len(cards) <= exact.MOST_CARDS:
            to = self._by_enumeration(near, group, sets, np.flatnonzero(free).tolist(), rows, place)
        elif len(cards) <= exact.MOST_PERMUTED:
            to = dict(enumerate(exact.best_permutation(near, group, list(sets.elements()), free).tolist()))
        else:
            starts = [np.arange(len(cards)), *([swaps.grown(near, group, list(sets))] if disjoint else [])]
            found = [swaps.improve(near, group, list(sets.elements()), free, start) for start in starts]
            to = dict(zip(max(found, key=lambda one: one[0])[1].tolist(), range(len(cards)), strict=True))
        return [tuple(sorted(to[card] for card in row)) for row in rows]

    def _by_enumeration(
        self, near: Ints, group: Ints, sets: Counter[tuple[int, ...]], free: list[int], rows: Rows, place: object
    ) -> dict[int, int]:
        """Return where what is on each card goes."""
        groups = tuple(_bits(np.flatnonzero(group == number).tolist()) for number in range(group.max() + 1))
        counted = sorted(((_numbers(groups, _bits(cards)), weight, cards) for cards, weight in sets.items()))[::-1]
        wanted = exact.Wanted(groups, tuple(one[:2] for one in counted), _numbers(groups, _bits(free)))
        key = (place, wanted)
        if key not in self._solved:
            self._solved[key] = exact.best_sets(near, wanted)
        chosen, stays = self._solved[key]

        def worth(cards: Sequence[int], rest: int) -> tuple[int, int]:
            inside = sum(one[1] * _score(near, bits) for one, bits in zip(counted, cards, strict=True))
            return inside, _score(near, rest)

        own = [_bits(one[2]) for one in counted]
        if worth(own, _bits(free)) == worth(chosen, stays):
            return {card: card for card in range(len(group))}
        used = _bits({card for row in rows for card in row})
        singles = used & ~sum(own)
        open_ = sum(groups) & ~stays & ~sum(chosen)
        to: dict[int, int] = {}
        for have, get in (*zip(own, chosen, strict=True), (singles, open_)):
            for inside in groups:
                to.update(_matched(have & inside, get & inside))
        return to


def _decided_by_zone(pairs: Ints, same: Bools, tasks: int) -> Ints:
    """Return scores of which sums that were equal differ by how many pairs are in one zone, and others stay in order.

    A score counts more than all pairs of all tasks together. Where 64 bits do not hold that, scores decide alone.
    """
    most = 1 + max(1, tasks) * len(pairs) * (len(pairs) - 1) // 2
    near = pairs // math.gcd(*pairs.ravel().tolist()) * most + same
    np.fill_diagonal(near, 0)
    total = int(near.astype(object).sum())
    return near if total * total * max(1, tasks) < 2**62 else pairs


def _matched(have: int, get: int) -> dict[int, int]:
    """Return where what is on some cards goes among at least as many others; what can stay stays."""
    moving = zip(_cards(have & ~get), _cards(get & ~have), strict=False)
    return {**{card: card for card in _cards(have & get)}, **dict(moving)}


def _bits(cards: Collection[int]) -> int:
    return sum(1 << card for card in cards)


def _cards(bits: int) -> list[int]:
    return [card for card in range(bits.bit_length()) if bits >> card & 1]


def _numbers(groups: Sequence[int], bits: int) -> tuple[int, ...]:
    return tuple((group & bits).bit_count() for group in groups)


def _score(near: Ints, bits: int) -> int:
    cards = _cards(bits)
    return int(near[np.ix_(cards, cards)].sum()) // 2
