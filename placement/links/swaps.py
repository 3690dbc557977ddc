r"""Good sets of cards of one node where they are too many, or share too many cards, to be enumerated.

What is on the cards (tasks, or being free) moves as a whole. With $M_{at} = 1$ where card $a$ is in set $t$ and weights
$v_t$, the value $\sum_t v_t \sum_{a < b} M_{at} M_{bt} s_{ab}$ changes, when what is on $a$ and $b$ changes places, by
$\sum_t v_t M_{at} (1 - M_{bt}) (c_{bt} - s_{ab} - c_{at})$ and the same with $a$ and $b$ exchanged, $c = s M$.
The best exchange of alike cards is made until none helps.
"""

from __future__ import annotations

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
    inside = member[at]
    joins = near @ inside
    while True:
        gain = np.where(alike, _gains(near, inside, joins, weight), 0)
        a, b = np.unravel_index(int(np.argmax(gain)), gain.shape)
        if gain[a, b] <= 0:
            break
        joins += np.outer(near[a] - near[b], inside[b] - inside[a])
        at[[a, b]], inside[[a, b]] = at[[b, a]], inside[[b, a]]
    return int((weight * inside * joins).sum()) // 2, at


def _gains(near: Ints, member: Ints, joins: Ints, weight: Ints) -> Ints:
    """Return by how much the value grows when two cards exchange what is on them."""
    if (member.sum(axis=1) <= 1).all():
        # the same without products of matrices
        one = member.argmax(axis=1)
        alone = (weight[one] * member.max(axis=1))[:, None]
        same = (one[:, None] == one) & (alone > 0) & (alone.T > 0)
        there = alone * joins[:, one].T
        shared, alone = np.where(same, there, 0), np.where(same, 0, alone)
    else:
        weighted = member * weight
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
        best = _grown_best(near, group, left, np.bincount(group[list(cards)], minlength=int(group.max()) + 1))
        left[best] = False
        at[_by_group(best, group)] = _by_group(cards, group)
    content = np.setdiff1d(np.arange(len(near)), at)
    at[_by_group(np.flatnonzero(left), group)] = _by_group(content, group)
    return at


def _grown_best(near: Ints, group: Ints, left: Bools, need: Ints) -> Ints:
    """Return the best of the sets with the needed number of cards of each group, grown from each seed at once.

    The nearest of the cards that are left comes next, the first of equal ones.
    """
    seeds = np.flatnonzero(left & (need[group] > 0))
    rows = np.arange(len(seeds))
    wanted, open_, joins = np.tile(need, (len(seeds), 1)), np.tile(left, (len(seeds), 1)), near[seeds]
    chosen, score = [seeds], np.zeros(len(seeds), dtype=np.int64)
    open_[rows, seeds] = False
    wanted[rows, group[seeds]] -= 1
    for _ in range(int(need.sum()) - 1):
        card = np.where(open_ & (wanted[:, group] > 0), joins, -1).argmax(axis=1)
        score += joins[rows, card]
        joins += near[card]
        open_[rows, card] = False
        wanted[rows, group[card]] -= 1
        chosen.append(card)
    best: Ints = np.stack(chosen, axis=1)[int(score.argmax())]
    return best


def _by_group(cards: Ints | Sequence[int], group: Ints) -> list[int]:
    return sorted(np.asarray(cards).tolist(), key=lambda card: (int(group[card]), card))
