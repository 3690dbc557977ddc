"""What NUMA zones hold: new tasks beside one another and beside what runs, to the last core and NIC, by hand."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from numa_cases import BARE, TWO, cluster, job, lines, plan, runs, said, zone

from placement.check import check
from placement.plan import Pending
from placement.snapshot import Gpu, Job, Node, Running, RunningTask, Task, TaskGroup

# --- what zones hold --------------------------------------------------------------------------------------------


def test_new_work_fills_a_zone_to_the_brim() -> None:
    # 8 cores in each zone: 5 and 3 fit, 5 and 3.001 do not, though the node has 16
    jobs = job("j", cpu=5, numa="single-numa-node"), job("k", cpu=3), job("l", cpu="3001m")
    first = said(zones="0", cpu="5")
    full = said(zones="0", cpu="3", job="k")
    assert lines(cluster(*jobs), first, full) == []
    over = said(zones="0", cpu="3.001", job="l")
    assert lines(cluster(*jobs), first, over) == ["numa: nodes[0]: n NUMA zone 0: cpu adds up to 8.001, at most 8"]
    assert lines(cluster(*jobs), first, said(zones="0 3", cpu="3 0.001", job="l")) == []
    # amounts of the plan may be finer than any in the snapshot
    fine = said(zones="0 3", cpu="3.0000000001 0.0009999999", job="l")
    assert lines(cluster(*jobs), first, fine) == [
        "numa: nodes[0]: n NUMA zone 0: cpu adds up to 8.0000000001, at most 8"
    ]


def test_running_work_of_which_the_zone_is_known() -> None:
    # 6 of the 8 cores of zone 3 are in use, by what the snapshot says or by the task's cards
    at = runs("old", "n", zone=3, cpu=6)
    by_cards = runs("old", "n", 4, cpu=6, numa="restricted")
    for old in (at, by_cards):
        snapshot = cluster(job(cpu=3), old)
        assert lines(snapshot, said(zones="0 3", cpu="1 2")) == []
        assert lines(snapshot, said(zones="3", cpu="3")) == [
            "numa: nodes[0]: n NUMA zone 3: cpu adds up to 9 (6 of it by running work), at most 8"
        ]
    # where it is not known, it lies wherever it is least in the way: in zone 0
    for old in (runs("old", "n", cpu=6), runs("old", "n", 4, cpu=6), runs("old", "n", cpu=6, numa="restricted")):
        assert lines(cluster(job(cpu=8), old), said(zones="3", cpu="8")) == []


def test_what_runs_in_two_of_three_zones() -> None:
    # three zones of 4 cores; what runs takes 5 within the first two, so new work has 3 of them, in whichever
    zones = tuple(zone(number, number, cpu=4) for number in range(3))
    node = Node(name="n", cpu=12, gpus=(Gpu(model="A", count=3),), zones=zones)
    old = runs("old", "n", 0, 1, cpu=5, numa="restricted")
    snapshot = cluster(job(cpu=4), old, nodes=(node,))
    assert lines(snapshot, said(zones="0 2", cpu="3 1")) == []
    assert lines(snapshot, said(zones="0 1 2", cpu="1 2 1")) == []
    assert lines(snapshot, said(zones="0 1", cpu="2 2")) == [
        "numa: nodes[0]: n NUMA zones 0, 1: cpu adds up to 9 (5 of it by running work), at most 8"
    ]
    # one zone that is overfilled by itself is named, and none that it is a part of
    snapshot = cluster(job(cpu=5), old, nodes=(node,))
    assert lines(snapshot, said(zones="2", cpu="5")) == ["numa: nodes[0]: n NUMA zone 2: cpu adds up to 5, at most 4"]


def test_zones_that_running_work_overfills() -> None:
    # 10 of 8 cores are in use in zone 3, which is no violation; new work may not take more of it, but zone 0 is free
    snapshot = cluster(job(cpu=1), runs("old", "n", zone=3, cpu=10))
    assert lines(snapshot, said(zones="0", cpu="1")) == []
    assert lines(snapshot, said(zones="3", cpu="1")) == [
        "numa: nodes[0]: n NUMA zone 3: cpu adds up to 11 (10 of it by running work), at most 8"
    ]
    # of three zones of 4 cores the first is overfilled, and 1 runs within the first two: 4 are left, 1 of them taken
    zones = tuple(zone(number, number, cpu=4) for number in range(3))
    node = Node(name="n", cpu=12, gpus=(Gpu(model="A", count=3),), zones=zones)
    work = runs("old", "n", zone=0, cpu=6), runs("older", "n", 0, 1, cpu=1, numa="restricted")
    assert lines(cluster(job(cpu=3), *work, nodes=(node,)), said(zones="1", cpu="3")) == []
    assert lines(cluster(job(cpu=4), *work, nodes=(node,)), said(zones="1", cpu="4")) == [
        "numa: nodes[0]: n NUMA zones 0, 1: cpu adds up to 11 (7 of it by running work), at most 8"
    ]


def test_memory_of_any_size() -> None:
    # 2**62 bytes in each zone: sums that 64 bits do not hold are as exact
    zones = tuple(replace(zone, memory=2**62) for zone in TWO.zones)
    node = replace(TWO, memory=str(2**63 - 1), zones=(replace(zones[0], memory=2**62 - 1), zones[1]))
    snapshot = cluster(job("j", memory=2**62 - 1), job("k", memory=1), nodes=(node,))
    first = said(zones="0", memory=str(2**62 - 1))
    assert lines(snapshot, first, said(zones="3", memory="1", job="k")) == []
    assert lines(snapshot, first, said(zones="0", memory="1", job="k")) == [
        f"numa: nodes[0]: n NUMA zone 0: memory adds up to 4194304Ti, at most {2**62 - 1}"
    ]


# --- NICs -------------------------------------------------------------------------------------------------------


def test_each_nic_is_held_by_one_task() -> None:
    snapshot = cluster(job(count=2, nics=1), _old("a0"))
    assert lines(snapshot, said(zones="0", nics="a1"), said(zones="3", nics="b0")) == []
    assert lines(snapshot, said(zones="0", nics="a0"), said(zones="3", nics="b0")) == [
        "nics: tasks[0]: n: NIC a0 is held by running work already"
    ]
    assert lines(snapshot, said(zones="3", nics="b0"), said(zones="3", nics="b0")) == [
        "nics: tasks[1]: n: NIC b0 is held by tasks[0] already"
    ]


def test_nics_are_in_the_order_of_the_file() -> None:
    snapshot = cluster(job(nics=3))
    assert lines(snapshot, said(zones="0 3", nics="a0 a1 b0")) == []
    assert lines(snapshot, said(zones="0 3", nics="b0 a1 a0")) == [
        "nics: tasks[0]: n: NICs b0, a1, a0 are listed, in the order of the file that is a0, a1, b0"
    ]


def _old(nics: str) -> Job:
    """A running task of one NIC."""
    group = TaskGroup(name="g", task=Task(nics=1))
    place = RunningTask(group="g", index=0, node="n", nics=tuple(nics.split()))
    return Job(name="old", groups=(group,), running=Running(tasks=(place,)))


def test_nics_are_left_for_what_runs() -> None:
    # the node has 4 NICs; which of them the running task has is not known, so it is any, and 3 are left
    snapshot = cluster(job(count=4, nics=1), _old(""))
    three = said(zones="0", nics="a0"), said(zones="0", nics="a1"), said(zones="3", nics="b0")
    assert lines(snapshot, *three) == []
    assert lines(snapshot, *three, said(zones="3", nics="b1")) == [
        "capacity: nodes[0]: n: nics adds up to 5 (1 of it by running work), at most 4"
    ]
    # a task that is bound by the card it has holds both of the first zone
    group = TaskGroup(name="g", task=Task(gpus=1, nics=2, numa="single-numa-node"))
    place = RunningTask(group="g", index=0, node="n", gpus=(0,))
    old = Job(name="old", groups=(group,), running=Running(tasks=(place,)))
    snapshot = cluster(job(nics=1), old)
    assert lines(snapshot, said(zones="3", nics="b0")) == []
    assert lines(snapshot, said(zones="0", nics="a0")) == [
        "nics: nodes[0]: n NUMA zone 0: nics adds up to 3 (2 of it by running work), at most 2"
    ]


# --- what can never run -----------------------------------------------------------------------------------------

NEVER: list[tuple[dict[str, Any], str]] = [
    ({"gpus": 5}, "asks for 5 cards in one NUMA zone; the largest zone of the cluster has 4"),
    ({"cpu": "8500m"}, "asks for 8.5 cores in one NUMA zone; the largest zone of the cluster has 8"),
    ({"memory": "33Gi"}, "asks for 33Gi of memory in one NUMA zone; the largest zone of the cluster has 32Gi"),
    ({"nics": 3}, "asks for 3 NICs in one NUMA zone; the largest zone of the cluster has 2"),
]


@pytest.mark.parametrize(("asks", "figures"), NEVER, ids=[next(iter(asks)) for asks, _ in NEVER])
def test_never_in_one_zone(asks: dict[str, Any], figures: str) -> None:
    snapshot = cluster(job(numa="single-numa-node", **asks))
    right = plan(snapshot)
    assert [entry.reason for entry in right.pending] == ["never"]
    assert check(snapshot, right) == []
    wrong = replace(right, pending=[Pending(job="j", placed=0, wanted=1, reason="no_room", detail="")])
    assert [str(violation) for violation in check(snapshot, wrong)] == [
        "pending: pending[0].reason: the reason is no_room, it must be never: "
        f"no node could take some task it needs, even without other work (numa: g {figures})"
    ]
    # a restricted task takes two zones
    assert [entry.reason for entry in plan(cluster(job(numa="restricted", **asks))).pending] == ["no_room"]


def test_never_without_zones() -> None:
    snapshot = cluster(job(gpus=1, numa="restricted"), nodes=(BARE,))
    wrong = replace(plan(snapshot), pending=[Pending(job="j", placed=0, wanted=1, reason="no_room", detail="")])
    (line,) = check(snapshot, wrong)
    assert line.what.endswith("(numa: g is restricted, and no node that could take it lists NUMA zones)")
