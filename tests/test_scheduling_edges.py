"""Schedules of next to nothing: without nodes, jobs or cards."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from policy_cases import job, node

import placement as pl
from placement.scheduling.baselines import BASELINES
from placement.snapshot import Duration, Job, Node, Snapshot, Task, TaskGroup, Topology


@pytest.mark.parametrize("name", ["auto", *BASELINES])
def test_without_nodes_all_jobs_are_left_out(name: str) -> None:
    tied = TaskGroup(name="w", count=2, task=Task(gpus=1), topology=Topology(required="node"))
    two = replace(job("two", 1, 10), groups=(tied,))
    schedule = pl.schedule(Snapshot(jobs=(job("one", 1, 10), two, job("after", 1, 10, after=("one",)))), solver=name)
    assert {one.job: one.reason for one in schedule.left_out} == dict.fromkeys(("one", "two", "after"), "never")
    assert (len(schedule.stretches), schedule.value) == (0, 0)


@pytest.mark.parametrize("name", ["auto", *BASELINES])
def test_without_jobs_nothing_happens(name: str) -> None:
    for nodes in ((), (node("a", 8),)):
        schedule = pl.schedule(Snapshot(nodes=nodes), solver=name)
        assert (schedule.left_out, len(schedule.stretches), schedule.value) == ([], 0, 0)


@pytest.mark.parametrize("name", ["auto", *BASELINES])
def test_nodes_without_cards_run_what_needs_none(name: str) -> None:
    group = TaskGroup(name="w", count=3, task=Task(cpu=2))
    plain = Job(name="plain", groups=(group,), duration=job("x", 1, 10).duration)
    schedule = pl.schedule(Snapshot(nodes=(Node(name="a", cpu=6),), jobs=(job("x", 1, 10), plain)), solver=name)
    assert [(one.job, one.reason) for one in schedule.left_out] == [("x", "never")]
    assert (schedule.stretches.job, schedule.stretches.start, schedule.stretches.end) == (["plain"], [0.0], [10.0])


@pytest.mark.parametrize("name", [*BASELINES, "rolling"])
def test_simulations_of_no_nodes_finish_nothing(name: str) -> None:
    found = pl.simulate(Snapshot(jobs=(job("one", 1, 10), job("two", 1, 10, 2))), name)
    assert (found.unfinished, found.jobs.job) == (["one", "two"], [])


def test_factors_that_make_a_job_run_for_ages() -> None:
    # 10^10 s, 10^6 times as long on an A: no moment so late can be stated, nor milliseconds of it be counted
    group = pl.TaskGroup(name="g", task=pl.Task(gpus=1))
    long = pl.Job(name="j", groups=(group,), duration=Duration(seconds=1e10, gpu_models={"A": 1e6}))
    snapshot = pl.Snapshot(nodes=(pl.Node(name="n", gpus=(pl.Gpu(model="A"),)),), jobs=(long,))
    with pytest.raises(pl.SnapshotError, match=r"jobs\[0\].duration: .* more than 1,000,000,000,000 s"):
        pl.schedule(snapshot)


@pytest.mark.parametrize("name", ["auto", "rolling", *BASELINES])
def test_a_hard_deadline_that_is_past_before_anything_starts(name: str) -> None:
    """At 100 s a job was to have ended at 40, or just now: it is left out even if it takes no time at all."""
    late = [
        replace(job(f"{seconds}-{due}", 1, seconds), deadline=due, hard_deadline=True)
        for seconds, due in ((0, 40.0), (10, 40.0), (10, 99.999), (10, 100.0), (1e9, 40.0))
    ]
    just = replace(job("just", 1, 0), deadline=100.0, hard_deadline=True)
    snapshot = Snapshot(time=100.0, nodes=(node("a", 8),), jobs=(*late, just, job("free", 1, 10)))
    if name == "rolling":
        assert pl.simulate(snapshot, name).unfinished == [one.name for one in late]
        return
    schedule = pl.schedule(snapshot, solver=name)
    assert [(one.job, one.reason) for one in schedule.left_out] == [(one.name, "late") for one in late]
    assert dict(zip(schedule.jobs.job, schedule.jobs.end, strict=True)) == {"just": 0.0, "free": 10.0}
