"""Planning anew from time to time: what a plan keeps waiting waits, and all else starts as soon as it fits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from placement.scheduling.desk import NEVER, Desk
from placement.scheduling.orders import by_weighted_area
from placement.scheduling.replan import Planned, Replanner

Planner = Callable[[Desk, float | None], Sequence[Planned]]
"""Given the cluster now and seconds to think: jobs that wait, and when each is to start, first ones first."""


@dataclass(slots=True)
class Rolling:
    """A policy that asks a planner every so often, and goes on by its last answer in between.

    A job is not started before its plan says so, or before the planner is asked again if it was not listed. All others,
    those that have come since among them, are tried whenever something happens, in Smith's order for parallel jobs; see
    `placement.scheduling.orders`. So what ends early is used at once. One object is for one run.

    Attributes
    ----------
    plan : callable
        See `Planner`.
    period : int
        Milliseconds between two plans.
    time_limit : float, optional
        Seconds that each may take; if absent, what it does goes by the number of jobs and not by the clock.
    name : str
    plans : int
        How often the planner was asked.
    """

    plan: Planner = field(default_factory=Replanner)
    period: int = 300_000
    time_limit: float | None = None
    name: str = "rolling"
    plans: int = 0
    _from: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Since when a job waited of which a plan was made, and when it may start."""
    _next: int = 0

    def decide(self, desk: Desk) -> None:
        """Start what fits and may start."""
        if desk.now >= self._next and any(desk.may_fit(job) for job in desk.waiting):
            self._ask(desk)
        later = []
        for job in desk.line(by_weighted_area):
            came, start = self._from.get(job, (-1, 0))
            if came != desk.waiting[job] or start <= desk.now:
                desk.start(job)
            elif start != self._next:  # what is not planned may never fit, and is no reason to look again
                later.append(start)
        desk.again = min(later, default=NEVER)

    def _ask(self, desk: Desk) -> None:
        self.plans += 1
        self._next = desk.now - desk.now % self.period + self.period
        self._from = {job: (came, self._next) for job, came in desk.waiting.items()}
        self._from |= {job: (desk.waiting[job], start) for job, start in self.plan(desk, self.time_limit)}
