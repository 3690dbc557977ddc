"""NUMA zones and NICs that no node can have, and those that every reader has to accept; see also `bad_zones`."""

from __future__ import annotations

import json

import pytest
from bad_snapshots import edited
from bad_zones import ALONE
from hypothesis import given
from zoned_strategies import zoned_snapshots

from placement.errors import SnapshotError
from placement.honoured import refuse_unhonoured
from placement.snapshot import (
    Gpu,
    Job,
    Link,
    Nic,
    Node,
    NumaZone,
    PcieSwitch,
    Running,
    RunningTask,
    Snapshot,
    Task,
    TaskGroup,
)
from placement.snapshot.fields import MOST_CARDS, MOST_ZONES
from placement.snapshot.read import dumps, loads, verified
from placement.snapshot.validate import judge
from placement.units import Quantity


def wrong(node: Node, *jobs: Job) -> list[str]:
    """Return what is wrong with a node and jobs on it."""
    return [
        f"{problem.path.removeprefix('nodes[0]')}: {problem.what}"
        for problem in judge(Snapshot(nodes=(node,), jobs=jobs)).problems
    ]


def node_of(
    *zones: NumaZone, cards: int = 0, cpu: Quantity | None = None, memory: Quantity | None = None, name: str = "n"
) -> Node:
    gpus = (Gpu(model="A", count=cards),) if cards else ()
    return Node(name=name, cpu=cpu, memory=memory, gpus=gpus, zones=zones)


@given(zoned_snapshots())
def test_drawn_snapshots_are_valid_and_honoured(snapshot: Snapshot) -> None:
    assert refuse_unhonoured(verified(snapshot)) == snapshot
    assert loads(dumps(snapshot)) == snapshot


@pytest.mark.parametrize(("edits", "path"), ALONE, ids=lambda value: str(value)[:60])
def test_what_follows_from_a_mistake_is_not_told(edits: dict[str, object], path: str) -> None:
    with pytest.raises(SnapshotError) as caught:
        loads(edited(edits))
    assert [problem.path for problem in caught.value.problems] == [path]


def test_every_card_is_in_one_zone() -> None:
    assert wrong(node_of(NumaZone(id=0, gpus=(1,)), NumaZone(id=1, gpus=(0, 2)), cards=3)) == []
    assert wrong(node_of(NumaZone(id=0, gpus=(1,)), NumaZone(id=1, gpus=(1, 2)), cards=4)) == [
        ".zones[1].gpus[0]: card 1 is in zones[0] already",
        ".zones: cards 0, 3 are in no zone",
    ]
    assert wrong(node_of(cards=3)) == []  # a node may list no zones
    (many,) = wrong(node_of(NumaZone(id=0), cards=MOST_CARDS))
    assert many == f".zones: cards {', '.join(map(str, range(20)))} and 236 more are in no zone"


@pytest.mark.parametrize(
    ("cpu", "of_zones"),
    [
        (3, (1, 2)),
        ("0.3", ("100m", "0.2")),  # in tenths of a core: 1 + 2 = 3, though 0.1 + 0.2 as doubles is more than 0.3
        (0.3, (0.1, 0.2)),
        ("1", ("333m", "333m", "334m")),
        (0, (0, 0)),
        (2**63 - 1, (2**62, 2**62 - 1)),
    ],
)
def test_zones_add_up_exactly(cpu: Quantity, of_zones: tuple[Quantity, ...]) -> None:
    zones = [NumaZone(id=number, cpu=amount, memory=amount) for number, amount in enumerate(of_zones)]
    assert wrong(node_of(*zones, cpu=cpu, memory=cpu)) == []


def test_zones_that_do_not_add_up_say_both_figures() -> None:
    zones = (NumaZone(id=0, cpu="500m", memory="1Gi"), NumaZone(id=1, cpu="0.001", memory="512Mi"))
    # 0.5 + 0.001 cores, 2**30 + 2**29 bytes
    assert wrong(node_of(*zones, cpu="502m", memory="1536Mi")) == [
        '.cpu: the node states "502m", which is 0.502 cores, but its zones state 0.501 cores in all'
    ]
    assert wrong(node_of(*zones, cpu="501m", memory=2**30)) == [
        ".memory: the node states 1073741824, which is 1073741824 bytes, but its zones state 1610612736 bytes in all"
    ]
    assert wrong(node_of(*zones, cpu="501m")) == [
        ".memory: the node states no `memory`, but its zones state 1610612736 bytes in all"
    ]


