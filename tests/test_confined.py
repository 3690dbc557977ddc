"""The parts of jobs that one domain has to hold."""

from __future__ import annotations

from placement.compile import compile as compile_snapshot
from placement.confined import Unit, confined
from placement.instance import Instance
from placement.snapshot import Affinity, Job, Node, Slice, Snapshot, Task, TaskGroup, Topology

LEVELS = ("zone", "block", "rack")
ZONE, BLOCK, RACK = 1, 2, 3


def instance_of(*groups: TaskGroup, affinity: tuple[Affinity, ...] = ()) -> Instance:
    node = Node(name="n", position={level: level for level in LEVELS})
    return compile_snapshot(
        Snapshot(topology=LEVELS, nodes=(node,), jobs=(Job(name="j", groups=groups, affinity=affinity),))
    )


def leaf(name: str, count: int, least: int | None = None, **topology: object) -> TaskGroup:
    stated = Topology(**topology) if topology else None  # type: ignore[arg-type]
    return TaskGroup(name=name, count=count, min_count=least, task=Task(cpu=1), topology=stated)


def test_a_group_that_requires_a_rack() -> None:
    assert confined(instance_of(leaf("g", 4, required="rack"))) == [Unit(0, -1, RACK, 1, ((0, 4),), rigid=True)]
    assert confined(instance_of(leaf("g", 4, 2, required="rack"))) == [Unit(0, -1, RACK, 1, ((0, 4),), rigid=False)]


def test_the_cluster_and_one_node_confine_nothing_here() -> None:
    assert not confined(instance_of(leaf("g", 4, preferred="rack"), leaf("h", 2, required="node")))


def test_slices_in_a_block_and_finer_ones_in_them() -> None:
    # 24 tasks: 3 slices of 8 by block in one zone, each of 4 slices of 2 by rack, which hold the tasks
    slices = (Slice(level="block", sizes=(8,)), Slice(level="rack", sizes=(2,)))
    assert confined(instance_of(leaf("g", 24, required="zone", slices=slices))) == [
        Unit(0, -1, ZONE, 1, (), rigid=True),
        Unit(0, 0, BLOCK, 3, (), rigid=True),
        Unit(0, 1, RACK, 4, ((0, 2),), rigid=True),
    ]


def test_slices_of_several_sizes() -> None:
    # 5 + 5 + 3: two slices of 5 and one of 3
    slices = (Slice(level="rack", sizes=(5, 5, 3)),)
    assert confined(instance_of(leaf("g", 13, slices=slices))) == [
        Unit(0, -1, RACK, 2, ((0, 5),), rigid=True),
        Unit(0, -1, RACK, 1, ((0, 3),), rigid=True),
    ]


def test_every_copy_of_a_nested_group_is_a_unit() -> None:
    # three replicas of a leader and two workers, each replica in one rack, all of them in one block
    replica = TaskGroup(
        name="replica",
        count=3,
        groups=(leaf("leader", 1), leaf("worker", 2)),
        topology=Topology(required="block"),
    )
    assert confined(instance_of(replica)) == [Unit(0, -1, BLOCK, 1, ((0, 3), (1, 6)), rigid=True)]
    inner = TaskGroup(name="pair", groups=(leaf("leader", 1), leaf("worker", 2)), topology=Topology(required="rack"))
    outer = TaskGroup(name="replica", count=3, groups=(inner,), topology=Topology(required="block"))
    assert confined(instance_of(outer)) == [
        Unit(0, -1, BLOCK, 1, (), rigid=True),
        Unit(0, 0, RACK, 3, ((0, 1), (1, 2)), rigid=True),
    ]


def test_groups_that_belong_together() -> None:
    together = (Affinity(a="leader", b="worker", level="rack", kind="together"),)
    found = confined(instance_of(leaf("leader", 1), leaf("worker", 4), leaf("other", 2), affinity=together))
    assert found == [Unit(0, -1, RACK, 1, ((0, 1), (1, 4)), rigid=True)]
    apart = tuple(replace_kind(one) for one in together)
    assert not confined(instance_of(leaf("leader", 1), leaf("worker", 4), affinity=apart))


def test_groups_together_of_which_one_is_narrower() -> None:
    # both in one block, the workers in one rack of it
    together = (Affinity(a="leader", b="worker", level="block", kind="together"),)
    found = confined(instance_of(leaf("leader", 1), leaf("worker", 4, required="rack"), affinity=together))
    assert found == [
        Unit(0, -1, BLOCK, 1, ((0, 1),), rigid=True),
        Unit(0, 0, RACK, 1, ((1, 4),), rigid=True),
    ]


def test_a_wider_level_within_a_narrower_one_says_nothing_more() -> None:
    together = (Affinity(a="leader", b="worker", level="rack", kind="together"),)
    found = confined(instance_of(leaf("leader", 1), leaf("worker", 4, required="block"), affinity=together))
    assert found == [Unit(0, -1, RACK, 1, ((0, 1), (1, 4)), rigid=True)]


def replace_kind(affinity: Affinity) -> Affinity:
    return Affinity(a=affinity.a, b=affinity.b, level=affinity.level, kind="apart")
