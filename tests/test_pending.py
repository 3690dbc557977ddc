"""Why jobs wait: what can never start is told from what finds no room."""

from collections import Counter

import numpy as np
import pytest
from strategies import random_tiny

from placement.check import check
from placement.compile import compile as compile_snapshot
from placement.engine import solve
from placement.instance import Assignment
from placement.pending import BESIDE, LYING, LYING_PARTLY, pending
from placement.refusals import Refusals, cards_refusal
from placement.rules import DIMENSIONS, NODE_FILTERS
from placement.snapshot import (
    Gpu,
    Job,
    Node,
    Running,
    RunningTask,
    Snapshot,
    Spread,
    Task,
    TaskGroup,
    Topology,
)


def reasons(snapshot: Snapshot, assignment: Assignment | None = None) -> dict[str, tuple[str, int, int]]:
    instance = compile_snapshot(snapshot)
    found = pending(instance, assignment or Assignment.empty())
    return {p.job: (p.reason, p.placed, p.wanted) for p in found}


def job(name: str, task: Task, count: int = 1, members: int = 1) -> Job:
    return Job(name=name, count=count, groups=(TaskGroup(name="w", count=members, task=task),))


NODE = Node(name="n", count=2, cpu=8, gpus=(Gpu(model="A", count=4, memory="40Gi"),))


def test_never_is_told_from_no_room() -> None:
    busy = Job(
        name="busy",
        groups=(TaskGroup(name="w", count=2, task=Task(gpus=4)),),
        running=Running(
            tasks=tuple(RunningTask(group="w", index=i, node=f"n-{i}", gpus=(0, 1, 2, 3)) for i in range(2))
        ),
    )
    snapshot = Snapshot(
        nodes=(NODE,),
        jobs=(
            busy,
            job("fits-when-idle", Task(gpus=4)),
            job("five-cards", Task(gpus=5)),
            job("cpu", Task(cpu=9)),
            job("model", Task(gpus=1, gpu_models=("B",))),
            job("memory", Task(gpus=1, gpu_memory="41Gi")),
            job("label", Task(node_selector={"a": "b"})),
        ),
    )
    found = reasons(snapshot)
    assert found.pop("fits-when-idle") == ("no_room", 0, 1)
    assert set(found) == {"five-cards", "cpu", "model", "memory", "label"}
    assert set(found.values()) == {("never", 0, 1)}


def test_details_name_the_cause_and_count_the_nodes() -> None:
    snapshot = Snapshot(nodes=(NODE,), jobs=(job("memory", Task(gpus=1, gpu_memory="41Gi")),))
    instance = compile_snapshot(snapshot)
    (found,) = pending(instance, Assignment.empty())
    assert found.detail == "no node could take a task of w even without other work (2: too little device memory)"


def test_rounded_amounts_do_not_make_a_false_never() -> None:
    # 2,048 nodes of 2^40 bytes and a request of 3: the unit is rounded to fit 64 bits, and requests round up
    node = Node(name="n", count=2048, memory=2**40)
    snapshot = Snapshot(nodes=(node,), jobs=(job("all", Task(memory=2**40)), job("three", Task(memory=3))))
    assert not compile_snapshot(snapshot).exact
    assert {reason for reason, _, _ in reasons(snapshot).values()} == {"no_room"}


def test_no_nodes() -> None:
    assert reasons(Snapshot(jobs=(job("a", Task()),)))["a"] == ("never", 0, 1)


def test_an_optional_group_that_never_fits_is_no_reason() -> None:
    groups = (
        TaskGroup(
            name="any",
            min_groups=1,
            groups=(TaskGroup(name="large", task=Task(gpus=9)), TaskGroup(name="small", task=Task(gpus=1))),
        ),
    )
    assert reasons(Snapshot(nodes=(NODE,), jobs=(Job(name="j", groups=groups),)))["j"] == ("no_room", 0, 2)


