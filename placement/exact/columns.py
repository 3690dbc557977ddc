"""Column generation over node contents: for clusters where nearly every node is different.

The pooled model adds up what lies on separate nodes, and where no two nodes are alike that bound is loose and its
counts cannot be dealt out. Here a column says what one node holds, so whole counts of columns are a placement, and the
relaxation has at most about as many fractions as there are shapes and gangs: rounding loses next to nothing.
"""

from __future__ import annotations

import time

import numpy as np

from placement.evaluate import demand
from placement.exact.arrange import arrange
from placement.exact.column_master import ColumnMaster, Contents
from placement.exact.fill import fill
from placement.exact.labels import Nodes
from placement.exact.layout import Layout
from placement.exact.ledger import Ledger
from placement.exact.master import Timing
from placement.exact.polish import Polish
from placement.exact.search import Search
from placement.instance import Assignment, Instance
from placement.models.pooled_linear import Target
from placement.solver import Limits, Report, Result

GENERATION_GAP = 2e-5
"""Relative gap of the relaxation to its bound that is good enough where none was asked for."""
CONTENTS_GAP, CONTENTS_NODES = 2e-5, 500
"""Relative gap and branch-and-bound nodes of whole counts where none were asked for."""
PATIENCE, ROUNDS = 60, 300
"""Neighbourhoods without an improvement, and in all, after which the search goes on to the next target."""
FEWEST_CLASSES, UNLIKE = 48, 0.2
"""Node classes, and node classes by node, from which on nodes count as unlike."""
MOST_SHAPES, MOST_PAIRS = 80.0, 150_000
"""Shapes that a node class admits on average, and pairs of both, up to which pricing is quick."""


def suits(instance: Instance) -> bool:
    """Return whether column generation should be preferred to the pooled model: many unlike nodes, not many shapes."""
    classes = len(instance.classes)
    if classes < FEWEST_CLASSES or classes < UNLIKE * instance.nodes:
        return False
    nodes = Nodes(instance)
    admitted = nodes.takes[demand(instance) > 0].sum()
    return bool(admitted <= min(MOST_PAIRS, MOST_SHAPES * classes) and not nodes.inexact.any())


class Columns:
    """One run over an instance of unlike nodes.

    Parameters
    ----------
    instance : Instance
    targets : tuple of Target
        At least one.
    limits : Limits
    seed : int
    start : Assignment, optional
        A checked assignment; the answer is never worse.
    report : callable
    rest : tuple of str
        Objectives on what nodes are left like, to be improved after the targets.
    """

    def __init__(
        self,
        instance: Instance,
        targets: tuple[Target, ...],
        limits: Limits,
        seed: int,
        start: Assignment | None,
        report: Report,
        rest: tuple[str, ...] = (),
    ) -> None:
        self.instance, self.targets, self.seed, self.rest = instance, targets, seed, rest
        self.ledger = Ledger(instance, targets, limits, seed, start, report)
        self.timing = Timing()

    def run(self) -> Result:
        """Return the best assignment found, with a bound for every target that has one."""
        ledger = self.ledger
        began = time.perf_counter()
        master = ColumnMaster(self.instance, self.seed, self.timing)
        self.timing.add("build", time.perf_counter() - began)
        for focus in range(len(self.targets)):
            master.learn(ledger.standing.layout)
            self._generate(master, focus)
            if not ledger.done(focus):
                self._choose(master, focus)
            if not ledger.done(focus):
                self._search(focus)
        if self.rest:
            self._polish()
        return Result(
            assignment=ledger.assignment(),
            stop=ledger.stop if self.rest else ledger.why(),
            bounds=ledger.bounds(),
            seconds=dict(self.timing.seconds),
        )

    def _generate(self, master: ColumnMaster, focus: int) -> None:
        """Generate columns for a target, given what the standing has of the earlier ones."""
        ledger = self.ledger
        limits = ledger.share(0.6)
        gap = max(GENERATION_GAP, limits.gap / 4)
        for bound in master.bounds(self.targets[focus], ledger.held(focus), gap, limits):
            ledger.prove(focus, bound)
            ledger.tell_bounds(f"bound on {self.targets[focus][0]}")
            if ledger.done(focus):
                break
        ledger.note(limits.left > 0)

    def _choose(self, master: ColumnMaster, focus: int) -> None:
        """Choose whole columns, and place them."""
        ledger = self.ledger
        contents = master.contents(
            self.targets[focus],
            ledger.held(focus),
            gap=max(CONTENTS_GAP, ledger.limits.gap / 4),
            nodes=ledger.limits.nodes or CONTENTS_NODES,
            time_limit=ledger.share(0.6).left,
        )
        ledger.note(contents.in_time if contents is not None else ledger.limits.left > 0)
        if contents is None:
            return
        began = time.perf_counter()
        layout = laid_out(self.instance, contents)
        fill(layout, demand(self.instance) - layout.count, ledger.worth(focus))
        ledger.propose(layout)
        self.timing.add("place", time.perf_counter() - began)

    def _search(self, focus: int) -> None:
        """Improve the places by large neighbourhoods."""
        ledger = self.ledger
        last = focus == len(self.targets) - 1
        limits = ledger.limits if last and not self.rest else ledger.share(0.3)
        search = Search(ledger.standing, focus, limits, self.seed + focus, self.timing)
        idle = 0
        for _ in range(ROUNDS):
            if idle >= PATIENCE or ledger.done(focus):
                break
            if limits.left <= 0:
                ledger.note(False)
                break
            idle = 0 if search.round() else idle + 1
            if not idle:
                ledger.tell("search")
            if search.bound is not None:
                ledger.prove(focus, search.bound)
            if search.exhausted:
                break

    def _polish(self) -> None:
        """Improve what the nodes are left like; nothing is proven about it."""
        began = time.perf_counter()
        self.ledger.note(Polish(self.ledger.standing.layout, self.rest, self.ledger.limits, self.seed).run())
        self.timing.add("place", time.perf_counter() - began)


def laid_out(instance: Instance, contents: Contents) -> Layout:
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
