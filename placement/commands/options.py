"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from placement.errors import UsageError
from placement.honoured import TIMED

SnapshotArgument = Annotated[
    str,
    typer.Argument(help="A file, - for standard input, or the name of a shipped instance."),
]
ObjectiveOption = Annotated[
    str | None,
    typer.Option(
        "--objective",
        metavar="A,B",
        help="Objectives in order, instead of the snapshot's: value, tasks, locality, run_time, "
        "fragmentation, whole_nodes, nodes, mig_cards.",
    ),
]
TimeLimitOption = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", help="Wall clock for solving. Without it, limits on work stop the search."),
]
GapOption = Annotated[float, typer.Option(metavar="G", help="Relative gap that is good enough, from 0 to 1.")]
SeedOption = Annotated[int, typer.Option(metavar="N", help="Feeds whatever is random.")]


WithoutOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FIELD",
        help="Leave a field that no rule honours yet out of account; may be repeated. "
        f"{TIMED} stands for all that count in a schedule alone.",
    ),
]
OutputOption = Annotated[
    str | None, typer.Option("--output", "-o", metavar="FILE", help="Write the result here, whole or not at all.")
]
NodeOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="Draw this node inside too: its NUMA zones, PCIe switches, cards and NICs, and who has them; "
        "may be repeated.",
    ),
]
LogOption = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Write progress here, a JSON object a line, as it comes; - is standard error."),
]


class Format(StrEnum):
    """What standard output gets."""

    TABLE = "table"
    JSON = "json"


FormatOption = Annotated[Format, typer.Option("--format", help="What standard output gets.")]


def names(text: str | None, option: str) -> tuple[str, ...] | None:
    """Split ``A,B`` into names; None stays None."""
    if text is None:
        return None
    found = tuple(name.strip() for name in text.split(","))
    if not all(found):
        raise UsageError.one(f"{text!r} has an empty name", "separate names by single commas", path=option)
    return found
