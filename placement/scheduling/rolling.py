"""Planning anew from time to time: what a plan says is tried first, then what has come since."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from placement.scheduling.desk import Desk
from placement.scheduling.orders import by_weighted_area

Planner = Callable[[Desk, float], Sequence[int]]
"""Given the cluster now and seconds to think: jobs that wait, in the order in which to start those that fit."""


def by_area(desk: Desk, time_limit: float) -> Sequence[int]:
    """Return all that waits in Smith's order for parallel jobs; see `placement.scheduling.orders`."""
    return desk.line(by_weighted_area)


@dataclass(slots=True)
class Rolling:
    """A policy that asks a planner every so often, and goes on by its last answer in between.

    A job that waited when the planner was asked, and that it did not list, is not started before it is asked again.
    One object is for one run.

    Attributes
    ----------
    plan : callable
        See `Planner`.
    period : int
        Milliseconds between two plans.
    time_limit : float
        Seconds that each may take.
    name : str
    plans : int
        How often the planner was asked.
    """

    plan: Planner = by_area
    period: int = 300_000
    time_limit: float = 1.0
    name: str = "rolling"
    plans: int = 0
    _order: list[int] = field(default_factory=list)
    _known: dict[int, int] = field(default_factory=dict)
    _next: int = 0

    def decide(self, desk: Desk) -> None:
        """Start what fits, in the order of the last plan."""
        if desk.now >= self._next and desk.waiting:
            self._order = list(self.plan(desk, self.time_limit))
            self._known = dict(desk.waiting)
            self._next = desk.now - desk.now % self.period + self.period
            self.plans += 1
        listed = [job for job in self._order if desk.waiting.get(job) == self._known.get(job, -1)]
        since = [job for job in desk.line(by_weighted_area) if self._known.get(job) != desk.waiting[job]]
        self._order = [job for job in listed if not desk.start(job)]
        for job in since:
            desk.start(job)
