"""``placement compare``: every method on one snapshot, and the bound that none of them can pass."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from placement import engine
from placement.commands.files import STANDARD, Output, read_snapshot
from placement.commands.options import (
    Format,
    FormatOption,
    GapOption,
    ObjectiveOption,
    SeedOption,
    SnapshotArgument,
    TimeLimitOption,
    WithoutOption,
    names,
)
from placement.report import terminal
from placement.report.comparison import Comparison, comparison_record, comparison_table, headline

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
    format: FormatOption = Format.TABLE,  # noqa: A002 - the option's name
) -> None:
    """Solve SNAPSHOT with several methods, each within the time limit, and show them side by side.

    The last row is the best bound that any of them proved: no plan at all is better than that.
    """
    objectives = names(objective, "--objective")
    methods = dict.fromkeys(names(solvers, "--solvers") or engine.SOLVERS)
    for method in methods:
        engine.refuse_arguments(objectives, method, time_limit, gap, seed)
    cluster = read_snapshot(snapshot)
    plans = []
    for method in methods:
        with terminal.progress(f"solving with {method}") as listener:
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
        plans.append(plan)
    comparison = Comparison.of(cluster, plans)
    if format is Format.JSON:
        Output(STANDARD).write(msgspec.json.encode(comparison_record(comparison)) + b"\n")
    else:
        out = terminal.console()
        out.print(headline(comparison), end="\n\n")
        out.print(comparison_table(comparison))
