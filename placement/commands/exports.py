"""``placement export``: a plan to what the scheduler of the cluster applies."""

from __future__ import annotations

from typing import Annotated

import typer

from placement.check import check as judge
from placement.commands.files import STANDARD, Output, read_snapshot, refuse_two_standard_inputs
from placement.commands.options import OutputOption, SnapshotArgument
from placement.errors import PlanError, Problem
from placement.formats.write import WRITERS, PlanWriter, writer_of
from placement.planning import load_plan_or_schedule
from placement.report.terminal import say
from placement.snapshot.read import verified
from placement.timetable import Schedule


def export(
    name: Annotated[
        str,
        typer.Argument(
            metavar="FORMAT",
            help="; ".join(f"{name}: {writer.help}" for name, writer in WRITERS.items()),
        ),
    ],
    snapshot: SnapshotArgument,
    plan: Annotated[str | None, typer.Argument(help="A plan of it; - for standard input.")] = None,
    output: OutputOption = None,
) -> None:
    """Write PLAN, or SNAPSHOT itself, in an outside format.

    The plan is checked first, and one that breaks a rule is not written. What the format cannot say is named in
    warnings.
    """
    writer = writer_of(name, plan is not None)
    inputs = [snapshot] if plan is None else [snapshot, plan]
    refuse_two_standard_inputs(*inputs)
    target = Output.to(STANDARD if output is None else output, inputs)
    cluster = verified(read_snapshot(snapshot))
    if isinstance(writer, PlanWriter):
        assert plan is not None
        found = load_plan_or_schedule(plan)
        if isinstance(found, Schedule):
            what = "this is a schedule, whose jobs start at later moments, expected a plan"
            raise PlanError([Problem("format", what, "export what placement solve writes")], plan)
        violations = judge(cluster, found)
        if any(violation.rule == "snapshot" for violation in violations):
            what = f"the plan is of another snapshot, or {snapshot} was changed since"
            raise PlanError([Problem("snapshot", what, "solve the snapshot again")], plan)
        if violations:
            raise PlanError([Problem("", f"the plan breaks a rule: {violations[0]}", "see placement check")], plan)
        document = writer.write(cluster, found)
        notes = writer.notes(cluster, found) if writer.notes is not None else ()
    else:
        document = writer.write(cluster)
        notes = writer.notes(cluster) if writer.notes is not None else ()
    for note in notes:
        say("warning", note)
    target.write(document)
