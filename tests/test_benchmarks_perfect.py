"""The benchmark of perfect packings: records become snapshots, and nothing is read of their answers."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

import perfect

import placement as pl

# Two zones of 2 cards, 4 and 3.5 cores, 8 and 6 MiB: 1.25 + 2.75 and 3 + 5 fill one, 3.5 and 6 the other.
ZONES: list[perfect.Amounts] = [
    {"gpus": 2, "cpu_milli": 4000, "memory_mib": 8},
    {"gpus": 2, "cpu_milli": 3500, "memory_mib": 6},
]
JOBS: list[perfect.Amounts] = [
    {"gpus": 1, "cpu_milli": 1250, "memory_mib": 3},
    {"gpus": 2, "cpu_milli": 3500, "memory_mib": 6},
    {"gpus": 1, "cpu_milli": 2750, "memory_mib": 5},
    {"gpus": 4, "cpu_milli": 7500, "memory_mib": 14},
]
RECORD: perfect.Record = {
    "name": "two",
    "nodes": [{"cpu_milli": 7500, "memory_mib": 14, "numa": ZONES}] * 2,
    "jobs": JOBS,
}


def test_a_record_as_a_snapshot() -> None:
    snapshot = perfect.snapshot_of(RECORD)
    assert [zone.gpus for zone in snapshot.nodes[0].zones] == [(0, 1), (2, 3)]
    tasks = [job.groups[0].task for job in snapshot.jobs]
    assert [task and task.numa for task in tasks] == [*["single-numa-node"] * 3, "restricted"]
    assert pl.loads(pl.snapshot.read.dumps(snapshot)) == snapshot


def test_rows_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps({**RECORD, "certificate": "not read"}).encode() + b"\n"))
    (record,) = perfect.records(path)
    row = perfect.row_of(record, "auto", 30.0)
    assert row["placed"] == row["wanted"] == row["bound"] == 4
    assert row["proof"] == "proven"
