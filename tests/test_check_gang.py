"""Gangs by hand: minimum counts, nested copies and enough groups of them."""

from __future__ import annotations

import pytest
from check_cases import Row, opinion, plan_of

from placement.check import check
from placement.snapshot import Job, Node, Snapshot, Task, TaskGroup

NODES = (Node(name="n"),)


def broken(groups: tuple[TaskGroup, ...], placed: dict[str, set[int]]) -> list[tuple[str, str]]:
    """Return path and text of what the judge says of a job's placed tasks, by group; the second opinion must agree."""
    snapshot = Snapshot(nodes=NODES, jobs=(Job(name="j", groups=groups),))
    rows: list[Row] = [("j", group, index, "n", []) for group, indices in placed.items() for index in sorted(indices)]
    violations = check(snapshot, plan_of(snapshot, rows))
    assert {violation.rule for violation in violations} == opinion(snapshot, rows)
    return [(violation.path, violation.what) for violation in violations]


def tasks(name: str, count: int, min_count: int | None = None) -> TaskGroup:
    return TaskGroup(name=name, count=count, min_count=min_count, task=Task())


FLAT = (tasks("lead", 1), tasks("work", 4, 3))


@pytest.mark.parametrize(
    "placed",
    [{}, {"lead": {0}, "work": {0, 1, 2}}, {"lead": {0}, "work": {1, 2, 3}}, {"lead": {0}, "work": {0, 1, 2, 3}}],
)
def test_flat_right(placed: dict[str, set[int]]) -> None:
    assert broken(FLAT, placed) == []


@pytest.mark.parametrize(
    ("placed", "found"),
    [
        (
            {"lead": {0}, "work": {0, 1}},
            [("jobs[0].groups[1]", "job j: group work has 2 tasks running, at least 3 or no task at all")],
        ),
        ({"lead": {0}}, [("jobs[0].groups[1]", "job j: group work does not run, the job needs it")]),
        ({"work": {0, 1, 2}}, [("jobs[0].groups[0]", "job j: group lead does not run, the job needs it")]),
        (
            {"work": {0}},
            [
                ("jobs[0].groups[1]", "job j: group work has 1 task running, at least 3 or no task at all"),
                ("jobs[0].groups[0]", "job j: group lead does not run, the job needs it"),
            ],
        ),
    ],
)
def test_flat_wrong(placed: dict[str, set[int]], found: list[tuple[str, str]]) -> None:
    assert broken(FLAT, placed) == found


# three replicas, two of which must run; a replica is a leader and four workers, of which two must run.
# Replica c has leader c and the workers 4c to 4c + 3.
REPLICAS = (TaskGroup(name="r", count=3, min_count=2, groups=(tasks("lead", 1), tasks("work", 4, 2))),)


@pytest.mark.parametrize(
    "placed",
    [
        {"r/lead": {0, 1}, "r/work": {0, 1, 6, 7}},
        {"r/lead": {0, 2}, "r/work": {2, 3, 8, 9, 10, 11}},  # replica 1 does not run
        {"r/lead": {0, 1, 2}, "r/work": set(range(12))},
    ],
)
def test_replicas_right(placed: dict[str, set[int]]) -> None:
    assert broken(REPLICAS, placed) == []


@pytest.mark.parametrize(
    ("placed", "found"),
    [
        # four workers, but 3 and 4 are of different replicas, each of which then has one
        (
            {"r/lead": {0, 1}, "r/work": {3, 4, 8, 9}},
            [
                ("groups[0].groups[1]", "copy 0 of group r/work has 1 task running, at least 2"),
                ("groups[0].groups[1]", "copy 1 of group r/work has 1 task running, at least 2"),
                ("groups[0]", "member 2 of group r has 1 of its groups running, at least 2"),
            ],
        ),
        # one replica alone
        ({"r/lead": {1}, "r/work": {4, 5}}, [("groups[0]", "group r has 1 copy running, at least 2")]),
        # a leader without workers beside two whole replicas
        (
            {"r/lead": {0, 1, 2}, "r/work": {0, 1, 4, 5}},
            [("groups[0]", "member 2 of group r has 1 of its groups running, at least 2")],
        ),
    ],
)
def test_replicas_wrong(placed: dict[str, set[int]], found: list[tuple[str, str]]) -> None:
    lines = broken(REPLICAS, placed)
    assert [path for path, _ in lines] == [f"jobs[0].{path}" for path, _ in found]
    assert all(what.startswith(f"job j: {text}") for (_, what), (_, text) in zip(lines, found, strict=True))


# any two of three kinds make a member; kind "deep" is itself two pairs, one of which must run
CHOICE = (
    TaskGroup(
        name="m",
        count=2,
        min_count=1,
        min_groups=2,
        groups=(
            tasks("a", 1),
            tasks("b", 2, 1),
            TaskGroup(name="deep", count=2, min_count=1, groups=(tasks("p", 2),)),
        ),
    ),
)


@pytest.mark.parametrize(
    "placed",
    [
        {"m/a": {0}, "m/b": {1}},
        {"m/a": {1}, "m/b": {2, 3}},  # member 1 alone
        # deep of member 1 has the copies 2 and 3; copy 3 has the tasks 6 and 7
        {"m/a": {1}, "m/deep/p": {6, 7}},
        {"m/a": {0, 1}, "m/b": {0, 3}, "m/deep/p": {0, 1, 2, 3}},
    ],
)
def test_choice_right(placed: dict[str, set[int]]) -> None:
    assert broken(CHOICE, placed) == []


@pytest.mark.parametrize(
    ("placed", "path"),
    [
        ({"m/a": {0}}, "jobs[0].groups[0]"),  # one kind of three
        ({"m/a": {0}, "m/b": {2}}, "jobs[0].groups[0]"),  # one kind in each member
        ({"m/a": {0}, "m/b": {0}, "m/deep/p": {1}}, "jobs[0].groups[0].groups[2].groups[0]"),  # half a pair
        ({"m/a": {0}, "m/b": {0}, "m/deep/p": {1, 2}}, "jobs[0].groups[0].groups[2].groups[0]"),  # two halves
        ({"m/a": {0}, "m/b": {0}, "m/deep/p": {6, 7}}, "jobs[0].groups[0]"),  # deep of the other member
    ],
)
def test_choice_wrong(placed: dict[str, set[int]], path: str) -> None:
    assert {where for where, _ in broken(CHOICE, placed)} == {path}


def test_many_broken_copies_are_summed_up() -> None:
    # ten replicas of two tasks that both must run, one task of each placed
    groups = (TaskGroup(name="r", count=10, min_count=1, groups=(tasks("w", 2),)),)
    lines = broken(groups, {"r/w": set(range(0, 20, 2))})
    assert [what for _, what in lines] == [
        *(f"job j: copy {c} of group r/w has 1 task running, at least 2 or no task at all" for c in range(3)),
        "job j: the same goes for 7 more copies of group r/w",
    ]


def test_a_gang_of_millions_is_judged_by_what_is_placed() -> None:
    groups = (TaskGroup(name="r", count=10**3, min_count=1, groups=(tasks("w", 10**4, 2),)),)
    last = 10**7 - 1
    snapshot = Snapshot(nodes=NODES, jobs=(Job(name="j", groups=groups),))
    for indices, wrong in (((last - 1, last), False), ((0, last), True)):
        plan = plan_of(snapshot, [("j", "r/w", index, "n", []) for index in indices])
        assert [violation.rule for violation in check(snapshot, plan)] == (["gang"] * 2 if wrong else [])
