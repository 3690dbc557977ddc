"""``placement schedule``: when each job starts and where, for the least weighted completion time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated

import msgspec
import typer

from placement import arguments
from placement.commands.files import STANDARD, Output, read_snapshot, refuse_name, same_file, write_all
from placement.commands.options import (
    Format,
    GapOption,
    OutputOption,
    SeedOption,
    SnapshotArgument,
    TimeLimitOption,
    WithoutOption,
    names,
)
from placement.errors import Problem, UsageError
from placement.planning import dump_schedule
from placement.report.gantt import page, svg
from placement.report.schedule import gap_of, schedule_report
from placement.report.terminal import console, progress
from placement.run import Listener, Update
from placement.scheduling.baselines import BASELINES
from placement.scheduling.progress import Report, silent
from placement.scheduling.schedule import schedule as make
from placement.snapshot import IN_SCHEDULES, Snapshot
from placement.snapshot.report import suggestion
from placement.timetable import Schedule

ALL = "all"
"""Stands for every baseline."""


def schedule(
    snapshot: SnapshotArgument,
    output: OutputOption = None,
    solver: Annotated[
        str,
        typer.Option(metavar="NAME", help=f"auto: the best that is found. Or one baseline: {', '.join(BASELINES)}."),
    ] = "auto",
    compare: Annotated[
        str | None,
        typer.Option(metavar="A,B", help=f"Show these baselines beside the schedule; {ALL} for every one."),
    ] = None,
    time_limit: TimeLimitOption = None,
    gap: GapOption = 0.0,
    seed: SeedOption = 0,
    without: WithoutOption = None,
    objective: Annotated[
        str | None,
        typer.Option(metavar="NAME", help=f"Instead of what the snapshot says: {' or '.join(IN_SCHEDULES)}."),
    ] = None,
    picture: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Draw nodes over time here, as a page (.html) or a picture (.svg)."),
    ] = None,
    format: Annotated[  # noqa: A002 - the option's name
        Format | None, typer.Option(help="What standard output gets; a table if it does not get the schedule by -o -.")
    ] = None,
) -> None:
    """Plan over time when and where each job of SNAPSHOT runs, and say how far from the best that can be at most.

    Least is the sum of weight times T, the time from when a job may start until it ends, or for finish_time_fairness of
    T over the time that a job would take alone with its part of the cluster. The schedule is checked before
    it is written. Jobs without a start are part of the answer: the exit code is 0.
    """
    arguments.refuse_arguments(None, solver, time_limit, gap, seed, tuple(BASELINES))
    arguments.refuse_aim(objective)
    baselines = _baselines(compare)
    _refuse_picture(picture, snapshot, output)
    target = Output.to(output, [snapshot]) if output is not None else None
    drawn = Output.to(picture, [snapshot], "--picture") if picture is not None else None
    printed = Output.to(STANDARD)
    if output == STANDARD and format is not None:
        raise UsageError.one("-o - writes the schedule there already", "leave one of the two out", path="--format")
    cluster = read_snapshot(snapshot)
    beside = []
    with progress("scheduling") as listener:
        tell = _teller(listener)
        found = make(
            cluster,
            solver=solver,
            time_limit=time_limit,
            gap=gap,
            seed=seed,
            without=without or (),
            objective=objective,
            report=tell,
        )
        for name in baselines:
            tell(found.value, found.bound, f"beside it {name}")
            beside.append(make(cluster, solver=name, seed=seed, without=without or (), objective=objective))
    documents = []
    if target is not None:
        documents.append((target, dump_schedule(found)))
    if drawn is not None and picture is not None:
        draw = page if picture.endswith(".html") else svg
        documents.append((drawn, draw(cluster, found).encode() + b"\n"))
    write_all(documents)
    if format is Format.JSON:
        printed.write(_record(cluster, found, beside) if compare is not None else dump_schedule(found))
    elif output != STANDARD:
        console().print(schedule_report(cluster, found, beside))


def _teller(listener: Listener | None) -> Report:
    """Return what tells a terminal how far the search is; nothing where there is none."""
    if listener is None:
        return silent
    began = time.monotonic()

    def tell(value: float | None, bound: float | None, phase: str) -> None:
        gap = None if value is None or bound is None else (value - bound) / value if value else 0.0
        listener(Update(time.monotonic() - began, phase, value, bound, gap))

    return tell


def _baselines(text: str | None) -> tuple[str, ...]:
    """Return the baselines to compare with, each known and named once."""
    chosen = names(text, "--compare") or ()
    if chosen == (ALL,):
        return tuple(BASELINES)
    if ALL in chosen:
        raise UsageError.one(f"{ALL} stands for every baseline", "name it alone", path="--compare")
    problems = [
        Problem("--compare", f"{name!r} is unknown", suggestion(name, [ALL, *BASELINES], len(BASELINES) + 1))
        for name in dict.fromkeys(chosen)
        if name not in BASELINES
    ]
    problems += [
        Problem("--compare", f"{name!r} is named twice", "name each baseline once")
        for name in dict.fromkeys(chosen)
        if chosen.count(name) > 1
    ]
    if problems:
        raise UsageError(problems)
    return chosen


def _refuse_picture(picture: str | None, snapshot: str, output: str | None) -> None:
    """Raise if nothing can be drawn under this name."""
    if picture is None:
        return
    if not picture.endswith((".html", ".svg")):
        what = f"{picture!r:.200} is no page and no picture"
        raise UsageError.one(what, "name a .html or .svg file", path="--picture")
    refuse_name(picture, "--picture", [snapshot])
    if output is not None and output != STANDARD and same_file(picture, output):
        raise UsageError.one(f"{picture} gets the schedule already", "name another file", path="--picture")


def _record(snapshot: Snapshot, found: Schedule, beside: Sequence[Schedule]) -> bytes:
    """Return the schedule and the baselines beside it as JSON, one line."""
    compared = [
        {
            "method": one.provenance.method,
            "value": one.value,
            "gap": gap_of(one, found, snapshot),
            "left_out": one.left_out,
            "figures": one.figures,
        }
        for one in beside
    ]
    return msgspec.json.encode({"schedule": found, "compared": compared}) + b"\n"
