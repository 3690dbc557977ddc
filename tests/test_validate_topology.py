"""Domains that lie in one another, and topologies against the size of their group; see also `bad_snapshots`."""

from __future__ import annotations

import time
from typing import Any

from placement.snapshot import Affinity, Job, Node, Slice, Snapshot, Spread, Task, TaskGroup, Topology
from placement.snapshot.report import Report
from placement.snapshot.validate import judge
from placement.snapshot.validate_topology import judge_domains

LEVELS = ("site", "block", "rack")


def wrong(snapshot: Snapshot) -> list[str]:
    return [f"{problem.path}: {problem.what}" for problem in judge(snapshot).problems]


def positions(*places: dict[str, str]) -> list[str]:
    nodes = tuple(Node(name=f"n{i}", position=place) for i, place in enumerate(places))
    return wrong(Snapshot(topology=LEVELS, nodes=nodes))


def test_domains_lie_in_one_wider_domain() -> None:
    one = {"site": "s", "block": "a", "rack": "r1"}
    assert positions(one, one, one | {"rack": "r2"}, {"site": "s", "block": "a"}, {"site": "s"}, {}) == []
    # r1 is in two blocks and so in two sites, which is said once; the nearest level comes first
    assert positions(one, one, {"site": "t", "block": "b", "rack": "r1"}, {"site": "t", "rack": "r1"}) == [
        'nodes[2].position.rack: rack "r1" lies in block "a" (nodes[0]) and in block "b" (nodes[2])'
    ]
    # where nodes leave the level between out, the wider one is still looked at
    assert positions({"site": "s", "rack": "r1"}, {"site": "t", "rack": "r1"}) == [
        'nodes[1].position.rack: rack "r1" lies in site "s" (nodes[0]) and in site "t" (nodes[1])'
    ]


def test_domains_lie_in_a_wider_domain_with_all_their_nodes() -> None:
    inside = {"block": "b0", "rack": "r0"}
    nodes = (Node(name="a", position={"rack": "r0"}), Node(name="b", position=inside))
    assert [str(problem) for problem in judge(Snapshot(topology=LEVELS, nodes=nodes)).problems] == [
        'nodes[1].position.rack: rack "r0" lies in no block (nodes[0]) and in block "b0" (nodes[1]); '
        "a domain lies in one domain of each wider level, or in none, all of it: "
        "correct the positions, or name the domains apart"
    ]
    # a domain that lies in none with all its nodes is fine, beside others that do
    assert positions({"rack": "r0"}, {"rack": "r0"}, inside | {"rack": "r1"}, {"site": "s", "rack": "r2"}) == []
    # b0 is in site s with one node alone; so are the racks in it, which is not said again
    assert positions(inside, inside | {"site": "s"}, inside | {"rack": "r1"}) == [
        'nodes[1].position.block: block "b0" lies in no site (nodes[0]) and in site "s" (nodes[1])'
    ]
    # the level between is left out, with all of r0; the one above it is not
    assert positions({"site": "s", "rack": "r0"}, {"rack": "r0"}) == [
        'nodes[1].position.rack: rack "r0" lies in site "s" (nodes[0]) and in no site (nodes[1])'
    ]


def test_domains_of_many_nodes_are_looked_at_fast() -> None:
    # a rack for every two nodes; comparing every node with every other would take minutes
    position = ({"site": "s", "block": f"b{i // 100}", "rack": f"r{i // 2}"} for i in range(100_000))
    nodes = tuple(Node(name="n", position=where) for where in position)
    began = time.perf_counter()
    report = Report()
    assert judge_domains(nodes, LEVELS, report) == {"site", "block", "rack"}
    assert report.total == 0
    assert time.perf_counter() - began < 5


def test_levels_are_few() -> None:
    levels = tuple(f"level-{i}" for i in range(17))
    assert wrong(Snapshot(topology=levels[:16])) == []
    assert wrong(Snapshot(topology=levels)) == ["topology: there are 17 levels, expected at most 16"]


def test_equal_names_at_different_levels_are_different_domains() -> None:
    assert positions({"block": "1", "rack": "1"}, {"block": "1", "rack": "2"}, {"block": "2", "rack": "3"}) == []


def groups(*given: TaskGroup, affinity: tuple[Affinity, ...] = ()) -> list[str]:
    nodes = (Node(name="n", position={"block": "a", "rack": "r1"}),)
    job = Job(name="j", groups=given, affinity=affinity)
    return wrong(Snapshot(topology=LEVELS, nodes=nodes, jobs=(job,)))


def tied(name: str, count: int, **stated: Any) -> TaskGroup:
    return TaskGroup(name=name, count=count, task=Task(), topology=Topology(**stated))


def test_sizes_are_those_of_one_copy_of_the_group() -> None:
    twos = (Slice(level="rack", sizes=(2,)),)
    # the same topology is right for 4 tasks and wrong for 5
    assert groups(tied("a", 4, slices=twos), tied("b", 5, slices=twos), tied("c", 2, slices=twos)) == [
        "jobs[0].groups[1].topology.slices[0].sizes: slices of 2 do not divide the 5 tasks of a copy of the group"
    ]
    # 3 members of 1 + 2 tasks each: 9 in a copy of the group, 2 in one of the workers
    within = (TaskGroup(name="lead", task=Task()), tied("work", 2, slices=twos))
    listed = Topology(slices=(Slice(level="rack", sizes=(3, 5)),), spread=(Spread(level="node", min_domains=9),))
    assert groups(TaskGroup(name="r", count=3, groups=within, topology=listed)) == [
        "jobs[0].groups[0].topology.slices[0].sizes: the sizes add up to 8, but a copy of the group has 9 tasks"
    ]


def test_levels_that_no_node_is_at() -> None:
    assert groups(tied("a", 2, required="block", preferred="node", balanced="rack")) == []
    what = 'no node has a position at level "site"'
    assert groups(tied("a", 2, required="site"), tied("b", 2, spread=(Spread(level="site", max_per_domain=1),))) == [
        f"jobs[0].groups[0].topology.required: {what}",
        f"jobs[0].groups[1].topology.spread[0].level: {what}",
    ]


def test_affinity_to_what_is_within() -> None:
    inner = (TaskGroup(name="a", task=Task()), TaskGroup(name="ab", task=Task()))
    group = TaskGroup(name="a", groups=inner)

    def said(a: str, b: str) -> list[str]:
        return groups(group, affinity=(Affinity(a=a, b=b, level="rack", kind="apart"),))

    assert said("a/a", "a/ab") == []  # a name that begins alike is no group within
    assert said("a", "a/ab") == said("a/ab", "a") == ['jobs[0].affinity[0]: group "a/ab" is within group "a"']
