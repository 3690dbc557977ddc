"""Schedules for finish-time fairness: the weights, by hand and as the check has them, and what comes of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import pytest
from cli_cases import placement, refused
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from schedule_cases import random_timed_work

import placement as pl
from placement.check.schedules.judge import check_schedule
from placement.check.schedules.weights import weights_of
from placement.errors import UsageError
from placement.metrics import fairness
from placement.planning import dump_schedule, load_schedule
from placement.scheduling.weights import weights, with_aim
from placement.snapshot import Duration, Gpu, Job, Node, Policy, Snapshot, Task, TaskGroup
from placement.snapshot.read import dumps

FAIR: Literal["finish_time_fairness"] = "finish_time_fairness"


def job(name: str, cards: int, seconds: float, queue: str, **more: object) -> Job:
    group = TaskGroup(name="w", task=Task(gpus=cards))
    return Job(name=name, groups=(group,), duration=Duration(seconds=seconds), queue=queue, **more)  # type: ignore[arg-type]


def pair(**more: object) -> Snapshot:
    """Return a job that takes all of two cards, and one of another queue that takes one of them."""
    nodes = (Node(name="n", gpus=(Gpu(model="A", count=2),)),)
    queues = (pl.snapshot.Queue(name="wide"), pl.snapshot.Queue(name="narrow"))
    return Snapshot(
        nodes=nodes,
        queues=queues,
        jobs=(job("w", 2, 10, "wide"), job("n", 1, 12, "narrow")),
        **more,  # type: ignore[arg-type]
    )


def test_who_would_be_alone_for_longer_waits() -> None:
    """Two queues share two cards, a card each.

    Alone, w takes 10 s times 2 cards over 1, 20 s, and n takes 12 s. So w weighs 1000 and n 1000 * 20 / 12 = 1666.7,
    which is 1667. Run time alone starts w first, for 10 + 22 = 32 s of T instead of 22 + 12 = 34. By fairness n is
    first: 1000 * 22 + 1667 * 12 = 42,004 instead of 1000 * 10 + 1667 * 22 = 46,674; times over those alone are then
    22 / 20 = 1.1 and 12 / 12 = 1 instead of 0.5 and 1.83.
    """
    usual, fair = pl.schedule(pair()), pl.schedule(pair(), objective=FAIR)
    assert (usual.status, usual.value, usual.jobs.start) == ("proven", 32.0, [0.0, 10.0])
    assert (fair.status, fair.value, fair.jobs.start) == ("proven", 42_004.0, [12.0, 0.0])
    assert fair.jobs.weight == [1000, 1667]
    assert fair.provenance.objectives == (FAIR,)
    assert [one.rho for one in fairness(pair(), fair).jobs] == [1.1, 1.0]
    assert fairness(pair(), usual).worst == pytest.approx(22 / 12)


def test_the_snapshot_may_say_so() -> None:
    fair = pl.schedule(pair(policy=Policy(objectives=(FAIR,))))
    assert (fair.value, fair.notes) == (42_004.0, [])
    beside = pl.schedule(pair(policy=Policy(objectives=("value", FAIR, "completion_time"))))
    assert (beside.value, len(beside.notes)) == (42_004.0, 1)
    assert pl.schedule(pair(policy=Policy(objectives=(FAIR,))), objective="completion_time").value == 32.0
    with pytest.raises(pl.UnhonouredError, match="placement schedule"):
        pl.solve(pair(policy=Policy(objectives=(FAIR,))))


def test_who_has_no_weight_or_no_end_keeps_his_own() -> None:
    """Of one queue nobody gets less than all: 40 s and 10 s alone, so 1000 and 4000, times 3 for the last."""
    nodes = (Node(name="n", gpus=(Gpu(model="A", count=2), Gpu(model="B", count=4, health="unhealthy"))),)
    jobs = (job("a", 1, 40, ""), job("b", 1, 10, "", weight=0), job("c", 1, 10, "", weight=3))
    found = weights(with_aim(Snapshot(nodes=nodes, jobs=jobs), FAIR))
    assert found == [1000, 0, 12_000]
    half = TaskGroup(name="w", count=3, task=Task(gpus=1, gpu_share=0.5))
    nested = TaskGroup(name="all", count=2, groups=(half,))
    # 2 * 3 * 0.5 = 3 cards of 2: half as long again, 60 s alone
    jobs = (jobs[0], replace(jobs[0], name="d", groups=(nested,)), replace(jobs[0], name="e", duration=None))
    assert weights(with_aim(Snapshot(nodes=nodes, jobs=jobs), FAIR)) == [1500, 1000, 1]


@settings(max_examples=120, deadline=None)
@given(st.integers(0, 10**6))
def test_the_check_has_the_same_weights_by_itself(seed: int) -> None:
    snapshot = random_timed_work(seed)
    jobs = tuple(replace(one, queue="", tenant=one.tenant) for one in snapshot.jobs)
    snapshot = replace(snapshot, jobs=jobs, policy=replace(snapshot.policy, objectives=(FAIR,)))
    made = pl.schedule(snapshot, solver="fifo-list")
    assert weights_of(snapshot, made) == weights(snapshot)
    assert check_schedule(snapshot, made) == []


@pytest.mark.parametrize("seed", range(12))
def test_it_is_the_schedule_of_these_weights(seed: int) -> None:
    snapshot = replace(random_timed_work(seed), policy=Policy(objectives=(FAIR,)))
    worth = weights(snapshot)
    by_hand = tuple(replace(one, weight=weight, value=None) for one, weight in zip(snapshot.jobs, worth, strict=True))
    due = pl.schedule(replace(snapshot, jobs=by_hand, policy=Policy()))
    fair = pl.schedule(snapshot)
    assert (fair.value, fair.bound, fair.stretches) == (due.value, due.bound, due.stretches)


def test_a_schedule_cannot_say_another_aim_than_it_has() -> None:
    fair = pl.schedule(pair(), objective=FAIR)
    for objectives in (("completion_time",), ("value",), ("completion_time", FAIR)):
        fair.provenance = replace(fair.provenance, objectives=objectives)
        assert {one.rule for one in check_schedule(pair(), fair)} <= {"jobs", "objectives"}
        assert check_schedule(pair(), fair)


@pytest.mark.parametrize(("name", "said"), [("nodes", "is about a plan"), ("fair", "is unknown")])
def test_other_objectives_are_refused(name: str, said: str) -> None:
    with pytest.raises(UsageError, match=f"objective: '{name}' {said}.*use completion_time or {FAIR}"):
        pl.schedule(pair(), objective=name)


def test_the_command_has_it_too(in_tmp: Path) -> None:
    Path("in.json").write_bytes(dumps(pair()))
    result = placement("schedule", "in.json", "--objective", FAIR, "-o", "out.json", "--compare", "fifo-list")
    assert result.exit_code == 0, result.output
    assert "completion time weighted for finish-time fairness 42,004 s" in result.stdout
    assert dump_schedule(load_schedule("out.json")) == Path("out.json").read_bytes()
    assert placement("check", "in.json", "out.json").exit_code == 0
    refused(placement("schedule", "in.json", "--objective", "nodes", "-o", "no.json"), "--objective", "is about a plan")
    refused(placement("solve", "whole-nodes", "--objective", FAIR), "--objective", "placement schedule")
    assert sorted(os.listdir()) == ["in.json", "out.json"]
