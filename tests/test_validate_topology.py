"""Domains that lie in one another, and topologies against the size of their group; see also `bad_snapshots`."""

from __future__ import annotations

from typing import Any

from placement.snapshot import Affinity, Job, Node, Slice, Snapshot, Spread, Task, TaskGroup, Topology
from placement.snapshot.validate import judge

LEVELS = ("site", "block", "rack")


def wrong(snapshot: Snapshot) -> list[str]:
    return [f"{problem.path}: {problem.what}" for problem in judge(snapshot).problems]


def positions(*places: dict[str, str]) -> list[str]:
    nodes = tuple(Node(name=f"n{i}", position=place) for i, place in enumerate(places))
    return wrong(Snapshot(topology=LEVELS, nodes=nodes))


def test_domains_lie_in_one_wider_domain() -> None:
    one = {"site": "s", "block": "a", "rack": "r1"}
    assert positions(one, one, one | {"rack": "r2"}, {"block": "a"}, {"rack": "r1"}, {}) == []
    # r1 is in two blocks and so in two sites, which is said once; the nearest level comes first
    assert positions(one, one, {"site": "t", "block": "b", "rack": "r1"}, {"site": "t", "rack": "r1"}) == [
        'nodes[2].position.rack: rack "r1" lies in block "a" (nodes[0]) and in block "b" (nodes[2])'
    ]
    # where nodes leave the level between out, the wider one is still looked at
    assert positions({"site": "s", "rack": "r1"}, {"site": "t", "rack": "r1"}) == [
        'nodes[1].position.rack: rack "r1" lies in site "s" (nodes[0]) and in site "t" (nodes[1])'
    ]


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
