"""``placement import``: outside formats to a snapshot."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from placement import arrivals as experiment
from placement.commands.files import STANDARD, Output
from placement.commands.options import OutputOption
from placement.errors import UsageError
from placement.formats import openb as trace
from placement.snapshot.read import dumps, verified

app = typer.Typer(help="Make a snapshot of files in an outside format.", rich_markup_mode=None)


@app.callback()
def _formats() -> None:
    """Make a snapshot of files in an outside format."""


@app.command()
def openb(
    nodes: Annotated[str, typer.Argument(metavar="NODES.csv", help="Node list of the trace, plain or gzipped.")],
    pods: Annotated[str, typer.Argument(metavar="PODS.csv", help="Pod list of the trace, plain or gzipped.")],
    output: OutputOption = None,
    arrivals: Annotated[
        int | None, typer.Option(metavar="SEED", help="Draw a sequence of arrivals instead of the list as it is.")
    ] = None,
    load: Annotated[
        float | None,
        typer.Option(metavar="X", help="With --arrivals: cards asked for, as a multiple of those there are [1]."),
    ] = None,
) -> None:
    """Read the GPU trace of Alibaba's openb cluster (cluster-trace-gpu-v2023).

    The snapshot goes to FILE, or to standard output without one.
    """
    target = Output.to(STANDARD if output is None else output, [nodes, pods])
    if load is not None and arrivals is None:
        raise UsageError.one("it says how many arrivals are drawn", "give --arrivals SEED too", path="--load")
    if load is not None and not (0 < load <= 100 and math.isfinite(load)):
        raise UsageError.one(f"is {load}", "give a number above 0, at most 100", path="--load")
    if arrivals is not None and arrivals < 0:
        raise UsageError.one(f"is {arrivals}", "give a whole number that is not negative", path="--arrivals")
    snapshot = trace.read(nodes, pods)
    if arrivals is not None:
        snapshot = experiment.draw(snapshot, arrivals, 1.0 if load is None else load)
    target.write(dumps(verified(snapshot)))
