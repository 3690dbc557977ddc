"""Test cases of Kueue, Volcano and KAI all the way: objects, reader, engine, judge, writer, and what is written.

A case becomes the objects that a cluster would have (nodes, pods, queues, pod groups, workloads, topology). These are
imported, solved, checked, and the plan is exported in the system's own format; what is compared with the source is
what the exported document says. ``cannot be said`` is where what the case is about is not in a plan, such as running
work that is stopped.

    python benchmarks/format_round.py FOLDER
    python benchmarks/format_round.py FOLDER --kind kai --output format_round.json
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType

from table import Column, Row, heading, line, machine, write
from translate import kai_objects, kueue_objects, volcano_objects
from translate.common import InexpressibleError, UntranslatedError

import placement as pl
from placement.formats.read import read
from placement.formats.write import WRITERS, PlanWriter
from placement.honoured import timed

COLUMNS = (
    Column("kind", "kind", 10),
    Column("case", "case", 20),
    Column("outcome", "outcome", 16),
    Column("why", "why", 90),
)
KINDS: Mapping[str, tuple[str, ModuleType, str]] = {
    "kueue": ("kueue_tas/tas_cases.jsonl", kueue_objects, "kueue"),
    "volcano": ("volcano/scheduling_cases.jsonl", volcano_objects, "volcano"),
    "kai": ("kai/scheduling_cases.jsonl", kai_objects, "kai"),
}
"""File of the cases, what turns them into objects and compares, and the format that is written."""
LIMIT = 20.0
"""Seconds for solving a case."""


def row_of(kind: str, case: dict[str, object]) -> Row:
    """Return what became of a case."""
    _, module, format_ = KINDS[kind]
    said = _compared(module, format_, case)
    outcome, _, why = said.partition(": ")
    return {"kind": kind, "case": str(case["case_id"]), "outcome": outcome, "why": why}


def _compared(module: ModuleType, format_: str, case: dict[str, object]) -> str:
    try:
        objects = module.files(case)
    except (InexpressibleError, UntranslatedError) as error:
        return f"cannot be said: {error}"
    snapshot = read(objects)
    plan = pl.solve(snapshot, time_limit=LIMIT, without=timed())
    if pl.check(snapshot, plan):
        return "WRONG: the check refuses the plan"
    writer = WRITERS[format_]
    assert isinstance(writer, PlanWriter)
    try:
        document = writer.write(snapshot, plan)
    except pl.PlacementError as error:
        return f"cannot be written: {error}"
    found: str = module.compare(case, snapshot, plan, document)
    return found


def rows(folder: Path, kinds: list[str]) -> Iterator[Row]:
    """Yield a row for each case."""
    for kind in kinds:
        for text in (folder / KINDS[kind][0]).read_text("utf-8").splitlines():
            yield row_of(kind, json.loads(text))


def main() -> None:
    """Run the benchmark, print a table and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="with one folder for each kind of cases")
    parser.add_argument("--kind", choices=list(KINDS), action="append", help="default: all")
    parser.add_argument("--output", type=Path, help="file for the rows as JSON")
    options = parser.parse_args()
    about = machine()
    found = []
    print(heading(COLUMNS))
    for row in rows(options.folder, options.kind or list(KINDS)):
        found.append(row)
        if row["outcome"] != "agrees":
            print(line(COLUMNS, {**row, "why": str(row["why"])[:90]}))
    counted = {kind: dict(Counter(str(row["outcome"]) for row in found if row["kind"] == kind)) for kind in KINDS}
    for kind, outcomes in counted.items():
        print(f"{kind}: {', '.join(f'{number} {outcome}' for outcome, number in outcomes.items())}")
    write(options.output, machine=about, limit=LIMIT, rows=found, counted=counted)


if __name__ == "__main__":
    main()
