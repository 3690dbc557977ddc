"""Bounds: each phase's bound agrees with its value, and the gap and the status follow from them.

Whether a bound is true is for its proof to say; a judge of plans can only see that it is no worse than the value of
a plan that exists.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from placement.check.case.case import Case
from placement.check.values.objectives import SENSE
from placement.check.violation import Violation, as_float
from placement.plan import Phase, Plan

RULE = "bounds"
_TOLERANCE = 1e-12
"""Relative; the gap is a quotient of two floats, whatever order it is worked out in."""


def judge(case: Case) -> Iterator[Violation]:
    """Yield what is wrong with bounds, gaps, conditions and the status."""
    whole = True
    for number, phase in enumerate(case.plan.phases):
        path = f"phases[{number}]"
        wild = [
            (name, value)
            for name, value in (("value", phase.value), ("bound", phase.bound), ("gap", phase.gap))
            if value is not None and not math.isfinite(value)
        ]
        for name, value in wild:
            yield Violation(RULE, f"{path}.{name}", f"the {name} is {value}, only finite numbers are allowed")
        if wild:
            whole = False
            continue
        yield from _bound(path, phase)
        yield from _gap(path, phase)
        yield from _condition(path, phase, number)
    status = _status(case.plan)
    if whole and case.plan.status != status:
        yield Violation(RULE, "status", f"the status is {case.plan.status}, the bounds make it {status}")
    if (case.plan.stop == "optimal") != (case.plan.status == "proven"):
        yield Violation(RULE, "stop", f"the search stopped by {case.plan.stop}, and the status is {case.plan.status}")


def _bound(path: str, phase: Phase) -> Iterator[Violation]:
    if phase.bound is None:
        return
    least = SENSE.get(phase.objective, phase.sense) == "max"
    if phase.bound < phase.value if least else phase.bound > phase.value:
        allowed = "at least" if least else "at most"
        yield Violation(
            RULE, f"{path}.bound", f"the bound is {phase.bound!r}, {allowed} the plan's own value {phase.value!r}"
        )


def _gap(path: str, phase: Phase) -> Iterator[Violation]:
    due = gap(phase.value, phase.bound)
    if due is None and phase.gap is not None:
        why = "without a bound" if phase.bound is None else "where the value is 0 and the bound is not"
        yield Violation(RULE, f"{path}.gap", f"the gap is {phase.gap!r}, {why} there is none")
    elif due is not None and (phase.gap is None or not math.isclose(phase.gap, due, rel_tol=_TOLERANCE)):
        found = "missing" if phase.gap is None else repr(phase.gap)
        yield Violation(RULE, f"{path}.gap", f"the gap is {found}, value and bound make {due!r}")


def gap(value: float, bound: float | None) -> float | None:
    """Return ``|value - bound| / |value|`` of finite numbers; None without a bound, or where only the value is 0."""
    if bound is None or (value == 0 and bound != 0):
        return None
    if value == bound:
        return 0.0
    return as_float(abs(Fraction(value) - Fraction(bound)) / abs(Fraction(value)))


def _condition(path: str, phase: Phase, number: int) -> Iterator[Violation]:
    if phase.conditional and number == 0:
        yield Violation(RULE, f"{path}.conditional", "the first bound is conditional, no phase comes before it")
    elif phase.conditional and phase.bound is None:
        yield Violation(RULE, f"{path}.conditional", "there is no bound, so nothing can be conditional")


def _status(plan: Plan) -> str:
    if all(phase.bound == phase.value for phase in plan.phases):
        return "proven"
    return "bounded" if plan.phases and plan.phases[0].bound is not None else "feasible"
