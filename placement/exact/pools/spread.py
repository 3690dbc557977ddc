"""From counts to places: deal the tasks of each pool out to its nodes and cards.

Tasks of several cards go first, largest first, to the node with the least room for them. Then every other card is
filled by its pattern, and the heaviest card goes to the node with the most free resources per free card. Nodes may end
up over-full; `placement.exact.moves.repair` sees to that.
"""

from __future__ import annotations

import heapq
from collections import defaultdict

import numpy as np

from placement.exact.layouts.layout import Layout
from placement.exact.layouts.within import bound_on
from placement.exact.milp.arrays import Floats
from placement.exact.pools.master import Counts
from placement.instance import Ints
from placement.models.pools import Pattern, Pool, Pooling


def spread(layout: Layout, view: Pooling, counts: Counts, members: list[Ints]) -> None:
    """Place the counted tasks.

    Parameters
    ----------
    layout : Layout
        Empty on the nodes of the pools; changed in place.
    view : Pooling
    counts : Counts
    members : list of int arrays
        The nodes of each pool.
    """
    room: list[dict[int, int]] = [{} for _ in view.pools]
    for pair in np.flatnonzero(counts.room):
        room[view.pool[pair]][int(view.shape[pair])] = int(counts.room[pair])
    slot_of = {(int(k), int(s)): int(t) for k, s, t in zip(view.pool, view.shape, view.slot, strict=True)}
    cards: list[list[tuple[Pattern, int]]] = [[] for _ in view.pools]
    for pattern, times in counts.cards:
        cards[pattern.pool].append((pattern, times))
    _drop_surplus(view, counts, room)
    for k, pool in enumerate(view.pools):
        if room[k]:
            _Dealer(layout, pool, members[k], {s: slot_of[k, s] for s in room[k]}).deal(room[k], cards[k])


def _drop_surplus(view: Pooling, counts: Counts, room: list[dict[int, int]]) -> None:
    """Take back room that no started task uses."""
    wanted: dict[int, int] = defaultdict(int)
    for (_, _, shape, _, _), started in zip(view.leaves.tolist(), counts.started.tolist(), strict=True):
        wanted[shape] += started
    for shape, elsewhere in enumerate(view.elsewhere.tolist()):
        wanted[shape] -= elsewhere
    for mine in room:
        for shape in list(mine):
            mine[shape] = max(0, min(mine[shape], wanted[shape]))
            wanted[shape] -= mine[shape]


