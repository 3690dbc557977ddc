"""``placement compare``: every method on one snapshot, and the bound that none of them can pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
import typer

from placement import engine
from placement.commands.files import STANDARD, Output, read_snapshot
from placement.commands.log import Log
from placement.commands.options import (
    Format,
    FormatOption,
    GapOption,
    LogOption,
    ObjectiveOption,
    SeedOption,
    SnapshotArgument,
    TimeLimitOption,
    WithoutOption,
    names,
)
from placement.errors import Problem, UsageError
from placement.exact.processes.worker import warm
from placement.heuristics import HEURISTICS
from placement.honoured import refuse_unhonoured_in_plan
from placement.report import terminal
from placement.report.comparison import Comparison, comparison_record, comparison_table, headline, verdict
from placement.snapshot.report import suggestion

SolversOption = Annotated[
    str | None,
    typer.Option(metavar="A,B", help="Methods to compare; without it, every greedy rule and exact."),
]


def compare(
    snapshot: SnapshotArgument,
    solvers: SolversOption = None,
    objective: ObjectiveOption = None,
    time_limit: TimeLimitOption = None,
    gap: GapOption = 0.0,
    seed: SeedOption = 0,
    without: WithoutOption = None,
    log: LogOption = None,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the option's name
) -> None:
    """Solve SNAPSHOT with several methods, each within the time limit, and show them side by side.

    The last row is the best bound that any of them proved: no plan at all is better than that.
    """
    objectives = names(objective, "--objective")
    methods = names(solvers, "--solvers") or (*HEURISTICS, "exact")
    _refuse_solvers(methods)
    engine.refuse_arguments(objectives, methods[0], time_limit, gap, seed)
    printed = Output.to(STANDARD)
    lines = Log.to(log, [snapshot])
    if not set(methods) <= set(HEURISTICS):
        warm()
    cluster = read_snapshot(snapshot)
    refuse_unhonoured_in_plan(cluster, without or ())
    plans = []
    with lines.open():
        for method in methods:
            with lines.progress(f"solving with {method}", method) as listener:
                plan = engine.solve(
                    cluster,
                    objectives=objectives,
                    solver=method,
                    time_limit=time_limit,
                    gap=gap,
                    seed=seed,
                    without=without or (),
                    report=listener,
                )
            lines.done(plan, method)
            plans.append(plan)
    comparison = Comparison.of(cluster, plans)
    if format is Format.JSON:
        printed.write(msgspec.json.encode(comparison_record(comparison)) + b"\n")
    else:
        out = terminal.console()
        out.print(headline(comparison), end="\n\n")
        out.print(comparison_table(comparison, out.width))
        out.print()
        out.print(verdict(comparison))


def _refuse_solvers(methods: Sequence[str]) -> None:
    """Raise if a method is unknown or is named twice."""
    known = ["auto", *engine.SOLVERS]
    problems = [
        Problem("--solvers", f"{method!r} is unknown", suggestion(method, known, len(known)))
        for method in dict.fromkeys(methods)
        if method not in known
    ]
    problems += [
        Problem("--solvers", f"{method!r} is named twice", "name each method once")
        for method in dict.fromkeys(methods)
        if methods.count(method) > 1
    ]
    if problems:
        raise UsageError(problems)
