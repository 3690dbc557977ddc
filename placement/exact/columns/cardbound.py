r"""What the rest of a node can be worth at most: cards packed exactly, resources charged for.

For prices :math:`\lambda \ge 0` of resources a task of shape *s* is worth :math:`v_s = (p_s - \lambda^\top d_s)^+`
beyond what it is charged, and what fits into free resources *f* and free cards is worth at most

.. math:: \lambda^\top f + Z(w) + \sum_{c\ \text{in part free}} z(u_c),

with :math:`z(u)` the most that one card with *u* free units can hold (a knapsack over the shares) and *Z(w)* the most
that *w* wholly free cards can: each filled with shares, or blocks of them with tasks of whole cards (Lagrangian
relaxation; Geoffrion 1974). Two tasks of 0.6 do not fit on one card, and here this is seen, which matters far more than
the linear relaxation's fractions of resources. Device memory and kinds of cards are forgotten.
"""

from __future__ import annotations

import numpy as np

from placement.exact.columns.labels import Labels, Nodes
from placement.exact.milp.arrays import Floats
from placement.instance import Ints

LEVELS = 64
"""Units of a card that tables tell apart; requests and free units are rounded down, so that bounds stay bounds."""
STEPS = (0.3, 0.1)
"""By how much prices of resources are changed up and down in search of the least bound."""


