"""``placement import``: outside formats to a snapshot."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Annotated

import typer

from placement.commands.files import STANDARD, Output, refuse_two_standard_inputs, same_file, write_all
from placement.commands.options import OutputOption
from placement.errors import UsageError
from placement.formats.events import arrivals as arrivals_of
from placement.formats.events import dumps as dumps_events
from placement.formats.guess import FORMATS
from placement.formats.options import Options
from placement.formats.read import named, read
from placement.formats.source import files
from placement.report.ledger import ledger_lines
from placement.report.terminal import printable, tell
from placement.snapshot.fields import MOST_CARDS, MOST_NODES
from placement.snapshot.read import dumps
from placement.snapshot.report import show


class TimeUnit(StrEnum):
    """Unit of the times of a trace."""

    SECONDS = "seconds"
    MINUTES = "minutes"
    HOURS = "hours"


UNITS = {TimeUnit.SECONDS: 1.0, TimeUnit.MINUTES: 60.0, TimeUnit.HOURS: 3600.0}
"""Seconds."""


def imports(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[FORMAT] FILE...",
            help=f"Files, - for standard input. The name of a format ({', '.join(FORMATS)}) is the format of the files "
            "behind it; without one it is told from the file. NODE=FILE says which node, or which nodes by a pattern, "
            "a file of nvidia-smi is of.",
        ),
    ],
    output: OutputOption = None,
    level: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=LABEL",
            help="A level of the topology and the node label that says it; repeated, from wide to narrow.",
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse what limits placement and a snapshot cannot say, by its name.")
    ] = False,
    time: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Moment of the snapshot, where the files do not say it.")
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Print what was read, assumed and ignored to standard error.")
    ] = False,
    arrivals: Annotated[
        int | None, typer.Option(metavar="SEED", help="Draw a sequence of arrivals from a trace instead of the list.")
    ] = None,
    load: Annotated[
        float | None,
        typer.Option(metavar="X", help="With --arrivals: cards asked for, as a multiple of those there are [1]."),
    ] = None,
    events: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Write the arrivals of the jobs that wait here, for `placement simulate`; "
            "the snapshot is without them.",
        ),
    ] = None,
    nodes: Annotated[
        int | None,
        typer.Option(metavar="N", help="Nodes, for a trace that lists none [as many as its jobs keep busy]."),
    ] = None,
    cards_per_node: Annotated[
        int | None, typer.Option(metavar="N", help="Cards of each node, for a trace that lists none [8].")
    ] = None,
    time_unit: Annotated[
        TimeUnit | None, typer.Option(help="Unit of the times of a trace [what it is known for, else seconds].")
    ] = None,
) -> None:
    """Make a snapshot of files in outside formats, of one cluster.

    The snapshot goes to FILE, or to standard output without one. It carries a ledger of what was read, assumed and
    ignored.
    """
    found = named(words)
    inputs = [path for _, _, path in found]
    target = Output.to(STANDARD if output is None else output, inputs)
    log = None if events is None else _log(events, inputs, target)
    options = Options(
        levels=_levels(level or ()),
        time=_moment(time),
        arrivals=_seed(arrivals),
        load=_load(arrivals, load),
        events=events is not None,
        nodes=_several(nodes, "--nodes", MOST_NODES),
        cards_per_node=_several(cards_per_node, "--cards-per-node", MOST_CARDS),
        unit=None if time_unit is None else UNITS[time_unit],
    )
    refuse_two_standard_inputs(*inputs)
    opened = [file for name, node, path in found for file in files(path, name, node)]
    snapshot, coming = read(opened, options, strict), None
    if log is not None:
        snapshot, coming = arrivals_of(snapshot)
    if verbose:
        tell("\n".join(map(printable, ledger_lines(snapshot))))
    documents = [(target, dumps(snapshot))]
    if log is not None and coming is not None:
        documents.append((log, dumps_events(coming)))
    write_all(documents)


def _levels(words: list[str] | tuple[()]) -> tuple[tuple[str, str], ...]:
    found = []
    for word in words:
        name, sign, label = word.partition("=")
        if not (name and sign and label):
            remedy = "give a level and a node label, such as rack=topology.example.com/rack"
            raise UsageError.one(f"found {show(word)}", remedy, path="--level")
        found.append((name, label))
    return tuple(found)


def _moment(time: float | None) -> float | None:
    if time is not None and not math.isfinite(time):
        raise UsageError.one(f"is {time}", "give a number of seconds", path="--time")
    return time


def _seed(arrivals: int | None) -> int | None:
    if arrivals is not None and arrivals < 0:
        raise UsageError.one(f"is {arrivals}", "give a whole number that is not negative", path="--arrivals")
    return arrivals


def _load(arrivals: int | None, load: float | None) -> float | None:
    if load is not None and arrivals is None:
        raise UsageError.one("it says how many arrivals are drawn", "give --arrivals SEED too", path="--load")
    if load is not None and not (0 < load <= 100 and math.isfinite(load)):
        raise UsageError.one(f"is {load}", "give a number above 0, at most 100", path="--load")
    return load


def _several(number: int | None, option: str, most: int) -> int | None:
    if number is not None and not 1 <= number <= most:
        raise UsageError.one(f"is {number}", f"give a whole number from 1 to {most:,}", path=option)
    return number


def _log(events: str, inputs: list[str], target: Output) -> Output:
    log = Output.to(events, inputs, "--events")
    same = events == STANDARD == target.target
    if same or (STANDARD not in (events, target.target) and same_file(events, target.target)):
        raise UsageError.one("the snapshot goes there already", "name another file", path="--events")
    return log
