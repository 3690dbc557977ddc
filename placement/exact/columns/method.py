"""Column generation over node contents: for clusters where nearly every node is different.

The pooled model adds up what lies on separate nodes, and where no two nodes are alike that bound is loose and its
counts cannot be dealt out. Here a column says what one node holds, so whole counts of columns are a placement, and the
relaxation has at most about as many fractions as there are shapes and gangs: rounding loses next to nothing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping

import numpy as np

from placement.evaluate import demand
from placement.exact.columns.labels import Nodes
from placement.exact.columns.master import ColumnMaster, Contents
from placement.exact.layouts.layout import Layout
from placement.exact.ledger import Ledger
from placement.exact.neighbourhoods.tune import improve, polish
from placement.exact.packing.arrange import arrange
from placement.exact.packing.fill import fill
from placement.exact.packing.tight import fill_exactly
from placement.exact.pools.shadow import Shadow
from placement.exact.timing import Timing
from placement.instance import Instance
from placement.solver import Result

GENERATION_GAP = 2e-5
"""Relative gap of the relaxation to its bound that is good enough where none was asked for."""
CONTENTS_GAP, CONTENTS_NODES = 2e-5, 500
"""Relative gap and branch-and-bound nodes of whole counts where none were asked for."""
EARLY_ROUNDS, EARLY_SHARE = 2, 0.4
"""Rounds, or the share of the time left, after which whole columns are chosen for the first time: the first rounds find
most of the columns that matter, and the others are for the bound. They are chosen again whenever rounds have doubled.
"""
EARLY_GAP, EARLY_NODES = 1e-3, 20
"""The same as for whole counts in the end, for those chosen early."""
EARLY_OPTIONS: Mapping[str, object] = {"mip_heuristic_run_root_reduced_cost": False}
"""Of the solver, for those chosen early: this smaller problem takes a third of the time and finds what exchanges do."""
FIRST_SHARE, NEXT_SHARE = 0.6, 0.2
"""Share of the time left for choosing columns: first and last, and in between."""
LATER_SHARE = 0.3
"""Share of the time left for the search for a target, where others are to come."""
FEWEST_CLASSES, UNLIKE = 48, 0.2
"""Node classes, and node classes by node, from which on nodes count as unlike."""
MOST_SHAPES, MOST_PAIRS = 100, 150_000
"""Shapes, and pairs of a shape and a node class that admits it, up to which prices settle within half a minute."""
FEW_PAIRS, SOME_PAIRS = 20_000, 60_000
"""The same pairs, up to which it is worth trying whatever the number of shapes, and up to which some rounds are."""


def suits(instance: Instance) -> bool:
    """Return whether column generation should be preferred to the pooled model: many unlike nodes, not many shapes."""
    return int((demand(instance) > 0).sum()) <= MOST_SHAPES and unlike_pairs(instance) <= MOST_PAIRS


def unlike_pairs(instance: Instance) -> float:
    """Return the pairs of a shape and a class it may use, by which prices settle; infinite where nodes are alike."""
    classes = len(instance.classes)
    if classes < FEWEST_CLASSES or classes < UNLIKE * instance.nodes or classes > MOST_PAIRS:
        return math.inf
    nodes = Nodes(instance)
    return math.inf if nodes.inexact.any() else float(nodes.takes[demand(instance) > 0].sum())


class Columns:
    """One run over an instance of unlike nodes.

    Parameters
    ----------
    ledger : Ledger
    rest : tuple of str
        Objectives on what nodes are left like, to be improved after the targets.
    timing : Timing, optional
        To add to.
    retouch : callable, optional
        What improves the standing after whole columns made a better one.
    """

    def __init__(
        self,
        ledger: Ledger,
        rest: tuple[str, ...] = (),
        timing: Timing | None = None,
        retouch: Callable[[], None] | None = None,
    ) -> None:
        self.ledger, self.rest, self._retouch = ledger, rest, retouch
        self.timing = Timing() if timing is None else timing
        began = time.perf_counter()
        self._master = ColumnMaster(ledger.instance, ledger.seed, self.timing)
        self.timing.add("build", time.perf_counter() - began)

    def run(self) -> Result:
        """Return the best assignment found, with a bound for every target that has one."""
        ledger = self.ledger
        everything = fill_exactly(ledger, self.timing)
        for focus in () if everything else range(len(ledger.targets)):
            self.pursue(focus)
            if not ledger.done(focus):
                improve(ledger, focus, None, self.timing, share=1.0 if self._is_last(focus) else LATER_SHARE)
        if self.rest:
            polish(ledger, self.rest, self.timing)
        return ledger.result(self.timing, proven=not self.rest)

    def pursue(self, focus: int, rounds: int | None = None, near: Shadow | None = None) -> None:
        """Bound a target by column generation, and choose whole columns, early and once more if there is a gap.

        Parameters
        ----------
        focus : int
        rounds : int, optional
            After which to choose columns and leave it at that.
        near : Shadow, optional
            Prices to start from.
        """
        self._master.learn(self.ledger.standing.layout)
        self._generate(focus, rounds, near)
        if self.ledger.done(focus):
            return
        if rounds is None:
            self._choose(focus, CONTENTS_GAP, self.ledger.limits.nodes or CONTENTS_NODES)
        else:
            self._choose(focus, EARLY_GAP, EARLY_NODES)

    def _is_last(self, focus: int) -> bool:
        return focus == len(self.ledger.targets) - 1 and not self.rest

    def _generate(self, focus: int, most: int | None, near: Shadow | None) -> None:
        """Generate columns for a target, given what the standing has of the earlier ones."""
        ledger = self.ledger
        limits, soon = ledger.share(0.6), ledger.share(EARLY_SHARE)
        gap = max(GENERATION_GAP, limits.gap / 4)
        turn, share = EARLY_ROUNDS, FIRST_SHARE
        rounds = self._master.bounds(ledger.targets[focus], ledger.held(focus), gap, limits, near)
        # columns that are chosen on the way change what the standing has; bounds speak of what it had
        given = ledger.standing.ranks[:focus]
        # what the prices to start from prove comes before the first round
        for number, bound in enumerate(rounds, 1 if near is None else 0):
            if bound is not None:
                ledger.prove(focus, bound, given)
                ledger.tell_bounds(f"bound on {ledger.targets[focus][0]}")
            if ledger.done(focus) or number == most:
                break
            if number == turn or (number < EARLY_ROUNDS and not soon.left):
                self._choose(focus, EARLY_GAP, EARLY_NODES, share)
                turn, share = 2 * number, NEXT_SHARE
                if ledger.done(focus):
                    break
        ledger.note(limits.left > 0)

    def _choose(self, focus: int, gap: float, nodes: int, share: float = FIRST_SHARE) -> None:
        """Choose whole columns, and place them."""
        ledger = self.ledger
        contents = self._master.contents(
            ledger.targets[focus],
            ledger.held(focus),
            gap=max(gap, ledger.limits.gap / 4),
            nodes=nodes,
            time_limit=ledger.share(share).left,
            options=EARLY_OPTIONS if gap == EARLY_GAP else None,
        )
        ledger.note(contents.in_time if contents is not None else ledger.limits.left > 0)
        if contents is None:
            return
        began = time.perf_counter()
        layout = contents_laid_out(ledger.instance, contents)
        fill(layout, demand(ledger.instance) - layout.count, ledger.worth(focus))
        before = ledger.standing
        ledger.propose(layout)
        self.timing.add("place", time.perf_counter() - began)
        if self._retouch is not None and ledger.standing is not before and not ledger.done(focus):
            self._retouch()


def contents_laid_out(instance: Instance, contents: Contents) -> Layout:
    """Return a layout in which nodes hold the columns chosen; a column that no cards are found for stays out."""
    layout = Layout(instance)
    spare = demand(instance)
    taken = np.zeros(len(instance.classes), dtype=np.int64)
    for column, times in contents.columns:
        nodes = instance.classes[column.node_class].nodes
        for _ in range(times):
            node = int(nodes[taken[column.node_class]])
            taken[column.node_class] += 1
            tasks = [shape for shape, count in column.counts for _ in range(min(count, int(spare[shape])))]
            if arrange(layout, node, tasks):
                for shape in tasks:
                    spare[shape] -= 1
    return layout
