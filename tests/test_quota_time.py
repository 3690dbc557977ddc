"""Quotas over time: who waits, who is left out, whose turn it is."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from quota_cases import MODELS, job, leaves, trees

import placement
from placement.check.queues.quota import judge
from placement.metrics import JobRho, QueueShare, fairness
from placement.quota import Quotas
from placement.scheduling.baselines import BASELINES
from placement.scheduling.compile import compile_work
from placement.scheduling.desk import Desk
from placement.scheduling.loop import Loop
from placement.scheduling.orders import ListPolicy, by_length
from placement.snapshot import (
    Duration,
    Gpu,
    Job,
    Node,
    Policy,
    Queue,
    Running,
    RunningTask,
    Snapshot,
    Task,
    TaskGroup,
)
from placement.snapshot.read import verified
from placement.timetable import Schedule

Usage = dict[tuple[str, str], int]
"""Cards by queue and model."""


# --- over time ---------------------------------------------------------------------------------------------------


def cluster(*jobs: Job, queues: tuple[Queue, ...], **fields: Any) -> Snapshot:
    """Eight A and four B."""
    nodes = (Node(name="a", count=2, gpus=(Gpu(model="A", count=4),)), Node(name="b", gpus=(Gpu(model="B", count=4),)))
    return Snapshot(nodes=nodes, jobs=jobs, queues=queues, **fields)


def starts(schedule: Schedule) -> dict[str, float]:
    return dict(zip(schedule.jobs.job, schedule.jobs.start, strict=True))


def test_a_job_waits_for_its_quota_and_the_note_says_for_how_much() -> None:
    """Queue q may use 4 A. The second job of 4 waits for the first, though 4 A are free; the third is in no queue."""
    snapshot = cluster(
        job("one", "q", 4, 10, ("A",)),
        job("two", "q", 4, 10, ("A",)),
        job("free", "", 2, 10, ("A",)),
        queues=(Queue(name="q", quota={"A": 4}),),
    )
    found = placement.schedule(snapshot, solver="fifo-list")
    assert starts(found) == {"one": 0, "two": 10, "free": 0}
    assert found.notes == [
        "two of queue q waits for quota, though devices are free: "
        "it asks for 4 cards of A too many for the quota of queue q"
    ]
    assert list(judge(snapshot, found)) == []
    (wrong,) = judge(snapshot, placement.schedule(cluster(*snapshot.jobs, queues=()), solver="fifo-list"))
    assert str(wrong) == "quota: stretches[0]: at 0 s queue q uses 8 cards of A, at most 4"


def test_a_job_above_what_its_queue_could_ever_get_is_left_out() -> None:
    """Queue x has 2 A and may borrow 1 of the 4 of y: 3 at most, of 4. What comes after it never starts."""
    queues = (
        Queue(name="root"),
        Queue(name="x", parent="root", quota={"A": 2}, borrowing_limit={"A": 1}),
        Queue(name="y", parent="root", quota={"A": 4}),
    )
    wide = job("wide", "x", 4, 10, ("A",))
    snapshot = cluster(wide, job("next", "y", 1, 1, after=("wide",)), job("fine", "y", 4, 10, ("A",)), queues=queues)
    found = placement.schedule(snapshot, solver="fifo-list")
    assert [(out.job, out.reason) for out in found.left_out] == [("wide", "quota"), ("next", "never")]
    assert found.left_out[0].detail == "it asks for 1 card of A too many for the quota of queue x"
    assert starts(found) == {"fine": 0}


def test_other_models_are_tried_where_the_fastest_has_no_quota() -> None:
    """Any card will do and A comes first, but the queue has quota for B alone."""
    either = Job(
        name="either",
        queue="q",
        duration=Duration(seconds=10, gpu_models={"B": 2}),
        groups=(TaskGroup(name="g", task=Task(gpus=2)),),
    )
    snapshot = cluster(either, queues=(Queue(name="q", quota={"B": 2}),))
    found = placement.schedule(snapshot, solver="fifo-list")
    assert found.tasks.node == ["b"]
    assert starts(found) == {"either": 0}


def test_a_job_starts_with_as_many_tasks_as_the_quota_admits() -> None:
    """It asks for 3 tasks of 2 cards and runs with 1; 5 cards of quota are 2 tasks."""
    snapshot = cluster(job("j", "q", 2, 10, ("A",), count=3, min_count=1), queues=(Queue(name="q", quota={"A": 5}),))
    found = placement.schedule(snapshot, solver="fifo-list")
    assert len(found.tasks) == 2
    assert found.left_out == []


def test_shares_count_as_stated_and_instances_by_their_slices() -> None:
    """Half a card and half a card are the quota of 1; 1g.5gb is one of seven compute slices, so 3/7 admit three."""
    half = Job(
        name="half",
        count=3,
        queue="q",
        duration=Duration(seconds=10),
        groups=(TaskGroup(name="g", task=Task(gpus=1, gpu_share=0.5)),),
    )
    found = placement.schedule(cluster(half, queues=(Queue(name="q", quota={"*": 1}),)), solver="fifo-list")
    assert starts(found) == {"half-0": 0, "half-1": 0, "half-2": 10}
    slices = msgspec.structs.replace(
        half, count=4, groups=(TaskGroup(name="g", task=Task(gpus=1, mig_profile="1g.5gb")),)
    )
    card = Gpu(model="A100-SXM4-40GB", count=1, mig_enabled=True)
    snapshot = Snapshot(
        nodes=(Node(name="n", gpus=(card,)),), jobs=(slices,), queues=(Queue(name="q", quota={"*": 0.43}),)
    )
    found = placement.schedule(snapshot, solver="fifo-list")
    assert sorted(starts(found).values()) == [0, 0, 0, 10]  # 3/7 = 0.4286 <= 0.43 < 4/7
    assert list(judge(snapshot, found)) == []


def test_running_work_over_its_quota_is_carried() -> None:
    """Running work without an end takes 4 of 2 A, and 2 B of 2 until 5 s. So A is never free, and B is at 5 s."""

    def running(name: str, node: str, gpus: tuple[int, ...], model: str, duration: Duration | None) -> Job:
        task = RunningTask(group="g", index=0, node=node, gpus=gpus)
        group = TaskGroup(name="g", task=Task(gpus=len(gpus), gpu_models=(model,)))
        return Job(name=name, queue="q", duration=duration, groups=(group,), running=Running(since=0, tasks=(task,)))

    snapshot = cluster(
        running("old", "a-0", (0, 1, 2, 3), "A", None),
        running("ends", "b", (0, 1), "B", Duration(seconds=5)),
        job("more", "q", 1, 10, ("A",)),
        job("later", "q", 2, 10, ("B",)),
        queues=(Queue(name="q", quota={"A": 2, "B": 2}),),
    )
    # Gavel starts jobs in rounds of six minutes
    for name in BASELINES.keys() - {"fifo", "gavel"}:
        found = placement.schedule(snapshot, solver=name)
        assert [(out.job, out.reason) for out in found.left_out] == [("more", "quota")]
        assert found.left_out[0].detail == "it asks for 1 card of A too many for the quota of queue q"
        assert starts(found)["later"] == 5
        assert list(judge(snapshot, found)) == []


@st.composite
def workloads(draw: st.DrawFn) -> Snapshot:
    queues = draw(trees())
    jobs: list[Job] = []
    for number in range(draw(st.integers(1, 7))):
        running = draw(st.booleans()) and number < 3  # on four cards of its own
        models = draw(st.sampled_from([("A",), ("B",), ()]))
        jobs.append(
            job(
                f"j{number}",
                draw(st.sampled_from([*leaves(queues), ""])),
                draw(st.integers(1, 2)),
                draw(st.integers(1, 4)),
                models if not running else (),
                count=1 if running else draw(st.integers(1, 2)),
                min_count=1,
                submit_time=draw(st.integers(0, 5)) if not running else 0,
                preemptible=draw(st.booleans()),
                running=_on(number) if running else None,
            )
        )
        if running:
            jobs[-1] = msgspec.structs.replace(jobs[-1], groups=(TaskGroup(name="g", task=Task(gpus=2)),))
    limit = draw(st.sampled_from([None, 0, 2]))
    return cluster(*jobs, queues=queues, policy=Policy(max_wait_seconds=limit))


def _on(number: int) -> Running:
    node = ("a-0", "a-1", "b")[number]
    return Running(since=0, tasks=(RunningTask(group="g", index=0, node=node, gpus=(0, 1)),))


class Restless(ListPolicy):
    """Stops all that it may every 2 s, and starts anew."""

    def decide(self, desk: Desk) -> None:
        if desk.now % 2000 == 0 and 0 < desk.now < 6000:
            for one in [one for one in desk.live if desk.may_stop(one)]:
                desk.stop(one)
        ListPolicy.decide(self, desk)


@given(workloads())
@settings(max_examples=40)
def test_no_policy_breaks_a_quota(snapshot: Snapshot) -> None:
    """Judged by a sweep of its own, over the stretches as the loop has them."""
    work = compile_work(snapshot)
    for policy in (BASELINES["drf"], BASELINES["smith"], Restless("restless", by_length, period=1000)):
        desk = Desk(work)
        table = Loop(desk, policy).run()
        assert desk.admission is None or all(
            desk.admission.quotas.usage(queue.name, model) >= 0 for queue in snapshot.queues for model in MODELS
        )
        spans = [(one.start, one.end, one.job, one.tasks) for one in table.stretches]
        for moment in sorted({start for start, _, _, _ in spans}):
            kept, new = Quotas(snapshot.queues), Quotas(snapshot.queues)
            for start, end, number, tasks in spans:
                amounts: dict[str, int] = {}
                for _, _, (node, cards) in tasks:
                    model = "B" if node == 2 else "A"
                    amounts[model] = amounts.get(model, 0) + len(cards)
                if start <= moment < end:
                    new.change(work.queue[number], dict(amounts))
                    if start < moment or (
                        start == 0 and work.ongoing.get(number) and tasks == work.ongoing[number].tasks
                    ):
                        kept.change(work.queue[number], dict(amounts))
            before = {(short.queue, short.model): short.amount for short in kept.over()}
            assert all(short.amount <= before.get((short.queue, short.model), 0) for short in new.over())


# --- order and fairness ------------------------------------------------------------------------------------------


def test_the_next_job_comes_from_the_queue_with_the_least_dominant_share() -> None:
    """Of 8 A and 4 B: x takes 2 A a job (1/4), y takes 1 B a job (1/4) and has weight 2.

    Shares over weights: x 0, y 0 (a tie, by name: x starts) -> x 1/4, y 0: y -> 1/8: y -> 1/4: x (tie) -> 1/2: y ->
    3/8: y -> 1/2, and B is full; x starts until A is. Of the 2 jobs of x that do not fit, both wait.
    """
    jobs = [job(f"x{n}", "x", 2, 10, ("A",)) for n in range(6)] + [job(f"y{n}", "y", 1, 10, ("B",)) for n in range(4)]
    snapshot = cluster(*jobs, queues=(Queue(name="x"), Queue(name="y", weight=2)))
    desk = Desk(compile_work(snapshot))
    desk.waiting.update(dict.fromkeys(range(10), 0))
    BASELINES["drf"].decide(desk)
    assert [jobs[number].name for number in desk.live] == ["x0", "y0", "y1", "x1", "y2", "y3", "x2", "x3"]


def test_jobs_that_have_waited_too_long_come_first() -> None:
    """Jobs of 4 A come one after the other, and one of 8 A finds all free at the end alone, unless it is overdue."""
    jobs = [
        job("s0", "", 4, 10, ("A",)),
        job("s1", "", 4, 6, ("A",)),
        job("long", "", 4, 100, ("A",), count=2),
        job("s2", "", 4, 6, ("A",)),
        job("s3", "", 4, 4, ("A",), submit_time=1),
        job("s4", "", 4, 30, ("A",)),
    ]
    never = placement.schedule(cluster(*jobs, queues=()), solver="shortest-job-first")
    # s1 and s2 at 0; at 6 s3 (4 s) and s0 (10 s); at 10 s4 (30 s); at 40 all 8 A are free
    assert starts(never) == {"s0": 6, "s1": 0, "long": 40, "s2": 0, "s3": 6, "s4": 10}
    aged = placement.schedule(cluster(*jobs, queues=(), policy=Policy(max_wait_seconds=5)), solver="shortest-job-first")
    # at 0 s1 and s2 start (6 s each); at 6 what came by 1 is overdue, longest first: s0, long, s4 since 0, then s3
    # since 1. s0 takes 4 A until 16; long fits at 16; s4 would end at 36, so it may not start; s3 ends at 10 and may.
    assert starts(aged) == {"s0": 6, "s1": 0, "long": 16, "s2": 0, "s3": 6, "s4": 116}


def test_fairness_by_hand() -> None:
    """On 8 A and 4 B, x: 4 A from 0 to 10 and from 10 to 20; y (weight 2): 8 A from 20 to 24, and 2 B from 0 to 6.

    Makespan 24. x: 80 of 192 A seconds. y: 32 of 192 A, 12 of 96 B: A. n = 2.
    rho: x0 10 / 10 (4/8 * 2 = 1), x1 20 / 10, ya 24 / (4 * 2), yb 6 / 6 (2/4 * 2 = 1).
    Waits 0, 10, 20 and 0; one is beyond 15 s.
    """
    jobs = (
        job("x0", "x", 4, 10, ("A",)),
        job("x1", "x", 4, 10, ("A",)),
        job("ya", "y", 4, 4, ("A",), count=2),
        job("yb", "y", 2, 6, ("B",), submit_time=0),
    )
    snapshot = cluster(*jobs, queues=(Queue(name="x", quota={"A": 4}), Queue(name="y", weight=2)))
    found = placement.schedule(snapshot, solver="fifo-list")
    assert starts(found) == {"x0": 0, "x1": 10, "ya": 20, "yb": 0}
    said = fairness(snapshot, found, wait_limit=15)
    assert said.shares == [
        QueueShare(queue="x", model="A", share=80 / 192, weighted=80 / 192),
        QueueShare(queue="y", model="A", share=32 / 192, weighted=16 / 192),
    ]
    assert said.jobs == [
        JobRho(job="x0", rho=1.0),
        JobRho(job="x1", rho=2.0),
        JobRho(job="ya", rho=3.0),
        JobRho(job="yb", rho=1.0),
    ]
    assert (said.worst, said.longest_wait, said.beyond) == (3.0, 20.0, 0.25)
    assert fairness(snapshot, found).beyond is None


def test_a_shipped_field_that_is_honoured_is_read() -> None:
    snapshot = cluster(
        job("j", "q", 1, 1), queues=(Queue(name="q", quota={"A": 1}),), policy=Policy(max_wait_seconds=3)
    )
    assert compile_work(verified(snapshot)).max_wait == 3000
    with pytest.raises(placement.PlacementError, match="max_wait_seconds"):
        placement.solve(cluster(job("j", "", 1, 1), queues=(), policy=Policy(max_wait_seconds=3)))
