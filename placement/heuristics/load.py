"""What the tasks of a job take where they are placed, as arrays, for changes of many jobs at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from placement.gang import Leaf
from placement.heuristics.gangs import Placed
from placement.instance import Instance, Ints


@dataclass(frozen=True, slots=True)
class Load:
    """What some tasks take.

    Attributes
    ----------
    rows, shapes : int array (T,)
        Of each task; see `placement.heuristics.nodes` for rows.
    cards : int array (C,)
        Cards, numbered row by row; none twice.
    units : int array (C,)
        Units that are taken of each.
    plain : bool
        Whether that is all they take of cards: no device memory, no MIG instances, no zones that they are bound to.
    """

    rows: Ints
    shapes: Ints
    cards: Ints
    units: Ints
    plain: bool


def load(instance: Instance, leaves: Sequence[Leaf], tasks: Sequence[Placed], row_of: Mapping[int, int]) -> Load:
    """Return what some tasks of a job take, given the row of each node."""
    width, plain = instance.widest, True
    pairs = []
    for leaf, _, (node, cards) in tasks:
        shape = instance.shapes[leaves[leaf].shape]
        plain = plain and not shape.memory and shape.profile < 0
        for card in cards:
            if card < width:
                pairs.append((row_of[node] * width + card, shape.units))
            else:
                plain = False
    of_cards = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return Load(
        np.array([row_of[spot[0]] for _, _, spot in tasks], dtype=np.int64),
        np.array([leaves[leaf].shape for leaf, _, _ in tasks], dtype=np.int64),
        of_cards[:, 0].copy(),
        of_cards[:, 1].copy(),
        plain,
    )
