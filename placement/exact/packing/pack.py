"""Pack tasks into the nodes of a pool, many nodes at a time: each step gives every node the task that suits it best.

A task suits a node where its share of the node's resources is near its share of the node's idle cards: with less, room
for demanding tasks is wasted on a modest one; with more, cards are left that nothing can use. Large tasks go first, as
far as that allows, and a share of a card goes where what is left of the card can be filled up.

A task that is bound to NUMA zones sees each of them as a node of its own: with the room that it has within, and the
cards there, and it goes where its score is best.

All of it is arithmetic on arrays of nodes and shapes, so the time of a step does not depend on how many nodes it is
about, up to some hundreds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placement.exact.layouts.layout import Layout
from placement.exact.layouts.within import ZoneRoom, zone_positions
from placement.exact.milp.arrays import Floats
from placement.instance import Bools, Ints
from placement.solver import Limits
from placement.state import State

BATCHES, LEAST, MOST = 12, 32, 512
"""Batches that a pool is cut into, and how many nodes a batch has at least and at most. What one batch takes is missing
to the next, so a few large ones would leave the last nodes with what nobody else wanted."""
GREEDY, SPARING, WASTEFUL = 3.0, 0.05, 4.0
"""How much it counts, in doublings of a task's worth, that a task takes more than its share of a resource (per doubling
of that share), that it takes all of its share, and that it leaves a card in a state that nothing fills (per size)."""
FULLER = 0.01
"""How much it counts, in doublings of worth, that a zone is wholly idle: of like ones the fuller is filled up."""
FINEST = 4096
"""Units of a card up to which it is worked out what fills a card."""


def pack(
    layout: Layout, nodes: Ints, supply: Ints, worth: Floats, limits: Limits, batches: type[Batch] | None = None
) -> int:
    """Place tasks on nodes until none fits or the time is up; return how many.

    Parameters
    ----------
    layout : Layout
        Changed in place.
    nodes : int array
        Nodes that admit the same shapes and count in the same domain limits; the first ones choose first.
    supply : int array (S,)
        Tasks of each shape to place at most; kept up to date.
    worth : float array (S,)
        Worth of one task of each shape.
    limits : Limits
    batches : type, optional
        What chooses the tasks, if not `Batch` itself.
    """
    if not len(nodes):
        return 0
    kind = batches or Batch
    instance = layout.instance
    admitted = instance.admits_node[:, instance.node_class[nodes[0]]]
    batch = min(MOST, max(LEAST, -(-len(nodes) // BATCHES)))
    placed = 0
    for first in range(0, len(nodes), batch):
        if limits.left <= 0:
            break
        shapes = np.flatnonzero(admitted & (supply > 0))
        if not len(shapes):
            break
        placed += kind(layout, nodes[first : first + batch], shapes, worth[shapes]).run(supply)
    return placed


def best_filling(sizes: Ints, units: int) -> Ints:
    """Return, for each room of a card up to `units`, the most that parts of these sizes fill of it."""
    reached: Ints = np.zeros(units + 1, dtype=np.int64)
    sizes = np.unique(sizes[(sizes > 0) & (sizes <= units)])
    for room in range(1, units + 1):
        fitting = sizes[: np.searchsorted(sizes, room, side="right")]
        reached[room] = max(int(reached[room - 1]), int((reached[room - fitting] + fitting).max(initial=0)))
    return reached


@dataclass(frozen=True, slots=True)
class _Choices:
    """What some nodes choose: for each of those rows that found a task, the shape's position, the cards, zone bits."""

    rows: Ints
    shape: Ints
    cards: Bools
    zones: Ints

    def take(self, which: Bools) -> _Choices:
        """Return some of them."""
        return _Choices(self.rows[which], self.shape[which], self.cards[which], self.zones[which])


