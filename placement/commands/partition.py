"""``placement partition``: which of the cards whose MIG mode may be switched to partition."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from placement.commands.files import STANDARD, Output, read_snapshot, refuse_one_place, write_all
from placement.commands.options import (
    Format,
    GapOption,
    SeedOption,
    SnapshotArgument,
    TimeLimitOption,
    WithoutOption,
)
from placement.decisions.entries import Spot
from placement.decisions.partition import TRIES, Partition
from placement.decisions.partition import partition as find
from placement.planning import dump_plan
from placement.report.terminal import console, counted, number, percent, plain, table
from placement.snapshot.read import dumps

MOST = 200
"""Nodes that a table lists; JSON has all."""


def partition(
    snapshot: SnapshotArgument,
    tries: Annotated[int, typer.Option(metavar="N", help="Numbers of cards in MIG mode to try.")] = TRIES,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write the plan here, whole or not at all.")
    ] = None,
    after: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write the snapshot with the modes chosen here; the plan is for it."),
    ] = None,
    time_limit: TimeLimitOption = None,
    gap: GapOption = 0.0,
    seed: SeedOption = 0,
    without: WithoutOption = None,
    format: Annotated[  # noqa: A002 - the option's name
        Format | None, typer.Option(help="What standard output gets; a table if nothing else is written there.")
    ] = None,
) -> None:
    """Choose which cards of SNAPSHOT to have in MIG mode: of those that are mig_switchable and idle.

    The plan that is written is for the snapshot with these modes.
    """
    refuse_one_place(snapshot, output, after, format is not None)
    target = Output.to(output, [snapshot]) if output is not None else None
    then = Output.to(after, [snapshot], "--after") if after is not None else None
    printed = Output.to(STANDARD)
    found = find(read_snapshot(snapshot), tries=tries, time_limit=time_limit, gap=gap, seed=seed, without=without or ())
    documents = []
    if target is not None:
        documents.append((target, dump_plan(found.plan)))
    if then is not None:
        documents.append((then, dumps(found.after)))
    write_all(documents)
    if format is Format.JSON:
        answer = {name: getattr(found, name) for name in ("on", "off", "value", "bound", "gap", "tried", "plan")}
        printed.write(msgspec.json.encode(answer) + b"\n")
    elif STANDARD not in (output, after):
        _print(found)


def _print(found: Partition) -> None:
    out = console()
    for spots, what in ((found.on, "on"), (found.off, "off")):
        if spots:
            out.print(_cards(spots, what))
            out.print()
    out.print(
        plain(f"MIG on for {counted(len(found.on), 'card')} more, off for {number(len(found.off))}", style="bold")
    )
    tried = ", ".join(f"{number(cards)}: {number(value)}" for cards, value in found.tried)
    out.print(plain(f"cards in MIG mode and value reached: {tried}"))
    gap = None if found.gap is None else 100 * found.gap
    if found.bound is None:
        out.print(plain("no bound is known"))
    else:
        out.print(plain(f"no choice allows more than {number(found.bound)}, gap {percent(gap)} %"))


def _cards(spots: tuple[Spot, ...], what: str) -> object:
    nodes: dict[str, list[int]] = {}
    for node, card in spots:
        nodes.setdefault(node, []).append(card)
    grid = table("node", f"MIG {what}", left=2)
    for node, cards in list(nodes.items())[:MOST]:
        grid.add_row(plain(node), plain(", ".join(map(str, sorted(cards)))))
    if len(nodes) > MOST:
        grid.add_row(plain(f"and {counted(len(nodes) - MOST, 'more node')}"), "")
    return grid
