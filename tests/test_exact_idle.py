"""Objectives that cannot count take no proof from the others, wherever they stand in the order."""

from __future__ import annotations

import itertools
import random

import pytest
from strategies import random_tiny

import placement
from placement.compile import compile as compile_snapshot
from placement.exact.objectives.idle import Idle
from placement.snapshot import Duration, Gpu, Job, Node, Snapshot, Task, TaskGroup
from placement.solver import Bound

TIMED = Snapshot(
    nodes=(Node(name="n", gpus=(Gpu(model="A", count=2),)),),
    jobs=(
        Job(name="j", priority=1, duration=Duration(seconds=3), groups=(TaskGroup(name="g", task=Task(gpus=1)),)),
        Job(name="k", groups=(TaskGroup(name="g", task=Task(gpus=1)),)),
    ),
)


@pytest.mark.parametrize("place", range(4))
def test_a_proof_stays_one_wherever_nobodys_wish_stands(place: int) -> None:
    objectives = ["value", "tasks", "run_time"]
    objectives.insert(place, "locality")
    plan = placement.solve(TIMED, objectives=objectives)
    assert plan.status == "proven"
    # two cards of a thousandth each, priority by priority; two tasks; and the three seconds of one of them
    values = {"value": [1000.0, 1000.0], "tasks": [2.0], "run_time": [3.0], "locality": [0.0]}
    assert [phase.value for phase in plan.phases] == list(itertools.chain(*(values[name] for name in objectives)))
    assert all(phase.bound == phase.value for phase in plan.phases)


@pytest.mark.parametrize("seed", range(30))
def test_random_orders(seed: int) -> None:
    # no job of these prefers a level or states how long it runs
    snapshot = random_tiny(seed, 4)
    others = random.Random(seed).sample(["value", "tasks", "fragmentation", "whole_nodes", "nodes"], 2)
    more = list(others)
    for idle in ("locality", "run_time"):
        more.insert(random.Random(seed + len(more)).randint(0, len(more)), idle)
    plain, beside = (placement.solve(snapshot, solver="exact", objectives=objectives) for objectives in (others, more))
    assert plain.status == beside.status == "proven"
    assert [phase for phase in beside.phases if phase.objective in others] == plain.phases
    assert plain.tasks == beside.tasks


def test_a_bound_says_the_value_of_every_earlier_phase() -> None:
    idle = Idle(compile_snapshot(TIMED), ("locality", "value", "nodes", "tasks"))
    assert idle.others == ("value", "nodes", "tasks")
    assert idle.bound(Bound("tasks", None, 2.0, (5.0, 6.0, 1.0))).held == (0.0, 5.0, 6.0, 1.0)
    assert idle.bound(Bound("value", 0, 6.0, (5.0,))).held == (0.0, 5.0)
    assert idle.bound(Bound("nodes", None, 1.0)).held == ()
