"""How many patterns nodes may have, estimated from above without listing them."""

from __future__ import annotations

import numpy as np

from placement.evaluate import demand
from placement.instance import Instance, Ints, NodeClass

LEVELS = 64
"""Steps in which amounts are counted; requests are rounded down, so that no pattern is missed."""


def most_patterns(instance: Instance, enough: int) -> int:
    """Return a number that the patterns of all node classes do not exceed; counting stops beyond `enough`.

    Parameters
    ----------
    instance : Instance
    enough : int
    """
    wanted = demand(instance)
    total = 0
    for number, node_class in enumerate(instance.classes):
        total += _of_class(instance, number, node_class, wanted)
        if total > enough:
            break
    return total


def _of_class(instance: Instance, number: int, node_class: NodeClass, wanted: Ints) -> int:
    """Return the least count over the resources, card units among them, each taken alone."""
    units = sum(card[1] for card in node_class.cards if instance.card_kinds[card[0]].healthy)
    rooms = [*node_class.free, units]
    asked: list[list[int]] = []
    most: list[int] = []
    for s in np.flatnonzero(wanted).tolist():
        task = instance.shapes[s]
        need = [*task.demand, task.gpus * task.units]
        alone = min([int(wanted[s]), *(room // amount for room, amount in zip(rooms, need, strict=True) if amount)])
        if alone and instance.admits_node[s, number]:
            asked.append(need)
            most.append(alone)
    counts = [_multisets(room, [need[r] for need in asked], most) for r, room in enumerate(rooms)]
    return min(counts, default=1)


def _multisets(room: int, sizes: list[int], most: list[int]) -> int:
    """Return how many choices of items, each up to its most, fit a room; sizes count in whole levels, rounded down."""
    ways = np.zeros(LEVELS + 1, dtype=np.float64)
    ways[0] = 1.0
    for size, times in zip(sizes, most, strict=True):
        step = size * LEVELS // room if room else 0
        if not step:
            ways *= times + 1
            continue
        total = ways.copy()
        for taken in range(1, min(times, LEVELS // step) + 1):
            total[taken * step :] += ways[: LEVELS + 1 - taken * step]
        ways = total
    return int(min(ways.sum(), 1e18))
