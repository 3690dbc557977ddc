"""`solve`: never worse than greedy, never unchecked, always a bound that is one."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import brute
import numpy as np
import pytest
import strategies
from hypothesis import given, settings

import placement as pl
from placement.engine import SOLVERS
from placement.errors import UnhonouredError, UsageError
from placement.exact import METHODS
from placement.heuristics import BY_NAME, HEURISTICS
from placement.instance import Instance
from placement.plan import Plan
from placement.snapshot.read import verified
from placement.solver import Limits, Result

TINY = [name for name in pl.instances.names() if not name.startswith(("openb", "time-"))]
SENSE = {"max": 1, "min": -1}


def ranks(plan: Plan) -> list[float]:
    return [phase.value * SENSE[phase.sense] for phase in plan.phases]


@pytest.mark.parametrize("name", TINY)
def test_shipped_instances_are_solved_to_their_optimum(name: str) -> None:
    snapshot = pl.load(pl.instances.path(name))
    plan = pl.solve(snapshot)
    assert plan.checked
    assert plan.status == "proven"
    assert plan.stop == "optimal"
    best = brute.optimum(snapshot, plan.provenance.objectives)
    assert [(p.objective, p.priority) for p in plan.phases] == [(v.objective, v.priority) for v in best]
    assert [p.value for p in plan.phases] == [float(v.value) for v in best]
    assert pl.check(snapshot, plan) == []


@pytest.mark.parametrize("name", TINY)
def test_never_worse_than_any_greedy_rule(name: str) -> None:
    snapshot = pl.load(pl.instances.path(name))
    best = ranks(pl.solve(snapshot))
    for rule in HEURISTICS.keys() - BY_NAME.keys():
        plan = pl.solve(snapshot, solver=rule)
        assert plan.provenance.solver == rule
        assert ranks(plan) <= best
        for phase in plan.phases:
            assert phase.bound is None or (phase.bound - phase.value) * SENSE[phase.sense] >= 0


@settings(max_examples=40, deadline=None)
@given(strategies.snapshots(max_tasks=4), strategies.objective_orders())
def test_any_snapshot_gives_a_checked_plan_and_true_bounds(snapshot: pl.Snapshot, objectives: tuple[str, ...]) -> None:
    # greedy rules only: the exact method has a process of its own, and tests of its own
    best = brute.optimum(snapshot, objectives)
    for rule in ("best-fit", "random"):
        plan = pl.solve(snapshot, solver=rule, objectives=objectives)
        assert plan.checked
        assert pl.check(snapshot, plan) == []
        if not best:
            # the value of no job at all: nothing to improve, and nothing better
            assert plan.phases == []
            assert plan.status == "proven"
            continue
        first, optimum = plan.phases[0], best[0].value
        sense = SENSE[first.sense]
        assert first.value * sense <= float(optimum) * sense
        assert first.bound is None or first.bound * sense >= float(optimum) * sense - 1e-9


@pytest.mark.parametrize("seed", range(12))
def test_exact_equals_brute_force(seed: int) -> None:
    snapshot, objectives = strategies.random_tiny(seed), strategies.random_objectives(seed)
    plan = pl.solve(snapshot, objectives=objectives, solver="exact")
    best = brute.optimum(snapshot, objectives)
    assert [p.value for p in plan.phases] == [float(v.value) for v in best]
    assert plan.status == "proven"


def test_the_best_greedy_rule_is_shown_beside_the_plan() -> None:
    # first-fit wastes what the instance is made of, and no greedy rule does better than the best of them
    snapshot = pl.load(pl.instances.path("filters"))
    plan = pl.solve(snapshot)
    assert plan.greedy is not None
    alone = {rule: pl.solve(snapshot, solver=rule) for rule in HEURISTICS.keys() - BY_NAME.keys()}
    assert alone[plan.greedy.solver].usage == plan.greedy.usage
    assert list(plan.greedy.values) == max(ranks(other) for other in alone.values())
    assert list(plan.greedy.values) <= ranks(plan)
    assert pl.solve(snapshot, solver="fgd").greedy is None
    assert b"greedy" not in pl.dump_plan(plan)


def test_equal_calls_give_equal_bytes() -> None:
    snapshot = pl.load(pl.instances.path("filters"))
    first = pl.dump_plan(pl.solve(snapshot))
    assert pl.dump_plan(pl.solve(snapshot)) == first


def test_a_plan_survives_the_file(tmp_path: Path) -> None:
    snapshot = pl.load(pl.instances.path("nested-groups"))
    plan = pl.solve(snapshot, solver="first-fit")
    file = tmp_path / "plan.json"
    file.write_bytes(pl.dump_plan(plan))
    again = pl.load_plan(file)
    assert again == plan
    assert pl.check(snapshot, again) == []


def test_the_deadline_ends_the_search() -> None:
    # the exact method alone would take several times the limit, and end by itself
    plan = pl.solve(pl.load(pl.instances.path("openb")), time_limit=3.0)
    assert plan.checked
    assert plan.stop == "time"
    assert not plan.reproducible
    assert plan.provenance.time_limit == 3.0


def test_the_deadline_counts_from_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[float] = []
    deadlines: list[float] = []
    rule = HEURISTICS["first-fit"]

    def slowly(snapshot: pl.Snapshot) -> pl.Snapshot:
        time.sleep(0.5)
        read.append(time.monotonic())
        return verified(snapshot)

    class Spy:
        name = rule.name

        def supports(self, instance: Instance) -> str | None:
            return rule.supports(instance)

        def solve(self, instance: Instance, *, limits: Limits, **more: Any) -> Result:
            deadlines.append(limits.deadline)
            return rule.solve(instance, limits=limits, **more)

    monkeypatch.setattr("placement.engine.verified", slowly)
    monkeypatch.setitem(HEURISTICS, "first-fit", Spy())
    assert pl.solve(pl.load(pl.instances.path("filters")), solver="first-fit", time_limit=60.0).checked
    # the half second before the search is taken off
    assert deadlines[0] <= read[0] - 0.5 + 60.0


def test_progress_is_told() -> None:
    updates: list[pl.Update] = []
    plan = pl.solve(pl.load(pl.instances.path("filters")), report=updates.append)
    assert updates
    assert [u.seconds for u in updates] == sorted(u.seconds for u in updates)
    values = [u.value for u in updates if u.value is not None]
    assert values == sorted(values)
    assert max(values) <= (plan.value or 0)


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({"solver": "best_fit"}, "solver"),
        ({"time_limit": 0.0}, "time_limit"),
        ({"time_limit": -1.0}, "time_limit"),
        ({"time_limit": math.nan}, "time_limit"),
        ({"time_limit": math.inf}, "time_limit"),
        ({"gap": -0.1}, "gap"),
        ({"gap": 1.1}, "gap"),
        ({"gap": math.nan}, "gap"),
        ({"seed": -1}, "seed"),
        ({"seed": True}, "seed"),
        ({"seed": 1.5}, "seed"),
        ({"gap": "x"}, "gap"),
        ({"time_limit": "3"}, "time_limit"),
        ({"solver": None}, "solver"),
        ({"objectives": "value"}, "objectives"),
        ({"objectives": ()}, "objectives"),
        ({"objectives": ("value", "value")}, "objectives"),
        ({"objectives": ("values",)}, "objectives"),
        ({"objectives": ("completion_time",)}, "objectives"),
        ({"without": ("nodes.nothing",)}, "without"),
        ({"without": ("nodes.cpu",)}, "without"),
    ],
)
def test_bad_arguments(arguments: dict[str, object], path: str) -> None:
    with pytest.raises(UsageError) as raised:
        pl.solve(pl.Snapshot(), **arguments)  # type: ignore[arg-type]
    assert path in str(raised.value)


def test_a_field_without_a_rule_is_refused_and_can_be_left_out() -> None:
    snapshot = pl.Snapshot(
        nodes=(pl.Node(name="n"),),
        jobs=(pl.Job(name="j", deadline=5.0, groups=(pl.TaskGroup(name="w", task=pl.Task()),)),),
    )
    with pytest.raises(UnhonouredError, match=r"jobs\[0\].deadline"):
        pl.solve(snapshot)
    plan = pl.solve(snapshot, without=("jobs.deadline",), solver="first-fit")
    assert plan.provenance.without == ("jobs.deadline",)
    assert pl.check(snapshot, plan) == []


def test_nothing_to_do() -> None:
    plan = pl.solve(pl.Snapshot())
    assert (plan.status, plan.stop, len(plan.tasks), plan.pending) == ("proven", "optimal", 0, [])


def test_solver_names() -> None:
    assert set(SOLVERS) == {*HEURISTICS, *METHODS}
    assert all(solver.name == name for name, solver in SOLVERS.items())


def test_numbers_of_numpy_are_numbers() -> None:
    snapshot = pl.load(pl.instances.path("fragmentation-two-nodes"))
    plan = pl.solve(snapshot, time_limit=np.float64(20), gap=np.int64(0), seed=np.int64(3))  # type: ignore[arg-type]
    assert (plan.provenance.time_limit, plan.provenance.gap, plan.provenance.seed) == (20.0, 0.0, 3)
    assert type(plan.provenance.seed) is int
    with pytest.raises(UsageError):
        pl.solve(snapshot, seed=np.bool_(True))  # type: ignore[arg-type]
