"""Fragmentation gradient descent: the placement after which least idle GPU is lost to the expected tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from placement.evaluate import demand
from placement.heuristics.pool import Pool
from placement.heuristics.rule import MOST, Rule
from placement.instance import Bools, Instance, Ints

TYPICAL_PERCENT = 95
"""Share of the wanted tasks that the typical ones must cover."""


class Fgd(Rule):
    r"""Steepest descent on fragmentation, with a score of whole numbers.

    A node's fragmentation :math:`F_n` is the idle GPU on it that a typical task, drawn at random, could not use: all
    of it if the task takes no card, may not use the node's cards, or finds too little CPU or too few cards with
    room; otherwise what is idle on cards too full for it. With :math:`\Delta` the fall of :math:`F_n` in cards, the
    score is :math:`\lfloor 100 / (1 + e^{-\Delta}) \rfloor`. A share tries every card with room and takes the first
    of the best; whole cards are taken from the tightest on.

    Source: Weng et al., "Beware of Fragmentation" (ATC'23), and ``fgd_score.go``, ``frag.go`` of its simulator. As
    there, CPU, cards and what may use them count, memory does not; a typical task is one of the commonest that
    together make up 95 % of the wanted tasks. Unlike the objective ``fragmentation`` of `placement.evaluate`, which
    counts every resource and every task.

    The rounding is part of the rule. It makes ties, which the fixed order of nodes turns into first fit; on the openb
    trace the exact :math:`\Delta` does worse. :math:`F_n` is summed in whole numbers, because a difference in the last
    digit between equal nodes would break ties at random.
    """

    name: ClassVar[str] = "fgd"

    def __init__(self, pool: Pool, rng: np.random.Generator) -> None:
        super().__init__(pool, rng)
        self.typical = typical_tasks(pool.instance)
        self._before: Ints = np.zeros(0, dtype=np.int64)
        self._seen: Ints = np.zeros(0, dtype=np.int64)

    def scores(self, shape: int, slots: Ints) -> Ints:
        """Return the score of the best choice of cards."""
        best: Ints = self._by_card(shape, slots).max(axis=1)
        return best

    def cards(self, shape: int, node: int) -> tuple[int, ...]:
        """Return the card whose score is best for a share of one card, the tightest cards otherwise."""
        if not self._is_share(shape):
            return super().cards(shape, node)
        return (int(self._by_card(shape, self.pool.slot_of[node : node + 1])[0].argmax()),)

    def _is_share(self, shape: int) -> bool:
        return self.shapes[shape].gpus == 1 and self.shapes[shape].units < self.card_units

    def _by_card(self, shape: int, slots: Ints) -> Ints:
        """Return scores of shape (slots, C) for a share, -1 where the card has no room, and (slots, 1) otherwise."""
        state, task = self.pool.state, self.shapes[shape]
        idle, kind = self.idle(slots), state.kind[slots]
        cpu = state.free[slots, self._cpu] - task.demand[self._cpu]
        before = self._fragmentation(slots)
        usable = state.usable(shape, slots)
        if not self._is_share(shape):
            after = np.where(
                _tightest(usable, state.units[slots], state.memory[slots], task.gpus), idle - task.units, idle
            )
            return self._score(before - self.typical.fragmentation(self._classes(slots), cpu, after, kind))[:, None]
        row, card = np.nonzero(usable)
        after = idle[row]
        after[np.arange(len(row)), card] -= task.units
        fragments = self.typical.fragmentation(self._classes(slots)[row], cpu[row], after, kind[row])
        score = np.full(usable.shape, -1, dtype=np.int64)
        score[row, card] = self._score(before[row] - fragments)
        return score

    def _classes(self, slots: Ints) -> Ints:
        return self.pool.node_class[slots]

    def _score(self, fall: Ints) -> Ints:
        with np.errstate(over="ignore"):  # a large rise has score 0
            score: Ints = (MOST / (1.0 + np.exp(-fall / (self.card_units * self.typical.total)))).astype("int64")
        return score

    def _fragmentation(self, slots: Ints) -> Ints:
        """Return the fragmentation of slots as they are, computed once for each kind of node."""
        pool = self.pool
        new = pool.capacity - len(self._before)
        if new:
            self._before = np.concatenate([self._before, np.zeros(new, dtype=np.int64)])
            self._seen = np.concatenate([self._seen, np.zeros(new, dtype=np.int64)])
        stale = slots[self._seen[slots] != pool.version[slots]]
        if len(stale):
            state = pool.state
            self._before[stale] = self.typical.fragmentation(
                self._classes(stale), state.free[stale, self._cpu], self.idle(stale), state.kind[stale]
            )
            self._seen[stale] = pool.version[stale]
        return self._before[slots]


def _tightest(usable: Bools, free: Ints, memory: Ints, gpus: int) -> Bools:
    """Return the `gpus` cards of each row that have least room, as `State.tightest` chooses them."""
    chosen = np.zeros(usable.shape, dtype=np.bool_)
    if gpus:
        order = np.lexsort((memory, free, ~usable), axis=1)[:, :gpus]
        np.put_along_axis(chosen, order, True, axis=1)
    return chosen


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

    def fragmentation(self, node_class: Ints, cpu: Ints, idle: Ints, kind: Ints) -> Ints:
        """Return `total` times the idle units that an expected task cannot use, for each row of the arguments."""
        room = (idle[:, :, None] >= self.units) & self.on_card[kind]
        usable = np.einsum("ncu,nc->nu", room, idle)
        runs = room.sum(axis=1)[:, self.request] >= self.gpus
        runs &= (cpu[:, None] >= self.cpu) & self.on_node.T[node_class]
        saved = np.where(runs, usable[:, self.request], 0) @ self.weight
        fragments: Ints = idle.sum(axis=1) * self.total - saved
        return fragments


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
