"""The exact pipeline: mixed-integer models, their solver, and the way from counts to places."""

from __future__ import annotations

from placement.instance import Assignment, Instance
from placement.solver import Limits, Report, Result, Stop, silent

FEW_PATTERNS = 5000
"""Node patterns that are worth enumerating."""


def run(
    instance: Instance,
    *,
    objectives: tuple[str, ...],
    limits: Limits,
    seed: int = 0,
    start: Assignment | None = None,
    report: Report = silent,
) -> Result:
    """Return the best assignment found within the limits, with proven bounds; see `placement.solver.Solver.solve`.

    Small instances are solved to the end over all patterns of their nodes, large ones by the pooled model and search.
    """
    # not at the top: who only supervises the solver's process must not load the modelling language
    from placement.exact.classes import solve_configurations
    from placement.exact.pipeline import Pipeline, rest_of, targets_of
    from placement.exact.size import most_patterns

    targets = targets_of(instance, objectives)
    few = most_patterns(instance, FEW_PATTERNS) <= FEW_PATTERNS
    if few or not targets:
        found = solve_configurations(instance, objectives, limits, seed, start, report)
        if found is not None:
            return found
    if not targets:
        note = f"no bound and no search for {objectives[0]} on an instance of this size"
        return Result(start or Assignment.empty(), Stop.COMPLETE, notes=(note,))
    return Pipeline(instance, targets, limits, seed, start, report, rest_of(objectives)).run()
