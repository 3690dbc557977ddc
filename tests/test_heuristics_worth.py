"""Rules on jobs in the order of what they bring, and calls too short for anything but rules."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from strategies import objective_orders, snapshots

import placement as pl
from placement.check import check
from placement.compile import compile as compile_snapshot
from placement.evaluate import scores
from placement.exact.processes import worker
from placement.heuristics import PORTFOLIO
from placement.heuristics.worth import by_worth
from placement.snapshot import Gpu, Job, Node, Snapshot, Task, TaskGroup
from placement.solver import Limits


def job(name: str, tasks: int, value: int | None = None, priority: int = 0, **task: float) -> Job:
    """Return a job of single cards, worth 1,000 each if nothing is said."""
    group = TaskGroup(name="w", count=tasks, task=Task(gpus=1, **task))  # type: ignore[arg-type]
    return Job(name=name, groups=(group,), value=value, priority=priority)


def order(*jobs: Job, objectives: tuple[str, ...]) -> str:
    """Return the names of jobs in the order of what they bring to 100 cards and 100 cores."""
    nodes = (Node(name="n", cpu=10, pods=100, count=10, gpus=(Gpu(model="A", count=10),)),)
    instance = compile_snapshot(Snapshot(nodes=nodes, jobs=jobs))
    return "".join(instance.job_name(number) for number in by_worth(instance, objectives).tolist())


def test_value_counts_against_the_square_root_of_the_largest_share() -> None:
    # the last takes 4 cards and 9 cores, so shares are 1, 4 and 9 %: 1000 / 0.1 = 10,000, 3000 / 0.2 = 15,000 and
    # 4000 / 0.3 = 13,333
    jobs = job("a", 1), job("b", 4, value=3000), job("c", 4, cpu=2.25)
    assert order(*jobs, objectives=("value",)) == "bca"
    # 1 / 0.01 = 100, 4 / 0.04 = 100, 4 / 0.09 = 44
    assert order(*jobs, objectives=("tasks", "value")) == "abc"
    assert order(*jobs, objectives=("fragmentation",)) == "bca"


def test_a_higher_priority_comes_first_where_value_counts() -> None:
    # 8000 / √0.08 = 28,284 is the most but for the priority; a task takes 1, 1 and 0.5 %, and b arrives before a
    jobs = job("a", 8), job("b", 1, priority=1), job("c", 2, gpu_share=0.5)
    assert order(*jobs, objectives=("value", "tasks")) == "bac"
    assert order(*jobs, objectives=("tasks",)) == "cba"


def test_every_job_comes_once_and_one_that_takes_next_to_nothing_first() -> None:
    nothing = Job(name="z", groups=(TaskGroup(name="w", task=Task(gpus=0)),))
    assert order(job("a", 1), nothing, job("b", 1), objectives=("tasks",)) == "zab"
    assert order(objectives=("value",)) == ""


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(snapshots(), objective_orders())
def test_a_short_call_is_never_worse_than_what_it_tries(snapshot: Snapshot, objectives: tuple[str, ...]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker, "ready", lambda: False)
        patch.setattr(worker, "prepare", lambda: None)
        # no limit that a busy machine could reach, and yet none that leaves time to start a process
        patch.setattr("placement.engine.COLD", 120.0)
        plan = pl.solve(snapshot, objectives=objectives, time_limit=60.0)
    assert plan.provenance.solver in PORTFOLIO
    assert check(snapshot, plan) == []
    instance = compile_snapshot(snapshot)
    reached = [phase.value if phase.sense == "max" else -phase.value for phase in plan.phases]
    for rule in PORTFOLIO.values():
        found = rule.solve(instance, objectives=objectives, limits=Limits()).assignment
        assert reached >= [float(score.rank) for score in scores(instance, found, objectives)]


def test_a_short_call_loads_no_solver() -> None:
    program = (
        "import sys, placement as pl\n"
        "from placement.generate import generate\n"
        "plan = pl.solve(generate(nodes=8, load=1.3, seed=9), time_limit=0.5)\n"
        "assert len(plan.tasks)\n"
        "print(sorted({'pyomo', 'highspy', 'scipy'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