class CardBound:
    """Tables of bounds for some node classes.

    Parameters
    ----------
    nodes : Nodes
    which : int array (k,)
        Node classes.
    order : int array (S',)
        Shapes in the order in which they are decided.
    prices : float array (k, S')
        In that order, at most 0 for tasks that a class cannot take.
    most : int array (S',)
        Most tasks of each shape.
    """

    def __init__(self, nodes: Nodes, which: Ints, order: Ints, prices: Floats, most: Ints) -> None:
        self.nodes, self.which, self.order, self.prices, self.most = nodes, which, order, prices, most
        whole = nodes.instance.card_units
        self.step = -(-whole // LEVELS)
        self.full = whole // self.step
        self.need = nodes.need[order, :-2].astype(np.float64)
        self.free = nodes.room[which, :-2].astype(np.float64)
        self.wholly = nodes.room[which, -1]
        units = (nodes.cards[which] >> nodes.memory_bits) & ((1 << nodes.unit_bits) - 1)
        self.partial = np.where(units == whole, 0, units // self.step)
        self.widest = int(self.wholly.max(initial=0))
        self.row = np.zeros(len(nodes.room), dtype=np.int64)
        self.row[which] = np.arange(len(which))
        gpus = nodes.gpus[order]
        self.blocks = sorted({int(g) for g in gpus[nodes.is_whole[order]]})

    def root(self, charge: Floats, first: int = 0) -> Floats:
        """Return a bound on all that nodes can hold of the shapes from one on, for prices (k, V, Q) of resources."""
        z, blocks, constant = self._tables(charge, first, None)
        packed = self._wholes(z[self.full], blocks)
        rows = np.arange(len(self.which))
        total = (charge * self.free[:, None]).sum(axis=2) + constant + packed[self.wholly, rows]
        for c in range(self.partial.shape[1]):
            total += z[self.partial[:, c], rows]
        return np.asarray(total)

    def improved(self, charge: Floats, first: int, rounds: int) -> Floats:
        """Return prices (k, Q) of resources with a lower bound, found by changing one after the other."""
        kinds = charge.shape[1]
        unit = np.maximum(self.prices.max(axis=1, initial=0.0), 1e-12)[:, None] / np.maximum(self.free, 1.0)
        for number in range(rounds):
            step = STEPS[min(number * len(STEPS) // max(1, rounds), len(STEPS) - 1)]
            for q in range(kinds):
                tried = np.repeat(charge[:, None], 4, axis=1)
                tried[:, 1, q] *= 1 + step
                tried[:, 2, q] *= 1 - step
                # prices near 0 are left, or made 0, by jumps
                tried[:, 3, q] = np.where(charge[:, q] > 0.05 * unit[:, q], 0.0, 0.3 * unit[:, q])
                found = self.root(tried, first)
                charge = tried[np.arange(len(tried)), found.argmin(axis=1)]
        return charge

    def fix(self, charge: Floats) -> None:
        """Make the tables for prices (k, V, Q) of resources."""
        kept: list[tuple[Floats, Floats, Floats]] = []
        self.charge = charge
        self._tables(charge, 0, kept)
        self.tables = kept[::-1]

    def reach(self, labels: Labels, step: int) -> Floats:
        """Return what labels can be worth at most once the shapes from a step on are decided."""
        z, packed, constant = self.tables[step]
        row = self.row[labels.node]
        total = np.einsum("nvq,nq->nv", self.charge[row], labels.room[:, :-2].astype(np.float64)) + constant[row]
        total += packed[labels.room[:, -1] * len(self.which) + row]
        if labels.cards.shape[1]:
            units = (labels.cards >> self.nodes.memory_bits) & ((1 << self.nodes.unit_bits) - 1)
            level = np.where(units == self.nodes.instance.card_units, 0, units // self.step)
            at = level * len(self.which) + row[:, None]
            for c in range(level.shape[1]):
                total += z[at[:, c]]
        return np.asarray(labels.value + total.min(axis=1))

    def _tables(
        self, charge: Floats, first: int, kept: list[tuple[Floats, Floats, Floats]] | None
    ) -> tuple[Floats, dict[int, Floats], Floats]:
        """Return z, the best task by number of whole cards, and what tasks without cards add, from a step on.

        Levels come first, for all classes are worked on at one level at a time, and that then runs along memory.
        """
        shape = charge.shape[:2]
        # what has no price comes out at 0 too, for charges take off from it
        worth = np.ascontiguousarray((self.prices[:, None] - charge @ self.need.T).transpose(2, 0, 1))
        np.maximum(worth, 0.0, out=worth)
        z = np.zeros((self.full + 1, *shape))
        blocks = {g: np.zeros(shape) for g in self.blocks}
        constant = np.zeros(shape)
        if kept is not None:
            kept.append(self._flat(z, blocks, constant))
        for i in range(len(self.order) - 1, first - 1, -1):
            s = int(self.order[i])
            gpus, units = int(self.nodes.gpus[s]), int(self.nodes.units[s])
            if not gpus:
                constant = constant + self.most[i] * worth[i]
            elif self.nodes.is_whole[s]:
                blocks[gpus] = np.maximum(blocks[gpus], worth[i])
            else:
                self._one_more(z, units, worth[i] / gpus)
            if kept is not None:
                kept.append(self._flat(z, blocks, constant))
        return z, blocks, constant

    def _one_more(self, z: Floats, units: int, worth: Floats) -> None:
        """Let cards hold parts of one more shape."""
        size = units // self.step
        if not size:
            z += (self.nodes.instance.card_units // units) * worth
            return
        for level in range(size, self.full + 1):
            np.maximum(z[level], z[level - size] + worth, out=z[level])

    def _wholes(self, one: Floats, blocks: dict[int, Floats]) -> Floats:
        """Return the most that a number of wholly free cards can hold, from what one and what blocks are worth."""
        packed = np.zeros((self.widest + 1, *one.shape))
        for cards in range(1, self.widest + 1):
            best = packed[cards - 1] + one
            for g, worth in blocks.items():
                if g <= cards:
                    np.maximum(best, packed[cards - g] + worth, out=best)
            packed[cards] = best
        return packed

    def _flat(self, z: Floats, blocks: dict[int, Floats], constant: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the tables as rows of (level, class) and columns of prices; `z` may change afterwards."""
        packed = self._wholes(z[self.full], blocks)
        return z.copy().reshape(-1, z.shape[2]), packed.reshape(-1, z.shape[2]), constant
