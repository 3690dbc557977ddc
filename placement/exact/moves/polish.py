"""Improve what nodes are left like, by moving placed tasks: first whole nodes are emptied, then tasks move one by one.

The counts of started tasks stay, so every objective on counts does. There is no bound to this: it is improved and
measured.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from placement.exact.layouts.layout import Layout, Spot
from placement.exact.layouts.within import cards_of
from placement.exact.objectives.residual import Nodes, Residual
from placement.instance import Ints
from placement.solver import Limits

CANDIDATES = 24
"""Nodes tried for one task."""
MOVES = 20_000
"""Most tasks tried in all."""
PASSES = 3


class Polish:
    """Moves tasks of a layout so that objectives on nodes' residuals get better, in order.

    Parameters
    ----------
    layout : Layout
        Changed in place.
    objectives : tuple of str
        See `Residual`.
    limits : Limits
    seed : int
    """

    def __init__(self, layout: Layout, objectives: tuple[str, ...], limits: Limits, seed: int) -> None:
        self.layout, self.limits = layout, limits
        self.instance, self.state = layout.instance, layout.state
        self.residual = Residual(self.instance, objectives)
        self.rng = np.random.default_rng(seed)
        self.placed: Ints = np.array([len(spots) for spots in layout.tasks], dtype=np.int64)
        self.costs = self._cost(np.arange(self.instance.nodes))

    def _cost(self, nodes: Ints) -> Ints:
        step = max(1, 200_000 // max(1, len(self.residual.shapes)))
        parts = [
            self.residual.cost(Nodes.of(self.state, nodes[first : first + step], self.placed))
            for first in range(0, len(nodes), step)
        ]
        return np.concatenate(parts) if parts else np.zeros((0, len(self.residual.objectives)), dtype=np.int64)

    def run(self) -> bool:
        """Move tasks until nothing helps or the work is done; return whether the clock did not cut it short."""
        if set(self.residual.objectives) & {"nodes", "whole_nodes"}:
            self._empty_nodes()
        left = MOVES
        for _ in range(PASSES):
            tasks = [(node, spot) for node, spots in enumerate(self.layout.tasks) for spot in spots]
            better = False
            for number in self.rng.permutation(len(tasks)).tolist():
                if not left or not self.limits.left:
                    break
                left -= 1
                better |= self._move_one(*tasks[number])
            if not better or not left or not self.limits.left:
                break
        return self.limits.left > 0

    # --- one task ------------------------------------------------------------------------------------------------

    def _move_one(self, node: int, spot: Spot) -> bool:
        """Move a task to the best of some nodes, if that is better than where it is."""
        if spot not in self.layout.tasks[node]:
            return False
        shape = spot[0]
        before = self.costs[node].copy()
        self._take(node, spot)
        without = self._cost(np.array([node]))[0]
        others = self._candidates(shape, node)
        best: tuple[tuple[int, ...], int, tuple[int, ...]] | None = None
        if len(others):
            cards = [self.state.tightest(shape, other) for other in others.tolist()]
            after = self._with_one_more(shape, others, cards)
            change = after - self.costs[others] + (without - before)
            for i in np.lexsort(change.T[::-1])[:1].tolist():
                best = tuple(change[i].tolist()), int(others[i]), cards[i] or ()
        zero = (0,) * len(before)
        if best is not None and best[0] < zero:
            self._put(best[1], (shape, best[2]))
            self.costs[node] = without
            self.costs[best[1]] = self._cost(np.array([best[1]]))[0]
            return True
        self._put(node, spot)
        return False

    def _candidates(self, shape: int, node: int) -> Ints:
        """Return some nodes with room for a task, without the one it comes from."""
        admitting = np.flatnonzero(self.instance.admits_node[shape][self.instance.node_class])
        if len(admitting) > 4 * CANDIDATES:
            admitting = np.sort(self.rng.choice(admitting, size=4 * CANDIDATES, replace=False))
        room = admitting[self.state.fits(shape, admitting)]
        return np.asarray(room[room != node][:CANDIDATES])

    def _with_one_more(self, shape: int, nodes: Ints, cards: list[tuple[int, ...] | None]) -> Ints:
        """Return the costs of some nodes, each with one more task."""
        task = self.instance.shapes[shape]
        rows = Nodes.of(self.state, nodes, self.placed)
        free = rows.free - self.state.demand[shape]
        units, memory = rows.units.copy(), rows.memory.copy()
        for i, positions in enumerate(cards):
            some = list(cards_of(self.instance, positions or ()))
            units[i, some] -= task.units
            memory[i, some] -= task.memory
        return self.residual.cost(replace(rows, free=free, units=units, memory=memory, placed=rows.placed + 1))

    def _take(self, node: int, spot: Spot) -> None:
        self.layout.remove(node, self.layout.tasks[node].index(spot))
        self.placed[node] -= 1

    def _put(self, node: int, spot: Spot) -> None:
        self.layout.place(spot[0], node, spot[1])
        self.placed[node] += 1

    # --- whole nodes ---------------------------------------------------------------------------------------------

    def _empty_nodes(self) -> None:
        """Empty nodes with few tasks, if all of them find room elsewhere and that is better."""
        cards_only = "nodes" not in self.residual.objectives
        order = np.lexsort((np.arange(self.instance.nodes), self.placed))
        for node in order[self.placed[order] > 0].tolist():
            if not self.limits.left:
                return
            self._empty(node, cards_only)

    def _empty(self, node: int, cards_only: bool) -> None:
        shapes = self.instance.shapes
        leaving = [spot for spot in self.layout.tasks[node] if shapes[spot[0]].gpus or not cards_only]
        if not leaving:
            return
        leaving.sort(key=lambda spot: (-shapes[spot[0]].gpus * shapes[spot[0]].units, spot))
        for spot in leaving:
            self._take(node, spot)
        arrived: list[tuple[int, Spot]] = []
        for shape, _ in leaving:
            host = self._host(shape, node)
            if host is None:
                break
            spot = (shape, self.state.tightest(shape, host) or ())
            self._put(host, spot)
            arrived.append((host, spot))
        touched = np.array(sorted({node, *(host for host, _ in arrived)}), dtype=np.int64)
        now = self._cost(touched)
        change = tuple((now - self.costs[touched]).sum(axis=0).tolist())
        if len(arrived) == len(leaving) and change < (0,) * len(change):
            self.costs[touched] = now
            return
        for host, spot in arrived:
            self._take(host, spot)
        for spot in leaving:
            self._put(node, spot)

    def _host(self, shape: int, without: int) -> int | None:
        """Return a node that takes tasks already and has least to spare for one more, or None."""
        used = np.flatnonzero((self.placed > 0) | self.residual.in_use[self.instance.node_class])
        used = used[used != without]
        room = used[self.state.fits(shape, used)]
        if self.instance.shapes[shape].gpus:
            whole = self.residual.healthy[self.state.kind[room]] & (self.state.units[room] == self.instance.card_units)
            touched = (whole != self.residual.healthy[self.state.kind[room]]).any(axis=1)
            room = room[touched]
        if not len(room):
            return None
        units = np.where(self.residual.healthy[self.state.kind[room]], self.state.units[room], 0).sum(axis=1)
        scale = np.maximum(self.state.free.max(axis=0), 1)
        slack = (self.state.free[room] / scale).min(axis=1)
        return int(room[np.lexsort((slack, units))[0]])
