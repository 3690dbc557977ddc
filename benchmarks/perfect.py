"""Perfect packings: every job can be placed, and then nothing is left of any NUMA zone, or of any MIG card.

A file has an instance a line, as JSON, compressed or not. Either nodes with zones, and jobs of one task each: those
that fit into a zone have to lie in one, larger ones take several. Or a number of MIG cards and requests for instances,
whose compute slices add up to those of all cards. What a record says about its answer is not read.

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
from typing import TypedDict, final

import table

import placement as pl
from placement.hardware.mig import geometry
from placement.snapshot import Gpu, Job, Node, NumaZone, Snapshot, Task, TaskGroup

SECONDS = 30.0
MIG_MODEL, MIG_CARDS = "A100-40GB", 8
"""Card model of the MIG instances, and how many are in a node."""
MIG_PROFILES = {"1g": "1g.5gb", "2g": "2g.10gb", "3g": "3g.20gb", "4g": "4g.20gb", "7g": "7g.40gb"}
"""Its profiles by the names of the files."""
COLUMNS = (
    table.Column("instance", "instance", 20),
    table.Column("nodes", "nodes", 6, "d"),
    table.Column("cards", "cards", 6, "d"),
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


@final
class Record(TypedDict):
    """An instance with zones, but for what it says about its answer."""

    name: str
    nodes: list[NodeRecord]
    jobs: list[Amounts]


class MigProfile(TypedDict):
    """What a file means by a profile: compute slices, memory slots, and the slots it may start at."""

    compute: int
    memory: int
    starts: list[int]


@final
class MigRecord(TypedDict):
    """An instance with MIG cards, but for what it says about its answer."""

    name: str
    profiles: dict[str, MigProfile]
    gpus: int
    requests: list[str]


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


def records(path: Path) -> Iterator[Record | MigRecord]:
    """Yield the instances of a file."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        for line in lines:
            yield json.loads(line)


def row_of(record: Record | MigRecord, solver: str, seconds: float) -> table.Row:
    """Solve an instance and return what came out."""
    snapshot = snapshot_of(record)
    began = time.perf_counter()
    plan = pl.solve(snapshot, objectives=("tasks",), solver=solver, time_limit=seconds)
    taken = time.perf_counter() - began
    (tasks,) = plan.phases
    return {
        "instance": record["name"],
        "nodes": len(snapshot.nodes),
        "cards": sum(gpu.count for node in snapshot.nodes for gpu in node.gpus),
        "wanted": len(snapshot.jobs),
        "placed": int(tasks.value or 0),
        "bound": None if tasks.bound is None else int(tasks.bound),
        "proof": plan.status,
        "solver": plan.provenance.solver,
        "seconds": round(taken, 3),
    }


def snapshot_of(record: Record | MigRecord) -> Snapshot:
    """Return an instance as a snapshot."""
    return _with_mig(record) if "requests" in record else _with_zones(record)


def _with_mig(record: MigRecord) -> Snapshot:
    there = geometry(MIG_MODEL)
    assert there is not None
    for name, said in record["profiles"].items():
        known = there.profile(MIG_PROFILES[name])
        if known is None or (known.compute, known.size, list(known.starts)) != (
            said["compute"],
            said["memory"],
            said["starts"],
        ):
            raise SystemExit(f"{record['name']}: its profile {name} is not that of an {MIG_MODEL}")
    nodes = tuple(
        Node(
            name=f"node-{first // MIG_CARDS}",
            gpus=(Gpu(model=MIG_MODEL, count=min(MIG_CARDS, record["gpus"] - first), mig_enabled=True),),
        )
        for first in range(0, record["gpus"], MIG_CARDS)
    )
    jobs = tuple(
        Job(name=f"job-{number}", groups=(TaskGroup(name="task", task=Task(gpus=1, mig_profile=MIG_PROFILES[name])),))
        for number, name in enumerate(record["requests"])
    )
    return Snapshot(nodes=nodes, jobs=jobs)


def _with_zones(record: Record) -> Snapshot:
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
