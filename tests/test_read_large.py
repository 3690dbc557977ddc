"""Large snapshots: read in little memory, and refused as well when they are wrong at the very end."""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path

import pytest

from placement.errors import SnapshotError
from placement.snapshot import report
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
    """The whole takes five times as much: 1.5 GiB, of which 60 MiB are Python itself."""
    found = reading.run(name, FILES[name])
    assert EXPECTED[name] in str(found["said"])
    assert float(str(found["mebibytes"])) < 60 + 1536 / 5
    assert float(str(found["seconds"])) < 60, "it hangs: seconds are enough on any machine"


@pytest.mark.slow
def test_many_problems_cost_no_more_than_those_that_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    text = reading.right(20_000)
    wrong = text.replace('"cpu":"8"', '"cpu":"-8"').replace('"rack":', '"rakc":').replace('"H100-80"', '""')
    compared: list[str] = []
    nearest = report.nearest

    def spy(name: str, known: Collection[str]) -> str | None:
        compared.append(name)
        return nearest(name, known)

    monkeypatch.setattr(report, "nearest", spy)
    with pytest.raises(SnapshotError) as caught:
        loads(wrong.encode())
    # looking for what was meant is what takes long
    assert len(compared) <= 50
    assert caught.value.total == 20_000 * 4
    assert len(caught.value.problems) == 50
