"""``placement solve``: a checked plan for a snapshot."""

from __future__ import annotations

from typing import Annotated

import typer

from placement import engine
from placement.check import overfull
from placement.commands.files import STANDARD, Output, read_snapshot
from placement.commands.options import (
    Format,
    GapOption,
    ObjectiveOption,
    OutputOption,
    SeedOption,
    SnapshotArgument,
    TimeLimitOption,
    WithoutOption,
    names,
)
from placement.errors import UsageError
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
    format: Annotated[  # noqa: A002 - the option's name
        Format | None, typer.Option(help="What standard output gets; a table if it does not get the plan by -o -.")
    ] = None,
) -> None:
    """Place the pending jobs of SNAPSHOT and say how far from the best the plan can be at most.

    The plan is checked before it is written. Jobs that stay pending are part of the answer: the exit code is 0.
    """
    objectives = names(objective, "--objective")
    engine.refuse_arguments(objectives, solver, time_limit, gap, seed)
    target = Output.to(output, [snapshot]) if output is not None else None
    if output == STANDARD and format is not None:
        raise UsageError.one("-o - writes the plan there already", "leave one of the two out", path="--format")
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
    if format is Format.JSON:
        Output(STANDARD).write(dump_plan(plan))
    elif output != STANDARD:
        terminal.console().print(
            plan_report(cluster, plan, overfull=overfull(refuse_unhonoured(cluster, without or ())))
        )
