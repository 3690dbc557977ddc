"""One call of solve while it runs: what is fixed, the best so far, and what a listener is told of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from placement.evaluate import SENSE, Score, scores
from placement.instance import Instance
from placement.phases import gap
from placement.solver import Bound, Limits, Progress, Result

Candidate = tuple[tuple[Score, ...], str, Result]
"""What a method reached, its name, and its result."""

CARRIED = "carried-over"
"""Name of the answer that an earlier plan gives, with or without what else fits around it."""


@dataclass(frozen=True, slots=True)
class Update:
    """What `solve` tells while it works.

    Attributes
    ----------
    seconds : float
        Since the call.
    phase : str
        What is being done.
    value, bound, gap : float, optional
        Of the first objective, as far as they are known: the best of all methods so far, and the bound.
    """

    seconds: float
    phase: str
    value: float | None = None
    bound: float | None = None
    gap: float | None = None


Listener = Callable[[Update], None]


@dataclass(slots=True)
class Run:
    """One call of `solve`.

    Attributes
    ----------
    instance : Instance
    objectives : tuple of str
    limits : Limits
    seed : int
    listener : callable, optional
    began : float
        Value of `time.monotonic` at the call.
    candidates : list of Candidate
        Results, in the order in which they came.
    bounds : dict of str to sequence of Bound
        By who gave them.
    notes : list of str
    seconds : dict of str to float
        Wall time by activity.
    beside : list of Candidate
        Results that are of interest but may not become the plan.
    cut : bool
        Whether the clock kept a method from being tried.
    """

    instance: Instance
    objectives: tuple[str, ...]
    limits: Limits
    seed: int
    listener: Listener | None
    began: float
    candidates: list[Candidate] = field(default_factory=list)
    bounds: dict[str, Sequence[Bound]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    beside: list[Candidate] = field(default_factory=list)
    cut: bool = False
    _told: Score | None = None
    """The best first score that any method told of, finished or not."""
    _bound: float | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    """Methods report from more than one thread."""

    def add(self, name: str, result: Result) -> None:
        """Take a result into account."""
        found = scores(self.instance, result.assignment, self.objectives)
        with self._lock:
            self.candidates.append((found, name, result))
            self.bounds[name] = result.bounds
            self.notes += [f"{name}: {note}" for note in result.notes]
            for activity, seconds in result.seconds.items():
                self.seconds[activity] = self.seconds.get(activity, 0.0) + seconds
            self._keep(found[:1], result.bounds)

    def prove(self, name: str, bounds: Sequence[Bound]) -> None:
        """Take bounds into account that come without a plan."""
        with self._lock:
            self.bounds[name] = bounds
            self._keep((), bounds)

    def good_enough(self) -> bool:
        """Return whether the gap that was asked for is reached, and nothing comes after the first objective.

        Never for a gap of 0, and never with several phases: the later ones go on to their end.
        """
        alone = len(self.objectives) == 1 and (self.objectives[0] != "value" or len(self.instance.priorities) <= 1)
        with self._lock:
            if not alone or not self.limits.gap or self._told is None or self._bound is None:
                return False
            reached = gap(float(self._told.value), self._bound)
            return reached is not None and reached <= self.limits.gap

    def ranked(self) -> list[Candidate]:
        """Return the candidates from best to worst.

        Of equal ones what an earlier plan gives comes first, so that nothing is moved without a gain; then an exact
        method's, then as they came.
        """
        return sorted(
            self.candidates, key=lambda c: ([-score.rank for score in c[0]], c[1] != CARRIED, not c[2].bounds)
        )

    def hear(self, name: str, progress: Progress) -> None:
        """Take in what a running method reports, and pass it on."""
        if self.listener is None:
            return
        found: tuple[Score, ...] = ()
        if progress.assignment is not None:
            found = scores(self.instance, progress.assignment, self.objectives[:1])[:1]
        with self._lock:
            self._keep(found, progress.bounds)
        self.tell(name if progress.phase == name else f"{name}: {progress.phase}")

    def tell(self, phase: str) -> None:
        """Tell the listener what is being done and how far it is."""
        if self.listener is None:
            return
        with self._lock:
            value = None if self._told is None else float(self._told.value)
            bound = self._bound
            distance = None if value is None or bound is None else gap(value, bound)
            self.listener(Update(time.monotonic() - self.began, phase, value, bound, distance))

    def _keep(self, found: Sequence[Score], bounds: Sequence[Bound]) -> None:
        """Keep the first score and the best bound on the first phase, where they are better than what is kept."""
        for score in found:
            if self._told is None or score.rank > self._told.rank:
                self._told = score
        if not self.objectives or not self.instance.exact:
            return
        first = self.objectives[0]
        priority = next(iter(self.instance.priorities), None) if first == "value" else None
        known = [b.value for b in bounds if (b.objective, b.priority) == (first, priority) and b.value is not None]
        if self._bound is not None:
            known.append(self._bound)
        self._bound = min(known, key=lambda value: value * SENSE[first], default=None)
