"""What every contender is measured by: one case, one clock, and incumbents that the check has accepted."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import placement as pl
from placement.compile import compile as compile_snapshot
from placement.evaluate import scores
from placement.instance import Assignment, Instance
from placement.plan import Provenance
from placement.planning import plan_of
from placement.snapshot import Snapshot
from placement.snapshot.read import digest
from placement.solver import Result, Stop

OBJECTIVE = "value"
"""The one objective compared: GPU-milli times weight. Ties in `tasks`, the default's second one, count for nothing."""


class Unsupported(Exception):  # noqa: N818 - it names what is said of the case
    """A contender cannot state the case; the text says what, and becomes the row's note."""


class NotInstalled(Exception):  # noqa: N818 - it names what is said of the peer
    """A peer's package is not there; the text says why, and becomes the row's note."""


@dataclass(frozen=True)
class Case:
    """One instance for all contenders.

    Attributes
    ----------
    nodes, seed : int
        Arguments of `load.load`.
    snapshot : Snapshot
    """

    nodes: int
    seed: int
    snapshot: Snapshot

    @cached_property
    def digest(self) -> str:
        """Digest of the snapshot, worked out once."""
        return digest(self.snapshot)

    def compile(self) -> Instance:
        """Compile anew: every contender pays for it on its own clock, as `placement.solve` does."""
        return compile_snapshot(self.snapshot)

    def judge(self, instance: Instance, assignment: Assignment) -> tuple[float, str | None]:
        """Return what an assignment is worth, and the first thing that `placement.check` holds against it."""
        plan = plan_of(
            instance,
            Result(assignment, Stop.COMPLETE),
            {},
            (OBJECTIVE,),
            Provenance(version="", solver="peer", objectives=(OBJECTIVE,)),
            self.digest,
        )
        violations = pl.check(self.snapshot, plan)
        return value_of(instance, assignment), str(violations[0]) if violations else None


def value_of(instance: Instance, assignment: Assignment) -> float:
    """Return the value over all priorities, in GPU-milli times weight."""
    return float(sum(score.value for score in scores(instance, assignment, (OBJECTIVE,))))


Decode = Callable[[], Assignment]
"""Makes an incumbent's assignment; called after the run, so that naming tasks costs the contender no time."""


@dataclass(slots=True)
class Trace:
    """What a contender had at what time, in seconds of wall clock since `began`.

    Attributes
    ----------
    began : float
        Value of `time.monotonic`.
    found : list of (seconds, Decode)
        Incumbents, to be judged after the run.
    bounds : list of (seconds, bound)
        Proven bounds, in the unit of the value.
    seconds : float
        Of the whole run.
    about : dict
        Whatever the row is to tell: versions, sizes, notes.
    """

    began: float = field(default_factory=time.monotonic)
    found: list[tuple[float, Decode]] = field(default_factory=list)
    bounds: list[tuple[float, float]] = field(default_factory=list)
    seconds: float = 0.0
    about: dict[str, object] = field(default_factory=dict)

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self.began

    def better_bound(self, bound: float) -> None:
        """Note a bound."""
        self.bounds.append((self.now, bound))

    def incumbent(self, decode: Decode) -> None:
        """Note an incumbent."""
        self.found.append((self.now, decode))


@dataclass(slots=True)
class Course:
    """A run after it was judged: the best accepted value and the best bound over time, only improvements."""

    values: list[tuple[float, float]]
    bounds: list[tuple[float, float]]
    seconds: float
    refused: int = 0
    refusal: str | None = None
    about: dict[str, object] = field(default_factory=dict)

    @property
    def value(self) -> float | None:
        """Best accepted value."""
        return self.values[-1][1] if self.values else None

    @property
    def bound(self) -> float | None:
        """Best bound."""
        return self.bounds[-1][1] if self.bounds else None

    def to_value(self, value: float) -> float | None:
        """Return the seconds after which the value was reached; None if it never was."""
        return next((at for at, have in self.values if have >= value - 1e-9 * abs(value)), None)

    def to_gap(self, gap: float) -> tuple[float, float] | None:
        """Return the seconds after which a relative gap was proven, and the value then; None if it never was."""
        for at in sorted({at for at, _ in (*self.values, *self.bounds)}):
            value = max((have for when, have in self.values if when <= at), default=None)
            bound = min((have for when, have in self.bounds if when <= at), default=None)
            if value is not None and bound is not None and bound - value <= gap * abs(value):
                return at, value
        return None

    @property
    def gap(self) -> float | None:
        """Relative gap at the end."""
        if self.value is None or self.bound is None or not self.value:
            return None
        return max(0.0, self.bound - self.value) / abs(self.value)


def judged(case: Case, instance: Instance, trace: Trace) -> Course:
    """Return the course of a run; an incumbent that the check refuses counts for nothing but is told."""
    course = Course([], improving(trace.bounds, -1), trace.seconds, about=trace.about)
    values = []
    for at, decode in trace.found:
        value, refusal = case.judge(instance, decode())
        if refusal is None:
            values.append((at, value))
        else:
            course.refused += 1
            course.refusal = course.refusal or refusal
    course.values = improving(values, 1)
    return course


def improving(points: list[tuple[float, float]], sense: int) -> list[tuple[float, float]]:
    """Return the points that are better than all before them; `sense` is +1 where more is better, -1 where less is."""
    best: list[tuple[float, float]] = []
    for at, have in sorted(points, key=lambda point: point[0]):
        if not best or sense * have > sense * best[-1][1]:
            best.append((at, have))
    return best
