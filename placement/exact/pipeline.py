"""Instances whose nodes are alike or many: relaxed bounds over pools, whole counts that guide places, search.

Where every node class can have a pool of its own, the whole counts of the pooled model are dealt out to nodes and
cards and repaired. Then a large-neighbourhood search improves the places, objective by objective, until value meets
bound, the work allowed is done, or time is up.
"""

from __future__ import annotations

import math
import time
from functools import cached_property

from placement.exact.columns.method import EARLY_ROUNDS, FEW_PAIRS, SOME_PAIRS, Columns, unlike_pairs
from placement.exact.ledger import Ledger
from placement.exact.neighbourhoods.tune import improve, polish
from placement.exact.packing.tight import fill_exactly
from placement.exact.pools.guide import Guide
from placement.exact.pools.sketch import Relaxed, retouch, rough, sketch
from placement.exact.timing import Timing
from placement.models.parts import parts_of, separable
from placement.solver import Result
from placement.state import State

WORTH_TIGHTENING = 1e-4
"""Relative gap to the relaxation above which whole counts are asked for a better bound."""
STEPS, QUICK_STEPS, RETOUCH_STEPS = 60, 1, 6
"""Most steps by which packed pools are improved, the same where whole counts will do better anyway, and of what these
then gave."""
TIGHT_GAP, TIGHT_NODES = 2e-5, 100
ALIKE = 3
"""Nodes in an average class from which on whole counts by class say enough about places."""

MOST_CLASSES = 3_000
"""Node classes up to which it is worth counting the shapes that each takes: with more there are too many in any case,
where column generation was not the first choice, and counting them takes seconds."""

LATER_SHARE = 0.7
"""Share of the time left for the search for a target, where others are to come."""


class Pipeline:
    """One run over an instance.

    Parameters
    ----------
    ledger : Ledger
    rest : tuple of str
        Objectives on what nodes are left like, to be improved after the targets.
    """

    def __init__(self, ledger: Ledger, rest: tuple[str, ...] = ()) -> None:
        self.ledger, self.rest = ledger, rest
        self.timing = Timing()
        self._state = State(ledger.instance)
        instance = ledger.instance
        self._alike = separable(instance) and instance.nodes >= ALIKE * len(instance.classes)
        self._rough: Relaxed | None = None
        self._fine: Relaxed | None = None
        self._columns: Columns | None = None
        self._guided = False

    def run(self) -> Result:
        """Return the best assignment found, with a bound for every target that has one."""
        if not fill_exactly(self.ledger, self.timing):
            self.begin()
            for focus in range(len(self.ledger.targets)):
                if focus:
                    self._roughly().bound(focus)
                if not self.ledger.done(focus):
                    self._pursue(focus)
        if self.rest:
            polish(self.ledger, self.rest, self.timing)
        return self.ledger.result(self.timing, proven=not self.rest)

    def begin(self) -> None:
        """Bound the first target roughly, and find a first answer."""
        relaxed = self._roughly()
        relaxed.bound(0)
        if not self.ledger.done(0):
            sketch(relaxed, QUICK_STEPS if self._alike or self._unlike else STEPS, self.timing)

    def _roughly(self) -> Relaxed:
        if self._rough is None:
            self._rough = rough(self.ledger, self._state, self.timing)
        return self._rough

    def _finely(self) -> Relaxed:
        """Return the relaxation over as many pools as may be, the rough one if that is it."""
        if self._fine is None:
            began = time.perf_counter()
            coarse, parts = self._roughly(), parts_of(self._state)
            self.timing.add("build", time.perf_counter() - began)
            finer = len(parts) > len(coarse.parts)
            self._fine = Relaxed(self.ledger, self._state, parts, self.timing) if finer else coarse
        return self._fine

    @cached_property
    def _pairs(self) -> float:
        many = len(self.ledger.instance.classes) > MOST_CLASSES
        return math.inf if self._alike or many else unlike_pairs(self.ledger.instance)

    @property
    def _unlike(self) -> bool:
        return self._pairs <= SOME_PAIRS

    def _pursue(self, focus: int) -> None:
        """Get a target's value and bound as near each other as may be."""
        relaxed = self._roughly()
        generated = self._unlike and self._generate(focus)
        if not generated and not self.ledger.done(focus):
            relaxed = self._finely()
            if relaxed is not self._roughly():
                relaxed.bound(focus)
            # whole counts are dealt out to nodes that are alike; where there are none they say little
            if self._alike and not self.ledger.done(focus):
                self._guide(relaxed, focus)
        last = focus == len(self.ledger.targets) - 1 and not self.rest
        improve(self.ledger, focus, relaxed.idle_price(), self.timing, share=1.0 if last else LATER_SHARE)

    def _generate(self, focus: int) -> bool:
        """Generate contents for every node class; return whether there were few enough of them to go on to the end."""
        if self._columns is None:
            self._columns = Columns(self.ledger, timing=self.timing, retouch=self._retouch)
        complete = self._pairs <= FEW_PAIRS
        near = self._roughly().master.shadow(self.ledger.targets[focus])
        self._columns.pursue(focus, None if complete else EARLY_ROUNDS, near)
        return complete

    def _retouch(self) -> None:
        retouch(self._roughly(), RETOUCH_STEPS, self.timing)

    def _guide(self, fine: Relaxed, focus: int) -> None:
        """Deal out whole counts, once, and bound a target by whole counts."""
        if not self._guided:
            Guide(fine, self.timing).run(focus)
            self._guided = True
        self._tighten(fine, focus)

    def _tighten(self, fine: Relaxed, focus: int) -> None:
        """Bound a target by whole counts, where the relaxation leaves a gap that is worth it."""
        ledger = self.ledger
        bound, value = ledger.bound(focus), ledger.standing.ranks[focus]
        if ledger.done(focus) or bound is None or bound - value < WORTH_TIGHTENING * abs(value):
            return
        found, in_time = fine.master.whole_bound(
            ledger.targets[focus],
            ledger.held(focus),
            gap=max(TIGHT_GAP, ledger.limits.gap / 4),
            nodes=ledger.limits.nodes or TIGHT_NODES,
            time_limit=ledger.share(0.2).left,
        )
        ledger.note(in_time)
        if found is not None:
            ledger.prove(focus, found)
            ledger.tell_bounds(f"bound on {ledger.targets[focus][0]}")