def test_zones_state_an_amount_together() -> None:
    some = (NumaZone(id=0), NumaZone(id=1, cpu=2), NumaZone(id=2))
    assert wrong(node_of(*some, cpu=2)) == [".zones[0].cpu: the zone states no `cpu`, but zones[1] does"]
    # one of the two may be stated alone
    assert wrong(node_of(NumaZone(id=0, memory=1), NumaZone(id=1, memory=2), memory=3, cpu=7)) == []
    # what is no quantity is said once, without a sum
    bad = wrong(node_of(NumaZone(id=0, cpu="x"), NumaZone(id=1, cpu=1), cpu=3))
    assert bad == ['.zones[0].cpu: found "x", expected a number or a Kubernetes quantity such as "500m" or "80Gi"']


@pytest.mark.parametrize(
    ("lists", "said"),
    [
        (("0-3,8", "4-7,9-11"), []),
        (("3", "0,1,2"), []),
        (("0-65535", ""), []),
        (("0-4", "4-7"), [".zones[1].cpus: CPU 4 is in zones[0] too"]),
        (("6-9", "0-7"), [".zones[1].cpus: CPU 6 is in zones[0] too"]),
        (
            ("0-9,20", "5", "20-21"),
            [".zones[1].cpus: CPU 5 is in zones[0] too", ".zones[2].cpus: CPU 20 is in zones[0] too"],
        ),
        (("0-3,3", "4"), [".zones[0].cpus: CPU 3 is in this list twice"]),
        (("5-3", "4"), [".zones[0].cpus: the range 5-3 runs backwards"]),
        (("0-65536", "4"), [".zones[0].cpus: there is CPU 65536, expected at most 65,535"]),
        (("0-", "1"), ['.zones[0].cpus: found "0-", expected a list such as 0-31,64-95']),
        (("0, 1", "2"), ['.zones[0].cpus: found "0, 1", expected a list such as 0-31,64-95']),
        (("0-3,", "4"), ['.zones[0].cpus: found "0-3,", expected a list such as 0-31,64-95']),
        (("٣", "4"), ['.zones[0].cpus: found "٣", expected a list such as 0-31,64-95']),
        (("-1", "4"), ['.zones[0].cpus: found "-1", expected a list such as 0-31,64-95']),
    ],
)
def test_lists_of_cpus(lists: tuple[str, ...], said: list[str]) -> None:
    assert wrong(node_of(*(NumaZone(id=number, cpus=text) for number, text in enumerate(lists)))) == said


def test_a_long_list_of_cpus_is_read_at_once() -> None:
    text = ",".join(["0-65535"] * 200_000)
    assert len(wrong(node_of(NumaZone(id=0, cpus=text)))) == 50


def test_at_most_eight_zones() -> None:
    zones = [NumaZone(id=number) for number in range(MOST_ZONES + 1)]
    assert wrong(node_of(*zones[:-1])) == []
    (problem,) = judge(Snapshot(nodes=(node_of(*zones),))).problems
    assert str(problem) == "nodes[0].zones: there are 9 zones, expected at most 8; keep those with CPUs"


def test_names_are_told_apart_in_the_node() -> None:
    nic, other = Nic(name="x"), Nic(name="y")
    switch = PcieSwitch(name="x")
    zones = (NumaZone(id=3, nics=(nic, other)), NumaZone(id=3, nics=(other,), switches=(switch, switch)))
    assert wrong(node_of(*zones)) == [
        ".zones[1]: the zone 3 is listed twice",
        '.zones[1].nics[0].name: "y" is in zones[0] already',
        '.zones[1].switches[1].name: zones[1] has a switch "x" already',
    ]
    # a NIC may be called as a switch or as a card is
    one = (NumaZone(id=0, gpus=(0,), nics=(Nic(name="0"),), switches=(PcieSwitch(name="0", gpus=(0,), nics=("0",)),)),)
    assert wrong(node_of(*one, cards=1)) == []


def test_switches_are_of_one_zone() -> None:
    switches = (PcieSwitch(name="a", gpus=(0, 1), nics=("x",)), PcieSwitch(name="b", gpus=(0,), nics=("x", "y")))
    zones = (NumaZone(id=0, gpus=(0,), nics=(Nic(name="x"),), switches=switches), NumaZone(id=1, gpus=(1,)))
    assert wrong(node_of(*zones, cards=2)) == [
        ".zones[0].switches[0].gpus[1]: card 1 is not in this zone",
        ".zones[0].switches[1].gpus[0]: card 0 is listed twice",
        '.zones[0].switches[1].nics[0]: NIC "x" is listed twice',
        '.zones[0].switches[1].nics[1]: NIC "y" is not in this zone',
    ]


