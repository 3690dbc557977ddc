"""Jobs that never start for the number of their tasks: what is said of them, that it is true, and both sides agree."""

from __future__ import annotations

import time

import pytest
from brute import TooLarge, optimum
from check_cases import plan_of
from msgspec.structs import replace
from strategies import random_tied_tiny, random_tiny
from zoned_strategies import random_zoned

import placement as pl
from placement.check import check
from placement.compile import compile as compile_snapshot
from placement.instance import Assignment
from placement.pending import pending
from placement.snapshot import (
    DomainLimit,
    Gpu,
    Job,
    Node,
    Running,
    RunningTask,
    Slice,
    Snapshot,
    Spread,
    Task,
    TaskGroup,
    Topology,
)

NODES = (
    Node(name="n", count=2, cpu=64, position={"rack": "r1"}, gpus=(Gpu(model="A", count=4, memory="40Gi"),)),
    Node(name="m", cpu=4, position={"rack": "r2"}, gpus=(Gpu(model="A", count=4, memory="40Gi"),)),
    Node(name="x", gpus=(Gpu(model="A"),)),
)


def job(count: int, topology: Topology | None = None, minimum: int | None = None, **task: object) -> Job:
    asked = Task(**{"gpus": 1, **task})  # type: ignore[arg-type]
    return Job(name="j", groups=(TaskGroup(name="w", count=count, min_count=minimum, task=asked, topology=topology),))


def said(job: Job, limits: tuple[DomainLimit, ...] = (), nodes: tuple[Node, ...] = NODES) -> tuple[str, str]:
    """Return what a plan says of a job that is alone; the judge must agree, and accept nothing else."""
    snapshot = Snapshot(topology=("rack",), nodes=nodes, jobs=(job,), limits=limits)
    plan = pl.solve(snapshot, solver="first-fit")
    if not plan.pending:
        assert "never" not in accepted(snapshot)
        return "", ""
    assert accepted(snapshot) >= {plan.pending[0].reason}
    return plan.pending[0].reason, plan.pending[0].detail


def accepted(snapshot: Snapshot) -> set[str]:
    """Return the reasons that the judge accepts of the one job, where it is left out."""
    plan = plan_of(snapshot, [])
    (entry,) = plan.pending
    reasons = ("never", "not_wanted", "no_room")
    return {r for r in reasons if not check(snapshot, replace(plan, pending=[replace(entry, reason=r)]))}


def within(level: str) -> Topology:
    return Topology(required=level)


NEVER: list[tuple[Job, str]] = [
    (job(5, within("node")), "topology: w needs 5 tasks in one node; the largest, n-0, holds 4 when empty"),
    (job(9, within("rack")), "topology: w needs 9 tasks in one rack; the largest, r1, holds 8 when empty"),
    (job(14), "w needs 14 tasks; all nodes together hold 13 when empty"),
    (job(3, gpus=4, cpu=5), "w needs 3 tasks; all nodes together hold 2 when empty"),
    (
        job(25, within("node"), gpu_share="250m", gpu_memory="15Gi"),
        "topology: w needs 25 tasks in one node; the largest, n-0, holds 8 when empty",
    ),
    (
        job(10, Topology(slices=(Slice(level="node", sizes=(5,)),))),
        "topology: w has a slice of 5 tasks in one node; the largest, n-0, holds 4 when empty",
    ),
    (
        job(12, Topology(slices=(Slice(level="node", sizes=(3,)),))),
        "topology: w needs 4 slices of 3 tasks, each in one node; there is room for 3 when empty",
    ),
    (
        job(3, Topology(spread=(Spread(level="rack", min_domains=3),))),
        "topology: w must lie in 3 domains of level rack at least; 2 could take one of its tasks when empty",
    ),
    (
        job(9, Topology(spread=(Spread(level="rack", max_per_domain=4),))),
        "topology: w needs 9 tasks with 4 at most in one rack; there is room for 8 when empty",
    ),
]


@pytest.mark.parametrize(("job", "detail"), NEVER)
def test_what_is_said(job: Job, detail: str) -> None:
    assert said(job) == ("never", detail)


MAY = [
    job(4, within("node")),
    job(8, within("rack")),
    job(99, within("rack"), 8),
    job(13),
    job(8, within("node"), gpu_share="250m", gpu_memory="15Gi"),
    job(9, Topology(slices=(Slice(level="node", sizes=(3,)),))),
    job(2, Topology(spread=(Spread(level="rack", min_domains=2),))),
    job(8, Topology(spread=(Spread(level="rack", max_per_domain=4),))),
]


@pytest.mark.parametrize("job", MAY)
def test_one_less_may_run(job: Job) -> None:
    assert said(job)[0] != "never"


