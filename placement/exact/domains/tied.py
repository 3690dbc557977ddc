"""Jobs whose tasks are tied to one another: first the domains, then the places.

The pooled model with the rows of `placement.models.pooled_topology` bounds every target and says how many of the parts
that one domain has to hold go to which domain. With that decided no ties are left (`placement.exact.domains.derive`),
and the other methods find the places. What is left over, and what units cannot say, is placed by a greedy rule around
it. While the choice could still be a better one and there is time, it is made again from where it ended, and placed
again.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from placement.confined import confined
from placement.exact.domains.derive import derive
from placement.exact.domains.prefer import hardened, place_nearer
from placement.exact.layouts.standing import Standing
from placement.exact.ledger import Ledger
from placement.exact.pipeline import Pipeline
from placement.exact.pools.master import Counts
from placement.exact.pools.sketch import Relaxed
from placement.exact.timing import Timing
from placement.heuristics import HEURISTICS
from placement.instance import Assignment, Ints
from placement.models.parts import parts_of
from placement.models.pooled_linear import Target, power_of_two
from placement.models.pooled_topology import NOWHERE, Options, options
from placement.models.pools import leaf_rows
from placement.preferred import locality
from placement.solver import Progress, Result, silent
from placement.state import State

PAIRS = 30_000
"""Pools times shapes of the model, where domains allow for so few."""
CHOOSE_SHARE, PLACE_SHARE = 0.35, 0.6
"""Shares of the time left for choosing domains, and for the places in them."""
MOST_CELLS = 50_000_000
"""Shapes times node classes of an instance to be placed; more take gigabytes."""
DOMAINS_SHARE = 0.6
"""Share of the time left for choosing a few domains at a time, which ends by itself and is worth more."""
HARDENED_SHARE = 0.4
"""Share of the time left for the instance in which preferred levels are required."""
CHOICE_GAP, CHOICE_NODES = 1e-3, 200
"""Relative gap and branch-and-bound nodes that are good enough for a choice of domains."""


class Tied:
    """One run over an instance with ties.

    Parameters
    ----------
    ledger : Ledger
        Whose bounds are used; the standing is that of the start.
    rest : tuple of str
        Objectives on what nodes are left like; not improved here.
    start : Assignment, optional
        A checked assignment.
    wishes : bool
        Whether tasks should lie as near one another as they prefer, where the targets are reached.
    """

    def __init__(self, ledger: Ledger, rest: tuple[str, ...], start: Assignment | None, wishes: bool = False) -> None:
        self.ledger, self.rest, self.wishes = ledger, rest, wishes
        self.timing = Timing()
        self.best = Assignment.empty() if start is None else start
        self.width = self._width(self.best)

    def run(self) -> Result:
        """Return the best assignment found, with a bound for every target that has one."""
        ledger = self.ledger
        began = time.perf_counter()
        levels = sorted({unit.level for unit in confined(ledger.instance)})
        state = State(ledger.instance)
        parts = parts_of(state, PAIRS, levels)
        self.timing.add("build", time.perf_counter() - began)
        relaxed = Relaxed(ledger, state, parts, self.timing)
        relaxed.bound(0)
        found = options(relaxed.master.view)
        if self.width or (self.wishes and not self._done()):
            self._as_required()
        if not self._done():
            self._choose(relaxed, found)
        for focus in range(1, len(ledger.targets)):
            relaxed.bound(focus)
        if self.width:
            place_nearer(ledger.instance, self.best, ledger.limits, ledger.seed, self._is_nearer)
        return Result(
            assignment=self.best,
            stop=ledger.why() if not self.rest else ledger.stop,
            bounds=ledger.bounds(),
            seconds=dict(self.timing.seconds),
        )

    def _choose(self, relaxed: Relaxed, found: Options | None) -> None:
        """Choose domains by whole counts and place what they say, again while the solver has more to say."""
        counts = None if found is None else self._counts_by_domain(relaxed, found)
        if counts is not None:
            self._place_counts(relaxed, found, counts)
        settled = False
        while not settled and not self._done() and self.ledger.limits.left > 0:
            counts = self._counts(relaxed, counts)
            if counts is None:
                self._complete(self.best)
                return
            self._place_counts(relaxed, found, counts)
            settled = found is None or counts.in_time

    def _place_counts(self, relaxed: Relaxed, found: Options | None, counts: Counts) -> None:
        """Place what was counted; without options no tied job is carried over, for nobody says where it may lie."""
        if found is None:
            self._place(NOWHERE, NOWHERE.most, {})
            return
        times = np.round(counts.x[len(counts.x) - len(found.unit) :]).astype(np.int64)
        self._place(found, times, self._jobs(relaxed, counts.started))

    def _as_required(self) -> None:
        """Place the instance in which preferred levels are required, and fill up around the answer."""
        ledger = self.ledger
        instance = hardened(ledger.instance)
        if instance.job_classes != ledger.instance.job_classes:
            limits = ledger.share(HARDENED_SHARE)
            inner = Tied(Ledger(instance, ledger.targets, limits, ledger.seed, None, silent), (), None).run()
            for what, seconds in inner.seconds.items():
                self.timing.add(what, seconds)
            self._complete(inner.assignment)

    def _is_nearer(self, assignment: Assignment) -> bool:
        before = self.ledger.standing.ranks, -self.width
        self._take(assignment, "nearer")
        return (self.ledger.standing.ranks, -self.width) > before

    def _width(self, assignment: Assignment) -> int:
        """Return by how many levels tasks lie wider than they prefer, where that counts."""
        return locality(self.ledger.instance, assignment) if self.wishes else 0

    def _done(self) -> bool:
        return all(self.ledger.done(focus) for focus in range(len(self.ledger.targets)))

    def _counts(self, relaxed: Relaxed, start: Counts | None) -> Counts | None:
        ledger = self.ledger
        counts = relaxed.master.counts(
            self._weights(),
            {},
            gap=max(CHOICE_GAP, ledger.limits.gap / 4),
            nodes=ledger.limits.nodes or CHOICE_NODES,
            time_limit=ledger.share(CHOOSE_SHARE).left,
            start=start,
        )
        ledger.note(counts is not None and counts.in_time)
        return counts

    def _counts_by_domain(self, relaxed: Relaxed, found: Options) -> Counts | None:
        """Return a first choice where there are too many domains to look at all of them at once."""
        ledger = self.ledger
        limits = ledger.share(DOMAINS_SHARE)
        counts = relaxed.master.counts_by_domain(
            self._weights(), found, gap=max(CHOICE_GAP, ledger.limits.gap / 2), time_limit=limits.left
        )
        ledger.note(limits.left > 0 and (counts is None or counts.in_time))
        return counts

    def _weights(self) -> dict[Target, float]:
        """Return what a choice maximises: the targets, each of them far before the next."""
        worth = self.ledger.goals.worth
        return {
            target: power_of_two(worth[number].tolist()) * 0.01**number
            for number, target in enumerate(self.ledger.targets)
        }

    def _jobs(self, relaxed: Relaxed, started: Ints) -> dict[int, int]:
        """Return how many jobs of each tied class have enough started tasks."""
        running: dict[int, int] = {}
        for (number, leaf), tasks in zip(relaxed.master.view.leaves[:, :2].tolist(), started.tolist(), strict=True):
            job_class = self.ledger.instance.job_classes[number]
            if job_class.tied:
                least = job_class.leaves[leaf].minimum * job_class.leaves[leaf].copies
                running[number] = min(running.get(number, job_class.size), tasks // least)
        return running

    def _place(self, found: Options, times: Ints, jobs: dict[int, int]) -> None:
        """Place an instance in which domains are decided, and fill up around its answers."""
        ledger = self.ledger
        began = time.perf_counter()
        derived = derive(ledger.instance, found, times, jobs)
        self.timing.add("build", time.perf_counter() - began)
        if len(derived.instance.shapes) * len(derived.instance.classes) > MOST_CELLS:
            self._complete(self.best)
            return
        limits = replace(ledger.share(PLACE_SHARE), gap=ledger.limits.gap / 2)

        def hear(progress: Progress) -> None:
            if progress.assignment is not None:
                self._take(derived.back(progress.assignment), progress.phase)

        inner = Ledger(derived.instance, ledger.targets, limits, ledger.seed, None, hear)
        run = Pipeline(inner)
        result = run.run()
        for what, seconds in run.timing.seconds.items():
            self.timing.add(what, seconds)
        self._complete(derived.back(result.assignment))

    def _complete(self, assignment: Assignment) -> None:
        """Place what still fits around an assignment, by a greedy rule that knows the ties."""
        ledger = self.ledger
        began = time.perf_counter()
        self._take(assignment, "placed")
        full = (
            HEURISTICS["first-fit"]
            .solve(ledger.instance, objectives=(), limits=ledger.limits, seed=ledger.seed, start=assignment)
            .assignment
        )
        self._take(full, "filled up")
        self.timing.add("place", time.perf_counter() - began)

    def _take(self, assignment: Assignment, phase: str) -> None:
        """Take an assignment if it is better."""
        ledger = self.ledger
        rows = leaf_rows(ledger.instance, assignment)
        started = np.bincount(rows, minlength=len(ledger.goals.leaves)).astype(np.int64)
        ranks = ledger.goals.ranks(started)
        if ranks < ledger.standing.ranks:
            return
        width = self._width(assignment)
        if (ranks, -width) > (ledger.standing.ranks, -self.width):
            self.best, self.width = assignment, width
            ledger.standing = Standing.of_assignment(ledger.goals, assignment)
            ledger.report(Progress(phase, assignment, ledger.bounds()))