class Batch:
    """Some nodes of a pool while they are being filled, with copies of their part of the state.

    Parameters
    ----------
    layout : Layout
        Written to when the nodes are full.
    nodes : int array
    shapes : int array
        The shapes to choose from, all of them admitted by all of the nodes.
    worth : float array
        Worth of one task of each of these shapes.
    """

    def __init__(self, layout: Layout, nodes: Ints, shapes: Ints, worth: Floats) -> None:
        state, instance = layout.state, layout.instance
        self.layout, self.nodes, self.shapes = layout, nodes, shapes
        self.free, self.kind = state.free[nodes], state.kind[nodes]
        self.units, self.memory = state.units[nodes], state.memory[nodes]
        tasks = [instance.shapes[s] for s in shapes.tolist()]
        self.gpus: Ints = np.array([t.gpus for t in tasks], dtype=np.int64)
        self.share: Ints = np.array([t.units for t in tasks], dtype=np.int64)
        self.device: Ints = np.array([t.memory for t in tasks], dtype=np.int64)
        self.demand = state.demand[shapes]
        self.size: Floats = (self.gpus * self.share).astype(np.float64)
        self.admits = state.admits_card[shapes]
        self.limit_rows = instance.classes[instance.node_class[nodes[0]]].limits
        self.limit_use: Ints = np.array(
            [[state.limit_use(s, row) for row in self.limit_rows] for s in shapes.tolist()], dtype=np.int64
        ).reshape(len(shapes), len(self.limit_rows))
        self.worth = np.log2(np.maximum(worth, 1e-9))
        full = instance.card_units
        self.filling: Ints | None = None
        if full <= FINEST and ((self.gpus > 0) & (self.share < full)).any():
            self.filling = best_filling(self.share[self.gpus > 0], full)
        self.zones = ZoneRoom.of(state, nodes, shapes)

    def run(self, supply: Ints) -> int:
        """Give every node tasks until nothing fits; take them off the supply and return how many."""
        active = np.arange(len(self.nodes))
        log: list[_Choices] = []
        while len(active):
            choices = self._choose(active, supply)
            if not len(choices.rows):
                break
            made = choices.take(self._granted(choices.rows, choices.shape, supply))
            self._charge(made.rows, made.shape, supply)
            self._take(made)
            log.append(made)
            active = choices.rows
        return self._record(log)

    def _choose(self, active: Ints, supply: Ints) -> _Choices:
        """Return the best task of each node that can take one."""
        offered = self._offered(active, supply)
        left = self.layout.state.limits[list(self.limit_rows)]
        some = np.flatnonzero(offered.any(axis=0) & (self.limit_use <= left).all(axis=1))
        ok = self._fits(some, active) & offered[:, some]
        usable = self._usable(active, some)
        if self.zones is not None:
            score, usable, bits = self._within(self.zones, ok, some, active, usable)
            ok = score > -np.inf
        else:
            ok &= usable.sum(axis=2) >= self.gpus[some]
            score = np.where(ok, self._score(some, active, usable), -np.inf)
        found = np.flatnonzero(ok.any(axis=1))
        best = score[found].argmax(axis=1) if len(some) else np.zeros(0, dtype=np.int64)
        shape = some[best]
        zones = np.zeros(len(found), dtype=np.int64) if self.zones is None else bits[found, best]
        return _Choices(active[found], shape, self._cards(active[found], shape, usable[found, best]), zones)

    def _within(
        self, zones: ZoneRoom, ok: Bools, some: Ints, active: Ints, usable: Bools
    ) -> tuple[Floats, Bools, Ints]:
        """Return the best score of each task on each node, with the cards it may use there, and zones it is bound to.

        The score of tasks that do not fit is minus infinity.
        """
        best = np.full(ok.shape, -np.inf)
        cards, chosen = usable.copy(), np.zeros(ok.shape, dtype=np.int64)
        units, free = self.units[active], self.free[active]
        for bits in zones.choices:
            inside = zones.inside(bits, active)
            room = np.minimum(free, zones.room(bits, active))
            mine = usable & inside[:, None]
            fits = ok & zones.binds(bits, some, active) & (mine.sum(axis=2) >= self.gpus[some])
            fits &= (self.demand[some][None] <= room[:, None]).all(axis=2) | (bits == 0)
            if not fits.any():
                continue
            idle = np.where(inside, units, 0).sum(axis=1)
            score = self._score(some, active, mine, room, idle)
            if bits:
                score = score - (FULLER * idle / np.maximum(units.sum(axis=1), 1))[:, None]
            better = fits & (score > best)
            best[better], cards[better], chosen[better] = score[better], mine[better], bits
        return best, cards, chosen

    def _offered(self, active: Ints, supply: Ints) -> Bools:
        """Return which nodes may have a task of which shapes, as far as there are any left."""
        return np.broadcast_to(supply[self.shapes] > 0, (len(active), len(self.shapes)))

    def _charge(self, rows: Ints, shape: Ints, supply: Ints) -> None:
        """Take the tasks that nodes get off the supply."""
        supply -= np.bincount(self.shapes[shape], minlength=len(supply))

    def _usable(self, active: Ints, some: Ints) -> Bools:
        """Return which cards of which nodes have room for one part of which shapes, as (nodes, shapes, C)."""
        units, memory, kind = self.units[active], self.memory[active], self.kind[active]
        room: Bools = units[:, None, :] >= self.share[some][None, :, None]
        room &= memory[:, None, :] >= self.device[some][None, :, None]
        room &= self.admits[some][:, kind].transpose(1, 0, 2)
        return room

    def _fits(self, some: Ints, active: Ints) -> Bools:
        """Return whose resources, cards apart, allow one task of which shapes, as (nodes, shapes)."""
        return np.asarray((self.demand[some][None] <= self.free[active][:, None]).all(axis=2))

    def _score(
        self, some: Ints, active: Ints, usable: Bools, free: Ints | None = None, idle: Ints | None = None
    ) -> Floats:
        """Return how well a task of each shape suits each node, in doublings of worth.

        Free resources and idle units are those of the whole node unless others are given.
        """
        units = self.units[active]
        free = self.free[active] if free is None else free
        idle = units.sum(axis=1) if idle is None else idle
        size = self.size[some]
        taken = np.where(size > 0, size / np.maximum(idle, 1)[:, None], 1.0)
        part = self.demand[some][None] / np.maximum(free, 1)[:, None]
        # what it takes of the scarcest resource, relative to what it takes of the cards
        ratio = part.max(axis=2, initial=0.0) / taken
        score = self.worth[some] - GREEDY * np.log2(np.maximum(ratio, 1.0)) + SPARING * np.minimum(ratio, 1.0)
        if self.filling is not None:
            waste = np.where(usable, self._waste(some, units), np.inf).min(axis=2, initial=np.inf)
            score -= np.where(self._fractional(some), WASTEFUL * waste / np.maximum(size, 1), 0.0)
        return np.asarray(score)

    def _fractional(self, some: Ints) -> Bools:
        return np.asarray((self.gpus[some] == 1) & (self.share[some] < self.layout.instance.card_units))

    def _waste(self, some: Ints, units: Ints) -> Floats:
        """Return how much more of each card nothing can fill once it has a part of each shape."""
        assert self.filling is not None
        room = np.arange(len(self.filling))
        lost = (room - self.filling).astype(np.float64)
        rest = np.maximum(units[:, None, :] - self.share[some][None, :, None], 0)
        return np.asarray(lost[rest] - lost[units][:, None, :])

    def _cards(self, rows: Ints, shape: Ints, usable: Bools) -> Bools:
        """Return the cards that each task takes: those that are best filled, then those with least room."""
        if not usable.shape[1]:
            return usable
        units, memory = self.units[rows], self.memory[rows]
        lost = np.zeros(units.shape)
        if self.filling is not None:
            room = np.arange(len(self.filling)) - self.filling
            lost = (room[np.maximum(units - self.share[shape][:, None], 0)] - room[units]).astype(np.float64)
            lost[self.gpus[shape] != 1] = 0.0
        order = np.lexsort((memory, units, np.where(usable, lost, np.inf)), axis=1)
        rank = np.empty_like(order)
        np.put_along_axis(rank, order, np.arange(order.shape[1])[None], axis=1)
        return np.asarray(usable & (rank < self.gpus[shape][:, None]))

    def _granted(self, rows: Ints, shape: Ints, supply: Ints) -> Bools:
        """Return whose choices the supply and the domain limits allow; the first nodes go first."""
        granted = self._supplied(rows, shape, supply)
        for number, row in enumerate(self.limit_rows):
            use = np.where(granted, self.limit_use[shape, number], 0)
            granted &= np.cumsum(use) <= self.layout.state.limits[row]
        return granted

    def _supplied(self, rows: Ints, shape: Ints, supply: Ints) -> Bools:
        order = np.argsort(shape, kind="stable")
        ordered = shape[order]
        first = np.searchsorted(ordered, ordered, side="left")
        supplied = np.zeros(len(shape), dtype=np.bool_)
        supplied[order] = np.arange(len(shape)) - first < supply[self.shapes[ordered]]
        return supplied

    def _take(self, made: _Choices) -> None:
        rows, shape, cards = made.rows, made.shape, made.cards
        self.free[rows] -= self.demand[shape]
        self.units[rows] -= cards * self.share[shape][:, None]
        self.memory[rows] -= cards * self.device[shape][:, None]
        left = self.layout.state.limits
        for number, row in enumerate(self.limit_rows):
            left[row] -= int(self.limit_use[shape, number].sum())
        if self.zones is not None:
            self.zones.take(rows, made.zones, self.demand[shape])

    def _record(self, log: list[_Choices]) -> int:
        """Write what was placed into the layout."""
        layout, nodes = self.layout, self.nodes
        layout.state.free[nodes], layout.state.units[nodes] = self.free, self.units
        layout.state.memory[nodes] = self.memory
        if self.zones is not None:
            layout.state.slack[nodes] = self.zones.slack
        placed = 0
        for made in log:
            rows, shape = made.rows, made.shape
            layout.count += np.bincount(self.shapes[shape], minlength=len(layout.count))
            placed += len(rows)
            taken: list[list[int]] = [[] for _ in range(len(rows))]
            for row, card in zip(*(axis.tolist() for axis in np.nonzero(made.cards)), strict=True):
                taken[row].append(card)
            for row in np.flatnonzero(made.zones).tolist():
                taken[row] += zone_positions(layout.instance, int(made.zones[row]))
            for node, s, some in zip(nodes[rows].tolist(), self.shapes[shape].tolist(), taken, strict=True):
                layout.tasks[node].append((s, tuple(some)))
        return placed


def scarcity_order(state: State, nodes: Ints) -> Ints:
    """Return nodes in the order in which they should choose: those with least resources for their idle cards first."""
    idle = np.maximum(state.units[nodes].sum(axis=1), 1)
    free = np.maximum(state.free[nodes], 0)
    free = free[:, free.any(axis=0)]
    per_card = free / idle[:, None] / (free.sum(axis=0) / idle.sum())
    return nodes[np.argsort(per_card.min(axis=1, initial=np.inf), kind="stable")]
