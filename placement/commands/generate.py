"""``placement generate``: a synthetic cluster."""

from __future__ import annotations

from typing import Annotated

import typer

from placement import generate as synthetic
from placement.commands.files import STANDARD, Output
from placement.commands.options import OutputOption, names
from placement.snapshot.read import dumps


def generate(
    output: OutputOption = None,
    nodes: Annotated[int, typer.Option(metavar="N", help="Nodes, eight to a rack.")] = 16,
    models: Annotated[
        str, typer.Option(metavar="A,B", help=f"Card models that take turns: {', '.join(synthetic.MODELS)}.")
    ] = "A100-80,H100-80",
    load: Annotated[
        float, typer.Option(metavar="X", help="What pending jobs ask for, as a multiple of the GPU that is free.")
    ] = 1.0,
    gangs: Annotated[float, typer.Option(metavar="F", help="Fraction of jobs with several tasks.")] = 0.2,
    shares: Annotated[float, typer.Option(metavar="F", help="Fraction of other jobs that share a card.")] = 0.3,
    running: Annotated[float, typer.Option(metavar="F", help="Fraction of the GPU that running jobs take.")] = 0.25,
    seed: Annotated[int, typer.Option(metavar="N", help="The same arguments give the same bytes.")] = 0,
) -> None:
    """Make a synthetic cluster with running and pending jobs.

    The snapshot goes to FILE, or to standard output without one.
    """
    target = Output.to(STANDARD if output is None else output)
    snapshot = synthetic.generate(
        nodes=nodes,
        models=names(models, "--models") or (),
        load=load,
        gangs=gangs,
        shares=shares,
        running=running,
        seed=seed,
    )
    target.write(dumps(snapshot))
