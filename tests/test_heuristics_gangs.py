"""Gangs under greedy rules: all or nothing, then as many as fit."""

from __future__ import annotations

import pytest

from placement.compile import compile as compile_snapshot
from placement.gang import runs
from placement.heuristics import HEURISTICS
from placement.instance import Assignment, Instance
from placement.snapshot import DomainLimit, Gpu, Job, Node, Snapshot, Task, TaskGroup
from placement.solver import Limits

CARD = Task(gpus=1)


def cluster(*cards: int, **more: object) -> tuple[Node, ...]:
    return tuple(Node(name=f"n{i}", gpus=(Gpu(model="A", count=n),), **more) for i, n in enumerate(cards))  # type: ignore[arg-type]


def solve(instance: Instance, start: Assignment | None = None, rule: str = "first-fit") -> Assignment:
    return HEURISTICS[rule].solve(instance, objectives=(), limits=Limits(), start=start).assignment


def counts(instance: Instance, assignment: Assignment) -> list[list[list[int]]]:
    """Return placed tasks by job, leaf and copy; every job must be one that may run, or be empty."""
    found = []
    for job in range(instance.jobs):
        job_class = instance.job_classes[instance.job_class[job]]
        placed = [[0] * leaf.copies for leaf in job_class.leaves]
        numbers = set()
        for row in range(len(assignment)):
            if assignment.job[row] == job:
                leaf, number = int(assignment.leaf[row]), int(assignment.task[row])
                placed[leaf][number // job_class.leaves[leaf].count] += 1
                numbers.add((leaf, number))
        assert len(numbers) == sum(map(sum, placed))
        if numbers:
            assert runs(job_class.root, placed)
        found.append(placed)
    return found


@pytest.mark.parametrize("rule", HEURISTICS)
def test_a_gang_below_its_minimum_leaves_nothing_behind(rule: str) -> None:
    # 3 cards: the gang of 4 gets none of them, the job after it gets one, the gang of 2 the rest
    jobs = (
        Job(name="four", groups=(TaskGroup(name="w", count=4, task=CARD),)),
        Job(name="one", groups=(TaskGroup(name="w", task=CARD),)),
        Job(name="two", groups=(TaskGroup(name="w", count=2, task=CARD),)),
    )
    instance = compile_snapshot(Snapshot(nodes=cluster(2, 1), jobs=jobs))
    assert counts(instance, solve(instance, rule=rule)) == [[[0]], [[1]], [[2]]]


def test_growth_beyond_the_minimum_ends_where_room_ends() -> None:
    group = TaskGroup(name="w", count=5, min_count=2, task=CARD)
    instance = compile_snapshot(Snapshot(nodes=cluster(2, 1), jobs=(Job(name="j", groups=(group,)),)))
    assert counts(instance, solve(instance)) == [[[3]]]


def test_every_group_of_a_job_must_start() -> None:
    # the workers fit, the leader needs CPU that no node has
    groups = (TaskGroup(name="workers", count=2, task=CARD), TaskGroup(name="leader", task=Task(cpu=9)))
    instance = compile_snapshot(Snapshot(nodes=cluster(2, cpu=4), jobs=(Job(name="j", groups=groups),)))
    assert counts(instance, solve(instance)) == [[[0], [0]]]


def test_copies_of_nested_groups() -> None:
    # A replica is a leader (CPU only) and two workers. 5 cards hold 2 replicas whole; the third finds 1 card.
    replica = TaskGroup(
        name="replica",
        count=3,
        min_count=1,
        groups=(TaskGroup(name="leader", task=Task(cpu=1)), TaskGroup(name="workers", count=2, task=CARD)),
    )
    instance = compile_snapshot(Snapshot(nodes=cluster(4, 1), jobs=(Job(name="j", groups=(replica,)),)))
    assert counts(instance, solve(instance)) == [[[1, 1, 0], [2, 2, 0]]]
    # all three are needed: nothing starts
    needed = TaskGroup(name="replica", count=3, groups=replica.groups)
    instance = compile_snapshot(Snapshot(nodes=cluster(4, 1), jobs=(Job(name="j", groups=(needed,)),)))
    assert counts(instance, solve(instance)) == [[[0, 0, 0], [0, 0, 0]]]


def test_some_groups_are_enough() -> None:
    # two of three groups are needed; the second cannot run anywhere
    children = (
        TaskGroup(name="a", task=CARD),
        TaskGroup(name="b", task=Task(gpus=1, gpu_models=("B",))),
        TaskGroup(name="c", count=2, min_count=1, task=CARD),
    )
    group = TaskGroup(name="g", groups=children, min_groups=2)
    for cards, expected in ((1, [0, 0, 0]), (2, [1, 0, 1]), (4, [1, 0, 2])):
        instance = compile_snapshot(Snapshot(nodes=cluster(cards), jobs=(Job(name="j", groups=(group,)),)))
        assert counts(instance, solve(instance)) == [[[n] for n in expected]]


def test_limits_of_a_domain_hold_and_come_back() -> None:
    # Rack r may use 2 cards. The gang of 3 wants 3 there (its nodes alone have the CPU) and gives back what it took;
    # the pair then fits, and the last job does not.
    nodes = (
        Node(name="r0", cpu=8, position={"rack": "r"}, gpus=(Gpu(model="A", count=4),)),
        Node(name="other", cpu=0, gpus=(Gpu(model="A", count=4),)),
    )
    task = Task(gpus=1, cpu=1)
    jobs = tuple(
        Job(name=f"j{n}{i}", groups=(TaskGroup(name="w", count=n, task=task),)) for i, n in enumerate((3, 2, 1))
    )
    limits = (DomainLimit(level="rack", domain="r", gpus=2),)
    instance = compile_snapshot(Snapshot(topology=("rack",), nodes=nodes, limits=limits, jobs=jobs))
    assert counts(instance, solve(instance)) == [[[0]], [[2]], [[0]]]


def test_a_start_is_kept_and_built_upon() -> None:
    group = TaskGroup(name="w", count=4, min_count=2, task=CARD)
    jobs = (Job(name="a", groups=(TaskGroup(name="w", task=CARD),)), Job(name="b", groups=(group,)))
    instance = compile_snapshot(Snapshot(nodes=cluster(3), jobs=jobs))
    start = Assignment.of([(1, 0, 1, 0, (2,)), (1, 0, 3, 0, (0,))])
    # job a comes first and takes the last card, job b keeps its two tasks where they are
    after = solve(instance, start)
    assert counts(instance, after) == [[[1]], [[2]]]
    mine = after.job[after.offset[1:].searchsorted(range(1, 4))].tolist()
    assert sorted(zip(mine, after.cards.tolist(), strict=True)) == [(0, 1), (1, 0), (1, 2)]
    # nothing is lost when there is no time to add anything
    late = HEURISTICS["fgd"].solve(instance, objectives=(), limits=Limits(deadline=0.0), start=start).assignment
    assert counts(instance, late) == [[[0]], [[2]]]
