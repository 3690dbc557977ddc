"""The brute force knows NUMA zones and NICs: tried on snapshots solved by hand."""

from __future__ import annotations

from fractions import Fraction

import brute
import pytest
from brute_zones import flow, hold, sets_of, zones_of
from numa_cases import BARE, TWO, cluster, job, runs, zone

from placement.snapshot import Gpu, Job, Node, Snapshot, Task


def tasks(snapshot: Snapshot) -> Fraction:
    (value,) = brute.optimum(snapshot, ("tasks",))
    return value.value


@pytest.mark.parametrize(
    ("policy", "expected"),
    # two zones of four cards: one task of three in each; a third one would need cards of both
    [("none", 2), ("restricted", 2), ("single-numa-node", 2)],
)
def test_three_cards_each(policy: str, expected: int) -> None:
    assert tasks(cluster(job(count=3, gpus=3, numa=policy))) == expected


def test_fragments_of_zones() -> None:
    # three of four cards are busy in each zone: two are idle, and no zone has both
    busy = runs("a", "n", 0, 1, 2), runs("b", "n", 4, 5, 6)
    assert [tasks(cluster(job(gpus=2, numa=policy), *busy)) for policy in ("none", "restricted")] == [1, 0]


def test_what_floats_makes_room() -> None:
    # 8 cores in each zone: 5 and 5 are bound to one zone each, so 3 and 3 are left, which a loose task of 6 may take
    bound, loose = job("j", 2, cpu=5, numa="single-numa-node"), job("k", cpu=6)
    assert tasks(cluster(bound, loose)) == 3
    # but another bound one of 4 may not
    assert tasks(cluster(bound, job("k", cpu=4, numa="single-numa-node"))) == 2
    # running work that is known to lie in a zone leaves 2 there: one task of 5
    assert tasks(cluster(bound, runs("old", "n", zone=3, cpu=6))) == 1
    assert tasks(cluster(bound, runs("old", "n", cpu=6))) == 2


def test_nics() -> None:
    # two NICs in each zone: one task of two a zone; loose ones of one get four; a node without zones has none
    assert tasks(cluster(job(count=3, nics=2, numa="single-numa-node"))) == 2
    assert tasks(cluster(job(count=5, nics=1))) == 4
    assert tasks(cluster(job(nics=1), nodes=(BARE,))) == 0
    # a task bound to one zone needs both of its NICs, and a third NIC lies in neither alone
    assert tasks(cluster(job("j", 2, nics=2, numa="restricted"), job("k", nics=1))) == 2


def test_sets_of_zones() -> None:
    def sets(node: Node, task: Task) -> list[list[int] | None]:
        owner: Job = job()
        return [within if within is None else sorted(within) for within in sets_of(owner, task, node)]

    assert sets(TWO, Task(gpus=4, numa="restricted")) == [[0], [1]]
    assert sets(TWO, Task(gpus=5, numa="restricted")) == [[0, 1]]
    assert sets(TWO, Task(gpus=5, numa="single-numa-node")) == []
    assert sets(TWO, Task(gpus=5)) == [[0, 1]]
    assert sets(BARE, Task(gpus=1)) == [None]
    assert sets(BARE, Task(gpus=1, numa="restricted")) == []


def test_flow_finds_room_by_moving() -> None:
    # 3 may lie in either zone and goes to the first; 4 must lie in the first, so 3 moves on
    either, first = frozenset({0, 1}), frozenset({0})
    there = (Fraction(4), Fraction(4))
    assert flow(there, [(either, Fraction(3)), (first, Fraction(4))]) == [[0, 3], [4, 0]]
    # 9 of 8 do not fit: what comes first does
    lies = flow(there, [(either, Fraction(5)), (first, Fraction(4))])
    assert [sum(row) for row in lies] == [5, 3]


def test_zones_that_running_work_overfills_take_no_more() -> None:
    node = Node(
        name="n",
        cpu=8,
        gpus=(Gpu(model="A", count=2),),
        zones=(zone(0, 0, cpu=4), zone(1, 1, cpu=4)),
    )
    zones = zones_of(node)
    assert zones is not None
    none = Fraction(0)
    over = [(frozenset({0}), (Fraction(6), none, none))]
    assert hold(zones, over, [(frozenset({1}), (Fraction(4), none, none))])
    assert not hold(zones, over, [(frozenset({0}), (Fraction(1), none, none))])
