"""MIG jobs beside others: jobs that are tied, and jobs that go to the reference model."""

from __future__ import annotations

import pytest

import placement as pl
from placement.snapshot import Gpu, Job, Node, Snapshot, Task, TaskGroup, Topology
from placement.snapshot.workload import Duration

A100 = Gpu(model="A100-40GB", mig_enabled=True)


def job(name: str, profile: str, weight: int, count: int = 1, topology: Topology | None = None) -> Job:
    group = TaskGroup(name="g", count=count, task=Task(gpus=1, mig_profile=profile), topology=topology)
    return Job(name=name, weight=weight, groups=(group,))


LOOSE = (
    job("j0", "2g.10gb", 2),
    job("j1", "1g.5gb+me", 6),
    job("j2", "1g.5gb", 1),
    job("j3", "1g.5gb+me", 2),
    job("j4", "7g.40gb", 5),
    job("j5", "1g.5gb+me", 4),
    job("j6", "4g.20gb", 1),
)


def test_a_gang_that_can_never_start_costs_the_others_nothing() -> None:
    # one card a node: the 7g on one (5 * 1000), on the other a 4g at 0 (4/7), a 2g at 4 (2 * 2/7) and the best +me at 6
    # (6/7): 5000 + 14000 / 7 = 7000. Two 7g on one node would need two cards there
    tied = job("t", "7g.40gb", 50, 2, Topology(required="node"))
    for jobs in (LOOSE, (*LOOSE, tied)):
        plan = pl.solve(Snapshot(nodes=(Node(name="n", count=2, gpus=(A100,)),), jobs=jobs))
        assert plan.value == pytest.approx(7000)
        assert not plan.notes


def test_a_tied_gang_that_starts_keeps_its_place() -> None:
    # both of the gang on the node with two cards (2 * 3/7 * 10), beside one 3g a card, and a 7g on the other node
    tied = job("t", "4g.20gb", 10, 2, Topology(required="node"))
    nodes = (Node(name="n", gpus=(Gpu(model="A100-40GB", mig_enabled=True, count=2),)), Node(name="m", gpus=(A100,)))
    others = (job("b", "7g.40gb", 1), job("c", "3g.20gb", 1), job("d", "3g.20gb", 1))
    plan = pl.solve(Snapshot(nodes=nodes, jobs=(tied, *others)))
    assert plan.value == plan.bound == pytest.approx((2 * 4 * 10 + 7 + 3 + 3) * 1000 / 7)
    assert {node for name, node in zip(plan.tasks.job, plan.tasks.node, strict=True) if name == "t"} == {"n"}


def test_jobs_with_durations_beside_mig_jobs() -> None:
    # the T4 doubles the ten seconds of the whole-card job, the V100 does not
    nodes = (Node(name="n", gpus=(Gpu(model="T4"), Gpu(model="V100"))), Node(name="k", gpus=(A100,)))
    whole = Job(
        name="w",
        groups=(TaskGroup(name="g", task=Task(gpus=1)),),
        duration=Duration(seconds=10, gpu_models={"T4": 2.0}),
    )
    plan = pl.solve(Snapshot(nodes=nodes, jobs=(whole, job("m", "1g.5gb", 1))))
    assert {phase.objective: phase.value for phase in plan.phases}["run_time"] == 10
    assert not plan.notes
