"""The tasks that fragmentation gradient descent expects, and the idle GPU that they could use."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placement.evaluate import demand
from placement.instance import Bools, Instance, Ints

TYPICAL_PERCENT = 95
"""Share of the wanted tasks that the typical ones must cover."""


@dataclass(frozen=True, slots=True)
class Typical:
    """The expected tasks that take cards.

    Shapes of arrays use M tasks and U requests on one card that differ.

    Attributes
    ----------
    total : int
        Tasks of all kinds counted, those without cards included.
    weight, cpu, gpus, request : int arrays (M,)
        How many of `total` tasks are like this, their CPU, their cards, and their request among the U.
    on_node : bool array (M, K)
        Whether the task may run on the node class.
    units : int array (U,)
        Units of each card.
    on_card : bool array (C + 1, U)
        Whether the request may use the card kind; False in the last row, for no card.
    """

    total: int
    weight: Ints
    cpu: Ints
    gpus: Ints
    request: Ints
    on_node: Bools
    units: Ints
    on_card: Bools

    def saved(self, node_class: Ints, cpu: Ints, idle: Ints, kind: Ints) -> Ints:
        """Return `total` times the idle units that an expected task can use, for each row of the arguments."""
        room = (idle[:, :, None] >= self.units) & self.on_card[kind]
        usable = np.einsum("ncu,nc->nu", room, idle)
        runs = room.sum(axis=1)[:, self.request] >= self.gpus
        runs &= (cpu[:, None] >= self.cpu) & self.on_node.T[node_class]
        saved: Ints = np.where(runs, usable[:, self.request], 0) @ self.weight
        return saved


def typical_tasks(instance: Instance) -> Typical:
    """Return the commonest tasks that together make up `TYPICAL_PERCENT` of those that pending jobs want."""
    cpu = instance.resources.index("cpu") if "cpu" in instance.resources else None
    counts: dict[tuple[int, int, int, bytes, bytes], int] = {}
    shape_of: dict[tuple[int, int, int, bytes, bytes], int] = {}
    for number, (shape, count) in enumerate(zip(instance.shapes, demand(instance).tolist(), strict=True)):
        cores = 0 if cpu is None else shape.demand[cpu]
        node, card = instance.admits_node[number].tobytes(), instance.admits_card[number].tobytes()
        key = (cores, shape.units, shape.gpus, node, card)
        if count:
            counts[key] = counts.get(key, 0) + count
            shape_of.setdefault(key, number)
    wanted, covered = sum(counts.values()), 0
    kept = []
    for key in sorted(counts, key=lambda key: (counts[key], key), reverse=True):
        if covered * 100 >= wanted * TYPICAL_PERCENT:
            break
        covered += counts[key]
        if key[2]:
            kept.append(key)
    requests = sorted({(key[1], key[4]) for key in kept})
    first = np.array([shape_of[key] for key in kept], dtype=np.int64)
    on_card = np.zeros((len(instance.card_kinds) + 1, len(requests)), dtype=np.bool_)
    for u, (_, card) in enumerate(requests):
        on_card[:-1, u] = np.frombuffer(card, dtype=np.bool_)
    return Typical(
        total=max(1, covered),
        weight=np.array([counts[key] for key in kept], dtype=np.int64),
        cpu=np.array([key[0] for key in kept], dtype=np.int64),
        gpus=np.array([key[2] for key in kept], dtype=np.int64),
        request=np.array([requests.index((key[1], key[4])) for key in kept], dtype=np.int64),
        on_node=instance.admits_node[first],
        units=np.array([units for units, _ in requests], dtype=np.int64),
        on_card=on_card,
    )
