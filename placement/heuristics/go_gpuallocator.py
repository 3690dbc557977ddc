"""NVIDIA's go-gpuallocator, best effort: the best set of cards of the best division of a node's free cards."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations
from typing import ClassVar

import numpy as np

from placement.heuristics.first_fit import FirstFit
from placement.heuristics.nodes import Nodes
from placement.instance import Ints
from placement.links.exact import MOST_CARDS, scores
from placement.links.scale import Tables


class GoGpuallocatorBestEffort(FirstFit):
    """Whole cards by the paths between them; the node is the first with room, since the source chooses none.

    All free cards of the node that the task may use are divided into sets of as many as it asks for, those left over
    being a set of their own, so that the scores of all sets add up to the most; of that division the set with the best
    score is taken. A set scores the sum of its pairs, a pair as in `placement.links.scale`. Of equals it is the
    division, and the set, that comes first when sets are listed by device index.

    Source: ``bestEffortPolicy.Allocate``, ``iterateGPUPartitions`` and ``calculateGPUPairScore`` in
    ``gpuallocator/besteffort_policy.go`` of go-gpuallocator (NVIDIA/go-gpuallocator). Differs from the source in: a
    pair has the one path that the snapshot lists, there NVLink and PCIe paths add up; the set of cards left over is
    never the one that is taken; no card is required by name; on nodes of more than 16 cards with different paths, where
    the source would go through more divisions than can be counted, the first usable cards are taken; and tasks that
    take fractions of cards or are bound to NUMA zones, which the source does not know, get the cards with least room.

    A plan's cards are chosen once more among alike ones when its tasks are named (`placement.links`), for all tasks
    of a node together. So what this rule decides is which cards are alike and free for the tasks that come later; the
    set that it chose itself is in the assignment, and the plan may show one that scores better.
    """

    name: ClassVar[str] = "go-gpuallocator"

    def __init__(self, nodes: Nodes, rng: np.random.Generator) -> None:
        super().__init__(nodes, rng)
        self._tables = Tables(nodes.instance)
        self._known: dict[tuple[int, tuple[int, ...], int], tuple[int, ...]] = {}

    def cards(self, shape: int, row: int) -> tuple[int, ...]:
        """Return the cards for a task on the node found last."""
        task, instance = self.shapes[shape], self.nodes.instance
        if not task.gpus or task.units < self.card_units or instance.zone_sets:
            return super().cards(shape, row)
        node = self.nodes.node(row)
        usable = np.flatnonzero(self.nodes.state.usable(shape, np.array([row]))[0]).tolist()
        device = instance.node_cards.get(node)
        position = {device[card] if device is not None else card: card for card in usable}
        chosen = self._chosen(self._tables.of(node), tuple(sorted(position)), task.gpus)
        return tuple(sorted(position[card] for card in chosen))

    def _chosen(self, pairs: Ints, free: tuple[int, ...], size: int) -> tuple[int, ...]:
        key = id(pairs), free, size
        if key not in self._known:
            self._known[key] = best_effort(pairs[np.ix_(free, free)], size)
        return tuple(free[card] for card in self._known[key])


def best_effort(near: Ints, size: int) -> tuple[int, ...]:
    """Return the set of so many cards that the policy takes.

    Parameters
    ----------
    near : int array (n, n)
        Score of each pair of free cards.
    size : int
        At most n.
    """
    cards = len(near)
    alike = len(set(near[~np.eye(cards, dtype=np.bool_)].tolist())) < 2
    if size == 1 or alike or cards > MOST_CARDS:
        return tuple(range(size))
    score: list[int] = scores(near).tolist()

    @cache
    def best(left: int, over: int) -> tuple[int, int]:
        """Return the score of the best division of some cards, of which so many are left over, and its first set."""
        if not left:
            return 0, 0
        return max(
            ((score[one] + best(left & ~one, over - odd)[0], one) for one, odd in _first_sets(left, size, over)),
            key=lambda found: found[0],
        )

    left, over, sets = (1 << cards) - 1, cards % size, list[int]()
    while left:
        one = best(left, over)[1]
        left, over = left & ~one, over if one.bit_count() == size else 0
        sets.append(one)
    taken = max((one for one in sets if one.bit_count() == size), key=lambda one: score[one])
    return _members(taken)


def _first_sets(left: int, size: int, over: int) -> Iterator[tuple[int, int]]:
    """Yield the sets that the first of some cards may be in, in order, and how many of those left over each takes.

    What is left over is filled up with blanks that come after all cards, so its set comes where they would be.
    """
    first, *others = _members(left)
    full = [(one, 0) for one in combinations(others, size - 1)]
    odd = [(one, over) for one in combinations(others, over - 1)] if over else []
    blank = left.bit_length()
    for rest, taken in sorted(full + odd, key=lambda one: [*one[0], *[blank] * (size - 1 - len(one[0]))]):
        yield sum(1 << card for card in rest) | 1 << first, taken


def _members(bits: int) -> tuple[int, ...]:
    return tuple(card for card in range(bits.bit_length()) if bits >> card & 1)
