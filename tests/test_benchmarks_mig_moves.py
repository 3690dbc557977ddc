"""The benchmark of MIG instances that may move: one row of its table at a small size."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

import mig
import mig_moves
import table


def test_all_that_runs_may_move() -> None:
    made, given = mig_moves.load(20, 0, False), mig.load(20, 0)[0]
    assert [job.name for job in made.jobs] == [job.name for job in given.jobs]
    assert all(job.preemptible == (job.running is not None) for job in made.jobs)


def test_a_row() -> None:
    row = mig_moves.measure(20, 0, False, 3)
    assert row["valid"]
    assert 0 <= table.number(row, "moves") <= 3
    assert table.number(row, "reached") == pytest.approx(table.number(row, "worth") - table.number(row, "cost"))
    # moving nothing is a way too, and both are within their gaps of the best
    assert table.number(row, "reached") >= (1 - mig_moves.GOAL.gap) * table.number(row, "value_without")
    assert row["bound"] is None or table.number(row, "bound") >= table.number(row, "value_without") - 1e-6
    assert "of 1" in mig_moves.report([row])[0]
