"""Which nodes to count together: one pool for each node class where these are few enough, else like classes merged."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from placement.index import members
from placement.instance import Bools, Instance, Ints
from placement.state import State

MOST_PAIRS = 30_000
"""Pools times shapes that a model may have."""


def separable(instance: Instance) -> bool:
    """Return whether `parts_of` gives every node class a pool of its own."""
    return len(instance.classes) <= _budget(instance, MOST_PAIRS)


def _budget(instance: Instance, most_pairs: int) -> int:
    return max(8, most_pairs // max(1, len(instance.shapes)))


def parts_of(state: State, most_pairs: int = MOST_PAIRS, levels: Collection[int] = ()) -> list[tuple[Ints, Ints]]:
    """Return the nodes of an instance as pools: one a node class where that is few enough, else like classes merged.

    Parameters
    ----------
    state : State
        The instance before any new task.
    most_pairs : int
        Pools times shapes that the model may have.
    levels : collection of int
        Levels of domains, no two of which a pool merges, however many pairs there are then.
    """
    instance = state.instance
    first = np.array([c.nodes[0] for c in instance.classes], dtype=np.int64)
    times = np.array([c.size for c in instance.classes], dtype=np.int64)
    budget = _budget(instance, most_pairs)
    merged: list[list[int]] = []
    for fineness in (None, 6, 3, 1, 0):
        merged = _merged(state, first, fineness, levels)
        if len(merged) <= budget:
            break
    return [(first[members], times[members]) for members in merged]


def _merged(state: State, first: Ints, fineness: int | None, levels: Collection[int]) -> list[list[int]]:
    """Return class indices by pool; `fineness` is how many steps from empty to full tell nodes apart, None for all."""
    instance = state.instance
    columns: list[Ints] = [_numbers(instance.admits_node.T)]
    usable = (state.units[first] > 0) & (state.kind[first] >= 0)
    kinds = np.zeros((len(first), len(instance.card_kinds)), dtype=np.bool_)
    rows, positions = np.nonzero(usable)
    kinds[rows, state.kind[first][rows, positions]] = True
    columns.append(_numbers(kinds))
    limits: dict[tuple[int, ...], int] = {}
    if instance.zoned:
        # within one zone here and anywhere there: counted together, nothing would be said of zones
        columns.append(np.unique(instance.bound.T, axis=0, return_inverse=True)[1].reshape(-1))
    columns.append(np.array([limits.setdefault(c.limits, len(limits)) for c in instance.classes], dtype=np.int64))
    columns += [instance.domains[level, first] for level in levels]
    if fineness is None:
        columns.append(np.arange(len(first)))
    elif fineness:
        columns.append((state.units[first] == instance.card_units).sum(axis=1))
        largest = np.maximum(1, state.free[first].max(axis=0, initial=1))
        columns += list((state.free[first] * fineness // largest).T)
    keys = np.stack(columns, axis=1)
    _, start, index = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    # numbered as they first come
    order = np.argsort(np.argsort(start, kind="stable"), kind="stable")
    return [some.tolist() for some in members(order[index.reshape(-1)], len(start))]


def _numbers(rows: Bools) -> Ints:
    """Return a number for each row, the same for equal rows."""
    seen: dict[bytes, int] = {}
    packed = np.packbits(rows, axis=1)
    return np.array([seen.setdefault(row.tobytes(), len(seen)) for row in packed], dtype=np.int64)
