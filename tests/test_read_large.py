"""Large snapshots: read in seconds, and refused as fast when they are wrong at the very end."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from placement.errors import SnapshotError
from placement.snapshot.read import loads

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

import reading

MEGABYTES = 40
EXPECTED = {
    "right": "-",
    "breaks off": "the JSON breaks off at line 1, column",
    "unknown field": '.groups[0].task.cpus: there is no such field; did you mean "cpu"?',
    "key twice": '.groups[0].task.gpus: the key "gpus" is given twice in one object',
    "NaN": ".groups[0].task.cpu: found NaN",
    "negative": '.groups[0].task.cpu: found "-8", expected 0 or more',
}
FILES = dict(reading.files(MEGABYTES))


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPECTED)
def test_a_fifth_of_200_megabytes(name: str) -> None:
    """The whole takes five times as much of both: 10 seconds and 1.5 GiB, of which 60 MiB are Python itself."""
    found = reading.run(name, FILES[name])
    assert EXPECTED[name] in str(found["said"])
    assert float(str(found["mebibytes"])) < 60 + 1536 / 5
    assert float(str(found["seconds"])) < 10, "a machine five times slower than it needs to be"


@pytest.mark.slow
def test_many_problems_take_no_longer_than_none() -> None:
    text = reading.right(20_000)
    wrong = text.replace('"cpu":"8"', '"cpu":"-8"').replace('"rack":', '"rakc":').replace('"H100-80"', '""')
    began = time.perf_counter()
    with pytest.raises(SnapshotError) as caught:
        loads(wrong.encode())
    assert time.perf_counter() - began < 10
    assert caught.value.total == 20_000 * 4
    assert len(caught.value.problems) == 50
