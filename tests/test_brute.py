"""The brute force is itself tried on snapshots solved by hand."""

from __future__ import annotations

import itertools
from fractions import Fraction

import brute
import brute_facts
import pytest
from strategies import OBJECTIVES, random_tiny

from placement.compile import compile as compile_snapshot
from placement.gang import Branch, Leaf, runs
from placement.snapshot import (
    DomainLimit,
    Gpu,
    Job,
    Node,
    Running,
    RunningTask,
    Snapshot,
    Task,
    TaskGroup,
)


def one(name: str, task: Task, count: int = 1, **more: object) -> Job:
    return Job(name=name, groups=(TaskGroup(name="g", count=count, task=task),), **more)  # type: ignore[arg-type]


def cluster(*cards: int, **more: object) -> tuple[Node, ...]:
    return tuple(
        Node(name=f"n{i}", gpus=(Gpu(model="A", count=c),) if c else (), **more)  # type: ignore[arg-type]
        for i, c in enumerate(cards)
    )


def values(snapshot: Snapshot, *objectives: str) -> list[Fraction]:
    return [value for _, _, value in brute.optimum(snapshot, objectives)]


def test_the_textbook_case() -> None:
    """Two of four cards of A are busy, B is empty: the small job belongs on A so that the large one fits B."""
    busy = Job(
        name="busy",
        groups=(TaskGroup(name="g", task=Task(gpus=2)),),
        running=Running(tasks=(RunningTask(group="g", index=0, node="n0", gpus=(0, 1)),)),
    )
    jobs = (busy, one("small", Task(gpus=2)), one("large", Task(gpus=4)))
    assert values(Snapshot(nodes=cluster(4, 4), jobs=jobs), "value", "nodes") == [6000, 2]
    assert values(Snapshot(nodes=cluster(4, 4), jobs=jobs[:2]), "whole_nodes", "tasks") == [1, 1]


def test_shares_do_not_add_up_across_cards() -> None:
    # 0.6 a task: one a card; 0.4 is left on each, and no third task fits
    jobs = (Job(name="a", count=3, groups=(TaskGroup(name="g", task=Task(gpus=1, gpu_share=0.6)),)),)
    assert values(Snapshot(nodes=cluster(2), jobs=jobs), "value", "tasks") == [1200, 2]


def test_a_gang_is_all_or_nothing() -> None:
    jobs = (one("gang", Task(gpus=1), count=3), one("single", Task(gpus=1)))
    assert values(Snapshot(nodes=cluster(2), jobs=jobs), "value") == [1000]
    assert values(Snapshot(nodes=cluster(3), jobs=jobs), "value") == [3000]
    elastic = Job(name="gang", groups=(TaskGroup(name="g", count=3, min_count=2, task=Task(gpus=1)),))
    assert values(Snapshot(nodes=cluster(2), jobs=(elastic, jobs[1])), "value") == [2000]


def test_priorities_come_first() -> None:
    jobs = (one("low", Task(gpus=4)), one("high", Task(gpus=1), priority=5))
    found = brute.optimum(Snapshot(nodes=cluster(4), jobs=jobs), ["value"])
    assert found == [("value", 5, Fraction(1000)), ("value", 0, Fraction(0))]


def test_limits_count_running_work() -> None:
    busy = Job(
        name="busy",
        groups=(TaskGroup(name="g", task=Task(gpus=2)),),
        running=Running(tasks=(RunningTask(group="g", index=0, node="n0", gpus=(0, 1)),)),
    )
    jobs = (busy, Job(name="j", count=3, groups=(TaskGroup(name="g", task=Task(gpus=1)),)))
    for limit, expected in ((4, 2), (3, 1), (1, 0)):
        limits = (DomainLimit(level="cluster", gpus=limit),)
        assert values(Snapshot(nodes=cluster(4, 4), jobs=jobs, limits=limits), "tasks") == [expected]


def test_fragmentation_by_hand() -> None:
    """One card, tasks of 0.6 and 0.5 wanted: with 0.6 placed, 0.4 is lost to both; with 0.5, 0.5 is lost to 0.6."""
    jobs = (one("a", Task(gpus=1, gpu_share=0.6)), one("b", Task(gpus=1, gpu_share=0.5)))
    assert values(Snapshot(nodes=cluster(1), jobs=jobs), "fragmentation") == [0]  # nothing placed, nothing lost
    assert values(Snapshot(nodes=cluster(1), jobs=jobs), "tasks", "fragmentation") == [1, 250]
    # with CPU for one task only, the rest of the card is lost to both in either case
    assert values(Snapshot(nodes=cluster(1, pods=1), jobs=jobs), "tasks", "fragmentation") == [1, 400]


def test_nothing_at_all() -> None:
    assert brute.optimum(Snapshot(), OBJECTIVES) == [
        ("tasks", None, Fraction(0)),
        ("fragmentation", None, Fraction(0)),
        ("whole_nodes", None, Fraction(0)),
        ("nodes", None, Fraction(0)),
    ]


@pytest.mark.parametrize("seed", range(60))
def test_gang_totals_are_those_of_the_engine(seed: int) -> None:
    """Every choice of tasks by copy, judged by `placement.gang.runs`, gives the same totals."""
    snapshot = random_tiny(seed)
    instance = compile_snapshot(snapshot)
    for job_class in instance.job_classes:
        job = snapshot.jobs[instance.job_spec[job_class.jobs[0]]]
        copies = [leaf for leaf in job_class.leaves for _ in range(leaf.copies)]
        if sum(leaf.count for leaf in copies) > 8:
            continue
        expected = set()
        for choice in itertools.product(*(range(leaf.count + 1) for leaf in copies)):
            placed: list[list[int]] = [[] for _ in job_class.leaves]
            for leaf, count in zip(copies, choice, strict=True):
                placed[leaf.leaf].append(count)
            if not any(choice) or runs(job_class.root, placed):
                expected.add(tuple(map(sum, placed)))
        assert brute_facts.job_totals(job, len(job_class.leaves)) == expected


def test_the_engine_counts_gangs_as_told() -> None:
    """Two of three children are enough for a member, and one member of two for the group."""
    leaf = [Leaf(f"r/{i}", i, 0, 1, 1, 2, 1) for i in range(3)]
    root = Branch("", (Branch("r", tuple(leaf), 2, 1, 2),), 1, 1, 1)
    assert runs(root, [[1, 0], [1, 0], [0, 0]])
    assert not runs(root, [[1, 0], [0, 1], [0, 0]])
    job = Job(
        name="j",
        groups=(
            TaskGroup(
                name="r",
                count=2,
                min_count=1,
                min_groups=2,
                groups=tuple(TaskGroup(name=str(i), task=Task()) for i in range(3)),
            ),
        ),
    )
    totals = brute_facts.job_totals(job, 3)
    assert (1, 1, 0) in totals
    assert (1, 0, 0) not in totals
    assert (2, 2, 2) in totals
    assert (2, 1, 1) in totals
    assert (2, 0, 2) in totals
    assert (2, 0, 1) not in totals
