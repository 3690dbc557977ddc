"""A few nodes and everything that waits, as an exact model: each node a pool, tasks elsewhere constants.

With one node a pool the counts of the pooled model are places, but for one thing: that a task with a share of each of
several cards takes distinct ones. A careful model leaves room for at most one such share on a card; it loses some
answers, and every answer it has can be placed.
"""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from placement.collector import collector_paused
from placement.exact.layouts.standing import Standing
from placement.exact.layouts.within import cards_of
from placement.exact.milp import highs
from placement.exact.milp.arrays import Floats, program
from placement.exact.neighbourhoods.zone_columns import ZoneColumns
from placement.exact.packing.arrange import arrange
from placement.exact.pools.master import Counts, resolvable
from placement.exact.pools.patterns import maximal
from placement.exact.pools.spread import spread
from placement.exact.timing import Timing
from placement.instance import Ints
from placement.models import pooled
from placement.models.pooled_gangs import is_single
from placement.models.pooled_linear import Target, power_of_two
from placement.models.pools import CardGroup, Pattern, SlotType, pooling

PATTERNS = 60
"""Most patterns of one card group."""
LATER = 1e-4
"""Weight of each target, relative to the one before."""


class Neighbourhood:
    """The model of some nodes of a standing, which are empty until `realise` or `restore`.

    Parameters
    ----------
    standing : Standing
    nodes : int array
    wanted : int array (S,)
        Tasks of each shape that the pending jobs want.
    focus : int
        Number of the target to improve; the earlier ones are held.
    careful : bool
    """

    def __init__(self, standing: Standing, nodes: Ints, wanted: Ints, focus: int, careful: bool) -> None:
        self.standing, self.nodes, self.focus = standing, nodes, focus
        layout = standing.layout
        self.taken = layout.clear(nodes.tolist())
        self.supply = wanted - layout.count
        one = np.ones(1, dtype=np.int64)
        self.view = pooling(
            layout.state,
            [(np.array([node]), one) for node in nodes.tolist()],
            elsewhere=layout.count.copy(),
            shapes=np.flatnonzero(self.supply),
            started=standing.started,
            supply=self.supply,
            leaves=standing.goals.leaves,
        )
        self.zones = ZoneColumns(layout, nodes, self.view)
        shapes = layout.instance.shapes
        self.has_split = any(
            shapes[s].gpus > 1 and shapes[s].units < layout.instance.card_units for s in set(self.view.shape.tolist())
        )
        self.patterns, self.complete = self._patterns(careful and self.has_split)
        self.scale = 1.0

    # --- the model -----------------------------------------------------------------------------------------------

    def solve(self, *, gap: float, nodes: int, time_limit: float, seed: int, timing: Timing) -> highs.Solved:
        """Build and solve the model, starting from what was there."""
        began = time.perf_counter()
        start = self._present()
        # a model refers to itself: dropped before the collector runs again, it is let go of while it is young
        with collector_paused():
            model = pooled.build(self.view, self.patterns, self._weights(), self._held())
            built = time.perf_counter()
            arrays = self.zones.added(program(model))
            del model
        timing.add("build", built - began)
        timing.add("handover", time.perf_counter() - built)
        if start is not None and (len(start) != len(arrays.cost) or arrays.violation(start)):
            start = None
        solved = highs.solve(arrays, gap=gap, nodes=nodes, time_limit=time_limit, seed=seed, start=start)
        timing.add("solve", solved.seconds)
        timing.add("handover", solved.handover)
        return solved

    def _weights(self) -> dict[Target, float]:
        """Return the weight of the target in focus and, far behind it, of the later ones."""
        goals = self.standing.goals
        weights: dict[Target, float] = {}
        behind = 1.0
        for number in range(self.focus, len(goals.targets)):
            scale = power_of_two(goals.worth[number][self.view.rows].tolist())
            weights[goals.targets[number]] = scale * behind
            behind *= LATER
        self.scale = weights[goals.targets[self.focus]]
        return weights

    def _held(self) -> Mapping[Target, int]:
        """Return what the leaves of the view must keep for the earlier targets to keep their values."""
        outside = self.standing.started.copy()
        outside[self.view.rows] = 0
        goals = self.standing.goals
        reached = (np.array(self.standing.ranks, dtype=np.int64) - goals.worth @ outside).tolist()
        return dict(zip(goals.targets[: self.focus], reached, strict=False))

    def bound(self, solved: highs.Solved) -> int | None:
        """Return a bound on the target in focus for the whole instance, if the model is all of it."""
        if len(self.nodes) < self.standing.layout.instance.nodes or not self.complete or solved.bound is None:
            return None
        if not resolvable(self.standing.goals.worth[self.focus][self.view.rows].tolist()):
            return None
        return math.floor(solved.bound / self.scale + 1e-6)

    def _patterns(self, careful: bool) -> tuple[list[Pattern], bool]:
        """Return maximal patterns of every card group, and whether these are all.

        Where there are too many, those that leave least room on the card are taken.
        """
        view, shapes = self.view, self.standing.layout.instance.shapes
        cache: dict[object, list[tuple[int, ...]]] = {}
        found: list[Pattern] = []
        complete = not careful
        gpus = np.array([shapes[s].gpus for s in view.shape.tolist()], dtype=np.int64)
        whole = np.array([shapes[s].units for s in view.shape.tolist()]) == self.standing.layout.instance.card_units
        for k, pool in enumerate(view.pools):
            mine = np.flatnonzero((view.pool == k) & (view.slot >= 0))
            slot_of, width = view.slot[mine], len(pool.slots)
            parts = np.bincount(slot_of, gpus[mine] * self.supply[view.shape[mine]], minlength=width)
            if careful:
                split = np.bincount(slot_of, (gpus[mine] > 1) & ~whole[mine], minlength=width) > 0
                parts = np.where(split, np.minimum(parts, 1), parts)
            for c, group in enumerate(pool.groups):
                here = [i for i, slot in enumerate(pool.slots) if c in slot.groups]
                slots = [pool.slots[i] for i in here]
                most = [int(min(parts[i], group.units // pool.slots[i].units)) for i in here]
                key = (group.units, group.memory, tuple((s.units, s.memory) for s in slots), tuple(most))
                if key not in cache:
                    cache[key] = _fullest(group, slots, most)
                complete &= len(cache[key]) <= PATTERNS
                for some in cache[key][:PATTERNS]:
                    full = [0] * len(pool.slots)
                    for i, n in zip(here, some, strict=True):
                        full[i] = n
                    found.append(Pattern(k, c, tuple(full)))
        return found, complete

    def _present(self) -> Floats | None:
        """Return what was there as a point of the model, or None where gangs are concerned.

        A card's content is stated by a pattern that covers it; patterns that are missing are added.
        """
        instance, view = self.standing.layout.instance, self.view
        if not all(is_single(instance.job_classes[number]) for number in set(view.leaves[:, 0].tolist())):
            return None
        pair_of = {key: i for i, key in enumerate(zip(view.pool.tolist(), view.shape.tolist(), strict=True))}
        known: dict[tuple[int, int], list[int]] = defaultdict(list)
        for i, pattern in enumerate(self.patterns):
            known[pattern.pool, pattern.group].append(i)
        n = np.zeros(len(view.shape))
        used: Counter[int] = Counter()
        for k, (node, spots) in enumerate(self.taken):
            pool = view.pools[k]
            group_of = {(g.kind, g.units, g.memory): c for c, g in enumerate(pool.groups)}
            content: dict[int, list[int]] = {}
            for shape, cards in spots:
                pair = pair_of[k, shape]
                n[pair] += 1
                for card in cards_of(instance, cards):
                    content.setdefault(card, [0] * len(pool.slots))[view.slot[pair]] += 1
            free = instance.classes[instance.node_class[node]].cards
            for card, parts in content.items():
                c = group_of[free[card]]
                used[self._covering(Pattern(k, c, tuple(parts)), known[k, c])] += 1
        x = np.zeros(len(self.patterns))
        x[list(used)] = list(used.values())
        return np.concatenate([n, self.standing.started[view.rows], x, self.zones.present(self.taken)])

    def _covering(self, content: Pattern, known: list[int]) -> int:
        for i in known:
            if all(have >= need for have, need in zip(self.patterns[i].parts, content.parts, strict=True)):
                return i
        self.patterns.append(content)
        known.append(len(self.patterns) - 1)
        return known[-1]

    # --- the answer ----------------------------------------------------------------------------------------------

    def realise(self, solved: highs.Solved) -> bool:
        """Place the model's answer if it is no worse than what was there; return whether it is placed."""
        if solved.x is None:
            return False
        standing, view = self.standing, self.view
        pairs, leaves = len(view.shape), len(view.leaves)
        whole = np.round(solved.x[: pairs + leaves + len(self.patterns)]).astype(np.int64)
        started = standing.started.copy()
        started[view.rows] = whole[pairs : pairs + leaves]
        if standing.goals.ranks(started) < standing.ranks:
            return False
        used = whole[pairs + leaves :]
        cards = [(self.patterns[i], int(used[i])) for i in np.flatnonzero(used)]
        counts = Counts(whole[:pairs], whole[pairs : pairs + leaves], cards, None, True, solved.x)
        if not self._dealt(counts, standing.goals.by_shape(started)):
            return False
        standing.start(started)
        return True

    def _dealt(self, counts: Counts, need: Ints) -> bool:
        """Deal the counts out, by the quick rules or by search; return whether every needed task has its place."""
        layout = self.standing.layout
        spread(layout, self.view, counts, [np.array([node]) for node in self.nodes.tolist()])
        state = layout.state
        if (layout.count < need).any() and (state.free[self.nodes] >= 0).all():
            for k, node in enumerate(self.nodes.tolist()):
                layout.clear([node])
                pairs = np.flatnonzero(self.view.pool == k)
                tasks = [int(self.view.shape[i]) for i in pairs for _ in range(int(counts.room[i]))]
                if not arrange(layout, node, tasks):
                    return False
        fits = (state.free[self.nodes] >= 0).all() and (state.slack[self.nodes] >= 0).all()
        fits &= (state.limits >= 0).all()
        return bool(fits and (layout.count >= need).all())

    def restore(self) -> None:
        """Put back what was there."""
        self.standing.layout.clear(self.nodes.tolist())
        self.standing.layout.restore(self.taken)


def _fullest(group: CardGroup, slots: Sequence[SlotType], most: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the maximal patterns of a card, those first that leave least of it."""
    found = maximal(group, slots, most, 4000)
    left = [group.units - sum(n * s.units for n, s in zip(parts, slots, strict=True)) for parts in found]
    return [found[i] for i in sorted(range(len(found)), key=lambda i: (left[i], found[i]))]
