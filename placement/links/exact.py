r"""The best sets of cards of one node, by enumeration over sets of cards as bits of a number.

Sets $S_1, \dots, S_m$ of given sizes and a set $F$ that stays free are disjoint; all of them are chosen so that
$\sum_i v_i\, s(S_i)$ is largest and, among those choices, $s(F)$ is, where $s$ is the sum over pairs. The cards of
$S_1, \dots, S_i$ together are the state after $i$ steps, and of each state only the best way to it is kept. With 16
cards there are at most $16! / (5!\,5!\,6!)$, 2 million, pairs of a state and a next set in one step. Where sets
overlap in part, all permutations of alike cards are looked at instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np

from placement.instance import Bools, Ints

MOST_CARDS = 16
"""Cards of a node up to which `best_sets` is quick."""
MOST_PERMUTED = 8
"""Cards of a node up to which `best_permutation` is quick; it has 40,320 to look at."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be chosen on a node.

    Attributes
    ----------
    groups : tuple of int
        The cards of each group of alike ones, as bits.
    sets : tuple of ((int, ...), int)
        Of each set the number of cards from each group, and how often its score counts.
    free : tuple of int
        How many cards of each group stay free and should score well together.
    """

    groups: tuple[int, ...]
    sets: tuple[tuple[tuple[int, ...], int], ...]
    free: tuple[int, ...]


def best_sets(near: Ints, wanted: Wanted) -> tuple[list[int], int]:
    """Return the best sets, and the best cards to stay free, as bits.

    Parameters
    ----------
    near : int array (n, n)
        Score of each pair of cards.
    wanted : Wanted
    """
    score = scores(near)
    used, value = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    steps = []
    for numbers, weight in wanted.sets:
        chosen = _subsets(used, wanted.groups, numbers)
        total = value[:, None] + weight * score[chosen]
        used, value, last = _best(len(score), (used[:, None] | chosen).ravel(), total.ravel(), chosen.ravel())
        steps.append(last)
    used = used[value == value.max()]
    rest = _subsets(used, wanted.groups, wanted.free)
    state, column = np.unravel_index(int(np.argmax(score[rest])), rest.shape)
    taken, sets = int(used[state]), list[int]()
    for last in reversed(steps):
        sets.append(int(last[taken]))
        taken ^= sets[-1]
    return sets[::-1], int(rest[state, column])


def scores(near: Ints) -> Ints:
    """Return the score of every set of cards."""
    score = np.zeros(1, dtype=np.int64)
    for card in range(len(near)):
        joins = np.zeros(1, dtype=np.int64)
        for other in range(card):
            joins = np.concatenate([joins, joins + near[card, other]])
        score = np.concatenate([score, score + joins])
    return score


def _best(size: int, states: Ints, values: Ints, chosen: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the distinct states, the best value of each, and by state which choice first led there."""
    best = np.full(size, -1, dtype=np.int64)
    np.maximum.at(best, states, values)
    reached = np.flatnonzero(values == best[states])[::-1]
    last = np.zeros(size, dtype=np.int64)
    last[states[reached]] = chosen[reached]
    distinct = np.flatnonzero(best >= 0)
    return distinct, best[distinct], last


def _subsets(used: Ints, groups: Sequence[int], numbers: Sequence[int]) -> Ints:
    """Return all sets with these numbers of cards of each group that a state has not used.

    Parameters
    ----------
    used : int array (states,)
        All with equally many cards of each group.
    groups, numbers : sequence of int

    Returns
    -------
    int array (states, sets)
    """
    found = np.zeros((len(used), 1), dtype=np.int64)
    for group, number in zip(groups, numbers, strict=True):
        if number:
            places = np.arange(group.bit_length())
            place = np.nonzero((group & ~used)[:, None] >> places & 1)[1]
            bits = (1 << place).reshape(len(used), -1)
            ways = np.array(list(combinations(range(bits.shape[1]), number)), dtype=np.int64)
            inside = sum(bits[:, way] for way in ways.T)
            found = (found[:, :, None] | np.asarray(inside)[:, None, :]).reshape(len(used), -1)
    return found


def best_permutation(near: Ints, group: Ints, sets: Sequence[tuple[int, ...]], free: Bools) -> Ints:
    """Return where what is on each card goes when sets, which may overlap, score best, and then what stays free.

    Parameters
    ----------
    near : int array (n, n)
        Score of each pair of cards.
    group : int array (n,)
        Equal for alike cards.
    sets : sequence of tuple of int
    free : bool array (n,)
    """
    to = np.array(list(permutations(range(len(near)))), dtype=np.int64)
    to = to[(group[to] == group).all(axis=1)]
    value = np.zeros(len(to), dtype=np.int64)
    weighted = [(cards, 1 + int(near.sum())) for cards in sets]
    for cards, weight in (*weighted, (np.flatnonzero(free).tolist(), 1)):
        for a, b in combinations(cards, 2):
            value += weight * near[to[:, a], to[:, b]]
    return np.asarray(to[np.argmax(value)])