def test_partly_running_jobs_are_listed_with_their_counts() -> None:
    elastic = Job(name="e", count=2, groups=(TaskGroup(name="w", count=3, min_count=1, task=Task(gpus=1)),))
    snapshot = Snapshot(nodes=(NODE,), jobs=(elastic,))
    rows = [(0, 0, 0, 0, (0,)), (0, 0, 1, 0, (1,)), (1, 0, 0, 1, (0,)), (1, 0, 1, 1, (1,)), (1, 0, 2, 1, (2,))]
    assert reasons(snapshot, Assignment.of(rows)) == {"e-0": ("no_room", 2, 3)}


def test_tied_jobs_have_details_of_their_own() -> None:
    # an empty cluster of one node holds both tasks, but at most one in a domain leaves one over
    def tied(name: str, **spread: int) -> Job:
        topology = Topology(spread=(Spread(level="node", **spread),))
        return Job(name=name, groups=(TaskGroup(name="w", count=2, min_count=1, task=Task(gpus=1), topology=topology),))

    node = Node(name="n", gpus=(Gpu(model="A", count=4),))
    jobs = (tied("two", max_per_domain=1), tied("one-each", max_per_domain=1), job("free", Task(gpus=4)))
    snapshot = Snapshot(nodes=(node,), jobs=jobs)
    found = pending(compile_snapshot(snapshot), Assignment.of([(1, 0, 0, 0, (0,))]))
    assert [(entry.job, entry.reason, entry.placed, entry.detail) for entry in found] == [
        ("two", "no_room", 0, LYING[1]),
        ("one-each", "no_room", 1, LYING_PARTLY[1]),
        ("free", "no_room", 0, f"{BESIDE[1]} (1: too few cards are free)"),
    ]
    plan = solve(snapshot, solver="first-fit")
    assert {entry.job: entry.detail for entry in plan.pending}["two"] == LYING_PARTLY[1]
    assert check(snapshot, plan) == []


def test_everything_placed_leaves_nothing_pending() -> None:
    snapshot = Snapshot(nodes=(NODE,), jobs=(job("a", Task(gpus=1)),))
    assert reasons(snapshot, Assignment.of([(0, 0, 0, 1, (2,))])) == {}
    assert np.array_equal(Assignment.empty().offset, [0])


def first_refusal(job: Job, task: Task, node: Node) -> str:
    """Return the first reason why one node refuses a task, rule by rule; empty if it takes it."""
    for rule in NODE_FILTERS:
        text = rule.refusal(rule.task_key(job, task), rule.node_key(node))
        if text:
            return text
    for dimension in DIMENSIONS:
        for name, amount in dimension.demand(task).items():
            have = dimension.capacity(node).get(name, 0)
            if have is not None and amount > have:
                few = {"nics": "too few NICs", "pods": "too few pods"}
                return few.get(name, f"too little {name.removeprefix('extended:')}")
    return cards_refusal(job, task, node) or ""


@pytest.mark.parametrize("seed", range(60))
def test_reasons_by_kind_are_those_of_each_node(seed: int) -> None:
    snapshot = random_tiny(seed)
    refusals = Refusals(snapshot.nodes, NODE_FILTERS)
    count = np.array([node.count for node in snapshot.nodes], dtype=np.int64)
    for job in snapshot.jobs:
        for group in job.groups:
            if group.task is not None:
                causes: Counter[str] = Counter()
                for node in snapshot.nodes:
                    causes[first_refusal(job, group.task, node)] += node.count
                due = "; ".join(f"{number}: {cause}" for cause, number in causes.most_common(4))
                assert refusals.listed(job, group.task, count) == due
                assert refusals.takes(job, group.task) == ("" in causes)


def test_nodes_of_one_kind_are_counted_together_and_labels_that_are_asked_for_tell_them_apart() -> None:
    # three nodes with a label of their own; the task asks for the label of one of them, and for too much memory
    nodes = tuple(Node(name=f"n{i}", memory="1Gi", labels={"hostname": f"n{i}"}) for i in range(3))
    task = Task(memory="2Gi", node_selector={"hostname": "n1"})
    instance = compile_snapshot(Snapshot(nodes=nodes, jobs=(job("a", task), job("b", Task(memory="2Gi")))))
    assert [entry.detail.partition(" (")[2] for entry in pending(instance, Assignment.empty())] == [
        "2: label hostname=n1 is missing; 1: too little memory)",
        "3: too little memory)",
    ]
