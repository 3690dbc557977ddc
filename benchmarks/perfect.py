"""Perfect packings into NUMA zones: every job can be placed, and then no card, core or byte of any zone is left.

A file has an instance a line, as JSON, compressed or not: nodes with zones, and jobs of one task each. What a record
says about its answer is not read. Jobs that fit into a zone have to lie in one; larger ones take several.

    python benchmarks/perfect.py FILE
    python benchmarks/perfect.py FILE --seconds 30 --output perfect.json
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

import table

import placement as pl
from placement.snapshot import Gpu, Job, Node, NumaZone, Snapshot, Task, TaskGroup

SECONDS = 30.0
COLUMNS = (
    table.Column("instance", "instance", 20),
    table.Column("nodes", "nodes", 6, "d"),
    table.Column("jobs", "wanted", 6, "d"),
    table.Column("placed", "placed", 6, "d"),
    table.Column("bound", "bound", 6, "d"),
    table.Column("proof", "proof", 10),
    table.Column("seconds", "seconds", 8, ".2f"),
)


class Amounts(TypedDict):
    """Cards, CPU and memory of a zone or of a job."""

    gpus: int
    cpu_milli: int
    memory_mib: int


class NodeRecord(TypedDict):
    """A node of a file."""

    cpu_milli: int
    memory_mib: int
    numa: list[Amounts]


class Record(TypedDict):
    """An instance of a file, but for what it says about its answer."""

    name: str
    nodes: list[NodeRecord]
    jobs: list[Amounts]


def main() -> None:
    """Solve the instances of a file, print a table and write the rows down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="JSON lines, .gz or not")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"limit of each, default {SECONDS:g}")
    parser.add_argument("--solver", default="auto", help="default auto")
    parser.add_argument("--output", type=Path, help="JSON file to write")
    options = parser.parse_args()
    rows = []
    print(table.heading(COLUMNS))
    for record in records(options.file):
        rows.append(row_of(record, options.solver, options.seconds))
        print(table.line(COLUMNS, rows[-1]), flush=True)
    table.write(options.output, machine=table.machine(), solver=options.solver, seconds=options.seconds, rows=rows)


def records(path: Path) -> Iterator[Record]:
    """Yield the instances of a file."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        for line in lines:
            yield json.loads(line)


def row_of(record: Record, solver: str, seconds: float) -> table.Row:
    """Solve an instance and return what came out."""
    snapshot = snapshot_of(record)
    began = time.perf_counter()
    plan = pl.solve(snapshot, objectives=("tasks",), solver=solver, time_limit=seconds)
    taken = time.perf_counter() - began
    (tasks,) = plan.phases
    return {
        "instance": record["name"],
        "nodes": len(record["nodes"]),
        "wanted": len(record["jobs"]),
        "placed": int(tasks.value or 0),
        "bound": None if tasks.bound is None else int(tasks.bound),
        "proof": plan.status,
        "solver": plan.provenance.solver,
        "seconds": round(taken, 3),
    }


def snapshot_of(record: Record) -> Snapshot:
    """Return an instance as a snapshot."""
    widest = max(zone["gpus"] for node in record["nodes"] for zone in node["numa"])
    nodes = tuple(_node(number, node) for number, node in enumerate(record["nodes"]))
    jobs = tuple(_job(number, job, bound=job["gpus"] <= widest) for number, job in enumerate(record["jobs"]))
    return Snapshot(nodes=nodes, jobs=jobs)


def _node(number: int, record: NodeRecord) -> Node:
    zones = []
    cards = 0
    for place, zone in enumerate(record["numa"]):
        inside = tuple(range(cards, cards + zone["gpus"]))
        cards += zone["gpus"]
        zones.append(NumaZone(id=place, cpu=_cores(zone), memory=_bytes(zone), gpus=inside))
    return Node(
        name=f"node-{number}",
        cpu=f"{record['cpu_milli']}m",
        memory=f"{record['memory_mib']}Mi",
        gpus=(Gpu(model="GPU", count=cards),),
        zones=tuple(zones),
    )


def _job(number: int, record: Amounts, *, bound: bool) -> Job:
    task = Task(
        gpus=record["gpus"],
        cpu=_cores(record),
        memory=_bytes(record),
        numa="single-numa-node" if bound else "restricted",
    )
    return Job(name=f"job-{number}", groups=(TaskGroup(name="task", task=task),))


def _cores(record: Amounts) -> str:
    return f"{record['cpu_milli']}m"


def _bytes(record: Amounts) -> str:
    return f"{record['memory_mib']}Mi"


if __name__ == "__main__":
    main()
