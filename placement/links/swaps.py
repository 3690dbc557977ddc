r"""Good sets of cards of one node where they are too many, or share too many cards, to be enumerated.

What is on the cards (tasks, or being free) moves as a whole. With $M_{at} = 1$ where card $a$ is in set $t$ and weights
$v_t$, the value $\sum_t v_t \sum_{a < b} M_{at} M_{bt} s_{ab}$ changes, when what is on $a$ and $b$ changes places, by
$\sum_t v_t M_{at} (1 - M_{bt}) (c_{bt} - s_{ab} - c_{at})$ and the same with $a$ and $b$ exchanged, $c = s M$.
The best exchange of alike cards is made until none helps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from placement.instance import Bools, Ints


def improve(near: Ints, group: Ints, sets: Sequence[tuple[int, ...]], free: Bools, at: Ints) -> tuple[int, Ints]:
    """Return what the best exchanges reach from a start, and where it is then.

    Parameters
    ----------
    near : int array (n, n)
        Score of each pair of cards.
    group : int array (n,)
        Equal for alike cards.
    sets : sequence of tuple of int
        Cards of each task before the start; they may overlap.
    free : bool array (n,)
        Cards that nothing is on.
    at : int array (n,)
        Start: the card of which each card has the content.

    Returns
    -------
    value : int
        The sets' scores first, then what is free.
    at : int array (n,)
    """
    member = np.zeros((len(near), len(sets) + 1), dtype=np.int64)
    for number, cards in enumerate(sets):
        member[list(cards), number] = 1
    member[:, -1] = free
    weight = np.full(len(sets) + 1, 1 + near.sum(), dtype=np.int64)
    weight[-1] = 1
    alike = group[:, None] == group
    at = at.copy()
    while True:
        gain = np.where(alike, _gains(near, member[at], weight), 0)
        a, b = np.unravel_index(int(np.argmax(gain)), gain.shape)
        if gain[a, b] <= 0:
            break
        at[[a, b]] = at[[b, a]]
    inside = member[at]
    return int((weight * inside * (near @ inside)).sum()) // 2, at


def _gains(near: Ints, member: Ints, weight: Ints) -> Ints:
    """Return by how much the value grows when two cards exchange what is on them."""
    weighted, joins = member * weight, near @ member
    there = weighted @ joins.T
    shared = weighted @ (member * joins).T
    alone = weighted.sum(axis=1)[:, None] - weighted @ member.T
    one_way = there - shared - near * alone - (np.diag(there)[:, None] - shared.T)
    return np.asarray(one_way + one_way.T, dtype=np.int64)


def grown(near: Ints, group: Ints, sets: Sequence[tuple[int, ...]]) -> Ints:
    """Return a start: the largest of disjoint sets first, each grown card by card from its best seed."""
    left = np.ones(len(near), dtype=np.bool_)
    at = np.full(len(near), -1, dtype=np.int64)
    for cards in sorted(sets, key=len, reverse=True):
        need = Counter(group[list(cards)].tolist())
        seeds = np.flatnonzero(left & np.isin(group, list(need)))
        grown_sets = (_grow(near, group, left, need, seed) for seed in seeds.tolist())
        best = max(grown_sets, key=lambda chosen: int(near[np.ix_(chosen, chosen)].sum()))
        left[best] = False
        at[_by_group(best, group)] = _by_group(cards, group)
    content = np.setdiff1d(np.arange(len(near)), at)
    at[_by_group(np.flatnonzero(left), group)] = _by_group(content, group)
    return at


def _grow(near: Ints, group: Ints, left: Bools, need: Counter[int], seed: int) -> list[int]:
    """Return a set with the needed number of cards of each group, the nearest card next."""
    chosen, need, open_ = [seed], Counter(need), left.copy()
    joins = near[seed].copy()
    open_[seed] = False
    need[int(group[seed])] -= 1
    while +need:
        possible = np.flatnonzero(open_ & np.isin(group, list(+need)))
        card = int(possible[np.argmax(joins[possible])])
        chosen.append(card)
        joins += near[card]
        open_[card] = False
        need[int(group[card])] -= 1
    return chosen


def _by_group(cards: Ints | Sequence[int], group: Ints) -> list[int]:
    return sorted(np.asarray(cards).tolist(), key=lambda card: (int(group[card]), card))
