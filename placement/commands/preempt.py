"""``placement preempt``: which running jobs to stop, shrink or move so that a waiting one can start now."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer
from rich.table import Table

from placement.commands.files import STANDARD, Output, read_snapshot, refuse_one_place, write_all
from placement.commands.options import Format, SeedOption, SnapshotArgument, TimeLimitOption, WithoutOption
from placement.decisions.preempt import Eviction, Preemption
from placement.decisions.preempt import preempt as find
from placement.decisions.preempted import Place
from placement.planning import dump_plan
from placement.report.terminal import console, counted, number, percent, plain, table
from placement.snapshot.read import dumps

MOST = 200
"""Tasks that a table lists; JSON has all."""


def preempt(
    snapshot: SnapshotArgument,
    job: Annotated[
        str | None, typer.Option(metavar="NAME", help="The job that is to start; all that wait, one after the other.")
    ] = None,
    move: Annotated[bool, typer.Option("--move/--no-move", help="Whether running tasks may go on elsewhere.")] = True,
    reclaim: Annotated[
        str,
        typer.Option(
            metavar="quota|fair_share|dominant_share",
            help="What a queue may claim back from others: its quota, or its part by weight of what is left over too, "
            "of each model by itself, or by the model of which that part is largest.",
        ),
    ] = "quota",
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the plan of what starts here, whole or not at all."),
    ] = None,
    after: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write the snapshot once all have left here; the plan is for it."),
    ] = None,
    time_limit: TimeLimitOption = None,
    seed: SeedOption = 0,
    without: WithoutOption = None,
    format: Annotated[  # noqa: A002 - the option's name
        Format | None, typer.Option(help="What standard output gets; a table if it does not get a file by -.")
    ] = None,
) -> None:
    """Show which running jobs of SNAPSHOT to stop, shrink or move so that waiting ones start now, at least cost.

    Running jobs may be stopped that are preemptible and of lower priority, or of a queue that is beyond its quota.
    Nobody leaves for a job that then does not start. Exit code 1 if a job named by --job cannot be started.
    """
    refuse_one_place(snapshot, output, after, format is not None)
    target = Output.to(output, [snapshot]) if output is not None else None
    then = Output.to(after, [snapshot], "--after") if after is not None else None
    printed = Output.to(STANDARD)
    found = find(
        read_snapshot(snapshot),
        job,
        move=move,
        reclaim=reclaim,  # type: ignore[arg-type]  # refused there where it is none of these
        time_limit=time_limit,
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
        names = ("started", "evictions", "waiting", "cost", "bound", "gap", "proven", "plan")
        printed.write(msgspec.json.encode({name: getattr(found, name) for name in names}) + b"\n")
    elif STANDARD not in (output, after):
        _print(found)
    if job is not None and not found.started:
        raise typer.Exit(1)


def _print(found: Preemption) -> None:
    out = console()
    if found.evictions:
        out.print(_tasks(found.evictions))
        tasks = sum(len(one.tasks) for one in found.evictions)
        if tasks > MOST:
            out.print(plain(f"and {counted(tasks - MOST, 'more task')}"))
        out.print()
    kinds = [(kind, sum(one.kind == kind for one in found.evictions)) for kind in ("stop", "shrink", "move")]
    listed = ", ".join(f"{counted(count, 'job')} to {kind}" for kind, count in kinds if count) or "nothing leaves"
    out.print(plain(f"{listed}; {counted(len(found.started), 'job')} to start", "bold"))
    out.print(plain(f"cost {number(found.cost)} weighted seconds"))
    if found.bound is None:
        out.print(plain("no bound is known"))
    else:
        gap = None if found.gap is None else 100 * found.gap
        out.print(plain(f"no victims cost less than {number(found.bound)}, gap {percent(gap)} %"))
    for one in found.waiting:
        out.print(plain(f"{one.job} waits: {one.detail}"))


def _tasks(evictions: tuple[Eviction, ...]) -> Table:
    grid = table("job", "for", "what", "task", "from", "to", left=6)
    rows = [(one, task) for one in evictions for task in one.tasks]
    for one, task in rows[:MOST]:
        to = "" if task.target is None else _where(task.target)
        row = (one.job, one.reason, one.kind, f"{task.group} {task.index}", _where(task.source), to)
        grid.add_row(*map(plain, row))
    return grid


def _where(place: Place) -> str:
    node, gpus, starts = place
    cards = f", card{'s' if len(gpus) > 1 else ''} {', '.join(map(str, gpus))}" if gpus else ""
    slots = f", slot {', '.join(map(str, starts))}" if starts else ""
    return f"{node}{cards}{slots}"
