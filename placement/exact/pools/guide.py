"""Whole counts that guide places: how many tasks of each shape go to each pool, dealt out to nodes that are alike."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping

import numpy as np

from placement.evaluate import demand
from placement.exact.layouts.layout import Layout
from placement.exact.ledger import Ledger
from placement.exact.moves.repair import drop_beyond_limits, drop_excess, relieve
from placement.exact.packing.fill import fill
from placement.exact.pools.master import Counts
from placement.exact.pools.sketch import Relaxed
from placement.exact.pools.spread import spread
from placement.exact.timing import Timing
from placement.instance import Ints
from placement.models.pooled_linear import Target, power_of_two

GUIDE_GAP, LATER_GAP = 2e-5, 1e-3
"""Relative gaps that are good enough for counts that guide places: of the first target, and of the later ones."""
GUIDE_NODES = 100
BALANCE_NODES = 10
TASKS: Target = ("tasks", None)
TASK_WORTH = 5e-3
"""What a started task may cost in filling pools, in the unit of `placement.exact.pools.master.STEPS`."""


class Guide:
    """Counts and places for the targets from one on.

    Parameters
    ----------
    relaxed : Relaxed
        With one pool for each node class.
    timing : Timing
    """

    def __init__(self, relaxed: Relaxed, timing: Timing) -> None:
        self.relaxed, self.master, self.timing = relaxed, relaxed.master, timing
        self.ledger: Ledger = relaxed.ledger

    def run(self, first: int) -> None:
        """Find whole counts, best for the targets from the first one on in order, and their places."""
        ledger = self.ledger
        counts: Counts | None = None
        held = ledger.held(first)
        for focus, target in enumerate(ledger.targets[first:], first):
            bound = ledger.bound(focus) if focus == first else self._relax(focus, held)
            found = self._counts(focus, held, counts, near=True)
            value = -1 if found is None else int(ledger.goals.worth[focus] @ found.started)
            enough = GUIDE_GAP if focus == first else LATER_GAP
            if bound is None or bound - value > enough * abs(bound):
                found = self._counts(focus, held, found or counts, near=False) or found
            if found is None:
                break
            counts = found
            held[target] = int(ledger.goals.worth[focus] @ counts.started)
        if counts is not None:
            self._places(counts, held, first)

    def _places(self, counts: Counts, held: Mapping[Target, int], first: int) -> None:
        ledger = self.ledger
        self._place(counts, 0.02)
        # full pools cannot be dealt out; where even balanced ones cannot, the first target goes before the others
        for keep, weights, most in ((len(ledger.targets), {}, 0.1), (first + 1, {TASKS: TASK_WORTH}, 1.0)):
            kept = dict(itertools.islice(held.items(), keep))
            if ledger.standing.ranks[:keep] >= tuple(kept.values()) or not ledger.limits.left:
                break
            limit = ledger.share(0.35).left
            even = self.master.balanced(weights, kept, counts, nodes=BALANCE_NODES, time_limit=limit)
            ledger.note(even.in_time if even is not None else ledger.limits.left > 0)
            if even is not None:
                self._place(even, most)

    def _counts(self, focus: int, held: Mapping[Target, int], start: Counts | None, near: bool) -> Counts | None:
        """Return whole counts, best for one target; with `near` only among those near the relaxation."""
        ledger = self.ledger
        started = ledger.standing.started if start is None else start.started
        # nothing but the target: a second objective beside it costs the solver its best heuristics
        found = self.master.counts(
            {ledger.targets[focus]: power_of_two(ledger.goals.worth[focus].tolist())},
            held,
            gap=max(GUIDE_GAP, ledger.limits.gap / 2),
            nodes=ledger.limits.nodes or GUIDE_NODES,
            time_limit=ledger.share(0.2 if near else 0.35).left,
            start=start,
            fixed=self._settled(focus, started),
            near=near,
        )
        ledger.note(found.in_time if found is not None else ledger.limits.left > 0)
        return found

    def _relax(self, focus: int, held: Mapping[Target, int]) -> int | None:
        """Solve the relaxation of a target beside what whole counts have of the earlier ones; return its bound."""
        ledger = self.ledger
        bound = None
        for bound in self.master.bounds(ledger.targets[focus], held, ledger.share(0.2)):
            ledger.prove(focus, bound, tuple(held.values()))
        return bound

    def _settled(self, focus: int, started: Ints) -> Ints:
        """Return the started tasks of jobs whose priority has had its turn; -1 for the others.

        Their value could be kept by a row instead, but branch and bound gets lost in rows of that kind.
        """
        ledger = self.ledger
        had_their_turn = {priority for _, priority in ledger.targets[:focus] if priority is not None}
        if ledger.targets[focus][0] != "value":
            had_their_turn = set()
        priorities = np.array([c.priority for c in ledger.instance.job_classes], dtype=np.int64)
        settled = np.isin(priorities[ledger.goals.leaves[:, 0]], list(had_their_turn))
        return np.where(settled, started, -1)

    def _place(self, counts: Counts, most_over_full: float) -> None:
        """Deal whole counts out; the ledger takes the result if that is better.

        Where more than a share of the nodes comes out over-full, exchanges would take long and not suffice.
        """
        began = time.perf_counter()
        ledger, instance = self.ledger, self.ledger.instance
        layout = Layout(instance)
        spread(layout, self.master.view, counts, self.relaxed.members())
        waiting = demand(instance) - layout.count
        if len(layout.over_full()) <= most_over_full * instance.nodes:
            relieve(layout, waiting, ledger.share(0.3))
        worth = ledger.blended_worth()
        waiting += drop_excess(layout, worth)
        waiting += drop_beyond_limits(layout, worth)
        fill(layout, waiting, worth)
        ledger.propose(layout)
        self.timing.add("place", time.perf_counter() - began)
