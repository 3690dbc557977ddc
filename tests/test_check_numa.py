"""NUMA zones and NICs of one task: what a plan says of where it lies in its node, kept and broken, by hand."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from numa_cases import BARE, TWO, Said, cluster, job, lines, plan, said

from placement.check import check
from placement.errors import PlanError
from placement.snapshot import Gpu, Job, Task, TaskGroup

# --- one task -------------------------------------------------------------------------------------------------

# two cards, 6 cores, 8Gi and a NIC: from the first zone alone
ASKS: dict[str, Any] = {"gpus": 2, "cpu": 6, "memory": "8Gi", "nics": 1}
GOOD = said(0, 1, zones="0", cpu="6", memory="8Gi", nics="a0")
# from both: card 4 and 1.5 of the cores of the second zone
WIDE = said(0, 4, zones="0 3", cpu="4.5 1500m", memory="8Gi 0", nics="a0")

WRONG: list[tuple[str, str, Said, list[str]]] = [
    ("single", "single-numa-node", GOOD, []),
    ("restricted", "restricted", GOOD, []),
    ("unbound", "none", GOOD, []),
    ("unbound-wide", "best-effort", WIDE, []),
    (
        "single-wide",
        "single-numa-node",
        WIDE,
        ["numa: tasks[0]: n: the task lies in NUMA zones 0, 3, single-numa-node allows one"],
    ),
    (
        "restricted-wide",
        "restricted",
        WIDE,
        [
            "numa: tasks[0]: n: the task is restricted and lies in NUMA zones 0, 3, "
            "an empty node like this one needs 1 zone for it"
        ],
    ),
    (
        "unknown",
        "none",
        GOOD | {"zones": [0, 1], "cpu": [6, 0], "memory": ["8Gi", 0]},
        ["numa: tasks[0]: n: it has no NUMA zone 1, only NUMA zones 0, 3"],
    ),
    (
        "order",
        "none",
        WIDE | {"zones": [3, 0], "cpu": ["1.5", "4.5"], "memory": [0, "8Gi"]},
        ["numa: tasks[0]: n: NUMA zones 3, 0 are listed, in order and each once that is NUMA zones 0, 3"],
    ),
    (
        "twice",
        "none",
        GOOD | {"zones": [0, 0], "cpu": [3, 3], "memory": ["4Gi", "4Gi"]},
        ["numa: tasks[0]: n: NUMA zones 0, 0 are listed, in order and each once that is NUMA zone 0"],
    ),
    (
        "card-outside",
        "none",
        GOOD | {"gpus": [0, 4]},
        ["numa: tasks[0]: n: gpu 4 is in NUMA zone 3, which the plan does not list"],
    ),
    (
        "idle",
        "none",
        GOOD | {"zones": [0, 3], "cpu": [6, 0], "memory": ["8Gi", 0]},
        [
            "numa: tasks[0]: n: nothing of the task comes from NUMA zone 3, "
            "only zones that it takes something of are listed"
        ],
    ),
    (
        "none",
        "none",
        said(0, 1, nics="a0"),
        ["numa: tasks[0]: n: no zone is listed, and zones count what the task takes"],
    ),
    (
        "less-cpu",
        "none",
        WIDE | {"cpu": ["4.5", "1499m"]},
        ["numa: tasks[0]: n: cpu by zone adds up to 5.999, the task asks for 6"],
    ),
    (
        "more-memory",
        "none",
        GOOD | {"memory": [2**33 + 1]},
        ["numa: tasks[0]: n: memory by zone adds up to 8589934593, the task asks for 8Gi"],
    ),
    (
        "negative",
        "none",
        WIDE | {"cpu": [7, -1]},
        ["numa: tasks[0]: n: cpu by zone has -1, which is no amount of at least 0"],
    ),
    (
        "words",
        "none",
        GOOD | {"cpu": ["six"]},
        ["numa: tasks[0]: n: cpu by zone has six, which is no amount of at least 0"],
    ),
    (
        "not-parallel",
        "none",
        WIDE | {"cpu": [6]},
        ["numa: tasks[0]: n: cpu is listed for 1 zone, the task lies in 2"],
    ),
    ("fewer-nics", "none", GOOD | {"nics": []}, ["nics: tasks[0]: n: 0 NICs listed, the task takes 1"]),
    ("more-nics", "none", GOOD | {"nics": ["a0", "a1"]}, ["nics: tasks[0]: n: 2 NICs listed, the task takes 1"]),
    ("unknown-nic", "none", GOOD | {"nics": ["c0"]}, ["nics: tasks[0]: n: it has no NIC c0"]),
    (
        "nic-outside",
        "none",
        GOOD | {"nics": ["b0"]},
        ["nics: tasks[0]: n: NIC b0 is in NUMA zone 3, which the plan does not list"],
    ),
]


@pytest.mark.parametrize(("policy", "task", "expected"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_one_task(policy: str, task: Said, expected: list[str]) -> None:
    assert lines(cluster(job(numa=policy, **ASKS)), task) == expected


def test_a_nic_cannot_be_listed_twice() -> None:
    snapshot = cluster(job(nics=2))
    assert lines(snapshot, said(zones="3", nics="b0 b1")) == []
    (line,) = lines(snapshot, said(zones="3", nics="b0 b0"))
    assert line == "nics: tasks[0]: n: NIC b0 is listed twice, the NICs of a task must be distinct"


def test_amounts_only_where_they_are_counted() -> None:
    # the task asks for no memory, and the zones of this node state no CPU, so its cores come from the node
    node = replace(TWO, zones=tuple(replace(zone, cpu=None) for zone in TWO.zones))
    snapshot = cluster(job(gpus=1, cpu=6), nodes=(node,))
    assert lines(snapshot, said(0, zones="0")) == []
    assert lines(snapshot, said(0, zones="0", cpu="6", memory="0")) == [
        "numa: tasks[0]: n: cpu is listed by zone, and the zones of the node state none",
        "numa: tasks[0]: n: memory is listed by zone, and the task asks for none",
    ]
    # a task of cores alone lies in no zone then
    snapshot = cluster(job(cpu=6, numa="single-numa-node"), nodes=(node,))
    assert lines(snapshot, said()) == []
    assert lines(snapshot, said(zones="0")) == [
        "numa: tasks[0]: n: nothing of the task comes from NUMA zone 0, "
        "only zones that it takes something of are listed"
    ]


def test_a_node_without_zones() -> None:
    snapshot = cluster(job(gpus=1), nodes=(BARE, TWO))
    assert lines(snapshot, said(0, node="bare")) == []
    assert lines(snapshot, said(0, node="bare", zones="0", cpu="0")) == [
        "numa: tasks[0]: bare: the plan lists zones of a node that lists no NUMA zones",
        "numa: tasks[0]: bare: the plan lists cpu of a node that lists no NUMA zones",
    ]
    for policy in ("restricted", "single-numa-node"):
        bound = cluster(job(gpus=1, numa=policy), nodes=(BARE, TWO))
        assert lines(bound, said(0, node="bare")) == [
            f"numa: tasks[0]: bare: the node lists no NUMA zones, and the task is {policy}"
        ]


# --- as few zones as an empty node needs ------------------------------------------------------------------------

FEWEST: list[tuple[str, dict[str, Any], int]] = [
    ("cards", {"gpus": 4}, 1),
    ("more-cards-than-a-zone-has", {"gpus": 5}, 2),
    ("cpu", {"cpu": 8}, 1),
    ("a-bit-more-cpu", {"cpu": "8001m"}, 2),
    ("memory", {"memory": "32Gi"}, 1),
    ("a-byte-more-memory", {"memory": 2**35 + 1}, 2),
    ("nics", {"nics": 2}, 1),
    ("more-nics", {"nics": 3}, 2),
    # three cards have 80Gi in each zone, one has 40Gi
    ("device-memory", {"gpus": 3, "gpu_memory": "41Gi"}, 1),
    ("too-few-large-cards", {"gpus": 4, "gpu_memory": "41Gi"}, 2),
    ("a-card-model", {"gpus": 1, "gpu_models": ("B",)}, 1),
    ("too-few-of-a-card-model", {"gpus": 2, "gpu_models": ("B",)}, 2),
]


@pytest.mark.parametrize(("asks", "needed"), [row[1:] for row in FEWEST], ids=[row[0] for row in FEWEST])
def test_restricted_to_as_few_zones_as_an_empty_node_needs(asks: dict[str, Any], needed: int) -> None:
    a, b = Gpu(model="A", count=3, memory="80Gi"), Gpu(model="B", memory="40Gi")
    large = Gpu(model="A", count=3, memory="80Gi")
    node = replace(TWO, gpus=(a, b, large, b))
    task = Task(numa="restricted", **asks)
    devices = [3, 7] if task.gpu_models else [0, 1, 2, 4, 5, 6] if task.gpu_memory else [0, 4, 1, 5, 2, 6, 3]
    # something of both zones: half of everything, and cards and NICs of each
    cards = sorted(devices[-task.gpus :] if task.gpus < 2 else [*devices[: task.gpus - 1], devices[-1]])[: task.gpus]
    both = said(*cards, zones="0 3")
    if task.cpu:
        both["cpu"] = [4, "4.001" if task.cpu == "8001m" else 4]
    if task.memory:
        both["memory"] = [2**34, 2**34 + (task.memory != "32Gi")]
    both["nics"] = ["a0", "b0", "b1"][: task.nics]
    snapshot = cluster(Job(name="j", groups=(TaskGroup(name="g", task=task),)), nodes=(node,))
    found = [line for line in lines(snapshot, both) if "the task is restricted" in line]
    expected = (
        "numa: tasks[0]: n: the task is restricted and lies in NUMA zones 0, 3, "
        "an empty node like this one needs 1 zone for it"
    )
    assert found == ([expected] if needed == 1 else [])


# --- columns ----------------------------------------------------------------------------------------------------


def test_columns_that_are_not_there() -> None:
    snapshot = cluster(job(count=2, gpus=1, nics=1))
    tasks = said(0, zones="0", nics="a0"), said(4, zones="3", nics="b0")
    right = plan(snapshot, *tasks)
    assert check(snapshot, right) == []

    def without(*names: str) -> list[str]:
        columns = dict.fromkeys(names, msgspec.UNSET)
        return [str(v) for v in check(snapshot, replace(right, tasks=replace(right.tasks, **columns)))]

    assert without("cpu", "memory") == []
    assert without("zones") == [
        "numa: tasks.zones: the plan does not say in which zones of its nodes 2 tasks of it lie"
    ]
    assert without("nics") == ["nics: tasks.nics: the plan does not say which NICs 2 tasks of it get"]
    short = replace(right, tasks=replace(right.tasks, zones=[[0]], nics=[["a0"], ["b0"], []]))
    assert [str(v) for v in check(snapshot, short)] == [
        "numa: tasks.zones: found 1 entry, expected one for each of 2 tasks",
        "nics: tasks.nics: found 3 entries, expected one for each of 2 tasks",
    ]


@pytest.mark.parametrize(
    ("column", "cell"), [("zones", ["0"]), ("cpu", [None]), ("memory", 1), ("nics", [0]), ("zones", [0.5])]
)
def test_columns_of_the_wrong_type(column: str, cell: object) -> None:
    snapshot = cluster(job(gpus=1))
    right = plan(snapshot, said(0, zones="0"))
    with pytest.raises(PlanError):
        check(snapshot, replace(right, tasks=replace(right.tasks, **{column: [cell]})))
