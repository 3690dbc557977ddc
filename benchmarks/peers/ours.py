"""`placement.solve` with a clock beside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version

import placement as pl
from placement import engine
from placement.instance import Assignment, Instance
from placement.solver import Limits, Progress, Report, Result, Solver, silent
from placement.version import VERSION

from .common import OBJECTIVE, Case, Course, Trace, judged


class Recorder:
    """The exact method, with every assignment that it starts from, tells of or ends with noted.

    The listener of `solve` hears values, but no assignments, and every incumbent here is to be judged by the check.
    """

    def __init__(self, inner: Solver, trace: Trace) -> None:
        self.inner, self.trace = inner, trace
        self.name = inner.name

    def supports(self, instance: Instance) -> str | None:
        """Ask the method."""
        return self.inner.supports(instance)

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
        """Let the method solve; see `placement.solver.Solver`."""

        def told(progress: Progress) -> None:
            if progress.assignment is not None:
                self._note(progress.assignment)
            report(progress)

        if start is not None:
            self._note(start)
        result = self.inner.solve(instance, objectives=objectives, limits=limits, seed=seed, start=start, report=told)
        self._note(result.assignment)
        return result

    def _note(self, assignment: Assignment) -> None:
        self.trace.incumbent(lambda: assignment)


def run(case: Case, limit: float, seed: int) -> Course:
    """Solve a case and return its course."""
    trace = Trace()

    def listen(update: pl.Update) -> None:
        if update.bound is not None:
            trace.better_bound(update.bound)

    with _recorded(trace):
        plan = pl.solve(
            case.snapshot, objectives=(OBJECTIVE,), solver="auto", time_limit=limit, seed=seed, report=listen
        )
    trace.seconds = trace.now
    if plan.bound is not None:
        trace.better_bound(plan.bound)
    if pl.check(case.snapshot, plan):
        raise SystemExit(f"{case.nodes} nodes: the check refused this engine's own plan")
    trace.about = {
        "version": f"{VERSION}, highspy {version('highspy')}",
        "workers": "exact pipeline in one process, greedy rules beside it in another",
        "stop": plan.stop,
        "build_seconds": round(sum(plan.seconds.get(k, 0.0) for k in ("compile", "build", "handover")), 3),
        "note": "time to a value is that of the incumbent; the final plan is named and checked within `seconds`",
    }
    course = judged(case, case.compile(), trace)
    if plan.value is not None and (course.value is None or plan.value > course.value):
        # a greedy rule beside the exact method was best
        course.values.append((trace.seconds, plan.value))
    return course


@contextmanager
def _recorded(trace: Trace) -> Iterator[None]:
    inner = engine.SOLVERS["exact"]
    engine.SOLVERS["exact"] = Recorder(inner, trace)
    try:
        yield
    finally:
        engine.SOLVERS["exact"] = inner
