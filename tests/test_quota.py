"""Quotas of queues: the tree, admission over time, the judge, the model's rows, order and fairness."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyomo import core as pyo
from pyomo.contrib.appsi.solvers.highs import Highs

import placement
from placement.check.quota import judge
from placement.metrics import JobRho, QueueShare, fairness
from placement.models import quota as rows
from placement.quota import ALL, Quotas, Short
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


# --- hand-computed trees -----------------------------------------------------------------------------------------


def test_borrowing_and_lending() -> None:
    """Of root, x with quota 4 that may borrow 2, and y with quota 4 that lends 3.

    root: subtree 0 + 4 + min(4, 3) = 7. y: guaranteed 4 - 3 = 1. x: limit 4 + 2 = 6, and what root has left.
    """
    quotas = Quotas(
        (
            Queue(name="root"),
            Queue(name="x", parent="root", quota={"A": 4}, borrowing_limit={"A": 2}),
            Queue(name="y", parent="root", quota={"A": 4}, lending_limit={"A": 3}),
        )
    )
    assert [quotas.row(queue, "A").subtree for queue in ("root", "x", "y")] == [7, 4, 4]
    assert [quotas.row(queue, "A").guaranteed for queue in ("root", "x", "y")] == [0, 0, 1]
    assert [quotas.room(queue, "A") for queue in ("x", "y")] == [6, 8]  # y: its own 1, and the 7 of root
    assert quotas.short_by("x", {"A": 7}) == Short("x", "A", 1)
    quotas.change("x", {"A": 6})
    # root has 7 - 6 = 1 left, and y has 1 that it never lends
    assert quotas.room("y", "A") == 2
    assert quotas.fits("y", {"A": 2})
    assert quotas.short_by("y", {"A": 4}) == Short("root", "A", 2)  # 6 + (4 - 1) - 7
    quotas.change("y", {"A": 4})  # as running work may
    assert quotas.over() == [Short("root", "A", 2)]
    assert (quotas.usage("root", "A"), quotas.usage("y", "A")) == (9, 4)
    quotas.change("y", {"A": 4}, -1)
    assert (quotas.usage("root", "A"), quotas.usage("y", "A")) == (6, 0)
    # what y never lends is still its own while root is exceeded, and makes nothing worse
    quotas.change("x", {"A": 2})  # root: 8 of 7
    assert quotas.fits("y", {"A": 1})
    assert quotas.short_by("y", {"A": 2}) == Short("root", "A", 2)
    assert quotas.room("y", "A") == 1


def test_three_levels() -> None:
    """Of top with 2 of its own; lab, which lends 3 and borrows 1; l1 with quota 4 that lends 1, and l2 with 2; and z.

    l1 keeps 3 and lends 1, so lab has 0 + 1 + 2 = 3 and lends all 3, and may use 3 + 1 = 4 beyond what l1 keeps.
    top has 2 + 3 + 1 of z = 6.
    """
    quotas = Quotas(
        (
            Queue(name="top", quota={"A": 2}),
            Queue(name="lab", parent="top", lending_limit={"A": 3}, borrowing_limit={"A": 1}),
            Queue(name="l1", parent="lab", quota={"A": 4}, lending_limit={"A": 1}),
            Queue(name="l2", parent="lab", quota={"A": 2}),
            Queue(name="z", parent="top", quota={"A": 1}),
        )
    )
    assert [quotas.row(q, "A").subtree for q in ("top", "lab", "l1", "l2", "z")] == [6, 3, 4, 2, 1]
    # l1: its own 3 and the 4 of lab; l2: the 4 of lab; z: all 6 of top
    assert [quotas.room(q, "A") for q in ("l1", "l2", "z")] == [7, 4, 6]
    quotas.change("l1", {"A": 5})  # lab uses 2, and so does top
    assert [quotas.usage(q, "A") for q in ("l1", "lab", "top")] == [5, 2, 2]
    assert [quotas.room(q, "A") for q in ("l2", "z")] == [2, 4]
    assert quotas.short_by("l2", {"A": 3}) == Short("lab", "A", 1)


def test_all_models_and_those_not_listed() -> None:
    """Of root with 4 A, and c with 4 of any: up to 8 A (4 + 4), 4 B (0 + 4), and 8 in all. Of 4 A alone: no B."""
    quotas = Quotas((Queue(name="r", quota={"A": 4}), Queue(name="c", parent="r", quota={"*": 4}), Queue(name="d")))
    assert [quotas.room("c", model) for model in ("A", "B", ALL)] == [8, 4, 8]
    assert quotas.fits("c", {"A": 4, "B": 4})
    assert quotas.short_by("c", {"A": 5, "B": 4}) == Short("r", ALL, 1)
    assert not quotas.limited("d")  # it states nothing, nor does anything above it
    assert quotas.room("d", "A") is None
    assert quotas.fits("d", {"A": 1000})
    assert quotas.fits("", {"A": 1000})
    alone = Quotas((Queue(name="d", quota={"A": 4}),))
    assert alone.short_by("d", {"B": 1}) == Short("d", "B", 1)
    assert alone.room("d", ALL) is None  # nobody speaks of all models; A and B say it
    half = Quotas((Queue(name="d", quota={"*": "500m"}),))
    assert half.fits("d", {"A": Fraction(1, 2)})
    assert half.short_by("d", {"A": Fraction(4, 7)}) == Short("d", ALL, Fraction(1, 14))


# --- against the definition --------------------------------------------------------------------------------------

MODELS = ("A", "B")


@st.composite
def trees(draw: st.DrawFn) -> tuple[Queue, ...]:
    """Up to six queues in trees of any depth."""
    queues: list[Queue] = []
    amounts: st.SearchStrategy[int | float | str] = st.integers(0, 3)
    stated = st.dictionaries(st.sampled_from([*MODELS, ALL]), amounts, max_size=2)
    for number in range(draw(st.integers(1, 6))):
        parent = draw(st.sampled_from(["", *(queue.name for queue in queues)])) if queues else ""
        limits = (draw(stated), draw(stated)) if parent else ({}, {})
        queues.append(
            Queue(
                name=f"q{number}", parent=parent, quota=draw(stated), borrowing_limit=limits[0], lending_limit=limits[1]
            )
        )
    return tuple(queues)


def leaves(queues: tuple[Queue, ...]) -> list[str]:
    parents = {queue.parent for queue in queues}
    return [queue.name for queue in queues if queue.name not in parents]


def accepted(queues: tuple[Queue, ...], usage: Mapping[tuple[str, str], int]) -> bool:
    """Return whether usage is allowed, by the definition read word by word."""
    named = {queue.name: queue for queue in queues}

    def above(queue: Queue) -> Iterator[Queue]:
        yield queue
        if queue.parent:
            yield from above(named[queue.parent])

    def states(queue: Queue) -> bool:
        return bool(queue.quota or queue.borrowing_limit or queue.lending_limit)

    def below(queue: Queue) -> list[Queue]:
        return [one for one in queues if one.parent == queue.name and counts(one)]

    def counts(queue: Queue) -> bool:
        return queue.name not in leaves(queues) or any(map(states, above(queue)))

    def quota(queue: Queue, model: str) -> int:
        of_any = queue.quota.get("*", 0) if model != "*" else sum(int(one) for one in queue.quota.values())
        return int(queue.quota.get(model, of_any))

    def subtree(queue: Queue, model: str) -> int:
        return quota(queue, model) + sum(subtree(one, model) - guaranteed(one, model) for one in below(queue))

    def guaranteed(queue: Queue, model: str) -> int:
        if model not in queue.lending_limit:
            return 0
        return max(0, subtree(queue, model) - int(queue.lending_limit[model]))

    def used(queue: Queue, model: str) -> int:
        if queue.name in leaves(queues):
            return sum(usage.get((queue.name, one), 0) for one in MODELS if model in (one, "*"))
        return sum(max(0, used(one, model) - guaranteed(one, model)) for one in below(queue))

    for queue in queues:
        root = list(above(queue))[-1]
        tree = [one for one in queues if list(above(one))[-1] is root]
        stated = {model for one in tree for model in (*one.quota, *one.borrowing_limit, *one.lending_limit)}
        if not counts(queue) or not stated:
            continue
        for model in (*MODELS, "*") if "*" in stated else MODELS:
            if not queue.parent and used(queue, model) > subtree(queue, model):
                return False
            borrowed = queue.borrowing_limit.get(model)
            if queue.parent and borrowed is not None and used(queue, model) > subtree(queue, model) + int(borrowed):
                return False
    return True


@st.composite
def used_trees(draw: st.DrawFn) -> tuple[tuple[Queue, ...], Usage]:
    queues = draw(trees())
    keys = [(queue, model) for queue in leaves(queues) for model in MODELS]
    return queues, {key: draw(st.integers(0, 4)) for key in keys}


def start_at_once(queues: tuple[Queue, ...], usage: Usage) -> tuple[Snapshot, Schedule]:
    """Return a cluster, and a schedule in which jobs take just that from 0 to 1 s."""
    nodes = tuple(Node(name=model, gpus=(Gpu(model=model, count=100),)) for model in MODELS)
    jobs = tuple(
        job(f"{queue}-{model}", queue, amount, 1, models=(model,)) for (queue, model), amount in usage.items() if amount
    )
    bare = Snapshot(nodes=nodes, jobs=tuple(one for one in jobs))
    placed = placement.schedule(bare, solver="fifo-list")
    assert set(placed.stretches.start) <= {0.0}
    return Snapshot(nodes=nodes, jobs=jobs, queues=queues), placed


def modelled(queues: tuple[Queue, ...], usage: Usage) -> bool:
    """Return whether the model's rows have a solution with some usage."""
    m = pyo.ConcreteModel()
    m.u = pyo.Var(list(usage), within=pyo.NonNegativeReals)
    for key, amount in usage.items():
        m.u[key].fix(amount)
    rows.add(m, Quotas(queues), {key: m.u[key] for key in usage}, MODELS)
    m.least = pyo.Var(bounds=(0, 1))  # a solver wants something to minimise
    m.goal = pyo.Objective(expr=m.least)
    solver = Highs()
    solver.config.load_solution = False
    return bool(solver.solve(m).termination_condition.name == "optimal")