class _Dealer:
    """Deals tasks out to the nodes of one pool."""

    def __init__(self, layout: Layout, pool: Pool, nodes: Ints, slot_of: dict[int, int]) -> None:
        self.layout, self.state, self.instance = layout, layout.state, layout.instance
        self.pool, self.nodes, self.slot_of = pool, nodes, slot_of
        self.resources = np.flatnonzero(pool.binding)
        mean = pool.capacity[self.resources] / max(1, pool.size)
        self.unit: Floats = 1.0 / np.maximum(mean, 1e-9)
        """One over what an average node has of each resource that may run out."""

    def deal(self, room: dict[int, int], cards: list[tuple[Pattern, int]]) -> None:
        shapes = self.instance.shapes
        wide = [s for s in room if shapes[s].gpus > 1]
        for s in sorted(wide, key=lambda s: (-shapes[s].gpus, -shapes[s].units, -self._weight([s]), s)):
            self._place_wide(s, room[s])
        bundles = self._bundles({s: n for s, n in room.items() if shapes[s].gpus == 1}, cards)
        self._place_bundles(bundles)
        plain = [s for s in room if shapes[s].gpus == 0]
        for s in sorted(plain, key=lambda s: (-self._weight([s]), s)):
            self._place_plain(s, room[s])

    def _weight(self, shapes: list[int]) -> float:
        """Return the largest share of an average node's resources that tasks of these shapes take."""
        if not len(self.resources):
            return 0.0
        total: Ints = self.state.demand[shapes][:, self.resources].sum(axis=0)
        return float((total * self.unit).max())

    def _slack(self, nodes: Ints) -> Floats:
        """Return the scarcest free resource of each node, in average nodes."""
        if not len(self.resources):
            return np.zeros(len(nodes))
        free: Floats = self.state.free[nodes][:, self.resources] * self.unit
        return np.asarray(free.min(axis=1))

    def _place(self, shape: int, node: int, cards: tuple[int, ...]) -> None:
        """Place a task on cards; one for which the zones there have no room waits."""
        spot = bound_on(self.layout, shape, node, cards)
        if spot is not None:
            self.layout.place(shape, node, spot)

    # --- tasks of several cards ----------------------------------------------------------------------------------

    def _place_wide(self, shape: int, times: int) -> None:
        """Fill nodes one after the other, those with least room for the shape first."""
        task = self.instance.shapes[shape]
        usable = self.state.usable(shape, self.nodes).sum(axis=1)
        order = np.lexsort((-self._slack(self.nodes), usable))
        for node in self.nodes[order[usable[order] >= task.gpus]].tolist():
            while times and (self.state.free[node] >= self.state.demand[shape]).all():
                cards = self.state.tightest(shape, node)
                if cards is None:
                    break
                self.layout.place(shape, node, cards)
                times -= 1
            if not times:
                return

    # --- single cards --------------------------------------------------------------------------------------------

    def _bundles(self, room: dict[int, int], cards: list[tuple[Pattern, int]]) -> list[tuple[int, list[int]]]:
        """Return (card group, shapes) for every card that gets something.

        Within a slot type the light and the heavy tasks alternate, so that cards come out about equally heavy.
        """
        waiting: dict[int, list[int]] = defaultdict(list)
        for s in sorted(room, key=lambda s: (self._weight([s]), s)):
            waiting[self.slot_of[s]] += [s] * room[s]
        wide_slots = {t for s, t in self.slot_of.items() if self.instance.shapes[s].gpus > 1}
        first = dict.fromkeys(waiting, 0)
        bundles: list[tuple[int, list[int]]] = []
        # cards that tasks of several cards may have taken come last, when few tasks are left for them
        for pattern, times in sorted(
            cards, key=lambda c: ([bool(c[0].parts[t]) for t in sorted(wide_slots)], c[0].parts)
        ):
            for _ in range(times):
                bundle: list[int] = []
                for t, parts in enumerate(pattern.parts):
                    line = waiting.get(t, [])
                    for _ in range(parts):
                        if first.get(t, 0) < len(line):
                            if len(bundle) % 2:
                                bundle.append(line[first[t]])
                                first[t] += 1
                            else:
                                bundle.append(line.pop())
                if bundle:
                    bundles.append((pattern.group, bundle))
        return bundles

    def _place_bundles(self, bundles: list[tuple[int, list[int]]]) -> None:
        """Give the heaviest card to the node with most free resources per free card."""
        open_cards = self._open_cards()
        left = {node: sum(map(len, groups.values())) for node, groups in open_cards.items()}
        heaps: dict[int, list[tuple[float, int, int]]] = defaultdict(list)
        stamp = dict.fromkeys(open_cards, 0)

        def push(node: int) -> None:
            key = -float(self._slack(np.array([node]))[0]) / left[node]
            for group, cards in open_cards[node].items():
                if cards:
                    heapq.heappush(heaps[group], (key, node, stamp[node]))

        for node in open_cards:
            push(node)
        weight = [self._weight(shapes) for _, shapes in bundles]
        for i in sorted(range(len(bundles)), key=lambda i: (-weight[i], i)):
            group, shapes = bundles[i]
            heap = heaps[group]
            while heap and (heap[0][2] != stamp[heap[0][1]] or not open_cards[heap[0][1]].get(group)):
                heapq.heappop(heap)
            if not heap:
                continue
            node = heap[0][1]
            card = open_cards[node][group].pop(0)
            left[node] -= 1
            stamp[node] += 1
            for shape in shapes:
                self._place(shape, node, (card,))
            if left[node]:
                push(node)

    def _open_cards(self) -> dict[int, dict[int, list[int]]]:
        """Return, by node and card group, the cards that no task of this layout is on."""
        group_of = {(g.kind, g.units, g.memory): c for c, g in enumerate(self.pool.groups)}
        found: dict[int, dict[int, list[int]]] = {}
        for node in self.nodes.tolist():
            taken = {card for _, cards in self.layout.tasks[node] for card in cards}
            groups: dict[int, list[int]] = defaultdict(list)
            for card in range(len(self.instance.classes[self.instance.node_class[node]].cards)):
                key = tuple(int(a[node, card]) for a in (self.state.kind, self.state.units, self.state.memory))
                if card not in taken and key in group_of:
                    groups[group_of[key]].append(card)
            if groups:
                found[node] = dict(groups)
        return found

    # --- tasks without cards -------------------------------------------------------------------------------------

    def _place_plain(self, shape: int, times: int) -> None:
        """Give each task to the node with most free resources."""
        slack = self._slack(self.nodes).tolist()
        heap = [(-free, node) for free, node in zip(slack, self.nodes.tolist(), strict=True)]
        heapq.heapify(heap)
        for _ in range(times):
            _, node = heap[0]
            self._place(shape, node, ())
            heapq.heapreplace(heap, (-float(self._slack(np.array([node]))[0]), node))
