"""Relieve over-full nodes: exchange tasks that use cards alike, or the contents of whole cards, between nodes.

Counts that leave every pool a little room come out over-full on few nodes, and by little. Two tasks that take equal
parts of equally many cards can change places, whatever else is on those cards; so can all that lies on one card and
all that lies on an equal one. The exchange that lowers total over-use most is made, until none lowers it.

Tasks that are bound to NUMA zones stay, and none comes to where it would be: zones are not looked at, and need not be,
for what is not bound takes its share wherever the others leave it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placement.exact.layouts.layout import Layout
from placement.exact.layouts.within import cards_of, zones_of
from placement.exact.milp.arrays import Floats
from placement.instance import Bools, Ints
from placement.solver import Limits


def relieve(
    layout: Layout,
    spare: Ints,
    limits: Limits | None = None,
    nodes: Ints | None = None,
    loose: Bools | None = None,
) -> int:
    """Exchange tasks until no node is over-full or no exchange helps.

    Parameters
    ----------
    layout : Layout
        Changed in place.
    spare : int array (S,)
        Tasks of each shape that wait outside and may change places with placed ones; kept up to date.
    limits : Limits, optional
        Ends at their deadline.
    nodes : int array, optional
        The only nodes to exchange tasks between; all if absent.
    loose : bool array (S,), optional
        Shapes whose tasks may change places with waiting ones; all if absent.

    Returns
    -------
    int
        Exchanges made.
    """
    among = np.arange(layout.instance.nodes) if nodes is None else nodes
    if not (layout.state.free[among] < 0).any():
        return 0
    table = _Table(layout, spare, among, loose)
    moves = 0
    stuck: set[int] = set()
    while limits is None or limits.left > 0:
        over = table.over_use()
        over[list(stuck)] = 0.0
        if not over.any():
            break
        node = int(over.argmax())
        change = table.best(node)
        if change is None:
            stuck.add(node)
            continue
        stuck.difference_update(table.make(change))
        moves += 1
    table.write_back()
    return moves


@dataclass(frozen=True, slots=True)
class _Change:
    """An exchange and by how much it changes total over-use.

    Attributes
    ----------
    over_use : float
    kind : str
        ``"tasks"`` (rows a and b), ``"outside"`` (row a and a waiting task of shape b), ``"move"`` (row a to node b) or
        ``"cards"`` (cards a and b).
    a, b : int
    """

    over_use: float
    kind: str
    a: int
    b: int


class _Table:
    """Every task of some nodes as a row of arrays, and what each of the nodes has left.

    Nodes are numbered by their place among these nodes, and cards ``node * width + position``.
    """

    def __init__(self, layout: Layout, spare: Ints, nodes: Ints, loose: Bools | None) -> None:
        self.layout, self.instance, self.spare, self.nodes = layout, layout.instance, spare, nodes
        self.class_of = self.instance.node_class[nodes]
        self.takes: Bools = self.instance.admits_node & (self.instance.bound == 0)
        self.loose = np.ones(len(spare), dtype=np.bool_) if loose is None else loose
        state = layout.state
        rows = [(shape, i, cards) for i, node in enumerate(nodes.tolist()) for shape, cards in layout.tasks[node]]
        self.shape: Ints = np.array([row[0] for row in rows], dtype=np.int64)
        self.node: Ints = np.array([row[1] for row in rows], dtype=np.int64)
        self.cards = [row[2] for row in rows]
        self.free = state.free[nodes]
        self.demand = state.demand
        before = np.array([self.instance.classes[k].free for k in self.class_of.tolist()], dtype=np.int64)
        self.unit: Floats = 1.0 / np.maximum(before.mean(axis=0), 1.0)
        numbers: dict[tuple[int, int, int], int] = {}
        self.like: Ints = np.array(
            [numbers.setdefault((s.gpus, s.units, s.memory), len(numbers)) for s in self.instance.shapes],
            dtype=np.int64,
        )
        self._index_cards()

    def _index_cards(self) -> None:
        state, instance = self.layout.state, self.instance
        self.width = max(1, state.units.shape[1])
        room: dict[tuple[int, int, int], int] = {}
        per_node = np.full((len(self.nodes), self.width), -1, dtype=np.int64)
        for i, k in enumerate(self.class_of.tolist()):
            for position, card in enumerate(instance.classes[k].cards):
                per_node[i, position] = room.setdefault(card, len(room))
        self.equal: Ints = per_node.reshape(-1)
        """Cards with the same number had the same room before anything was placed; -1 for no card."""
        self.load: Ints = np.zeros((len(self.equal), self.demand.shape[1]), dtype=np.int64)
        self.on_card: dict[int, list[int]] = {}
        self.kind: Ints = np.full(len(self.shape), -1, dtype=np.int64)
        self.fixed: Bools = np.zeros(len(self.shape), dtype=np.bool_)
        """Rows on cards of several kinds, and bound ones; they stay."""
        for row, (node, taken) in enumerate(zip(self.node.tolist(), self.cards, strict=True)):
            cards = cards_of(instance, taken)
            kinds = {int(state.kind[self.nodes[node], card]) for card in cards}
            self.kind[row] = next(iter(kinds), -1)
            self.fixed[row] = len(kinds) > 1 or len(taken) > len(cards)
            if len(cards) == 1:
                card = node * self.width + cards[0]
                self.on_card.setdefault(card, []).append(row)
                self.load[card] += self.demand[self.shape[row]]
            if len(cards) != 1 or self.fixed[row]:
                self.equal[[node * self.width + card for card in cards]] = -1

    # --- looking -------------------------------------------------------------------------------------------------

    def over_use(self) -> Floats:
        """Return by how much each node is over-full, in average nodes."""
        return self._excess(self.free)

    def _excess(self, free: Ints) -> Floats:
        return np.asarray((np.maximum(-free, 0) * self.unit).sum(axis=-1))

    def _gain(self, node: int, others: Ints, given: Ints, taken: Ints) -> Floats:
        """Return the change of over-use when a node gives `given` to each of some others and takes `taken` back."""
        here, there = self.free[node], self.free[others]
        swing = given - taken
        after = self._excess(here + swing) + self._excess(there - swing)
        return np.asarray(after - self._excess(here) - self._excess(there))

    def _admitted(self, shape: int) -> Bools:
        """Return in whose rows' places a task of a shape may go."""
        ok: Bools = self.takes[shape][self.class_of[self.node]] & ~self.fixed
        if self.instance.shapes[shape].gpus:
            ok &= self.instance.admits_card[shape][self.kind]
        return ok

    def best(self, node: int) -> _Change | None:
        """Return the change that relieves a node most, or None where nothing helps."""
        mine = np.flatnonzero((self.node == node) & ~self.fixed)
        _, first = np.unique(self.shape[mine], return_index=True)
        enough = 1e-9 - float(self._excess(self.free[node]))
        found: list[_Change] = []
        for row in mine[first].tolist():
            for look in (self._exchange_task, self._exchange_outside, self._move):
                change = look(row)
                if change is not None:
                    found.append(change)
                    if change.over_use <= enough:
                        # nothing can relieve it more than wholly
                        return change
        for card in range(self.width):
            change = self._exchange_cards(node, node * self.width + card)
            if change is not None:
                found.append(change)
        helpful = [change for change in found if change.over_use < -1e-9]
        return min(helpful, key=lambda change: change.over_use, default=None)

    def _lighter(self, row: int) -> Bools:
        """Return which shapes are like a row's, may take its place, and ask less of something that is over-full."""
        shape, node = int(self.shape[row]), int(self.node[row])
        hot = self.free[node] < 0
        lighter = (self.demand[:, hot] < self.demand[shape, hot]).any(axis=1) & (self.like == self.like[shape])
        lighter &= self.takes[:, self.class_of[node]]
        if self.instance.shapes[shape].gpus:
            lighter &= self.instance.admits_card[:, self.kind[row]]
        return np.asarray(lighter)

    def _exchange_task(self, row: int) -> _Change | None:
        shape, node = int(self.shape[row]), int(self.node[row])
        roomy: Bools = np.asarray((self.free[:, self.free[node] < 0] > 0).any(axis=1))
        rows = np.flatnonzero(
            roomy[self.node] & self._lighter(row)[self.shape] & self._admitted(shape) & (self.node != node)
        )
        if not len(rows):
            return None
        change = self._gain(node, self.node[rows], self.demand[shape], self.demand[self.shape[rows]])
        best = int(change.argmin())
        return _Change(float(change[best]), "tasks", row, int(rows[best]))

    def _exchange_outside(self, row: int) -> _Change | None:
        shape, node = int(self.shape[row]), int(self.node[row])
        if not self.loose[shape]:
            return None
        shapes = np.flatnonzero(self._lighter(row) & (self.spare > 0))
        if not len(shapes):
            return None
        here = self.free[node]
        change = self._excess(here + self.demand[shape] - self.demand[shapes]) - self._excess(here)
        best = int(change.argmin())
        return _Change(float(change[best]), "outside", row, int(shapes[best]))

    def _move(self, row: int) -> _Change | None:
        """Move a task without cards to another node."""
        shape, node = int(self.shape[row]), int(self.node[row])
        if self.instance.shapes[shape].gpus:
            return None
        others = np.flatnonzero(self.takes[shape][self.class_of])
        others = others[others != node]
        if not len(others):
            return None
        change = self._gain(node, others, self.demand[shape], np.zeros_like(self.demand[shape]))
        best = int(change.argmin())
        return _Change(float(change[best]), "move", row, int(others[best]))

    def _exchange_cards(self, node: int, card: int) -> _Change | None:
        """Exchange all that lies on one card with all that lies on an equal one elsewhere."""
        mine = self.on_card.get(card)
        if not mine or self.equal[card] < 0:
            return None
        hot = self.free[node] < 0
        others = np.flatnonzero(
            (self.equal == self.equal[card]) & (self.load[:, hot] < self.load[card, hot]).any(axis=1)
        )
        others = others[(self.free[others // self.width][:, hot] > 0).any(axis=1)]
        others = others[others // self.width != node]
        for row in mine:
            others = others[self._node_admits(int(self.shape[row]), others // self.width)]
        if not len(others):
            return None
        change = self._gain(node, others // self.width, self.load[card], self.load[others])
        for best in np.argsort(change, kind="stable")[:20].tolist():
            other = int(others[best])
            here = np.array([node])
            if all(self._node_admits(int(self.shape[row]), here)[0] for row in self.on_card.get(other, ())):
                return _Change(float(change[best]), "cards", card, other)
        return None

    def _node_admits(self, shape: int, nodes: Ints) -> Bools:
        return np.asarray(self.takes[shape][self.class_of[nodes]])

    # --- changing ------------------------------------------------------------------------------------------------

    def make(self, change: _Change) -> set[int]:
        """Make a change and return the nodes it touched."""
        a, b = change.a, change.b
        if change.kind == "tasks":
            mine, theirs = int(self.shape[a]), int(self.shape[b])
            self._set_shape(a, theirs)
            self._set_shape(b, mine)
            return {int(self.node[a]), int(self.node[b])}
        if change.kind == "outside":
            self.spare[self.shape[a]] += 1
            self.spare[b] -= 1
            self._set_shape(a, b)
            return {int(self.node[a])}
        if change.kind == "move":
            demand, node = self.demand[self.shape[a]], int(self.node[a])
            self.free[node] += demand
            self.free[b] -= demand
            self.node[a] = b
            return {node, b}
        return self._exchange_contents(a, b)

    def _set_shape(self, row: int, shape: int) -> None:
        swing = self.demand[shape] - self.demand[self.shape[row]]
        self.free[self.node[row]] -= swing
        if len(self.cards[row]) == 1:
            self.load[self.node[row] * self.width + self.cards[row][0]] += swing
        self.shape[row] = shape

    def _exchange_contents(self, a: int, b: int) -> set[int]:
        here, there = a // self.width, b // self.width
        swing = self.load[a] - self.load[b]
        self.free[here] += swing
        self.free[there] -= swing
        self.load[[a, b]] = self.load[[b, a]]
        mine, theirs = self.on_card.pop(a, []), self.on_card.pop(b, [])
        for rows, card in ((mine, b), (theirs, a)):
            for row in rows:
                self.node[row] = card // self.width
                self.cards[row] = (card % self.width,)
            if rows:
                self.on_card[card] = rows
        return {here, there}

    def write_back(self) -> None:
        """Put the rows into the layout."""
        layout = self.layout
        layout.clear(self.nodes.tolist())
        for shape, node, cards in zip(self.shape.tolist(), self.nodes[self.node].tolist(), self.cards, strict=True):
            layout.place(shape, node, cards)


def drop_excess(layout: Layout, worth: Floats) -> Ints:
    """Take tasks off over-full nodes, those first that lose least for what they relieve; return how many by shape."""
    dropped: Ints = np.zeros(len(layout.instance.shapes), dtype=np.int64)
    state = layout.state
    for node in layout.over_full().tolist():
        while (state.free[node] < 0).any():
            over = np.maximum(-state.free[node], 0)
            shapes = np.array([shape for shape, _ in layout.tasks[node]])
            relief = (np.minimum(state.demand[shapes], over) / np.maximum(over, 1)).sum(axis=1)
            cost = np.where(relief > 0, worth[shapes] / np.maximum(relief, 1e-12), np.inf)
            shape, _ = layout.remove(node, int(np.lexsort((shapes, cost))[0]))
            dropped[shape] += 1
        while (state.slack[node] < 0).any():
            full = [
                bits for bits, left in zip(layout.instance.zone_sets, state.slack[node], strict=True) if min(left) < 0
            ]
            inside = [
                (worth[shape], position)
                for position, (shape, taken) in enumerate(layout.tasks[node])
                if any(0 < zones_of(layout.instance, taken) & bits == zones_of(layout.instance, taken) for bits in full)
            ]
            shape, _ = layout.remove(node, min(inside)[1])
            dropped[shape] += 1
    return dropped


def drop_beyond_limits(layout: Layout, worth: Floats) -> Ints:
    """Take tasks out of domains that are over their limits, those first that lose least for what they take.

    Exchanges look at nodes, not at domains, and may carry more into a domain than its limit allows.
    """
    instance, state = layout.instance, layout.state
    dropped: Ints = np.zeros(len(instance.shapes), dtype=np.int64)
    for row in range(len(instance.limits)):
        inside = np.array([row in node_class.limits for node_class in instance.classes], dtype=np.bool_)
        use = np.array([state.limit_use(shape, row) for shape in range(len(instance.shapes))], dtype=np.int64)
        if state.limits[row] >= 0:
            continue
        spots = [
            (worth[shape] / use[shape], node, shape)
            for node in np.flatnonzero(inside[instance.node_class]).tolist()
            for shape, _ in layout.tasks[node]
            if use[shape]
        ]
        for _, node, shape in sorted(spots):
            if state.limits[row] >= 0:
                break
            layout.remove(node, next(i for i, spot in enumerate(layout.tasks[node]) if spot[0] == shape))
            dropped[shape] += 1
    return dropped
