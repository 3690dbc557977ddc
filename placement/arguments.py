"""The arguments of `placement.solve`: what each may be, and one clear error where it is not."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from numbers import Integral, Real

from placement.errors import Problem, UsageError
from placement.snapshot import IN_SCHEDULES, OBJECTIVES
from placement.snapshot.report import suggestion

LONGEST = 1e6
"""Longest time limit in seconds; some platforms cannot wait much longer."""


def refuse_arguments(
    objectives: Sequence[str] | None,
    solver: str,
    time_limit: float | None,
    gap: float,
    seed: int,
    solvers: Collection[str],
) -> None:
    """Raise `UsageError` if an argument of `solve` is out of range or unknown, whatever the snapshot.

    Parameters
    ----------
    objectives, solver, time_limit, gap, seed
        As in `placement.solve`.
    solvers : collection of str
        The names there are, ``"auto"`` apart.
    """
    problems = []
    if not isinstance(solver, str) or (solver != "auto" and solver not in solvers):
        problems.append(
            Problem("solver", f"{solver!r} is unknown", suggestion(str(solver), ["auto", *solvers], len(solvers) + 1))
        )
    if time_limit is not None and not (_is_number(time_limit) and 0 < time_limit <= LONGEST):
        remedy = f"give seconds above 0 and up to {LONGEST:.0e}, or none"
        problems.append(Problem("time_limit", f"is {time_limit!r:.40}", remedy))
    if not (_is_number(gap) and 0 <= gap <= 1):
        problems.append(Problem("gap", f"is {gap!r}", "give a number from 0 to 1, such as 0.01 for one percent"))
    if not (isinstance(seed, Integral) and not isinstance(seed, bool) and 0 <= seed < 2**31):
        problems.append(Problem("seed", f"is {seed!r}", f"give a whole number from 0 to {2**31 - 1}"))
    if objectives is not None and not _are_names(objectives):
        problems.append(Problem("objectives", f"is {objectives!r:.60}", "give a list of names, the first one first"))
    elif objectives is not None:
        if not objectives:
            problems.append(Problem("objectives", "the list is empty", f"give some of {', '.join(OBJECTIVES)}"))
        if len(set(objectives)) < len(objectives):
            problems.append(Problem("objectives", "one is named twice", "name each once, the most important first"))
        problems += [
            Problem("objectives", f"{name!r} is unknown", suggestion(name, OBJECTIVES))
            for name in objectives
            if name not in OBJECTIVES
        ]
    if problems:
        raise UsageError(problems)


def _are_names(value: object) -> bool:
    """Return whether a value is a list or tuple of texts; a set has no order, and a text is one name."""
    return isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def refuse_objectives(objectives: tuple[str, ...]) -> None:
    """Raise `UsageError` for an objective that is not one of plans."""
    timed = [name for name in objectives if name in IN_SCHEDULES]
    if timed:
        usable = ", ".join(name for name in OBJECTIVES if name not in IN_SCHEDULES)
        raise UsageError.one(
            f"{timed[0]} is about when jobs run, and a plan is about now",
            f"use `placement schedule`, or choose among {usable}",
            path="objectives",
        )


def refuse_aim(objective: str | None) -> None:
    """Raise `UsageError` for an objective that is not one of schedules; None stands for that of the snapshot."""
    if objective is not None and not (isinstance(objective, str) and objective in IN_SCHEDULES):
        is_of_plans = isinstance(objective, str) and objective in OBJECTIVES
        what = "is about a plan, and a schedule is about when jobs run" if is_of_plans else "is unknown"
        raise UsageError.one(f"{objective!r:.60} {what}", f"use {' or '.join(IN_SCHEDULES)}", path="objective")
