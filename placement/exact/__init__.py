"""The exact pipeline: mixed-integer models, their solver, and the way from counts to places."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from placement.instance import Assignment, Instance
from placement.solver import Limits, Report, Result, Stop, silent

METHODS = ("exact", "ladder", "configurations", "columns", "pooled")
"""``"exact"`` chooses among the others by what the instance is."""
FEW_PATTERNS = 5000
"""Node patterns that are worth enumerating."""
MOST_PATTERNS = 50_000
"""Node patterns that are enumerated on request."""


def unsupported(method: str, instance: Instance) -> str | None:
    """Return why a method cannot take an instance, or None."""
    # not at the top: who only supervises the solver's process must not load the modelling language
    from placement import ladder
    from placement.exact.small.size import most_patterns

    if instance.apart is not None and method != "exact":
        return "it keeps tenants apart, which exact alone knows of"
    if instance.slots is not None and method != "exact":
        return "its tasks ask for MIG instances, which exact alone knows of"
    if instance.tied and method != "exact":
        return "its jobs say where their tasks may lie relative to one another, which exact alone knows of"
    if method == "ladder":
        return ladder.unsupported(instance)
    if method == "configurations" and most_patterns(instance, MOST_PATTERNS) > MOST_PATTERNS:
        return f"its nodes can be filled in more than {MOST_PATTERNS} ways; columns and pooled do not list them"
    return None


def run(
    instance: Instance,
    *,
    objectives: tuple[str, ...],
    limits: Limits,
    seed: int = 0,
    start: Assignment | None = None,
    report: Report = silent,
    method: str = "exact",
) -> Result:
    """Return the best assignment found within the limits, with proven bounds; see `placement.solver.Solver.solve`.

    Small instances are solved to the end over all patterns of their nodes, and those where blocks of cards are all that
    counts over these. Of the others, large ones are solved by the pooled model and search, and those whose nodes are
    nearly all different by column generation over what a node holds. Where jobs say where their tasks may lie relative
    to one another, small instances are solved task by task, and of the others the domains come first. Small ones are so
    too where tasks are bound to NUMA zones and nodes can be filled in too many ways, and where it counts how long jobs
    run. On larger ones that comes last: jobs that run longer than they need to are placed again. Where tenants are kept
    apart, who owns what is chosen first, and the rest is solved by all these.

    Parameters
    ----------
    method : str
        One of `METHODS`.
    """
    from placement.exact.objectives.idle import Idle

    idle = Idle(instance, objectives)
    if not idle.others:
        return Result(start or Assignment.empty(), Stop.OPTIMAL)
    return idle.result(_run(instance, idle.others, limits, seed, start, idle.report(report), method))


def _run(
    instance: Instance,
    objectives: tuple[str, ...],
    limits: Limits,
    seed: int,
    start: Assignment | None,
    report: Report,
    method: str,
) -> Result:
    """Return the same for objectives of which each can count."""
    from placement.exact.columns.method import Columns, suits
    from placement.exact.domains.tenants import solve_tenants
    from placement.exact.domains.tied import Tied
    from placement.exact.ladder.method import Ladder
    from placement.exact.ledger import Ledger
    from placement.exact.mig.sliced import is_sliced, solve_sliced
    from placement.exact.objectives.targets import rest_of, targets_of
    from placement.exact.pipeline import Pipeline
    from placement.exact.small.classes import solve_configurations
    from placement.exact.small.reference import MOST_TIMED, TIMED_NODES, is_small, solve_reference
    from placement.exact.small.size import most_patterns
    from placement.exact.timed import solve_timed, untimed

    if instance.apart is not None:
        return solve_tenants(instance, objectives, limits, seed, start, report, partial(run, method=method))
    if is_sliced(instance):
        return solve_sliced(instance, objectives, limits, seed, start, report, partial(run, method=method))
    if "run_time" in objectives:
        found = None
        if method == "exact" and is_small(instance, MOST_TIMED):
            capped = limits if limits.nodes else replace(limits, nodes=TIMED_NODES)
            found = solve_reference(instance, objectives, capped, seed, start, report)
        return found or solve_timed(instance, objectives, limits, seed, start, report, partial(run, method=method))
    instance = untimed(instance)
    targets = targets_of(instance, objectives)
    nothing = f"no bound and no search for {objectives[0]} on an instance of this size"
    if instance.tied:
        found = solve_reference(instance, objectives, limits, seed, start, report) if is_small(instance) else None
        if found is not None:
            return found
        if not targets:
            return Result(start or Assignment.empty(), Stop.COMPLETE, notes=(nothing,))
        return Tied(
            Ledger(instance, targets, limits, seed, start, report), rest_of(objectives), start, "locality" in objectives
        ).run()
    few = method == "exact" and most_patterns(instance, FEW_PATTERNS) <= FEW_PATTERNS
    if few or method == "configurations" or (method == "exact" and not targets):
        found = solve_configurations(instance, objectives, limits, seed, start, report)
        if found is not None:
            return found
    if method == "exact" and instance.zoned and is_small(instance):
        found = solve_reference(instance, objectives, limits, seed, start, report)
        if found is not None:
            return found
    if method == "configurations":
        note = "not every pattern of the nodes could be listed"
        return Result(start or Assignment.empty(), Stop.COMPLETE, notes=(note,))
    if not targets:
        return Result(start or Assignment.empty(), Stop.COMPLETE, notes=(nothing,))
    kind: type[Ladder] | type[Columns] | type[Pipeline] = Pipeline
    if method == "ladder" or (method == "exact" and unsupported("ladder", instance) is None):
        kind = Ladder
    elif method == "columns" or (method == "exact" and suits(instance)):
        kind = Columns
    return kind(Ledger(instance, targets, limits, seed, start, report), rest_of(objectives)).run()
