"""MIG cards on hosts that are short of what their tasks take besides: what all hosts have together says too much."""

from __future__ import annotations

import pytest
from brute import TooLarge
from mig_brute import optimum
from mig_tiny import random_mig

import placement as pl
from placement.snapshot import Gpu, Job, Node, Snapshot, Task, TaskGroup
from placement.snapshot.read import verified


def cluster(cpu: int, hosts: int, *jobs: tuple[str, int, int]) -> Snapshot:
    """Hosts with two A100s each, and jobs as (profile, cores, how many)."""
    gpus = (Gpu(model="A100-80GB", count=2, mig_enabled=True),)
    return Snapshot(
        nodes=(Node(name="n", count=hosts, cpu=cpu, gpus=gpus),),
        jobs=tuple(
            Job(name=f"j{i}", count=count, groups=(TaskGroup(name="g", task=Task(gpus=1, mig_profile=p, cpu=c)),))
            for i, (p, c, count) in enumerate(jobs)
        ),
    )


def test_cores_that_no_task_can_put_together() -> None:
    # three hosts with 3 cores and tasks of 2: one fits on each, though 9 cores are there for four
    plan = pl.solve(cluster(3, 3, ("1g.10gb", 2, 5)))
    assert plan.phases[0].value == plan.phases[0].bound == pytest.approx(3000 / 7)


def test_large_and_small_shares_of_cores() -> None:
    # hosts of 4 cores: a 3g takes 3 of them, a 2g 2, a 1g 1. Per host the best are two 2g (4/7), a 3g and a 1g (4/7),
    # or four 1g (4/7); so 8/7 on two hosts, and no more: a seventh takes a core at least
    plan = pl.solve(cluster(4, 2, ("3g.40gb", 3, 2), ("2g.20gb", 2, 1), ("1g.10gb", 1, 3)))
    assert plan.phases[0].value == plan.phases[0].bound == pytest.approx(8000 / 7)
    # with one small job a 3g and a 1g on one host, and on the other the 3g leaves a core idle: 7/7
    plan = pl.solve(cluster(4, 2, ("3g.40gb", 3, 2), ("1g.10gb", 1, 1)))
    assert plan.phases[0].value == plan.phases[0].bound == pytest.approx(7000 / 7)


@pytest.mark.parametrize("first", range(9000, 9120, 40))
def test_scarce_cores_against_brute_force(first: int) -> None:
    """One priority and value alone, which is what hosts are looked at for: the best is found, and proven a bound."""
    found = []
    for seed in range(first, first + 40):
        snapshot = verified(random_mig(seed, scarce=True, mixed=False))
        if len({job.priority for job in snapshot.jobs}) > 1:
            continue
        try:
            best = optimum(snapshot, ("value",))
        except TooLarge:
            continue
        if best:
            phase, value = pl.solve(snapshot, objectives=("value",)).phases[0], float(best[0][2])
            assert phase.value <= value * (1 + 1e-12), seed
            assert phase.bound is None or phase.bound >= value * (1 - 1e-12), seed
            found.append(phase.value >= value * (1 - 1e-12))
    assert len(found) >= 10
    assert found.count(False) <= 1
