"""Halves of nodes: a resource for tasks of so many cards that no two of them fit on one node.

On a node of at most C cards of a model, a task that takes more than C / 2 of them counts for two halves of the node,
and one that takes just C / 2 for one. Whatever fits on the node has no more than two (a dual feasible function; see
Fekete and Schepers, Mathematical Programming 91, 2001). It says more than the cards do where tasks leave some of a node
that is no use to others of their size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from placement.instance import Instance, Shape
from placement.scheduling.capacity import Profile, models_of
from placement.shared_cards import parted


@dataclass(frozen=True, slots=True)
class Halves:
    """Halves of the nodes of some models.

    Attributes
    ----------
    resource : mapping of int to int
        By model, the number of the resource; after those of the cards.
    most : mapping of int to int
        By model, the most cards of it in a node.
    profiles : tuple of Profile
        Of these resources.
    units : int
        Card units of a whole card.
    """

    resource: Mapping[int, int]
    most: Mapping[int, int]
    profiles: tuple[Profile, ...]
    units: int

    def of(self, pool: int, shape: Shape) -> int:
        """Return how many halves of nodes with a model a task takes all of whose cards are of it."""
        if pool not in self.resource or shape.profile >= 0 or not self._whole(shape):
            return 0
        twice = 2 * shape.gpus - self.most[pool]
        return 2 if twice > 0 else int(twice == 0)

    def _whole(self, shape: Shape) -> bool:
        return shape.units == self.units and not shape.counts_whole


def halves(instance: Instance) -> Halves:
    """Return the halves of nodes with models of which some task takes more than half of a node, but not all."""
    models = models_of(instance)
    most, nodes = [0] * len(models), [0] * len(models)
    for one in instance.classes:
        if one.slots >= 0:
            continue
        kinds = [instance.card_kinds[kind] for kind, free, _ in one.cards if free]
        for pool, model in enumerate(models):
            cards = sum(kind.healthy and kind.model == model for kind in kinds)
            most[pool] = max(most[pool], cards)
            nodes[pool] += one.size * (cards > 0)
    whole = {s.gpus for number, s in enumerate(instance.shapes) if s.profile < 0 and not parted(instance, number)}
    pays = [pool for pool, cards in enumerate(most) if any(cards / 2 < gpus < cards for gpus in whole)]
    always = np.zeros(1, dtype=np.int64)
    return Halves(
        resource={pool: len(models) + number for number, pool in enumerate(pays)},
        most={pool: most[pool] for pool in pays},
        profiles=tuple(Profile(always, np.array([2 * nodes[pool]], dtype=np.int64)) for pool in pays),
        units=instance.card_units,
    )
