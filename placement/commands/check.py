"""``placement check``: judge a plan or a schedule, whoever made it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
import typer
from rich.text import Text

from placement.check import RUNNING, running_notes
from placement.check import check as judge
from placement.commands.files import STANDARD, Output, read_snapshot, refuse_two_standard_inputs
from placement.commands.options import Format, FormatOption, NodeOption, SnapshotArgument, WithoutOption
from placement.errors import InputError, UsageError
from placement.honoured import refuse_unhonoured_in_plan, refuse_unhonoured_in_time
from placement.plan import Plan
from placement.planning import load_plan_or_schedule
from placement.report.layout import layout, node_of
from placement.report.table import CARRIED
from placement.report.terminal import console, counted, plain
from placement.snapshot import Snapshot
from placement.timetable import Schedule

VIOLATED = 1
"""Exit code of a plan or schedule with violations."""

MOST = 50
"""Violations that are listed; a plan for another snapshot has one for every task, and the first ones say as much."""


def check(
    snapshot: SnapshotArgument,
    plan: Annotated[str, typer.Argument(help="A plan or schedule file, or - for standard input.")],
    without: WithoutOption = None,
    node: NodeOption = None,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the option's name
) -> None:
    """Judge PLAN, a plan or a schedule, against SNAPSHOT by code that knows nothing of how it was made.

    The exit code is 0 if every rule holds, every value and figure in the plan is what it says, and no bound contradicts
    its value; 1 otherwise. Whether a bound is true is not judged: that takes solving. Rules that running work breaks by
    itself are listed last, and are no violations.
    """
    refuse_two_standard_inputs(snapshot, plan)
    printed = Output.to(STANDARD)
    cluster = read_snapshot(snapshot)
    inside = dict.fromkeys(node or ())
    for name in inside:
        node_of(cluster, name)
    judged = load_plan_or_schedule(plan)
    if inside and not isinstance(judged, Plan):
        raise UsageError.one("a schedule has no one picture of a node", "leave --node out", path="--node")
    violations = judge(cluster, judged, without or None)
    carried = _carried(cluster, judged, without or judged.provenance.without)
    if format is Format.JSON:
        found = [{"rule": v.rule, "path": v.path, "what": v.what} for v in violations[:MOST]]
        record = {"valid": not found, "total": len(violations), "violations": found, "running": carried}
        printed.write(msgspec.json.encode(record) + b"\n")
    else:
        out = console()
        for violation in violations[:MOST]:
            out.print(plain(str(violation)), soft_wrap=True)
        if len(violations) > MOST:
            out.print(plain(f"and {counted(len(violations) - MOST, 'more violation')}"))
        tasks = counted(len(judged.tasks), "placed task")
        if violations:
            out.print(plain(f"not valid: {counted(len(violations), 'violation')} in {tasks}", "bold"))
        else:
            out.print(plain(f"valid: {tasks}; every rule holds, values are right, bounds consistent", "bold"))
            if isinstance(judged, Plan):
                for name in inside:
                    out.print(Text(), layout(cluster, judged, name, width=min(80, out.width)), sep="\n")
        if carried:
            out.print(plain(CARRIED, "bold"))
            for line in carried:
                out.print(plain(f"  {line}"), soft_wrap=True)
    if violations:
        raise typer.Exit(VIOLATED)


def _carried(snapshot: Snapshot, judged: Plan | Schedule, without: Sequence[str]) -> list[str]:
    """Return the rules that running work breaks by itself; none where the plan names wrong fields, which is said."""
    try:
        refuse = refuse_unhonoured_in_plan if isinstance(judged, Plan) else refuse_unhonoured_in_time
        honoured = refuse(snapshot, without)
    except InputError:
        return []
    return [note.removeprefix(RUNNING) for note in running_notes(honoured)]
