"""Small instances solved over their node patterns: optimal, proven, valid, and the same every time."""

from __future__ import annotations

import time

import brute
import model_cases
import pytest
from hypothesis import given, settings
from strategies import OBJECTIVES, objective_orders, random_objectives, random_tiny, snapshots

from placement import models
from placement.check import check
from placement.compile import compile as compile_snapshot
from placement.evaluate import scores
from placement.exact.milp.arrays import current_point, program
from placement.exact.small.class_start import set_start
from placement.exact.small.classes import solve_configurations
from placement.instance import Assignment, Instance
from placement.plan import Provenance
from placement.planning import plan_of
from placement.snapshot import Gpu, Node, Snapshot, Task
from placement.snapshot.read import digest, verified
from placement.solver import Limits, Progress, Result, Stop


def solved(instance: Instance, objectives: tuple[str, ...], start: Assignment | None = None) -> Result:
    result = solve_configurations(instance, objectives, Limits(), start=start)
    assert result is not None
    return result


def assert_proven(snapshot: Snapshot, objectives: tuple[str, ...], start: Assignment | None = None) -> Result:
    """Solve; compare with brute force; let the judge look at the plan."""
    instance = compile_snapshot(snapshot)
    result = solved(instance, objectives, start)
    expected = brute.optimum(snapshot, objectives)
    found = scores(instance, result.assignment, objectives)
    assert [(s.objective, s.priority, s.value) for s in found] == expected
    assert [(b.objective, b.priority) for b in result.bounds] == [(name, p) for name, p, _ in expected]
    for bound, (_, _, value) in zip(result.bounds, expected, strict=True):
        assert brute.close(bound.value, value)
    assert result.stop is Stop.OPTIMAL
    plan = plan_of(
        instance,
        result,
        {"exact": result.bounds},
        objectives,
        Provenance(version="test", solver="exact", objectives=objectives),
        digest(verified(snapshot)),
    )
    assert check(snapshot, plan) == []
    assert plan.status == "proven"
    return result


@pytest.mark.parametrize("seed", range(100, 130))
def test_proven_optima(seed: int) -> None:
    snapshot = random_tiny(seed)
    first = assert_proven(snapshot, OBJECTIVES)
    assert_proven(snapshot, random_objectives(seed), start=first.assignment)


@settings(deadline=None, max_examples=25)
@given(snapshots(max_tasks=5), objective_orders())
def test_proven_optima_in_any_order(snapshot: Snapshot, objectives: tuple[str, ...]) -> None:
    assert_proven(snapshot, objectives)


@pytest.mark.parametrize("name", model_cases.EDGES)
def test_edges(name: str) -> None:
    assert_proven(model_cases.EDGES[name], OBJECTIVES)


def test_no_objectives() -> None:
    result = solved(model_cases.golden(), ())
    assert len(result.assignment) == 0
    assert result.bounds == ()


def test_the_same_again() -> None:
    instance = compile_snapshot(random_tiny(4))
    first, second = solved(instance, OBJECTIVES), solved(instance, OBJECTIVES)
    for column in ("job", "leaf", "task", "node", "cards", "offset"):
        assert getattr(first.assignment, column).tolist() == getattr(second.assignment, column).tolist()


def test_without_time_the_start_stands() -> None:
    instance = model_cases.blocks()
    start = solved(instance, ("tasks",)).assignment
    result = solve_configurations(instance, ("value",), Limits(deadline=time.monotonic() - 1), start=start)
    assert result is not None
    assert result.assignment is start
    assert result.stop is Stop.TIME
    assert result.bounds == ()


def test_phases_are_reported_with_their_bounds() -> None:
    told: list[Progress] = []
    solve_configurations(model_cases.golden(), ("value", "tasks"), Limits(), report=told.append)
    assert [p.phase for p in told] == ["value", "value", "tasks"]
    assert [len(p.bounds) for p in told] == [1, 2, 3]
    assert told[-1].bounds[-1].held == tuple(float(b.value or 0) for b in told[-1].bounds[:-1])


def test_too_many_patterns_are_left_to_others() -> None:
    jobs = tuple(model_cases.job(f"j{i}", Task(gpus=1, gpu_share=f"{100 + 7 * i}m"), copies=40) for i in range(8))
    instance = compile_snapshot(Snapshot(nodes=model_cases.cards(8), jobs=jobs))
    assert solve_configurations(instance, ("value",), Limits()) is None
    assert solve_configurations(model_cases.golden(), ("completion_time",), Limits()) is None


@pytest.mark.parametrize("seed", range(30))
def test_every_placement_is_a_point_of_the_model(seed: int) -> None:
    """The optimum of one objective, whichever it is, is a feasible start for every other one."""
    instance = compile_snapshot(random_tiny(seed))
    for first in OBJECTIVES:
        assignment = solved(instance, (first,)).assignment
        for goal in models.goals(instance, OBJECTIVES):
            model = models.build(instance, models.CONFIGURATIONS, goal)
            set_start(model, instance, assignment)
            assert program(model).violation(current_point(model)) is None


def test_many_nodes_of_few_classes() -> None:
    """600 nodes of 8 cards; whole nodes and singles; what is left is known by hand."""
    # 500 gangs of 1 x 8 cards and 900 singles on 600 nodes: 100 nodes are left for singles, 800 of 900 fit
    nodes = (Node(name="n", count=600, gpus=(Gpu(model="A", count=8),)),)
    jobs = (
        model_cases.job("large", Task(gpus=8), copies=500, priority=1),
        model_cases.job("single", Task(gpus=1), copies=900),
    )
    instance = compile_snapshot(Snapshot(nodes=nodes, jobs=jobs))
    result = solved(instance, ("value", "tasks"))
    assert result.stop is Stop.OPTIMAL
    assert [b.value for b in result.bounds] == [4_000_000, 800_000, 1300]
    assert len(result.assignment) == 1300
