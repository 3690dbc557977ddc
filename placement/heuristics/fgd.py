"""Fragmentation gradient descent: the placement after which least idle GPU is lost to the expected tasks."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from placement.heuristics.nodes import Nodes
from placement.heuristics.rule import MOST, Rule
from placement.heuristics.typical import typical_tasks
from placement.heuristics.typical_tables import MIXED, Tables
from placement.instance import Bools, Ints, Shape


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

    def __init__(self, nodes: Nodes, rng: np.random.Generator) -> None:
        super().__init__(nodes, rng)
        self.typical = typical_tasks(nodes.instance)
        self._tables = Tables(nodes.instance, self.typical)
        self._group = self._tables.group[nodes.row_class]
        self._any_mixed = bool((self._tables.group == MIXED).any())
        self._card: dict[int, npt.NDArray[np.int16]] = {}

    def scores(self, shape: int, rows: Ints) -> Ints:
        """Return the score of the best choice of cards."""
        if not self._any_mixed:
            return self._scores(shape, rows, self._group.take(rows))
        group, score = self._group[rows], np.zeros(len(rows), dtype=np.int64)
        for some in (group == MIXED, group != MIXED):
            if some.any():
                score[some] = self._scores(shape, rows[some], group[some])
        return score

    def cards(self, shape: int, row: int) -> tuple[int, ...]:
        """Return the card whose score is best for a share of one card, the tightest cards otherwise.

        The card is the one found by `scores` for this node or, if it was not scored by itself, for its kind.
        """
        if not self._is_share(shape):
            return super().cards(shape, row)
        chosen = self._card[shape]
        card = int(chosen[row])
        if card < 0:
            card = int(chosen[self.nodes.kind_row[row]])
        return self.nodes.state.on_card(shape, row, card)

    def _is_share(self, shape: int) -> bool:
        return self.shapes[shape].gpus == 1 and self.shapes[shape].units < self.card_units

    def _scores(self, shape: int, rows: Ints, group: Ints) -> Ints:
        """Return the scores of rows that are either all `MIXED` or all in groups, and keep the best cards."""
        state, task = self.nodes.state, self.shapes[shape]
        idle, usable = self.idle(rows).T, state.within_reach(shape, rows).T
        cpu = state.free[:, self._cpu][rows]
        after = cpu - task.demand[self._cpu]
        if not self._is_share(shape):
            taken = self._taken(task, rows, usable)
            return self._score(task, self._saved_by(rows, group, (cpu, after), idle, idle - taken * task.units))
        if group[0] != MIXED:
            gain = self._tables.saved_by_share(group, (cpu, after), idle, task.units)
        else:
            card, row = np.nonzero(usable)
            less = idle[:, row]
            less[card, np.arange(len(row))] -= task.units
            gain = np.zeros(usable.shape, dtype=np.int64)
            gain[card, row] = self._saved_by(rows[row], group[row], (cpu[row], after[row]), idle[:, row], less)
        score = np.where(usable, self._score(task, gain), -1)
        chosen = self._card.get(shape)
        if chosen is None:
            chosen = self._card[shape] = np.full(len(self.nodes.version), -1, dtype=np.int16)
        chosen[rows] = score.argmax(axis=0)
        best: Ints = score.max(axis=0)
        return best

    def _saved_by(self, rows: Ints, group: Ints, cpu: tuple[Ints, Ints], idle: Ints, less: Ints) -> Ints:
        """Return how much more the typical tasks can use after than before, summed over them."""
        if group[0] == MIXED:
            node_class, kind = self.nodes.row_class[rows], self.nodes.state.kind[rows]
            return self.typical.saved(node_class, cpu[1], less.T, kind) - self.typical.saved(
                node_class, cpu[0], idle.T, kind
            )
        # both at once, since most of the time goes into the calls
        both = self._tables.saved(
            np.concatenate([group, group]), np.concatenate(cpu), np.concatenate([idle, less], axis=1)
        )
        return both[len(rows) :] - both[: len(rows)]

    def _taken(self, task: Shape, rows: Ints, usable: Bools) -> Bools:
        """Return the cards (C, rows) that a task takes, which are the tightest ones."""
        if task.units == self.card_units and not self._any_mixed:
            return usable & (usable.cumsum(axis=0) <= task.gpus)  # all are free, and what fits on one fits on another
        state = self.nodes.state
        return _tightest(usable.T, state.units[rows], state.memory[rows], task.gpus).T

    def _score(self, task: Shape, gain: Ints) -> Ints:
        """Return the score from how much more the typical tasks can use; what is idle falls by what the task takes."""
        unit = self.card_units * self.typical.total
        fall = gain + task.gpus * task.units * self.typical.total
        # a large rise has score 0, long before the exponential would overflow
        score: Ints = (MOST / (1.0 + np.exp(np.minimum(-fall / unit, MOST)))).astype(np.int64)
        return score


def _tightest(usable: Bools, free: Ints, memory: Ints, gpus: int) -> Bools:
    """Return the `gpus` cards of each row that have least room, as `State.tightest` chooses them."""
    chosen = np.zeros(usable.shape, dtype=np.bool_)
    if gpus:
        order = np.lexsort((memory, free, ~usable), axis=1)[:, :gpus]
        np.put_along_axis(chosen, order, True, axis=1)
    return chosen
