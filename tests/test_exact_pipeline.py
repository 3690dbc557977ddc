"""The pipeline for large instances, on instances small enough to know the best plan: valid, bounded, reproducible."""

from __future__ import annotations

import time

import brute
import pytest
from strategies import random_tiny

import placement as pl
from placement.arrivals import draw
from placement.check import check
from placement.compile import compile as compile_snapshot
from placement.evaluate import scores
from placement.exact.ledger import Ledger
from placement.exact.objectives.targets import targets_of
from placement.exact.pipeline import Pipeline
from placement.heuristics import HEURISTICS
from placement.instance import Assignment, Instance
from placement.plan import Provenance
from placement.planning import plan_of
from placement.snapshot import Gpu, Job, Node, Snapshot, Task, TaskGroup
from placement.snapshot.read import digest
from placement.solver import Limits, Progress, Result, Stop, silent

OBJECTIVES = ("value", "tasks")


def run(instance: Instance, limits: Limits | None = None, start: Assignment | None = None) -> Result:
    targets = targets_of(instance, OBJECTIVES)
    return Pipeline(Ledger(instance, targets, limits or Limits(), 0, start, silent)).run()


def assert_accepted(snapshot: Snapshot, instance: Instance, result: Result) -> None:
    provenance = Provenance(version="test", solver="exact", objectives=OBJECTIVES)
    plan = plan_of(instance, result, {"exact": result.bounds}, OBJECTIVES, provenance, digest(snapshot))
    assert check(snapshot, plan) == []


def assert_bounds_hold(result: Result, best: brute.Optimum) -> None:
    """Bounds that take the best earlier values as given are no better than the best value."""
    for number, bound in enumerate(result.bounds):
        earlier = [float(value) for _, _, value in best[:number]]
        if bound.value is not None and list(bound.held) == pytest.approx(earlier):
            assert bound.value >= float(best[number][2]) - 1e-6


@pytest.mark.parametrize("seed", range(40))
def test_tiny_instances(seed: int) -> None:
    snapshot = random_tiny(seed)
    best = brute.optimum(snapshot, OBJECTIVES)
    instance = compile_snapshot(snapshot)
    result = run(instance)
    assert_accepted(snapshot, instance, result)
    assert_bounds_hold(result, best)
    # the whole instance is one neighbourhood here, so nothing better is left to find
    assert [score.value for score in scores(instance, result.assignment, OBJECTIVES)] == [v for _, _, v in best]


def test_tasks_with_a_share_of_several_cards_take_distinct_ones() -> None:
    # two cards; by units alone three tasks of two quarters and one of a half would fit in many wrong ways
    split = Task(gpus=2, gpu_share=0.25)
    half = Task(gpus=1, gpu_share=0.5)
    snapshot = Snapshot(
        nodes=(Node(name="n", gpus=(Gpu(model="A", count=2),)),),
        jobs=(
            Job(name="split", count=3, groups=(TaskGroup(name="g", task=split),)),
            Job(name="half", count=2, groups=(TaskGroup(name="g", task=half),)),
        ),
    )
    instance = compile_snapshot(snapshot)
    result = run(instance)
    assert_accepted(snapshot, instance, result)
    assert scores(instance, result.assignment, ("value",))[0].value == 2000


def middling(seed: int = 1) -> Snapshot:
    """A cluster with a few hundred tasks of the openb trace, too many for its 60 cards."""
    trace = pl.load(pl.instances.path("openb"))
    nodes = tuple(
        Node(name=f"{node.name}", count=3, cpu=node.cpu, memory=node.memory, gpus=node.gpus) for node in trace.nodes[:6]
    )
    return draw(Snapshot(nodes=nodes, jobs=trace.jobs), seed, 1.0)


def test_better_than_greedy_and_close_to_the_bound() -> None:
    snapshot = middling()
    instance = compile_snapshot(snapshot)
    result = run(instance)
    assert_accepted(snapshot, instance, result)
    value = scores(instance, result.assignment, ("value",))[0].value
    for rule in ("best-fit", "fgd"):
        greedy = HEURISTICS[rule].solve(instance, objectives=OBJECTIVES, limits=Limits()).assignment
        assert scores(instance, greedy, ("value",))[0].value <= value
    assert result.bounds[0].value is not None
    assert float(value) <= result.bounds[0].value <= float(value) * 1.01


def test_the_same_again_gives_the_same() -> None:
    instance = compile_snapshot(middling(2))
    first, second = run(instance), run(instance)
    for column in ("job", "leaf", "task", "node", "cards", "offset"):
        assert getattr(first.assignment, column).tolist() == getattr(second.assignment, column).tolist()
    assert first.bounds == second.bounds
    assert first.stop is second.stop is not Stop.TIME


def test_never_below_the_start_and_stopped_by_the_clock() -> None:
    snapshot = middling(4)  # all of its work takes a hundred times as long
    instance = compile_snapshot(snapshot)
    start = HEURISTICS["fgd"].solve(instance, objectives=OBJECTIVES, limits=Limits()).assignment
    for seconds in (0.0, 0.2):
        result = run(instance, Limits(time.monotonic() + seconds), start)
        assert_accepted(snapshot, instance, result)
        assert scores(instance, result.assignment, OBJECTIVES)[0].value >= scores(instance, start, OBJECTIVES)[0].value
        # one that did not look at the clock would go on until its work is done
        assert result.stop is Stop.TIME


def test_a_gap_that_is_good_enough_ends_the_search() -> None:
    instance = compile_snapshot(middling(4))
    result = run(instance, Limits(gap=0.05))
    value = float(scores(instance, result.assignment, ("value",))[0].value)
    assert result.bounds[0].value is not None
    assert result.bounds[0].value <= value * 1.05


def test_what_is_reported_only_gets_better() -> None:
    instance = compile_snapshot(middling(5))
    told: list[Progress] = []
    Pipeline(Ledger(instance, targets_of(instance, OBJECTIVES), Limits(), 0, None, told.append)).run()
    values = [scores(instance, p.assignment, ("value",))[0].value for p in told if p.assignment is not None]
    assert values == sorted(values)
    bounds = [p.bounds[0].value for p in told if p.bounds and p.bounds[0].value is not None]
    assert bounds == sorted(bounds, reverse=True)


def test_targets_end_where_counts_do_not_tell() -> None:
    instance = compile_snapshot(pl.load(pl.instances.path("priorities")))
    value = [("value", priority) for priority in instance.priorities]
    assert targets_of(instance, ("value", "tasks")) == (*value, ("tasks", None))
    assert targets_of(instance, ("tasks", "fragmentation", "value")) == (("tasks", None),)
    assert targets_of(instance, ("nodes",)) == ()


@pytest.mark.slow
@pytest.mark.parametrize(("trace", "most"), [("openb", 3.2), ("openb-gpuspec33", 3.85), ("openb-gpushare100", 10.95)])
def test_full_traces(trace: str, most: float) -> None:
    """Unallocated GPUs in percent when all arrivals are known together; the bounds are 3.11, 3.58 and 10.87."""
    snapshot = draw(pl.load(pl.instances.path(trace)), 42, 1.0)
    plan = pl.solve(snapshot, solver="exact", objectives=OBJECTIVES, time_limit=90.0)
    assert plan.checked
    assert plan.usage.unallocated_percent is not None
    assert plan.usage.unallocated_percent <= most
