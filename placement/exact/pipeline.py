"""Large instances: bound, guide, places, search.

The pooled model's relaxation gives a bound, its whole counts say which tasks go to which pool. The counts are dealt out
to nodes and cards and repaired; then a large-neighbourhood search improves the places, objective by objective, until
value meets bound, the work allowed is done, or time is up.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from placement.evaluate import demand
from placement.exact.arrays import Floats
from placement.exact.fill import fill
from placement.exact.gangs import named
from placement.exact.layout import Layout
from placement.exact.master import Counts, Master, Timing
from placement.exact.repair import drop_excess, relieve
from placement.exact.search import Search
from placement.exact.spread import spread
from placement.exact.standing import Goals, Standing
from placement.instance import Assignment, Instance, Ints
from placement.models.pooled_linear import power_of_two
from placement.models.pooled_objective import Target, coefficients
from placement.models.pools import parts_of, pooling
from placement.solver import Bound, Limits, Progress, Report, Result, Stop
from placement.state import State

PATIENCE = 60
"""Neighbourhoods without an improvement after which the search goes on to the next objective."""
ROUNDS = 600
"""Most neighbourhoods for one objective."""
GUIDE_GAP = 2e-5
GUIDE_NODES = 300
REPORT_EVERY = 1.0
"""Seconds between reports of better assignments."""


def targets_of(instance: Instance, objectives: Sequence[str]) -> tuple[Target, ...]:
    """Return the leading objectives that counts of tasks determine, one target a priority for ``value``."""
    targets: list[Target] = []
    for objective in objectives:
        if objective == "value":
            targets += [("value", priority) for priority in instance.priorities]
        elif objective == "tasks":
            targets.append(("tasks", None))
        else:
            break
    return tuple(targets)


class Pipeline:
    """One run over a large instance.

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
    """

    def __init__(
        self,
        instance: Instance,
        targets: tuple[Target, ...],
        limits: Limits,
        seed: int,
        start: Assignment | None,
        report: Report,
    ) -> None:
        self.instance, self.targets, self.limits, self.seed, self.report = instance, targets, limits, seed, report
        self.timing = Timing()
        self.goals = Goals(instance, targets)
        self.units = {t: float(instance.value_unit) if t[0] == "value" else 1.0 for t in targets}
        self.standing = Standing.of_assignment(self.goals, Assignment.empty() if start is None else start)
        self.bounds: dict[Target, int] = {}
        self.stop = Stop.WORK
        self._told = 0.0

    def run(self) -> Result:
        """Return the best assignment found, with a bound for every target that has one."""
        began = time.perf_counter()
        state = State(self.instance)
        parts = parts_of(state)
        view = pooling(state, parts)
        self.timing.add("build", time.perf_counter() - began)
        master = Master(view, self.seed, self.timing)
        self._bound(master, 0)
        if not self._done(0):
            self._place(self._guide(master), master, parts)
        for focus in range(len(self.targets)):
            if focus:
                self._bound(master, focus)
            self._search(focus)
        return Result(
            assignment=self._named(),
            stop=self._why(),
            bounds=self._bounds(),
            seconds=dict(self.timing.seconds),
        )

    # --- bounds --------------------------------------------------------------------------------------------------

    def _bound(self, master: Master, focus: int) -> None:
        """Bound a target, given what the standing has of the earlier ones."""
        target = self.targets[focus]
        held = dict(zip(self.targets[:focus], self.standing.ranks, strict=False))
        for bound in master.bounds(target, held, self.limits):
            self.bounds[target] = bound
        self.report(Progress(f"bound on {target[0]}", None, self._bounds()))

    def _bounds(self) -> tuple[Bound, ...]:
        """Return the bounds known; each holds for all plans that keep the earlier values, or better them."""
        found = []
        reached = self.standing.ranks
        for number, target in enumerate(self.targets):
            if target not in self.bounds:
                break
            value = self.bounds[target] * self.units[target] if self.instance.exact else None
            held = tuple(r * self.units[t] for r, t in zip(reached[:number], self.targets, strict=False))
            found.append(Bound(target[0], target[1], value, held))
        return tuple(found)

    def _done(self, focus: int) -> bool:
        """Return whether the value of a target is as near its bound as was asked for."""
        target = self.targets[focus]
        if target not in self.bounds:
            return False
        value, bound = self.standing.ranks[focus], self.bounds[target]
        allowed = self.limits.gap * abs(value) if not focus else 0
        return bound - value <= allowed

    def _why(self) -> Stop:
        if all(self._done(focus) for focus in range(len(self.targets))):
            exact = all(self.standing.ranks[i] >= self.bounds[t] for i, t in enumerate(self.targets))
            return Stop.OPTIMAL if exact else Stop.GAP
        return Stop.TIME if self.limits.left <= 0 or self.stop is Stop.TIME else Stop.WORK

    # --- places --------------------------------------------------------------------------------------------------

    def _guide(self, master: Master) -> Counts | None:
        """Return whole counts, best for the targets in order."""
        found: Counts | None = None
        held: dict[Target, int] = {}
        view = master.view
        for focus, target in enumerate(self.targets):
            weights = {}
            for later, other in enumerate(self.targets[focus:]):
                worth = coefficients(self.instance, view.leaves, other)
                weights[other] = power_of_two(worth.tolist()) * 1e-4**later
            limits = Limits(time.monotonic() + 0.4 * self.limits.left, self.limits.gap, self.limits.nodes)
            counts = master.counts(weights, held, limits=limits, gap=GUIDE_GAP, nodes=GUIDE_NODES)
            if counts is None or not counts.complete:
                self.stop = Stop.TIME
            if counts is None:
                break
            found = counts
            held[target] = int(coefficients(self.instance, view.leaves, target) @ counts.started)
        return found

    def _place(self, counts: Counts | None, master: Master, parts: list[tuple[Ints, Ints]]) -> None:
        """Deal whole counts out; the standing becomes the result if that is better."""
        if counts is None:
            return
        began = time.perf_counter()
        instance = self.instance
        members = [
            np.sort(np.concatenate([instance.classes[instance.node_class[node]].nodes for node in nodes]))
            for nodes, _ in parts
        ]
        layout = Layout(instance)
        spread(layout, master.view, counts, members)
        waiting = demand(instance) - layout.count
        relieve(layout, waiting)
        worth = self._worth()
        waiting += drop_excess(layout, worth)
        fill(layout, waiting, worth)
        self._propose(layout)
        self.timing.add("place", time.perf_counter() - began)

    def _propose(self, layout: Layout) -> None:
        """Take a layout as standing if it is better."""
        proposed = Standing.of_layout(self.goals, layout, self.seed)
        if proposed.ranks > self.standing.ranks:
            self.standing = proposed
            self._tell("placed")

    def _worth(self) -> Floats:
        """Return an average worth of a task of each shape, earlier targets far before later ones."""
        times = self.goals.by_shape(self.goals.leaves[:, 3])
        worth = np.zeros(len(times))
        for number, value in enumerate(self.goals.worth):
            mean = self.goals.by_shape(value * self.goals.leaves[:, 3]) / np.maximum(times, 1)
            worth += mean / max(1.0, float(mean.max(initial=1.0))) * 1e-3**number
        return worth

    # --- search --------------------------------------------------------------------------------------------------

    def _search(self, focus: int) -> None:
        search = Search(self.standing, focus, self.limits, self.seed + focus, self.timing)
        idle = 0
        for _ in range(ROUNDS):
            if idle >= PATIENCE or self._done(focus):
                break
            if self.limits.left <= 0:
                self.stop = Stop.TIME
                break
            if search.round():
                idle = 0
                self._tell("search")
            else:
                idle += 1
            if search.bound is not None:
                target = self.targets[focus]
                self.bounds[target] = min(search.bound, self.bounds.get(target, search.bound))
            if search.exhausted:
                break

    # --- telling -------------------------------------------------------------------------------------------------

    def _named(self) -> Assignment:
        return named(self.standing.layout, self.standing.started, self.seed)

    def _tell(self, phase: str) -> None:
        now = time.monotonic()
        if now - self._told >= REPORT_EVERY:
            self._told = now
            self.report(Progress(phase, self._named(), self._bounds()))
