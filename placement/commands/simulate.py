"""``placement simulate``: what policies make of a workload when jobs run as they do and nodes fail."""

from __future__ import annotations

import json
from typing import Annotated

import msgspec
import typer

from placement.commands.files import STANDARD, Output, read_snapshot, refuse_two_standard_inputs
from placement.commands.options import (
    Format,
    FormatOption,
    OutputOption,
    SeedOption,
    SnapshotArgument,
    WithoutOption,
    names,
)
from placement.errors import UsageError
from placement.report.simulation import simulation_report
from placement.report.terminal import console
from placement.scheduling.simulate import POLICIES, SAMPLED
from placement.scheduling.simulate import simulate as run
from placement.simulation import Simulation
from placement.snapshot.events import EventLog
from placement.snapshot.read import load_events
from placement.snapshot.report import show
from placement.snapshot.strict import read


def simulate(
    snapshot: SnapshotArgument,
    events: Annotated[str | None, typer.Argument(help="An event log: jobs that arrive, nodes that fail.")] = None,
    policy: Annotated[str, typer.Option(metavar="A,B", help=f"Policies to compare: {', '.join(POLICIES)}.")] = "fifo",
    actual: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="JSON with a number by job name: how many times as long as estimated it runs. 1 if it is not listed.",
        ),
    ] = None,
    sample: Annotated[float, typer.Option(metavar="SECONDS", help="Time between two samples, at least.")] = SAMPLED,
    output: OutputOption = None,
    seed: SeedOption = 0,
    without: WithoutOption = None,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the option's name
) -> None:
    """Replay the jobs of SNAPSHOT, and what happens by EVENTS, under each policy.

    The result is a JSON list with a simulation for each policy, in the order in which they are named.
    """
    chosen = names(policy, "--policy") or ()
    refuse_two_standard_inputs(*(source for source in (snapshot, events, actual) if source is not None))
    inputs = [source for source in (snapshot, events, actual) if source is not None]
    target = Output.to(output, inputs) if output is not None else None
    printed = Output.to(STANDARD)
    if output == STANDARD and format is Format.JSON:
        raise UsageError.one("-o - writes the result there already", "leave one of the two out", path="--format")
    for name in chosen:
        if chosen.count(name) > 1:
            raise UsageError.one(f"{name!r} is named twice", "name each policy once", path="--policy")
        if name not in POLICIES:
            raise UsageError.one(f"{name!r} is unknown", f"give some of {', '.join(POLICIES)}", path="--policy")
    cluster = read_snapshot(snapshot)
    log = EventLog() if events is None else load_events(events)
    factors = {} if actual is None else _factors(actual)
    found: list[Simulation] = [
        run(cluster, name, events=log, actual=factors, sample=sample, seed=seed, without=without or ())
        for name in chosen
    ]
    document = msgspec.json.encode(found) + b"\n"
    if target is not None:
        target.write(document)
    if format is Format.JSON:
        printed.write(document)
    elif output != STANDARD:
        console().print(simulation_report(found))


def _factors(source: str) -> dict[str, float]:
    """Return the numbers of a file by job."""

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found: dict[str, object] = {}
        for name, value in pairs:
            if found.setdefault(name, value) is not value:
                raise UsageError.one(f"{source}: {show(name)} is listed twice", "keep it once", path="--actual")
        return found

    data = read(source, UsageError)
    try:
        factors = msgspec.json.decode(data, type=dict[str, float])
        json.loads(data, object_pairs_hook=unique)
        return factors
    except (msgspec.DecodeError, UnicodeDecodeError) as why:
        remedy = 'give an object with a number by job name, such as {"train": 1.5}'
        raise UsageError.one(f"{source}: {why}", remedy, path="--actual") from None
