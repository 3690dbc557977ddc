"""What a plan says of why the search stopped holds of that plan."""

from __future__ import annotations

import subprocess
import sys

import pytest
from strategies import random_tiny

import placement as pl
from placement.compile import compile as compile_snapshot
from placement.generate import generate


def inexact() -> pl.Snapshot:
    """Return a snapshot whose shares differ by too many digits for a common unit, so that no bound is used."""
    shares = ("0.3333333333333333", "0.7", "0.123456789012345")
    jobs = tuple(
        pl.Job(
            name=f"j{i}", count=9, groups=(pl.TaskGroup(name="g", task=pl.Task(gpus=1, gpu_share=share)),), weight=i + 1
        )
        for i, share in enumerate(shares)
    )
    return pl.Snapshot(nodes=(pl.Node(name="n", count=3, gpus=(pl.Gpu(model="A", count=2),)),), jobs=jobs)


@pytest.mark.parametrize("solver", ["auto", "exact", "columns", "pooled"])
@pytest.mark.parametrize("gap", [0.0, 0.1, 1.0])
def test_no_gap_is_reached_where_no_bound_counts(solver: str, gap: float) -> None:
    assert not compile_snapshot(inexact()).exact
    plan = pl.solve(inexact(), solver=solver, gap=gap)
    assert plan.stop not in ("gap", "optimal")


@pytest.mark.parametrize("solver", ["auto", "exact", "columns", "pooled"])
def test_gap_and_optimal_are_true_of_the_plan(solver: str) -> None:
    snapshots = [random_tiny(seed) for seed in range(12)]
    snapshots += [generate(nodes=12, load=1.3, seed=seed) for seed in range(2)]
    stops = set()
    for snapshot in snapshots:
        for gap in (0.0, 0.05):
            plan = pl.solve(snapshot, solver=solver, gap=gap, time_limit=5)
            stops.add(plan.stop)
            if plan.stop == "optimal":
                assert plan.status == "proven"
            if plan.stop == "gap":
                assert plan.gap is not None
                assert plan.gap <= gap * (1 + 1e-9)
    assert "optimal" in stops


def test_a_gap_is_for_the_first_phase_alone() -> None:
    # the later ones go on to their end, and their bounds are met
    for seed in range(30):
        plan = pl.solve(random_tiny(seed), solver="configurations", objectives=("value", "tasks"), gap=0.3)
        assert all(phase.bound == phase.value for phase in plan.phases[1:]), seed


def test_a_gap_that_the_first_rule_reaches_ends_the_search() -> None:
    snapshot = generate(nodes=400, load=1.3, seed=1)
    plan = pl.solve(snapshot, objectives=["value"], gap=0.5)
    assert plan.stop == "gap"
    assert plan.provenance.solver == "first-fit"
    assert plan.reproducible


def test_names_are_what_objectives_and_fields_are() -> None:
    snapshot = random_tiny(1)
    for wrong in ("value", {"value"}, 5, [3], [["value"]]):
        with pytest.raises(pl.UsageError, match="objectives"):
            pl.solve(snapshot, objectives=wrong)  # type: ignore[arg-type]


def test_a_solver_process_starts_whatever_is_on_the_path() -> None:
    program = (
        "import pathlib, sys\n"
        "sys.path.insert(0, pathlib.Path('/tmp'))\n"
        "import placement as pl\n"
        "plan = pl.solve(pl.load(pl.instances.path('fragmentation-two-nodes')), solver='exact')\n"
        "assert plan.stop == 'optimal', plan.notes\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    subprocess.run([sys.executable, "-c", program], check=True, env={"PYTHONOPTIMIZE": "2"})
