"""The benchmark of perfect packings: records become snapshots, and nothing is read of their answers."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

import perfect
import pytest

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


# --- MIG -------------------------------------------------------------------------------------------------------------

# 9 cards: one with 7 slices, seven with 4 + 3, one with 3 + 2 + 1 + 1
MIG: perfect.MigRecord = {
    "name": "nine",
    "profiles": {
        "7g": {"compute": 7, "memory": 8, "starts": [0]},
        "4g": {"compute": 4, "memory": 4, "starts": [0]},
        "3g": {"compute": 3, "memory": 4, "starts": [0, 4]},
        "2g": {"compute": 2, "memory": 2, "starts": [0, 2, 4]},
        "1g": {"compute": 1, "memory": 1, "starts": [0, 1, 2, 3, 4, 5, 6]},
    },
    "gpus": 9,
    "requests": ["3g", "2g", "1g", "7g", "1g", *["4g", "3g"] * 7],
}


def test_a_record_with_mig_cards(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text(json.dumps({**MIG, "certificate": "not read", "optimum": "not read"}) + "\n")
    (record,) = perfect.records(path)
    # eight cards on the first node and the ninth on the next
    assert [node.gpus[0].count for node in perfect.snapshot_of(record).nodes] == [8, 1]
    row = perfect.row_of(record, "auto", 30.0)
    assert row["placed"] == row["wanted"] == row["bound"] == 19
    assert row["proof"] == "proven"


def test_profiles_that_the_model_does_not_have() -> None:
    wrong: perfect.MigProfile = {"compute": 2, "memory": 2, "starts": [0, 2, 4, 6]}
    with pytest.raises(SystemExit, match="nine: its profile 2g is not that of an A100-40GB"):
        perfect.snapshot_of({**MIG, "profiles": {"2g": wrong}})