def test_caps() -> None:
    rack, everything = DomainLimit(level="rack", domain="r1", gpus=1), DomainLimit(level="cluster", gpus=3)
    inside = NODES[:1]
    one = job(1, gpus=2)
    assert said(one, (rack,), inside) == ("never", "limits: one task of w takes 2 cards, rack r1 allows 1 card")
    assert said(job(1), (rack,), inside) == ("", "")
    assert said(one, (rack,)) == ("", "")
    assert said(job(4), (everything,)) == (
        "never",
        "limits: w needs 4 tasks; the caps allow 3 even without other work",
    )
    assert said(job(3), (everything,))[0] == ""
    assert said(job(5, within("rack")), (rack,)) == (
        "never",
        "limits: w needs 5 tasks in one rack; the caps allow 4 even without other work",
    )
    assert said(job(7), (rack,))[0] == "never"  # one in r1, four in r2, one on x
    assert said(job(6), (rack,))[0] == ""


def test_running_work_takes_nothing_of_what_could_ever_be() -> None:
    old = Job(
        name="old",
        groups=(TaskGroup(name="g", task=Task(gpus=1)),),
        running=Running(tasks=(RunningTask(group="g", index=0, node="n-0", gpus=(0,)),)),
    )
    limit = DomainLimit(level="cluster", gpus=2)
    snapshot = Snapshot(topology=("rack",), nodes=NODES, jobs=(old, job(2)), limits=(limit,))
    plan = pl.solve(snapshot, solver="first-fit")
    assert [entry.reason for entry in plan.pending] == ["no_room"]
    assert accepted(snapshot) == {"no_room"}


def test_groups_that_are_needed_count_and_others_do_not() -> None:
    def nested(min_groups: int | None) -> Job:
        parts = (TaskGroup(name="a", count=5, task=Task(gpus=1)), TaskGroup(name="b", task=Task(gpus=1)))
        topology = Topology(required="node")
        return Job(name="j", groups=(TaskGroup(name="g", groups=parts, min_groups=min_groups, topology=topology),))

    assert said(nested(None))[1] == ("topology: g/a needs 5 tasks in one node; the largest, n-0, holds 4 when empty")
    assert said(nested(1))[0] != "never"


# --- any snapshot ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [random_tiny, random_tied_tiny, random_zoned])
def test_no_plan_starts_what_never_starts_and_both_sides_agree(make: object) -> None:
    assert callable(make)
    counted = 0
    for seed in range(150):
        snapshot: Snapshot = make(seed)
        for one in snapshot.jobs:
            if one.running is None:
                counted += _holds(replace(snapshot, jobs=(replace(one, count=1),)))
    assert counted > 5  # jobs of which each task fits


def _holds(alone: Snapshot) -> bool:
    """Return whether a job can never start for the number of its tasks; what is said of it must be true."""
    (found,) = pending(compile_snapshot(alone), Assignment.empty())
    reasons = accepted(alone)
    assert ("never" in reasons) == (found.reason == "never")
    assert found.reason in reasons
    if found.reason != "never":
        return False
    try:
        (best,) = optimum(alone, ("tasks",))
        assert best.value == 0, found.detail
    except TooLarge:
        pass
    return not found.detail.startswith("no node could take a task of ")


# --- objectives -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("objectives", "reason"),
    [
        (("nodes",), "not_wanted"),
        (("nodes", "value"), "not_wanted"),
        (("whole_nodes", "value"), "not_wanted"),
        (("run_time", "nodes"), "not_wanted"),
        (("run_time", "value"), ""),  # no job states how long it runs
        (("value", "nodes"), ""),
    ],
)
def test_what_a_plan_leaves_out_by_choice(objectives: tuple[str, ...], reason: str) -> None:
    snapshot = Snapshot(topology=("rack",), nodes=NODES, jobs=(job(2),))
    plan = pl.solve(snapshot, objectives=objectives)
    assert plan.status == "proven"
    assert [entry.reason for entry in plan.pending] == ([reason] if reason else [])
    for entry in plan.pending:
        assert entry.detail == "left out: the plan's objectives put nodes before what its tasks serve".replace(
            "nodes", objectives[0] if objectives[0] != "run_time" else "nodes"
        )
        wrong = replace(plan, pending=[replace(entry, reason="no_room")])
        assert [violation.path for violation in check(snapshot, wrong)] == ["pending[0].reason"]


def test_worthless_jobs_are_not_wanted_by_value_alone() -> None:
    snapshot = Snapshot(nodes=(Node(name="n"),), jobs=(job(1, gpus=0, cpu=1),))
    (entry,) = pending(compile_snapshot(snapshot), Assignment.empty(), ("value",))
    assert (entry.reason, entry.detail) == (
        "not_wanted",
        "left out: none of the plan's objectives is served by its tasks",
    )


# --- size -----------------------------------------------------------------------------------------------------


def test_large_snapshots_are_quick() -> None:
    nodes = tuple(
        Node(name=f"n{i}", count=50, cpu=64 + i, position={"rack": f"r{i}"}, gpus=(Gpu(model="A", count=8),))
        for i in range(2000)
    )
    jobs = tuple(
        replace(job(401 + i % 400, within("rack"), cpu=1 + i % 8), name=f"j{i}", weight=1 + i) for i in range(800)
    )
    instance = compile_snapshot(Snapshot(topology=("rack",), nodes=nodes, jobs=jobs))
    began = time.process_time()
    assert {entry.reason for entry in pending(instance, Assignment.empty())} == {"never"}
    assert time.process_time() - began < 5
