r"""From counts by pool to places: the largest tasks first, each where it fits most tightly.

A pool whose counts keep the ladder's rows has room for them in whatever places: a task of size g takes exactly g/u of
the blocks of every smaller size u, so once all larger ones are placed the next size finds as many blocks as its row
promises. Best fit is for what comes after: nodes and cards that are left whole stay so. A node or card taken up by best
fit is the tightest one until it is full, so one sort a size gives the whole order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from placement.exact.layouts.layout import Layout
from placement.instance import Instance, Ints
from placement.ladder import Pool, size
from placement.state import State

Counts = Mapping[tuple[int, int], int]
"""Tasks by shape and pool."""


def placed(instance: Instance, pools: tuple[Pool, ...], counts: Counts) -> Layout:
    """Return the layout with so many tasks of each shape in each pool.

    Parameters
    ----------
    instance : Instance
        Supported by `placement.ladder.unsupported`.
    pools : tuple of Pool
    counts : mapping of (int, int) to int
        By shape and number of the pool; within the pools' rows.
    """
    state = State(instance)
    shapes: list[Ints] = [np.zeros(0, dtype=np.int64)]
    nodes: list[Ints] = [np.zeros(0, dtype=np.int64)]
    cards: list[tuple[int, ...]] = []
    for number, pool in enumerate(pools):
        mine = {s: counts[s, number] for s in pool.shapes if counts.get((s, number))}
        for shape, node, positions in _in_pool(instance, state, pool, mine):
            shapes.append(np.full(len(node), shape, dtype=np.int64))
            nodes.append(node)
            cards += map(tuple, positions.tolist())
    return Layout.of_columns(instance, np.concatenate(shapes), np.concatenate(nodes), cards)


def _in_pool(
    instance: Instance, state: State, pool: Pool, counts: Mapping[int, int]
) -> Iterator[tuple[int, Ints, Ints]]:
    """Yield each shape with the nodes (T,) and cards (T, cards of a task) of its tasks, the largest shapes first."""
    if not counts:
        return
    nodes = np.sort(np.concatenate([instance.classes[number].nodes for number in pool.classes]))
    # the cards of a node that are open at all are open to every shape of the pool
    units = np.where(state.admits_card[pool.shapes[0]][state.kind[nodes]], state.units[nodes], 0)
    for shape in sorted(counts, key=lambda s: (-size(instance, s), s)):
        task = instance.shapes[shape]
        if task.units == instance.card_units:
            row, card = _take_whole(units, task.units, task.gpus, counts[shape])
        else:
            row, card = _take_shares(units, task.units, counts[shape])
        yield shape, nodes[row], card


def _take_whole(units: Ints, full: int, cards: int, tasks: int) -> tuple[Ints, Ints]:
    """Take whole cards for some tasks of several cards each; return their rows and cards."""
    whole = units == full
    free = whole.sum(axis=1)
    candidates = np.flatnonzero(free >= cards)
    order = candidates[np.argsort(free[candidates], kind="stable")]
    rows, times = _filled(order, free[order] // cards, tasks)
    rank = np.cumsum(whole[rows], axis=1)
    taken = whole[rows] & (rank <= (times * cards)[:, None])
    at, card = np.nonzero(taken)
    units[rows[at], card] = 0
    return rows[at[::cards]], card.reshape(-1, cards)


def _take_shares(units: Ints, share: int, tasks: int) -> tuple[Ints, Ints]:
    """Take shares of single cards for some tasks; return their rows and cards."""
    row, card = np.nonzero(units >= share)
    free = units[row, card]
    # among equal cards those of the fullest node
    order = np.lexsort((row, units.sum(axis=1)[row], free))
    chosen, times = _filled(order, free[order] // share, tasks)
    units[row[chosen], card[chosen]] -= times * share
    each = np.repeat(chosen, times)
    return row[each], card[each][:, None]


def _filled(order: Ints, room: Ints, tasks: int) -> tuple[Ints, Ints]:
    """Fill places in order, each with as many tasks as it has room for; return those used and the tasks in each."""
    total = np.cumsum(room)
    if not len(total) or total[-1] < tasks:
        raise RuntimeError(f"{tasks} tasks do not fit where the ladder's rows promised room")
    last = int(np.searchsorted(total, tasks))
    times = room[: last + 1].copy()
    times[last] -= total[last] - tasks
    return order[: last + 1], times