@given(used_trees())
@settings(max_examples=200)
def test_usage_is_accepted_as_the_definition_says(drawn: tuple[tuple[Queue, ...], Usage]) -> None:
    queues, usage = drawn
    quotas = Quotas(queues)
    for (queue, model), amount in usage.items():
        quotas.change(queue, {model: amount})
    assert (not quotas.over()) == accepted(queues, usage)
    for (queue, model), amount in reversed(usage.items()):
        quotas.change(queue, {model: amount}, -1)
    assert all(quotas.usage(queue.name, model) == 0 for queue in queues for model in (*MODELS, ALL))


@given(used_trees())
@settings(max_examples=20)
def test_model_and_judge_accept_the_same(drawn: tuple[tuple[Queue, ...], Usage]) -> None:
    queues, usage = drawn
    allowed = accepted(queues, usage)
    assert modelled(queues, usage) == allowed
    assert (not list(judge(*start_at_once(queues, usage)))) == allowed


@given(used_trees(), st.integers(0, 5), st.sampled_from([*MODELS]), st.integers(1, 4))
def test_what_fits_is_what_makes_nothing_worse(
    drawn: tuple[tuple[Queue, ...], Usage], which: int, model: str, amount: int
) -> None:
    queues, usage = drawn
    queue = leaves(queues)[which % len(leaves(queues))]
    quotas = Quotas(queues)
    for (other, one), used in usage.items():
        quotas.change(other, {one: used})
    before = {(short.queue, short.model): short.amount for short in quotas.over()}
    fits, rooms = quotas.fits(queue, {model: amount}), [quotas.room(queue, model), quotas.room(queue, ALL)]
    quotas.change(queue, {model: amount})
    after = {(short.queue, short.model): short.amount for short in quotas.over()}
    assert fits == all(worse <= before.get(row, 0) for row, worse in after.items())
    assert fits == all(room is None or amount <= room for room in rooms)


# --- over time ---------------------------------------------------------------------------------------------------


def job(
    name: str, queue: str, gpus: int, seconds: float, models: tuple[str, ...] = (), count: int = 1, **fields: Any
) -> Job:
    least, task = fields.pop("min_count", None), Task(gpus=gpus, gpu_models=models)
    group = TaskGroup(name="g", count=count, min_count=least, task=task)
    return Job(
        name=name, queue=queue, duration=Duration(seconds=seconds, levels={"node": 1}), groups=(group,), **fields
    )


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
    assert found.left_out[0].detail == "it asks for 1 cards of A too many for the quota of queue x"
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
        assert found.left_out[0].detail == "it asks for 1 cards of A too many for the quota of queue q"
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
