"""The judge's columns against sums written out task by task, in fractions."""

from __future__ import annotations

import random
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from check_cases import Row, assignment_of, pending_of, plan_of, tasks_of, valid_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from strategies import Source, random_tiny

from placement.check import check, objective, usage
from placement.check.case.case import Placed
from placement.check.exact import LARGEST, numbered, sums, whole
from placement.check.facts.facts import Facts
from placement.compile import compile as compile_snapshot
from placement.instance import Assignment
from placement.naming import name_tasks
from placement.pending import pending
from placement.snapshot import Gpu, Job, Node, Running, RunningTask, Snapshot, Task, TaskGroup
from placement.units import MAX_BASE, Quantity, exact

# --- whole numbers --------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-(2**70), 2**70) | st.integers(-9, 9)), max_size=30))
def test_sums_are_those_of_python(pairs: list[tuple[int, int]]) -> None:
    due = [sum(amount for place, amount in pairs if place == number) for number in range(5)]
    amounts = whole([amount for _, amount in pairs], len(pairs))
    assert sums(np.array([place for place, _ in pairs], dtype=np.int64), amounts, 5).tolist() == due


def test_64_bits_are_used_only_where_no_sum_can_overflow() -> None:
    assert whole([LARGEST // 3], 2).dtype == np.int64
    assert whole([LARGEST // 3], 4).dtype == object
    assert whole([-LARGEST], 1).dtype == object
    assert whole([1], 1, beside=LARGEST).dtype == object


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.sampled_from([0, 2**70])), min_size=1, max_size=20))
def test_equal_rows_have_equal_numbers(rows: list[tuple[int, int, int]]) -> None:
    number, example = numbered([whole(column, 1) for column in zip(*rows, strict=True)])
    assert [rows[example[n]] for n in number.tolist()] == rows
    assert sorted(set(number.tolist())) == list(range(len(set(rows))))


# --- loads ----------------------------------------------------------------------------------------------------

AMOUNTS: list[Quantity] = [0, 1, "1n", "333m", 0.1, 0.125, "7Gi", MAX_BASE, MAX_BASE - 1, 2**60, float(2**60)]
SHARES: list[Quantity] = [1, 0.5, "1n", "333m", 0.1]
amounts = st.sampled_from(AMOUNTS)
tasks = st.builds(
    Task,
    gpus=st.integers(0, 2),
    gpu_share=st.sampled_from(SHARES),
    gpu_memory=amounts,
    cpu=amounts,
    memory=amounts,
    extended=st.dictionaries(st.sampled_from(["a", "b"]), amounts, max_size=2),
)
cluster = Snapshot(nodes=(Node(name="n", count=2, gpus=(Gpu(model="A", count=3),)), Node(name="m", cordoned=True)))


@st.composite
def loads(draw: st.DrawFn) -> tuple[Snapshot, list[Row]]:
    """Draw tasks on a small cluster, some of them running; they may overfill it."""
    jobs, rows = [], []
    for number, task in enumerate(draw(st.lists(tasks, max_size=6))):
        task = replace(task, gpu_share=task.gpu_share if task.gpus else None)
        name, count = f"j{number}", draw(st.integers(1, 3))
        job = Job(name=name, groups=(TaskGroup(name="g", count=count, task=task),))
        node = draw(st.sampled_from(["n-0", "n-1"] if task.gpus else ["n-0", "n-1", "m"]))
        gpus = [draw(st.sampled_from([[0, 1], [1, 2], [0, 2]]))[: task.gpus] for _ in range(count)]
        if draw(st.booleans()):
            places = tuple(RunningTask(group="g", index=i, node=node, gpus=tuple(gpus[i])) for i in range(count))
            job = replace(job, running=Running(tasks=places))
        else:
            rows += [(name, "g", i, node, gpus[i]) for i in range(count)]
        jobs.append(job)
    return replace(cluster, jobs=tuple(jobs)), rows


def plainly(snapshot: Snapshot, rows: list[Row]) -> dict[tuple[str, str, object], Fraction]:
    """Return what is taken, task by task: by node, resource and card."""
    task_of = {job.name: job.groups[0].task for job in snapshot.jobs}
    places = [(name, node, gpus) for name, _, _, node, gpus in rows]
    for job in snapshot.jobs:
        places += [(job.name, t.node, list(t.gpus)) for t in (job.running.tasks if job.running else ())]
    taken: dict[tuple[str, str, object], Fraction] = defaultdict(Fraction)
    for name, node, gpus in places:
        task = task_of[name]
        assert task is not None
        taken[node, "cpu", None] += exact(task.cpu)
        taken[node, "memory", None] += exact(task.memory)
        taken[node, "pods", None] += 1
        for resource, amount in task.extended.items():
            taken[node, f"extended:{resource}", None] += exact(amount)
        for device in gpus:
            taken[node, "gpus", device] += exact(1 if task.gpu_share is None else task.gpu_share)
            taken[node, "gpu_memory", device] += exact(0 if task.gpu_memory is None else task.gpu_memory)
    return {key: amount for key, amount in taken.items() if amount}


@settings(max_examples=200, deadline=None)
@given(loads())
def test_loads_are_the_plain_sums(case: tuple[Snapshot, list[Row]]) -> None:
    snapshot, rows = case
    facts = Facts(snapshot)
    load = Placed.of(facts, tasks_of(rows)).load
    found: dict[tuple[str, str, object], Fraction] = {}
    for resource in load.resources:
        column = load.demand(resource)
        found |= {(load.name(n), resource, None): facts.base(resource, column[n]) for n in range(len(load))}
    for card in range(len(load.card)):
        node, device, _, _ = load.where(card)
        found[node, "gpus", device] = facts.base("gpus", load.share[card])
        found[node, "gpu_memory", device] = facts.base("gpu_memory", load.memory[card])
    assert {key: amount for key, amount in found.items() if amount} == plainly(snapshot, rows)


# --- kinds ----------------------------------------------------------------------------------------------------


def test_a_float_is_told_from_the_whole_number_it_equals() -> None:
    # 2.0**60 is written 1.152921504606847e+18, which is 24 more than 2**60; as Python's numbers the two are equal
    nodes = (Node(name="whole", memory=2**60), Node(name="float", memory=float(2**60)))
    job = Job(name="j", count=2, groups=(TaskGroup(name="g", task=Task(memory=2**60 + 20)),))
    snapshot = Snapshot(nodes=nodes, jobs=(job,))
    rows: list[Row] = [("j-0", "g", 0, "whole", []), ("j-1", "g", 0, "float", [])]
    assert [(v.rule, v.path) for v in check(snapshot, plan_of(snapshot, rows))] == [("capacity", "nodes[0]")]


@pytest.mark.parametrize("seed", range(30))
def test_entries_one_by_one_are_worth_what_counted_ones_are(seed: int) -> None:
    snapshot = random_tiny(seed, max_tasks=12)
    rows = valid_rows(Source(random.Random(seed).randint), snapshot)
    nodes = [
        replace(node, name=name, count=1, labels={**node.labels, "hostname": name})
        for node in snapshot.nodes
        for name in ([node.name] if node.count == 1 else [f"{node.name}-{i}" for i in range(node.count)])
    ]
    jobs = [
        replace(job, name=name, count=1)
        for job in snapshot.jobs
        for name in ([job.name] if job.count == 1 else [f"{job.name}-{i}" for i in range(job.count)])
    ]
    listed = replace(snapshot, nodes=tuple(nodes), jobs=tuple(jobs))
    measures = ("value", "tasks", "fragmentation", "whole_nodes", "nodes")
    assert objective(listed, tasks_of(rows), measures) == objective(snapshot, tasks_of(rows), measures)
    assert usage(listed, tasks_of(rows)) == usage(snapshot, tasks_of(rows))
    assert check(listed, plan_of(listed, rows)) == []


def test_jobs_of_one_gang_are_refused_one_by_one() -> None:
    job = Job(name="j", count=3, groups=(TaskGroup(name="g", count=2, task=Task()),))
    snapshot = Snapshot(nodes=(Node(name="n"),), jobs=(job,))
    rows: list[Row] = [
        ("j-2", "g", 0, "n", []),
        ("j-1", "g", 0, "n", []),
        ("j-1", "g", 1, "n", []),
        ("j-0", "g", 1, "n", []),
    ]
    found = [violation.what for violation in check(snapshot, plan_of(snapshot, rows)) if violation.rule == "gang"]
    due = "group g has 1 task running, at least 2 or no task at all"
    assert found == [f"job j-2: {due}", f"job j-0: {due}"]


# --- assignment to plan ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_names_are_those_of_the_indices(seed: int) -> None:
    snapshot = random_tiny(seed, max_tasks=12)
    rows = sorted(valid_rows(Source(random.Random(seed).randint), snapshot))
    instance = compile_snapshot(snapshot)
    found = name_tasks(instance, assignment_of(instance, rows))
    assert sorted(found) == rows


@pytest.mark.parametrize("seed", range(80))
def test_reasons_are_those_of_the_second_opinion(seed: int) -> None:
    snapshot = random_tiny(seed)
    found = {entry.job: entry for entry in pending(compile_snapshot(snapshot), Assignment.empty())}
    due = {entry.job: entry.reason for entry in pending_of(snapshot, [])}
    assert found.keys() == due.keys()
    for name, entry in found.items():
        # too many tasks for all of an empty cluster are no part of that opinion
        counted = entry.reason == "never" and not entry.detail.startswith("no node could take a task of ")
        assert due[name] != "never" if counted else due[name] == entry.reason
