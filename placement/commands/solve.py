"""``placement solve``: a checked plan for a snapshot."""

from __future__ import annotations

from typing import Annotated

import typer

from placement import engine
from placement.check import overfull
from placement.commands.files import STANDARD, Output, read_snapshot
from placement.commands.options import (
    Format,
    FormatOption,
    GapOption,
    ObjectiveOption,
    OutputOption,
    SeedOption,
    SnapshotArgument,
    TimeLimitOption,
    WithoutOption,
    names,
)
from placement.honoured import refuse_unhonoured
from placement.planning import dump_plan
from placement.report import terminal
from placement.report.table import plan_report

SolverOption = Annotated[
    str, typer.Option(metavar="NAME", help="auto, exact, or a greedy rule: see the rows of `placement compare`.")
]


def solve(
    snapshot: SnapshotArgument,
    output: OutputOption = None,
    objective: ObjectiveOption = None,
    time_limit: TimeLimitOption = None,
    gap: GapOption = 0.0,
    solver: SolverOption = "auto",
    seed: SeedOption = 0,
    without: WithoutOption = None,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the option's name
) -> None:
    """Place the pending jobs of SNAPSHOT and say how far from the best the plan can be at most.

    The plan is checked before it is written. Jobs that stay pending are part of the answer: the exit code is 0.
    """
    objectives = names(objective, "--objective")
    engine.refuse_arguments(objectives, solver, time_limit, gap, seed)
    target = Output.to(output, [snapshot]) if output is not None else None
    if output == STANDARD:
        format = Format.JSON  # noqa: A001
    cluster = read_snapshot(snapshot)
    with terminal.progress("solving") as listener:
        plan = engine.solve(
            cluster,
            objectives=objectives,
            solver=solver,
            time_limit=time_limit,
            gap=gap,
            seed=seed,
            without=without or (),
            report=listener,
        )
    if target is not None:
        target.write(dump_plan(plan))
    if format is Format.TABLE:
        terminal.console().print(
            plan_report(cluster, plan, overfull=overfull(refuse_unhonoured(cluster, without or ())))
        )
    elif output != STANDARD:
        Output(STANDARD).write(dump_plan(plan))