def test_links_say_one_thing_of_a_pair() -> None:
    def links(*links: Link) -> list[str]:
        return wrong(Node(name="n", gpus=(Gpu(model="A", count=2),), links=links))

    assert links(Link(a=0, b=1, kind="SYS")) == []
    assert links(Link(a=0, b=1, kind="SYS"), Link(a=1, b=0, kind="SYS")) == [
        ".links[1]: cards 1 and 0 are linked in links[0] already"
    ]
    assert links(Link(a=0, b=1, kind="SYS"), Link(a=1, b=0, kind="NVLINK", width=2)) == [
        ".links[1]: cards 1 and 0 are linked in links[0] already, by SYS and here by NVLINK of width 2"
    ]


# --- what runs ------------------------------------------------------------------------------------------------

ZONED = node_of(
    NumaZone(id=2, cpu=1, gpus=(0,), nics=(Nic(name="x"), Nic(name="y"))),
    NumaZone(id=5, cpu=1, gpus=(1,)),
    cpu=2,
    cards=2,
)


def running(name: str, task: Task, *places: RunningTask) -> Job:
    group = TaskGroup(name="g", count=len(places), task=task)
    return Job(name=name, groups=(group,), running=Running(tasks=places))


def test_running_tasks_that_overfill_a_zone_are_accepted() -> None:
    two = RunningTask(group="g", index=0, node="n", gpus=(0, 1), zone=5)
    # 3 cores where zone 5 has one, a card outside the zone, a single zone for cards of two, more NICs than there are
    assert wrong(ZONED, running("a", Task(gpus=2, cpu=3, nics=3, numa="single-numa-node"), two)) == []


def test_a_zone_that_runs_something_is_listed() -> None:
    place = RunningTask(group="g", index=0, node="n", zone=0)
    assert wrong(ZONED, running("a", Task(), place)) == ['jobs[0].running.tasks[0].zone: "n" has no NUMA zone 0']
    assert wrong(node_of(), running("a", Task(), place)) == ['jobs[0].running.tasks[0].zone: "n" has no NUMA zone 0']


def test_a_nic_is_held_by_one_task() -> None:
    first = RunningTask(group="g", index=0, node="n", nics=("x",))
    second = RunningTask(group="g", index=1, node="n", nics=("y",))
    task = Task(nics=1)
    assert wrong(ZONED, running("a", task, first, second)) == []
    again = RunningTask(group="g", index=0, node="n", nics=("y",))
    assert wrong(ZONED, running("a", task, first, second), running("b", task, again)) == [
        'jobs[1].running.tasks[0].nics[0]: NIC "y" of "n" is held by jobs[0].running.tasks[1]'
    ]
    # another node has NICs of its own
    nodes = (ZONED, node_of(*ZONED.zones, name="m", cards=2, cpu=2))
    there = RunningTask(group="g", index=0, node="m", nics=("y",))
    jobs = (running("a", task, first, second), running("b", task, there))
    assert judge(Snapshot(nodes=nodes, jobs=jobs)).problems == []


def test_nics_are_named_all_or_none() -> None:
    task = Task(nics=2)
    assert wrong(ZONED, running("a", task, RunningTask(group="g", index=0, node="n"))) == []
    assert wrong(ZONED, running("a", task, RunningTask(group="g", index=0, node="n", nics=("x",)))) == [
        "jobs[0].running.tasks[0].nics: the task holds 1 NIC, but asks for 2"
    ]
    assert wrong(ZONED, running("a", Task(), RunningTask(group="g", index=0, node="n", nics=("x",)))) == [
        "jobs[0].running.tasks[0].nics: the task holds 1 NIC, but asks for 0"
    ]


def test_copies_of_a_counted_node_have_nics_of_their_own() -> None:
    place = {"group": "g", "index": 0, "nics": ["mlx5_1"]}
    jobs = [
        {
            "name": f"more{copy}",
            "groups": [{"name": "g", "task": {"nics": 1}}],
            "running": {"tasks": [place | {"node": f"dgx-{copy}"}]},
        }
        for copy in (0, 1)
    ]
    assert len(loads(edited({"jobs[3]": jobs[0], "jobs[4]": jobs[1]})).jobs) == 5
    jobs[1]["running"] = {"tasks": [place | {"node": "dgx-0"}]}
    with pytest.raises(SnapshotError, match=r'jobs\[4\].*NIC "mlx5_1" of "dgx-0" is held by jobs\[3\]'):
        loads(edited({"jobs[3]": jobs[0], "jobs[4]": jobs[1]}))
    assert json.loads(edited({}))["nodes"][0]["count"] == 3
