"""``placement consolidate``: which running MIG instances to move so that more of what waits can start."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer
from rich.table import Table

from placement.commands.files import STANDARD, Output, read_snapshot, refuse_one_place, write_all
from placement.commands.options import (
    Format,
    GapOption,
    SeedOption,
    SnapshotArgument,
    TimeLimitOption,
    WithoutOption,
)
from placement.decisions.consolidate import MOVE_COST, Consolidation, Move
from placement.decisions.consolidate import consolidate as find
from placement.planning import dump_plan
from placement.report.terminal import console, counted, number, percent, plain, table
from placement.snapshot.read import dumps

MOST = 200
"""Moves that a table lists; JSON has all."""


def consolidate(
    snapshot: SnapshotArgument,
    move_cost: Annotated[
        float,
        typer.Option(metavar="C", help="What moving a task costs, as a part of what starting one like it is worth."),
    ] = MOVE_COST,
    max_moves: Annotated[int | None, typer.Option(metavar="N", help="Most tasks to move.")] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the plan of what starts here, whole or not at all."),
    ] = None,
    after: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write the snapshot once the tasks have moved here; the plan is for it."),
    ] = None,
    time_limit: TimeLimitOption = None,
    gap: GapOption = 0.0,
    seed: SeedOption = 0,
    without: WithoutOption = None,
    format: Annotated[  # noqa: A002 - the option's name
        Format | None, typer.Option(help="What standard output gets; a table if it does not get a file by -.")
    ] = None,
) -> None:
    """Show which running MIG tasks of SNAPSHOT to move, and which waiting ones then start.

    Running jobs may move that are preemptible and have MIG tasks alone. All instances that move are destroyed before
    any is created.
    """
    refuse_one_place(snapshot, output, after, format is not None)
    target = Output.to(output, [snapshot]) if output is not None else None
    then = Output.to(after, [snapshot], "--after") if after is not None else None
    printed = Output.to(STANDARD)
    found = find(
        read_snapshot(snapshot),
        move_cost=move_cost,
        max_moves=max_moves,
        time_limit=time_limit,
        gap=gap,
        seed=seed,
        without=without or (),
    )
    documents = []
    if target is not None:
        documents.append((target, dump_plan(found.plan)))
    if then is not None:
        documents.append((then, dumps(found.after)))
    write_all(documents)
    if format is Format.JSON:
        answer = {name: getattr(found, name) for name in ("moves", "worth", "cost", "bound", "gap", "plan")}
        printed.write(msgspec.json.encode(answer) + b"\n")
    elif STANDARD not in (output, after):
        _print(found)


def _print(found: Consolidation) -> None:
    out = console()
    if found.moves:
        out.print(_moves(found.moves[:MOST]))
        if len(found.moves) > MOST:
            out.print(plain(f"and {counted(len(found.moves) - MOST, 'more move')}"))
        out.print()
    tasks = len(found.plan.tasks)
    waiting = len(found.plan.pending)
    out.print(plain(f"{counted(len(found.moves), 'task')} to move, {counted(tasks, 'task')} to start", "bold"))
    out.print(plain(f"worth {number(found.worth)} less {number(found.cost)} for the moves"))
    if found.bound is None:
        out.print(plain("no bound is known"))
    else:
        out.print(plain(f"no answer is worth more than {number(found.bound)}, gap {percent(_percent(found.gap))} %"))
    if waiting:
        out.print(plain(f"{counted(waiting, 'job')} still waiting"))


def _percent(gap: float | None) -> float | None:
    return None if gap is None else 100 * gap


def _moves(moves: tuple[Move, ...]) -> Table:
    grid = table("job", "task", "from", "to", left=4)
    for move in moves:
        grid.add_row(
            plain(move.job), plain(f"{move.group} {move.index}"), plain(_where(move.source)), plain(_where(move.target))
        )
    return grid


def _where(place: tuple[str, int, int]) -> str:
    node, card, slot = place
    return f"{node}, card {card}, slot {slot}"
