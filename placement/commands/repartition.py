"""``placement repartition``: from the MIG layouts that cards have to those of another snapshot."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import msgspec
import typer
from rich.table import Table

from placement.commands.files import STANDARD, Output, read_snapshot, refuse_two_standard_inputs
from placement.commands.options import Format, FormatOption
from placement.repartition import Blocked, Repartition, Step
from placement.repartition import repartition as find
from placement.report.terminal import console, counted, number, plain, table

BLOCKED = 1
"""Exit code if a task uses what would have to go."""

MOST = 200
"""Steps, and jobs in the way, that a table lists; JSON has all."""


def repartition(
    before: Annotated[str, typer.Argument(help="What is there now and runs: a file, - or a shipped instance.")],
    after: Annotated[str, typer.Argument(help="The layouts wanted, on the same nodes and cards.")],
    permute: Annotated[
        bool, typer.Option("--permute", help="A layout may go to any card of its node that is the same but for MIG.")
    ] = False,
    anywhere: Annotated[
        bool, typer.Option("--anywhere", help="Instances may stand at any slots; which ones a card has is kept.")
    ] = False,
    budget: Annotated[
        int | None,
        typer.Option(metavar="N", help="Most instances to destroy; the cards that bring most are changed."),
    ] = None,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the option's name
) -> None:
    """Show the steps that turn the MIG layouts of BEFORE into those of AFTER with the least disturbance.

    Instances that running tasks of BEFORE use are never touched. The exit code is 1 if one of them is in the way of a
    card's target; such a card is left as it is.
    """
    refuse_two_standard_inputs(before, after)
    printed = Output.to(STANDARD)
    found = find(read_snapshot(before), read_snapshot(after), permute=permute, anywhere=anywhere, budget=budget)
    if format is Format.JSON:
        printed.write(msgspec.json.encode(found) + b"\n")
    else:
        out = console()
        if found.steps:
            out.print(_steps(found.steps[:MOST]))
            if len(found.steps) > MOST:
                out.print(plain(f"and {counted(len(found.steps) - MOST, 'more step')}"))
            out.print()
        for blocked in found.blocked[:MOST]:
            out.print(plain(_blocked(blocked)), soft_wrap=True)
        if len(found.blocked) > MOST:
            out.print(plain(f"and {number(len(found.blocked) - MOST)} more in the way"))
        for line in _summary(found):
            out.print(plain(line, "bold"))
    if found.blocked:
        raise typer.Exit(BLOCKED)


def _steps(steps: tuple[Step, ...]) -> Table:
    grid = table("node", "card", "step", "profile", "slot", "time, s")
    for column in grid.columns[2:4]:
        column.justify = "left"
    for step in steps:
        grid.add_row(
            plain(step.node),
            number(step.card),
            f"{step.action}, reset" if step.resets else step.action,
            step.profile,
            "" if step.start is None else number(step.start),
            f"{step.seconds:.2f}",
        )
    return grid


def _blocked(blocked: Blocked) -> str:
    what = f"{blocked.profile} at slot {blocked.start}" if blocked.profile else "the card"
    return f"blocked: card {blocked.card} of {blocked.node}, where job {blocked.job} uses {what}"


def _summary(found: Repartition) -> tuple[str, ...]:
    outcomes = Counter(card.outcome for card in found.cards)
    parts = [f"{counted(outcomes['changed'], 'card')} to change"]
    if outcomes["blocked"]:
        parts.append(f"{number(outcomes['blocked'])} blocked")
    if outcomes["over_budget"]:
        parts.append(f"{number(outcomes['over_budget'])} over the budget")
    parts.append(f"{number(found.unchanged)} as wanted already")
    work = f"{counted(found.destroyed, 'instance')} destroyed, {number(found.created)} created"
    time = f"{found.seconds:.2f} s in all, {found.critical_seconds:.2f} s with cards side by side"
    return ", ".join(parts), work, time
