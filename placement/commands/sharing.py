"""``placement sharing``: who shares cards with whom in a plan, what that costs, and what is left of MIG cards."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer
from rich.table import Table

from placement.check import check as judge
from placement.commands.files import STANDARD, Output, read_snapshot, refuse_two_standard_inputs
from placement.commands.options import Format, FormatOption, SnapshotArgument
from placement.errors import UsageError
from placement.metrics import Exposure, MigRoom, Sharing
from placement.metrics import sharing as measured
from placement.planning import load_plan
from placement.report.terminal import console, counted, number, plain, table

MOST = 50
"""Jobs and cards that tables list; JSON has all."""
GIB = 2**30


def sharing(
    snapshot: SnapshotArgument,
    plan: Annotated[str, typer.Argument(help="A plan file, or - for standard input.")],
    format: FormatOption = Format.TABLE,  # noqa: A002 - the option's name
) -> None:
    """Show what sharing cards means in PLAN: slow-downs, who falls with whom, memory, and what MIG cards still take.

    Work that runs in SNAPSHOT already is included.
    """
    refuse_two_standard_inputs(snapshot, plan)
    printed = Output.to(STANDARD)
    cluster, made = read_snapshot(snapshot), load_plan(plan)
    violations = judge(cluster, made)
    if violations:
        raise UsageError.one(
            f"the plan is not valid for this snapshot ({violations[0]})", "see `placement check`", path="PLAN"
        )
    found = measured(cluster, made)
    if format is Format.JSON:
        printed.write(msgspec.json.encode(found) + b"\n")
    else:
        _print(found)


def _print(found: Sharing) -> None:
    out = console()
    parts = [part for part in (_jobs(found.jobs), _mig(found.mig)) if part is not None]
    for part in parts:
        out.print(part)
        out.print()
    if len(found.jobs) > MOST:
        out.print(plain(f"and {counted(len(found.jobs) - MOST, 'more job')} that share a card"))
    for load in found.oversubscribed[:MOST]:
        asked, there = number(load.asked / GIB), number(load.memory / GIB)
        out.print(plain(f"card {load.card} of {load.node}: {asked} GiB asked for, {there} there"), soft_wrap=True)
    out.print(
        plain(
            f"{counted(len(found.jobs), 'job')} on shared cards; slow-down {_factor(found.slow_down)} on average,"
            f" {_factor(found.slow_down_p99)} at most for 99 %",
            "bold",
        )
    )
    out.print(plain(f"a fault of one job may end {counted(found.most_exposed, 'other')} at most"))
    out.print(
        plain(
            f"{number(found.idle_memory / GIB)} GiB of device memory nobody asked for,"
            f" of which no waiting job can use {number(found.unusable_memory / GIB)}"
        )
    )


def _factor(value: float) -> str:
    return f"{value:.2f}"


def _jobs(jobs: tuple[Exposure, ...]) -> Table | None:
    if not jobs:
        return None
    grid = table("job", "falls with", "slow-down", left=2)
    for one in jobs[:MOST]:
        others = ", ".join(one.falls_with[:5]) + (f" and {len(one.falls_with) - 5} more" if one.falls_with[5:] else "")
        grid.add_row(plain(one.job), plain(others or "nobody"), _factor(one.slow_down))
    return grid


def _mig(rooms: tuple[MigRoom, ...]) -> Table | None:
    if not rooms:
        return None
    grid = table("MIG cards", "could still be created", "used", "free slots", "stranded", left=2)
    for room in rooms:
        there = ", ".join(f"{count:,} {name}" for name, count in room.capability.items() if count)
        used = f"{room.used:,} of {room.cards:,}"
        grid.add_row(
            plain(room.model), plain(there or "nothing"), used, number(room.free_slots), number(room.stranded_slots)
        )
    return grid
