"""``placement import``: outside formats to a snapshot."""

from __future__ import annotations

import math
import os
from typing import Annotated

import typer

from placement.commands.files import STANDARD, Output, refuse_two_standard_inputs
from placement.commands.options import OutputOption
from placement.errors import UsageError
from placement.formats.guess import FORMATS
from placement.formats.options import Options
from placement.formats.read import read
from placement.formats.source import File, files
from placement.report.ledger import ledger_lines
from placement.report.terminal import printable, tell
from placement.snapshot.read import dumps
from placement.snapshot.report import show


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
) -> None:
    """Make a snapshot of files in outside formats, of one cluster.

    The snapshot goes to FILE, or to standard output without one. It carries a ledger of what was read, assumed and
    ignored.
    """
    named = _named(words)
    target = Output.to(STANDARD if output is None else output, [path for _, _, path in named])
    options = Options(_levels(level or ()), _moment(time), *_draw(arrivals, load))
    refuse_two_standard_inputs(*(path for _, _, path in named))
    found: list[File] = []
    for format_, node, path in named:
        found.extend(files(path, format_, node))
    snapshot = read(found, options, strict)
    if verbose:
        tell("\n".join(map(printable, ledger_lines(snapshot))))
    target.write(dumps(snapshot))


def _named(words: list[str]) -> list[tuple[str, str, str]]:
    """Return format, node and path of every file."""
    named, current = [], ""
    for word in words:
        node, sign, path = word.partition("=")
        if word in FORMATS:
            current = word
        elif sign and not os.path.lexists(word) and current in ("", "nvidia-smi"):
            named.append(("nvidia-smi", node, path))
        else:
            named.append((current, "", word))
    if not named:
        raise UsageError.one("there is no file", "name one behind the format", path=f"import {words[-1]}")
    return named


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


def _draw(arrivals: int | None, load: float | None) -> tuple[int | None, float | None]:
    if load is not None and arrivals is None:
        raise UsageError.one("it says how many arrivals are drawn", "give --arrivals SEED too", path="--load")
    if load is not None and not (0 < load <= 100 and math.isfinite(load)):
        raise UsageError.one(f"is {load}", "give a number above 0, at most 100", path="--load")
    if arrivals is not None and arrivals < 0:
        raise UsageError.one(f"is {arrivals}", "give a whole number that is not negative", path="--arrivals")
    return arrivals, load
