"""What a run over several targets has reached and proven: the best plan, and bounds with what they take as given."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np

from placement.exact.layouts.gangs import named
from placement.exact.layouts.layout import Layout
from placement.exact.layouts.standing import Goals, Standing
from placement.exact.milp.arrays import Floats
from placement.exact.timing import Timing
from placement.instance import Assignment, Instance
from placement.models.pooled_linear import Target
from placement.solver import Bound, Limits, Progress, Report, Result, Stop

REPORT_EVERY = 0.1
"""Least seconds between reports of better assignments."""
REPORT_SHARE = 8.0
"""Seconds to work on for every second that a report took."""
RESERVE, RESERVE_PER_JOB = 0.03, 5e-6
"""Seconds kept for naming the answer."""


class Ledger:
    """The books of one run.

    Parameters
    ----------
    instance : Instance
    targets : tuple of Target
    limits : Limits
    seed : int
    start : Assignment, optional
        A checked assignment; the standing is never worse.
    report : callable

    Attributes
    ----------
    limits : Limits
        With time for naming the answer taken off.
    standing : Standing
        The best so far.
    stop : Stop
        Why the run stops if nothing is proven.
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
        self.instance, self.targets, self.seed, self.report = instance, targets, seed, report
        # the answer has to be named and sent in time, too
        spare = min(0.1 * limits.left, RESERVE + RESERVE_PER_JOB * instance.jobs) if limits.left < math.inf else 0.0
        self.limits = replace(limits, deadline=limits.deadline - spare)
        self.goals = Goals(instance, targets)
        self.standing = Standing.of_assignment(self.goals, Assignment.empty() if start is None else start)
        self.stop = Stop.WORK
        self._known: list[list[tuple[tuple[int, ...], int]]] = [[] for _ in targets]
        self._units = {t: float(instance.value_unit) if t[0] == "value" else 1.0 for t in targets}
        self._next_report = 0.0

    def held(self, focus: int) -> dict[Target, int]:
        """Return what the standing has of the targets before one."""
        return dict(zip(self.targets[:focus], self.standing.ranks, strict=False))

    def prove(self, focus: int, bound: int, reached: tuple[int, ...] | None = None) -> None:
        """Note a bound on a target that takes these values of the earlier ones as given, the standing's if absent."""
        self._known[focus].append((self.standing.ranks[:focus] if reached is None else reached, bound))

    def bound(self, focus: int) -> int | None:
        """Return the best bound on a target that holds for plans with at least the standing's earlier values."""
        reached = self.standing.ranks[:focus]
        valid = [
            bound
            for held, bound in self._known[focus]
            if all(have >= need for have, need in zip(reached, held, strict=True))
        ]
        return min(valid, default=None)

    def bounds(self) -> tuple[Bound, ...]:
        """Return the bounds known, in the objectives' own units."""
        found = []
        for focus, target in enumerate(self.targets):
            bound = self.bound(focus)
            value = bound * self._units[target] if bound is not None and self.instance.exact else None
            reached = zip(self.standing.ranks[:focus], self.targets, strict=False)
            found.append(Bound(target[0], target[1], value, tuple(r * self._units[t] for r, t in reached)))
        return tuple(found)

    def beyond(self, objective: str, value: int, reached: tuple[int, ...]) -> Bound:
        """Return a bound on an objective after the targets that takes these values of all of them as given."""
        given = tuple(rank * self._units[target] for rank, target in zip(reached, self.targets, strict=True))
        return Bound(objective, None, float(value) if self.instance.exact else None, given)

    def done(self, focus: int) -> bool:
        """Return whether the value of a target is as near its bound as was asked for."""
        bound, value = self.bound(focus), self.standing.ranks[focus]
        allowed = self.limits.gap * abs(value) if not focus else 0
        # where amounts had to be rounded no bound counts
        return self.instance.exact and bound is not None and bound - value <= allowed

    def why(self) -> Stop:
        """Return why the run stopped."""
        if self.instance.exact and all(self.bound(focus) == value for focus, value in enumerate(self.standing.ranks)):
            return Stop.OPTIMAL
        if all(self.done(focus) for focus in range(len(self.targets))):
            return Stop.GAP
        return self.stop

    def worth(self, focus: int) -> Floats:
        """Return the average worth of a task of each shape in a target."""
        wanted = self.goals.leaves[:, 3]
        return np.asarray(
            self.goals.by_shape(self.goals.worth[focus] * wanted) / np.maximum(self.goals.by_shape(wanted), 1)
        )

    def blended_worth(self) -> Floats:
        """Return an average worth of a task of each shape, earlier targets far before later ones."""
        worth = np.zeros(len(self.instance.shapes))
        for focus in range(len(self.targets)):
            mean = self.worth(focus)
            worth += mean / max(1.0, float(mean.max(initial=1.0))) * 1e-3**focus
        return worth

    def note(self, in_time: bool) -> None:
        """Note whether something ended by itself, not by the clock."""
        if not in_time:
            self.stop = Stop.TIME

    def share(self, share: float) -> Limits:
        """Return limits that end when a share of the time left is over."""
        return self.limits.share(share)

    def propose(self, layout: Layout, also_equal: bool = False) -> None:
        """Take a layout as standing if it is legal and better, or where that is asked for as good."""
        proposed = Standing.of_layout(self.goals, layout, self.seed)
        if self._is_better(proposed) or (also_equal and proposed.ranks == self.standing.ranks and _is_legal(proposed)):
            self.standing = proposed
            self.tell("placed")

    def take(self, standing: Standing, phase: str) -> None:
        """Take a copy of a standing if it is legal and better."""
        if self._is_better(standing):
            self.standing = Standing(self.goals, standing.layout.copy(), standing.started.copy())
            self.tell(phase)

    def _is_better(self, standing: Standing) -> bool:
        return standing.ranks > self.standing.ranks and _is_legal(standing)

    def result(self, timing: Timing, proven: bool) -> Result:
        """Return the answer; `proven` says whether the targets are all that was asked for."""
        return Result(
            assignment=self.assignment(),
            stop=self.why() if proven else self.stop,
            bounds=self.bounds(),
            seconds=dict(timing.seconds),
        )

    def assignment(self) -> Assignment:
        """Return the standing by jobs."""
        return named(self.standing.layout, self.standing.started, self.seed)

    def tell(self, phase: str, at_once: bool = False) -> None:
        """Report the standing, if the last report is some time ago or nothing new will come for long."""
        began = time.monotonic()
        if at_once or began >= self._next_report:
            self.report(Progress(phase, self.assignment(), self.bounds()))
            now = time.monotonic()
            # naming a large answer takes long, and only the last one counts
            self._next_report = now + max(REPORT_EVERY, REPORT_SHARE * (now - began))

    def tell_bounds(self, phase: str) -> None:
        """Report the bounds alone."""
        self.report(Progress(phase, None, self.bounds()))


def _is_legal(standing: Standing) -> bool:
    """Return whether nothing is taken that is not there."""
    state = standing.layout.state
    return bool((state.free >= 0).all() and (state.slack >= 0).all() and (state.limits >= 0).all())
