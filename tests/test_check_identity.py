"""Rows that name what is not there: jobs, groups, tasks, nodes and cards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from check_cases import Row, plan_of
from msgspec.structs import replace

from placement.check import check
from placement.snapshot import Gpu, Job, Node, Running, RunningTask, Snapshot, Task, TaskGroup


def job(name: str, **task: Any) -> Job:
    return Job(name=name, groups=(TaskGroup(name="g", count=2, min_count=1, task=Task(**task)),))


def on(node: str, *gpus: int, index: int = 0, name: str = "j", group: str = "g") -> Row:
    return (name, group, index, node, list(gpus))


OLD = Job(
    name="old",
    groups=(TaskGroup(name="g", task=Task(gpus=1)),),
    running=Running(tasks=(RunningTask(group="g", index=0, node="n-0", gpus=(2,)),)),
)
CLUSTER = Snapshot(
    nodes=(Node(name="n", count=3, gpus=(Gpu(model="A", count=2), Gpu(model="B"))), Node(name="m")),
    jobs=(job("j", gpus=2), replace(job("twin", cpu=1), count=2), OLD),
)

IDENTITY: list[tuple[Row, str]] = [
    (on("n-1", 0, 1, name="k"), "no job is named k"),
    (on("n-1", name="twin"), "no job is named twin"),  # there are twin-0 and twin-1
    (on("n-1", name="twin-2"), "no job is named twin-2"),
    (on("n-1", name="twin-01"), "no job is named twin-01"),
    (on("n-1", name="j-0"), "no job is named j-0"),
    (on("n-1", 0, name="old"), "job old runs already"),
    (on("n-1", 0, 1, group="h"), "job j has no tasks in a group h, its groups with tasks are g"),
    (on("n-1", 0, 1, index=2), "group g of job j has no task 2, it has 0 to 1"),
    (on("n-1", 0, 1, index=-1), "group g of job j has no task -1, it has 0 to 1"),
    (on("n-1", 0, 1, index=10**5000), "group g of job j has no task a number of 16610 bits"),
    (on("n", 0, 1), "no node is named n"),
    (on("n-3", 0, 1), "no node is named n-3"),
    (on("n--1", 0, 1), "no node is named n--1"),
    (on("n-\u0661", 0, 1), "no node is named n-\u0661"),  # an Arabic-Indic 1
    (on("n-" + "9" * 5000, 0, 1), "no node is named n-999"),
    (on("a\nb" * 99, 0, 1), "no node is named 'a\\nb"),
    (on("n-1", 0), "1 card listed, a task of group g takes 2"),
    (on("n-1", 0, 1, 2), "3 cards listed, a task of group g takes 2"),
    (on("n-1", 0, 3), "n-1 has no gpu 3, it has 0 to 2"),
    (on("n-1", 0, -1), "n-1 has no gpu -1, it has 0 to 2"),
    (on("m", 0, 1), "m has no gpu 0, it has none"),
    (on("n-1", 1, 1), "n-1 gpu 1 is listed twice"),
    (on("n-1", 1, 0), "gpus 1, 0 are listed, in ascending order that is 0, 1"),
    (on("n-1", 0, name="twin-0"), "1 card listed, a task of group g takes 0"),
]


def test_identity_of_a_right_plan() -> None:
    rows = [on("n-0", 0, 1), on("n-2", 0, 2, index=1), on("m", name="twin-0"), on("n-1", name="twin-1")]
    assert check(CLUSTER, plan_of(CLUSTER, rows)) == []


@pytest.mark.parametrize(("row", "text"), IDENTITY, ids=[text[:40] for _, text in IDENTITY])
def test_identity(row: Row, text: str) -> None:
    violations = check(CLUSTER, plan_of(CLUSTER, [on("n-2", name="twin-1"), row]))
    assert violations[0].rule == "identity"
    assert violations[0].path == "tasks[1]"
    assert violations[0].what.startswith(text)
    assert all("\n" not in str(violation) and len(str(violation)) < 400 for violation in violations)


def test_identity_of_a_task_placed_twice() -> None:
    (violation,) = check(CLUSTER, plan_of(CLUSTER, [on("n-1", 0, 1), on("n-2", 0, 1)]))
    assert str(violation) == "identity: tasks[1]: task j g 0 is placed by tasks[0] already, once is allowed"


def test_columns_of_different_length() -> None:
    cut: list[Callable[[Any], object]] = [
        lambda tasks: tasks.job.pop(),
        lambda tasks: tasks.group.append("g"),
        lambda tasks: tasks.index.clear(),
        lambda tasks: tasks.gpus.append([]),
    ]
    for change in cut:
        plan = plan_of(CLUSTER, [on("n-1", 0, 1)])
        change(plan.tasks)
        (violation,) = check(CLUSTER, plan)
        assert (violation.rule, violation.path) == ("identity", "tasks")
        assert "the columns differ in length" in violation.what
