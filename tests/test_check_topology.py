"""Topology, affinity and locality by hand; the second opinion of `brute_ties` must agree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import pytest
from brute_ties import keeps, written_out
from check_cases import Row, nodes_of, plan_of, tasks_of
from msgspec.structs import replace

from placement.check import locality
from placement.check.case.case import Case
from placement.check.facts.facts import facts_of
from placement.check.groups import affinity, topology
from placement.check.values import localities
from placement.plan import Locality
from placement.snapshot import Affinity, Job, Node, Slice, Snapshot, Spread, Task, TaskGroup, Topology

# block x: racks r0 (a-0, a-1) and r1 (b-0, b-1); block y: rack r2 (c); d is in no domain
NODES = (
    Node(name="a", count=2, position={"block": "x", "rack": "r0"}),
    Node(name="b", count=2, position={"block": "x", "rack": "r1"}),
    Node(name="c", position={"block": "y", "rack": "r2"}),
    Node(name="d"),
)
LEVELS = ("block", "rack")

Places = Mapping[str, str]
"""Nodes of the tasks of each group, by path: of task 0, 1 and so on, ``-`` where a task is not placed."""


def snapshot_of(*groups: TaskGroup, affinity: tuple[Affinity, ...] = (), count: int = 1) -> Snapshot:
    job = Job(name="j", count=count, groups=groups, affinity=affinity)
    return Snapshot(topology=LEVELS, nodes=NODES, jobs=(job,))


def rows_of(places: Places, job: str = "j") -> list[Row]:
    return [
        (job, path, index, node, [])
        for path, nodes in places.items()
        for index, node in enumerate(nodes.split())
        if node != "-"
    ]


def said(snapshot: Snapshot, rows: list[Row]) -> list[str]:
    """Return what the judges of topology and affinity say."""
    case = Case(facts_of(snapshot), plan_of(snapshot, rows))
    assert case.unknown == []
    return [f"{v.path}: {v.what}" for judge in (topology.judge, affinity.judge) for v in judge(case)]


def opinion(snapshot: Snapshot, rows: list[Row]) -> bool:
    """Return whether the second opinion has nothing against some rows."""
    nodes = nodes_of(snapshot)
    return all(
        keeps(
            job,
            written_out(job),
            {(row[1], row[2]): (row[3], nodes[row[3]]) for row in rows if row[0] == name},
            snapshot.topology,
        )
        for job in snapshot.jobs
        for name in ([job.name] if job.count == 1 else [f"{job.name}-{i}" for i in range(job.count)])
    )


def broken(snapshot: Snapshot, places: Places) -> list[str]:
    found, agrees = said(snapshot, rows_of(places)), opinion(snapshot, rows_of(places))
    assert agrees == (not found)
    return found


def tied(count: int, name: str = "w", **stated: object) -> TaskGroup:
    return TaskGroup(name=name, count=count, task=Task(), topology=Topology(**stated))  # type: ignore[arg-type]


# --- required -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("level", "nodes"),
    [("rack", "a-0 a-1 a-1"), ("block", "a-0 b-1 b-0"), ("node", "d d d"), ("rack", "c c c"), ("rack", "- a-0 a-1")],
)
def test_one_domain_holds_the_group(level: str, nodes: str) -> None:
    assert broken(snapshot_of(tied(3, required=level)), {"w": nodes}) == []


@pytest.mark.parametrize(
    ("level", "nodes", "places"),
    [
        ("rack", "a-0 b-1 a-1", "r0 (2 tasks), r1 (1 task)"),
        ("block", "a-0 b-1 c", "x (2 tasks), y (1 task)"),
        ("node", "a-0 a-0 a-1", "a-0 (2 tasks), a-1 (1 task)"),
        ("rack", "d d d", "no rack (3 tasks)"),  # one node, but it is in no rack
        ("rack", "a-0 a-0 d", "r0 (2 tasks), no rack (1 task)"),
    ],
)
def test_no_one_domain_holds_the_group(level: str, nodes: str, places: str) -> None:
    assert broken(snapshot_of(tied(3, required=level)), {"w": nodes}) == [
        f"jobs[0].groups[0].topology.required: job j: group w lies at level {level} in {places}; "
        "one domain must hold all of it"
    ]


def test_preferred_is_a_wish() -> None:
    assert broken(snapshot_of(tied(3, preferred="node")), {"w": "a-0 c d"}) == []


# two replicas of a leader and two workers; worker w of replica c has the number 2c + w
def replicas(whole: Topology | None = None, work: Topology | None = None) -> TaskGroup:
    groups = (
        TaskGroup(name="lead", task=Task()),
        TaskGroup(name="work", count=2, task=Task(), topology=work),
    )
    return TaskGroup(name="r", count=2, groups=groups, topology=whole)


def test_each_copy_is_judged_alone() -> None:
    # copy 0 has workers 0 and 1 in rack r0, copy 1 has workers 2 and 3 in rack r1
    rack = snapshot_of(replicas(work=Topology(required="rack")))
    assert broken(rack, {"r/lead": "c c", "r/work": "a-0 a-1 b-0 b-1"}) == []
    assert broken(rack, {"r/lead": "c c", "r/work": "a-0 a-1 b-0 c"}) == [
        "jobs[0].groups[0].groups[1].topology.required: job j: copy 1 of group r/work lies at level rack in "
        "r1 (1 task), r2 (1 task); one domain must hold all of it"
    ]


def test_a_group_of_groups_is_all_that_is_in_it() -> None:
    block = snapshot_of(replicas(whole=Topology(required="block")))
    assert broken(block, {"r/lead": "a-0 b-0", "r/work": "a-0 a-1 b-0 b-1"}) == []
    assert broken(block, {"r/lead": "a-0 c", "r/work": "a-0 a-1 b-0 b-1"}) == [
        "jobs[0].groups[0].topology.required: job j: group r lies at level block in x (5 tasks), y (1 task); "
        "one domain must hold all of it"
    ]


def test_each_copy_of_a_job_is_judged_alone() -> None:
    snapshot = snapshot_of(tied(2, required="rack"), count=2)
    rows = [*rows_of({"w": "a-0 a-1"}, "j-0"), *rows_of({"w": "b-0 c"}, "j-1")]
    assert said(snapshot, rows) == [
        "jobs[0].groups[0].topology.required: job j-1: group w lies at level rack in r1 (1 task), r2 (1 task); "
        "one domain must hold all of it"
    ]


# --- slices ---------------------------------------------------------------------------------------------------


def test_slices_of_one_size() -> None:
    # slices of 2: tasks 0 and 1, 2 and 3, 4 and 5
    rack = snapshot_of(tied(6, slices=(Slice(level="rack", sizes=(2,)),)))
    assert broken(rack, {"w": "a-0 a-1 c c a-1 a-1"}) == []
    assert broken(rack, {"w": "a-0 - c - - -"}) == []
    assert broken(rack, {"w": "a-0 a-1 a-1 b-0 b-0 c"}) == [
        "jobs[0].groups[0].topology.slices[0]: job j: group w has its slice 1 (tasks 2 to 3) at level rack in "
        "r0 (1 task), r1 (1 task); one domain must hold a slice; the same goes for 1 more slice"
    ]


def test_slices_of_listed_sizes() -> None:
    # sizes 1, 3, 2: task 0; 1 to 3; 4 and 5
    rack = snapshot_of(tied(2, name="v"), tied(6, slices=(Slice(level="rack", sizes=(1, 3, 2)),)))
    assert broken(rack, {"v": "a-0 b-0", "w": "c a-0 a-1 a-0 b-0 b-1"}) == []
    assert broken(rack, {"v": "a-0 b-0", "w": "c a-0 a-1 b-0 b-0 b-1"}) == [
        "jobs[0].groups[1].topology.slices[0]: job j: group w has its slice 1 (tasks 1 to 3) at level rack in "
        "r0 (2 tasks), r1 (1 task); one domain must hold a slice"
    ]


def test_nested_slices_are_judged_each_alone() -> None:
    # 4 in a block, and within them 2 on a node: 0 and 1 on a-0, 2 and 3 on b-0, all in block x
    nested = (Slice(level="block", sizes=(4,)), Slice(level="node", sizes=(2,)))
    snapshot = snapshot_of(tied(4, slices=nested))
    assert broken(snapshot, {"w": "a-0 a-0 b-0 b-0"}) == []
    assert [line.partition(": ")[0] for line in broken(snapshot, {"w": "a-0 a-0 b-0 c"})] == [
        "jobs[0].groups[0].topology.slices[0]",
        "jobs[0].groups[0].topology.slices[1]",
    ]


def test_tasks_of_nested_groups_are_numbered_member_by_member() -> None:
    # slices of 3: lead 0, work 0 and 1 are tasks 0 to 2; lead 1, work 2 and 3 are tasks 3 to 5
    rack = snapshot_of(replicas(whole=Topology(slices=(Slice(level="rack", sizes=(3,)),))))
    assert broken(rack, {"r/lead": "a-0 c", "r/work": "a-0 a-1 c c"}) == []
    assert broken(rack, {"r/lead": "c a-0", "r/work": "a-0 a-1 a-0 c"}) == [
        "jobs[0].groups[0].topology.slices[0]: job j: group r has its slice 0 (tasks 0 to 2) at level rack in "
        "r2 (1 task), r0 (2 tasks); one domain must hold a slice; the same goes for 1 more slice"
    ]


# --- balanced -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "even"),
    [
        ("a-0 a-1 b-0 b-1 c", True),  # 2, 2, 1
        ("a-0 a-0 a-0 b-0 c", False),  # 3, 1, 1: 3 - 1 = 2
        ("a-0 a-0 a-0 a-0 a-0", True),  # 5: one domain is as even as can be
        ("a-0 a-0 a-0 a-0 c", False),  # 4, 1
    ],
)
def test_balance(nodes: str, even: bool) -> None:
    found = broken(snapshot_of(tied(5, balanced="rack")), {"w": nodes})
    assert [line.endswith("; numbers may differ by 1 at most") for line in found] == [] if even else [True]


def test_balance_over_no_domain() -> None:
    # d is in no rack, so nobody knows what its tasks count for
    said_of = "jobs[0].groups[0].topology.balanced: job j: group w lies at level rack in"
    assert broken(snapshot_of(tied(5, balanced="rack")), {"w": "a-0 d d d c"}) == [
        f"{said_of} r0 (1 task), no rack (3 tasks), r2 (1 task); every task must lie in a domain"
    ]
    assert broken(snapshot_of(tied(5, balanced="rack")), {"w": "a-0 a-0 a-0 c d"}) == [
        f"{said_of} r0 (3 tasks), r2 (1 task), no rack (1 task); "
        "numbers may differ by 1 at most, and every task must lie in a domain"
    ]
    assert len(broken(snapshot_of(tied(2, balanced="rack")), {"w": "d d"})) == 1


def test_balance_counts_in_slices() -> None:
    # slices of 2 on a node: 4 in r0 and 2 in r1 differ by one slice; 6 and 2 by two
    slices = (Slice(level="node", sizes=(2,)),)
    assert broken(snapshot_of(tied(6, balanced="rack", slices=slices)), {"w": "a-0 a-0 a-1 a-1 b-0 b-0"}) == []
    assert broken(snapshot_of(tied(8, balanced="rack", slices=slices)), {"w": "a-0 a-0 a-1 a-1 a-1 a-1 b-0 b-0"}) == [
        "jobs[0].groups[0].topology.balanced: job j: group w lies at level rack in r0 (6 tasks), r1 (2 tasks); "
        "numbers may differ by 2 at most"
    ]
    # slices of a block do not have to lie in one rack: 2 - 0 is more than 1 where both racks are used: 3, 1
    wide = (Slice(level="block", sizes=(4,)),)
    assert len(broken(snapshot_of(tied(4, balanced="rack", slices=wide)), {"w": "a-0 a-0 a-0 b-0"})) == 1


# --- spread ---------------------------------------------------------------------------------------------------


def test_spread() -> None:
    # at most 2 in a rack and at least 2 racks
    spread = (Spread(level="rack", max_per_domain=2, min_domains=2),)
    snapshot = snapshot_of(tied(4, spread=spread))
    assert broken(snapshot, {"w": "a-0 a-1 b-0 c"}) == []
    assert broken(snapshot, {"w": "a-0 a-1 - -"}) == [
        "jobs[0].groups[0].topology.spread[0]: job j: group w lies at level rack in r0 (2 tasks); "
        "2 domains must be used at least"
    ]
    assert broken(snapshot, {"w": "a-0 a-0 a-0 -"}) == [
        "jobs[0].groups[0].topology.spread[0]: job j: group w lies at level rack in r0 (3 tasks); "
        "a domain may hold 2 tasks at most, and 2 domains must be used at least"
    ]
    assert broken(snapshot, {"w": "a-0 b-0 d -"}) == [
        "jobs[0].groups[0].topology.spread[0]: job j: group w lies at level rack in "
        "r0 (1 task), r1 (1 task), no rack (1 task); every task must lie in a domain"
    ]


def test_spread_at_two_levels() -> None:
    # one a node and 3 a block: a-0, a-1, b-0 and c are 3 in x and 1 in y
    spread = (Spread(level="block", max_per_domain=3), Spread(level="node", max_per_domain=1))
    snapshot = snapshot_of(tied(5, spread=spread))
    assert broken(snapshot, {"w": "a-0 a-1 b-0 c -"}) == []
    assert [line.partition(": ")[0] for line in broken(snapshot, {"w": "a-0 a-1 b-0 b-1 b-1"})] == [
        "jobs[0].groups[0].topology.spread[0]",
        "jobs[0].groups[0].topology.spread[1]",
    ]


# --- affinity -------------------------------------------------------------------------------------------------


def pair(kind: Literal["together", "apart"], a: str = "v", b: str = "w", level: str = "rack") -> tuple[Affinity, ...]:
    return (Affinity(a=a, b=b, level=level, kind=kind),)


FLAT = (TaskGroup(name="v", count=2, task=Task()), TaskGroup(name="w", count=2, task=Task()))


@pytest.mark.parametrize(
    ("v", "w", "together", "apart"),
    [
        ("a-0 a-1", "a-0 a-1", True, False),  # all in r0
        ("a-0 a-1", "b-0 b-1", False, True),  # r0 against r1
        ("a-0 b-0", "a-1 c", False, False),  # r0 and r1 against r0 and r2
        ("a-0 d", "b-0 d", False, True),  # d is in no rack, so it shares none
        ("a-0 a-0", "- -", True, True),
    ],
)
def test_affinity(v: str, w: str, together: bool, apart: bool) -> None:
    places = {"v": v, "w": w}
    assert (broken(snapshot_of(*FLAT, affinity=pair("together")), places) == []) == together
    assert (broken(snapshot_of(*FLAT, affinity=pair("apart")), places) == []) == apart


def test_what_is_said_of_affinity() -> None:
    assert broken(snapshot_of(*FLAT, affinity=pair("together")), {"v": "a-0 a-1", "w": "a-0 b-0"}) == [
        "jobs[0].affinity[0]: job j: group v and group w: at level rack there is v in r0 (2 tasks), and "
        "w in r0 (1 task), r1 (1 task); one domain must hold both"
    ]
    assert broken(snapshot_of(*FLAT, affinity=pair("apart", level="node")), {"v": "a-0 a-1", "w": "a-1 c"}) == [
        "jobs[0].affinity[0]: job j: group v and group w: at level node there is v in a-0 (1 task), a-1 (1 task), and "
        "w in a-1 (1 task), c (1 task); no domain may hold tasks of both"
    ]


def test_affinity_within_a_group_is_of_each_member() -> None:
    # replica 0 in r0, replica 1 in r1: together in each; apart would need leaders and workers of one replica to part
    places = {"r/lead": "a-0 b-0", "r/work": "a-0 a-1 b-0 b-1"}
    assert broken(snapshot_of(replicas(), affinity=pair("together", "r/lead", "r/work")), places) == []
    assert [
        line.partition(": at ")[0]
        for line in broken(snapshot_of(replicas(), affinity=pair("apart", "r/lead", "r/work")), places)
    ] == [
        "jobs[0].affinity[0]: job j: copy 0 of group r/lead and group r/work",
        "jobs[0].affinity[0]: job j: copy 1 of group r/lead and group r/work",
    ]


# --- locality -------------------------------------------------------------------------------------------------


def test_locality() -> None:
    # w is named and states nothing: r0 and r1 of block x, on 2 nodes. v: all on c. u is not mentioned.
    groups = (*FLAT, TaskGroup(name="u", task=Task()))
    snapshot = snapshot_of(*groups, affinity=pair("apart"))
    rows = rows_of({"v": "c c", "w": "a-0 b-0", "u": "d"})
    assert locality(snapshot, tasks_of(rows)) == Locality(
        job=["j", "j"], group=["v", "w"], copy=[0, 0], level=["node", "block"], domains=[[1, 1, 1], [1, 2, 2]]
    )
    # one task in no rack and no block: the cluster alone holds both
    found = locality(snapshot, tasks_of(rows_of({"w": "a-0 d"})))
    assert found is not None
    assert (found.level, found.domains) == (["cluster"], [[1, 1, 2]])


def test_locality_of_copies() -> None:
    snapshot = snapshot_of(replicas(whole=Topology(preferred="rack"), work=Topology(required="block")))
    rows = rows_of({"r/lead": "a-0 -", "r/work": "a-0 a-1 b-0 -"})
    assert locality(snapshot, tasks_of(rows)) == Locality(
        job=["j"] * 3,
        group=["r", "r/work", "r/work"],
        copy=[0, 0, 1],
        level=["block", "rack", "node"],
        domains=[[1, 2, 3], [1, 1, 2], [1, 1, 1]],
    )


def test_no_locality_without_ties() -> None:
    assert locality(snapshot_of(tied(1)), tasks_of(rows_of({"w": "a-0"}))) is None  # a topology that says nothing
    assert locality(snapshot_of(*FLAT), tasks_of(rows_of({"v": "a-0"}))) is None
    assert locality(snapshot_of(tied(2, required="rack")), tasks_of([])) is None


def test_a_plan_that_lies_about_its_locality() -> None:
    snapshot = snapshot_of(tied(2, preferred="rack"), tied(1, name="v", preferred="rack"))
    rows = rows_of({"w": "a-0 b-0", "v": "c"})
    plan = plan_of(snapshot, rows)
    right = locality(snapshot, plan.tasks)
    assert right is not None

    def lies(given: Locality | None) -> list[str]:
        return [str(v) for v in localities.judge(Case(facts_of(snapshot), replace(plan, locality=given)))]

    assert lies(right) == []
    assert lies(replace(right, level=["rack", "node"])) == [
        "locality: locality[0]: the row is j w 0: one rack, domains [1, 2, 2], "
        "the tasks make j w 0: one block, domains [1, 2, 2]"
    ]
    assert lies(replace(right, copy=[0])) == [
        "locality: locality: its columns have lengths job 2, group 2, copy 1, level 2, domains 2, the tasks make 2 rows"
    ]
    assert lies(None) == [
        "locality: locality: its columns have lengths job 0, group 0, copy 0, level 0, domains 0, the tasks make 2 rows"
    ]
