"""The one interface of every way to solve, exact or greedy."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Protocol

from placement.instance import Assignment, Instance


class Stop(StrEnum):
    """Why a search stopped."""

    OPTIMAL = "optimal"
    """Proven: the value equals the bound."""
    GAP = "gap"
    """The gap asked for was reached."""
    COMPLETE = "complete"
    """The method ran to its end; a heuristic proves nothing by that."""
    WORK = "work"
    """A limit on nodes or rounds was reached; the same again gives the same answer."""
    TIME = "time"
    """The deadline was reached; the same again may give another answer."""
    FAILED = "failed"
    """The method died or was killed; the plan, if any, is another method's."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When to stop.

    Attributes
    ----------
    deadline : float
        Value of `time.monotonic` by which an answer must be there; infinity for none.
    gap : float
        Relative gap that is good enough, in [0, 1].
    nodes : int, optional
        Most branch-and-bound nodes in any one solve.
    """

    deadline: float = float("inf")
    gap: float = 0.0
    nodes: int | None = None

    @property
    def left(self) -> float:
        """Seconds until the deadline, at least 0."""
        return max(0.0, self.deadline - time.monotonic())

    def share(self, part: float) -> Limits:
        """Return limits that end when a part of the time left is over."""
        if self.deadline == math.inf:
            return self
        return replace(self, deadline=time.monotonic() + part * self.left)


@dataclass(frozen=True, slots=True)
class Bound:
    """A proven limit on one phase: no plan that keeps the earlier phases' values is better.

    Attributes
    ----------
    objective : str
    priority : int, optional
        Tier of the ``value`` objective.
    value : float, optional
        In the objective's own unit (value, tasks, GPU-milli, nodes); None where nothing is proven.
    held : tuple of float
        Values of the earlier phases that the bound takes as given. A bound with no earlier phase is unconditional.
    """

    objective: str
    priority: int | None
    value: float | None
    held: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    """What a running solver tells: a better assignment, a better bound, or the phase it is in."""

    phase: str
    assignment: Assignment | None = None
    bounds: tuple[Bound, ...] = ()


Report = Callable[[Progress], None]


def silent(progress: Progress) -> None:
    """Ignore progress."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a solver found.

    Attributes
    ----------
    assignment : Assignment
        Placed tasks; empty when nothing was found.
    stop : Stop
    bounds : tuple of Bound
        One per phase that has one, in order.
    seconds : dict of str to float
        Wall time by activity; ``"build"`` is model building, ``"handover"`` passing models to the solver,
        ``"solve"`` the solver itself, ``"place"`` naming nodes and cards.
    log : str
        What the solver printed.
    notes : tuple of str
        Anything a user should know, such as what a repair could not place.
    """

    assignment: Assignment
    stop: Stop
    bounds: tuple[Bound, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)
    log: str = ""
    notes: tuple[str, ...] = ()


class Solver(Protocol):
    """A way to solve an instance."""

    @property
    def name(self) -> str:
        """Name by which users choose it."""
        ...

    def supports(self, instance: Instance) -> str | None:
        """Return why this solver cannot take the instance, or None."""
        ...

    def solve(
        self,
        instance: Instance,
        *,
        objectives: tuple[str, ...],
        limits: Limits,
        seed: int = 0,
        start: Assignment | None = None,
        report: Report = silent,
    ) -> Result:
        """Return the best assignment found within the limits.

        Parameters
        ----------
        instance : Instance
        objectives : tuple of str
            In order; a greedy rule has its own and may ignore them.
        limits : Limits
        seed : int
            The same instance, limits and seed give the same answer unless the clock stopped the search.
        start : Assignment, optional
            A checked assignment to start from and never to fall below.
        report : callable
            Told of every improvement.
        """
        ...
