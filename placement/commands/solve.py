"""``placement solve``: a checked plan for a snapshot."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from placement import engine
from placement.commands.files import STANDARD, Output, read_snapshot
from placement.commands.log import Log
from placement.commands.options import (
    Format,
    GapOption,
    LogOption,
    NodeOption,
    ObjectiveOption,
    OutputOption,
    SeedOption,
    SnapshotArgument,
    TimeLimitOption,
    WithoutOption,
    names,
)
from placement.errors import UsageError
from placement.exact.processes.worker import warm
from placement.heuristics import HEURISTICS
from placement.honoured import refuse_unhonoured_in_plan
from placement.planning import dump_plan
from placement.report import terminal
from placement.report.layout import layout, node_of
from placement.report.table import plan_report
from placement.report.tree import tells, tree_report

EXACT = tuple(name for name in engine.SOLVERS if name not in HEURISTICS)
"""Methods that prove bounds, by name."""

SolverOption = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help=f"auto: every greedy rule and exact, and the best plan wins. Forced: {', '.join(EXACT)};"
        f" or one greedy rule: {', '.join(HEURISTICS)}.",
    ),
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
    log: LogOption = None,
    node: NodeOption = None,
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
    printed = Output.to(STANDARD)
    lines = Log.to(log, [snapshot], output)
    if output == STANDARD and format is not None:
        raise UsageError.one("-o - writes the plan there already", "leave one of the two out", path="--format")
    if solver not in HEURISTICS:
        warm()
    cluster = read_snapshot(snapshot)
    used = refuse_unhonoured_in_plan(cluster, without or ())
    inside = dict.fromkeys(node or ())
    for name in inside:
        node_of(used, name)
    with lines.open(), lines.progress("solving") as listener:
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
        lines.done(plan)
    if target is not None:
        target.write(dump_plan(plan))
    if format is Format.JSON:
        printed.write(dump_plan(plan))
    elif output != STANDARD:
        screen = terminal.console()
        screen.print(plan_report(cluster, plan))
        if tells(used):
            screen.print(Text(), tree_report(used, plan, width=min(80, screen.width)), sep="\n")
        for name in inside:
            screen.print(Text(), layout(used, plan, name, width=min(80, screen.width)), sep="\n")
