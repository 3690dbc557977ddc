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
    tasks : int array (2, T)
        Row and shape of each task; see `placement.heuristics.nodes` for rows.
    cards : int array (2, C)
        Cards, numbered row by row, none twice; and the units that are taken of each.
    plain : bool
        Whether that is all they take of cards: no device memory, no MIG instances, no zones that they are bound to.
    """

    tasks: Ints
    cards: Ints
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
    of_tasks = [(row_of[spot[0]], leaves[leaf].shape) for leaf, _, spot in tasks]
    return Load(_columns(of_tasks), _columns(pairs), plain)


def _columns(pairs: Sequence[tuple[int, int]]) -> Ints:
    return np.array(pairs, dtype=np.int64).reshape(-1, 2).T.copy()


def together(loads: Sequence[Load], signs: Sequence[int]) -> Ints:
    """Return the cards of some loads and the units that are taken of each, less than 0 where the sign is -1.

    Returns
    -------
    int array (2, C)
        A card may be listed more than once.
    """
    found = np.concatenate([one.cards for one in loads], axis=1)
    found[1] *= np.repeat(signs, [one.cards.shape[1] for one in loads])
    return found
