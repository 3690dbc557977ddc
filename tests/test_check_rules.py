"""Where tasks are: every rule on a small case worked out by hand, kept and broken."""

from __future__ import annotations

from typing import Any

import pytest
from check_cases import PLACING, Row, opinion, plan_of
from msgspec.structs import replace

from placement.check import RULES, check, overfull
from placement.snapshot import (
    DomainLimit,
    Gpu,
    Job,
    Node,
    Requires,
    Running,
    RunningTask,
    Snapshot,
    Taint,
    Task,
    TaskGroup,
    Toleration,
)


def job(name: str = "j", count: int = 1, requires: Requires | None = None, **task: Any) -> Job:
    """A job of one group ``g`` of `count` tasks, any number of which may run."""
    group = TaskGroup(name="g", count=count, min_count=1, task=Task(**task))
    return Job(name=name, groups=(group,), requires=requires or Requires())


def running(node: str, *gpus: int, name: str = "old", **task: Any) -> Job:
    """A running job of one task."""
    group = TaskGroup(name="g", task=Task(gpus=len(gpus), **task))
    place = RunningTask(group="g", index=0, node=node, gpus=gpus)
    return Job(name=name, groups=(group,), running=Running(tasks=(place,)))


def on(node: str, *gpus: int, index: int = 0, name: str = "j", group: str = "g") -> Row:
    return (name, group, index, node, list(gpus))


def broken(snapshot: Snapshot, *rows: Row) -> list[str]:
    """Return what the judge says of rows, as lines; the second opinion must name the same rules."""
    violations = check(snapshot, plan_of(snapshot, rows))
    rules = {violation.rule for violation in violations}
    assert rules == opinion(snapshot, rows)
    return [str(violation) for violation in violations]


# --- filters --------------------------------------------------------------------------------------------------

GOOD = Node(
    name="good",
    labels={"zone": "a", "disk": "ssd"},
    taints=(Taint(key="team", value="x"),),
    driver="550.54.14",
    cuda="12.4",
    gpus=(Gpu(model="A", compute_capability="9.0"),),
)
CARD = GOOD.gpus[0]
TOLERANT = Toleration(key="team", value="x")
PICKY = job(
    gpus=1,
    gpu_share="500m",
    gpu_models=("B", "A"),
    node_selector={"zone": "a"},
    tolerations=(TOLERANT,),
    requires=Requires(driver="550.9", cuda="12", compute_capability="8.9"),
)

FILTERS: list[tuple[str, Node, str]] = [
    ("node_selector", replace(GOOD, labels={"zone": "b"}), "n: the node has zone=b, zone=a is required"),
    ("node_selector", replace(GOOD, labels={}), "n: the node has no label zone, zone=a is required"),
    ("taints", replace(GOOD, taints=(Taint(key="team", value="y"),)), "n: the node's taint team=y:NoSchedule"),
    (
        "taints",
        replace(GOOD, taints=(*GOOD.taints, Taint(key="t", effect="NoExecute"))),
        "n: the node's taint t='':NoExecute",
    ),
    ("cordon", replace(GOOD, cordoned=True), "n: the node is cordoned"),
    # 550.9 is 550 and 9, which is more than 550 and 8
    ("software", replace(GOOD, driver="550.8.99"), "n: the driver version is 550.8.99, at least 550.9 is required"),
    ("software", replace(GOOD, driver=""), "n: the driver version is unknown, at least 550.9 is required"),
    ("software", replace(GOOD, cuda="11.8"), "n: the CUDA version is 11.8, at least 12 is required"),
    (
        "gpu_models",
        replace(GOOD, gpus=(replace(CARD, model="AA"),)),
        "n gpu 0: the card's model is AA, allowed are B, A",
    ),
    (
        "compute_capability",
        replace(GOOD, gpus=(replace(CARD, compute_capability="8.6"),)),
        "n gpu 0: the compute capability is 8.6, at least 8.9 is required",
    ),
    (
        "compute_capability",
        replace(GOOD, gpus=(replace(CARD, compute_capability=""),)),
        "n gpu 0: the compute capability is unknown",
    ),
    ("health", replace(GOOD, gpus=(replace(CARD, health="unhealthy"),)), "n gpu 0: the card is unhealthy"),
    (
        "sharing",
        replace(GOOD, gpus=(replace(CARD, sharing="exclusive"),)),
        "n gpu 0: the card is exclusive and the task takes 0.5 of it",
    ),
]


@pytest.mark.parametrize(("rule", "node", "text"), FILTERS, ids=[f"{f[0]}-{i}" for i, f in enumerate(FILTERS)])
def test_filters(rule: str, node: Node, text: str) -> None:
    # the good node differs in nothing but what the rule looks at; both nodes are there, so the job could run
    snapshot = Snapshot(nodes=(GOOD, replace(node, name="n")), jobs=(PICKY,))
    assert broken(snapshot, on("good", 0)) == []
    (line,) = broken(snapshot, on("n", 0))
    assert line.startswith(f"{rule}: tasks[0]: {text}")


@pytest.mark.parametrize(
    ("toleration", "fine"),
    [
        (Toleration(key="team", value="x"), True),
        (Toleration(key="team", value="x", effect="NoSchedule"), True),
        (Toleration(key="team", value="x", effect="NoExecute"), False),
        (Toleration(key="team", operator="Exists"), True),
        (Toleration(operator="Exists"), True),
        (Toleration(operator="Exists", effect="NoExecute"), False),
        (Toleration(key="team"), False),  # Equal to no value
        (Toleration(key="mate", operator="Exists"), False),
    ],
)
def test_tolerations(toleration: Toleration, fine: bool) -> None:
    snapshot = Snapshot(nodes=(GOOD,), jobs=(job(tolerations=(toleration,)),))
    lines = broken(snapshot, on("good"))
    assert [line.partition(":")[0] for line in lines] == ([] if fine else ["taints"])


def test_card_filters_look_at_every_card_and_node_filters_at_tasks_without_cards() -> None:
    cards = (Gpu(model="A"), Gpu(model="B"), Gpu(model="A"))
    snapshot = Snapshot(
        nodes=(Node(name="n", gpus=cards), Node(name="c", cordoned=True)),
        jobs=(job(gpus=2, gpu_models=("A",)), job("cpu", cpu=1)),
    )
    assert broken(snapshot, on("n", 0, 2)) == []
    assert broken(snapshot, on("n", 0, 1)) == ["gpu_models: tasks[0]: n gpu 1: the card's model is B, allowed are A"]
    assert broken(snapshot, on("c", name="cpu")) == ["cordon: tasks[0]: c: the node is cordoned and takes no new tasks"]


# --- what adds up ---------------------------------------------------------------------------------------------


def test_capacity_cpu_and_memory() -> None:
    # 2.5 cores: one core runs, 1.5 are free: three tasks of 500m fit, four need 2.0
    # 4 GiB, of which 1 GiB is taken: six tasks of 512Mi fit, so memory never binds before CPU
    snapshot = Snapshot(
        nodes=(Node(name="n", cpu=2.5, memory="4Gi"),),
        jobs=(job(count=4, cpu="500m", memory="512Mi"), running("n", cpu=1, memory="1Gi")),
    )
    assert broken(snapshot, *(on("n", index=i) for i in range(3))) == []
    assert broken(snapshot, *(on("n", index=i) for i in range(4))) == [
        "capacity: nodes[0]: n: cpu adds up to 3 (1 of it by running work), at most 2.5"
    ]
    tight = replace(snapshot, nodes=(Node(name="n", memory="2559Mi"),))  # 1024 + 3 * 512 = 2560
    assert broken(tight, *(on("n", index=i) for i in range(2))) == []
    assert broken(tight, *(on("n", index=i) for i in range(3))) == [
        "capacity: nodes[0]: n: memory adds up to 2560Mi (1Gi of it by running work), at most 2559Mi"
    ]


def test_capacity_is_exact() -> None:
    # 3 * 0.1 is 0.3; in floats it is 0.30000000000000004. One billionth of a core more is too much.
    snapshot = Snapshot(nodes=(Node(name="n", cpu=0.3),), jobs=(job(count=3, cpu=0.1), job("x", cpu="1n")))
    rows = [on("n", index=i) for i in range(3)]
    assert broken(snapshot, *rows) == []
    assert broken(snapshot, *rows, on("n", name="x")) == [
        "capacity: nodes[0]: n: cpu adds up to 0.300000001, at most 0.3"
    ]


def test_capacity_pods_and_extended() -> None:
    # every task takes a pod slot, running ones too: 3 slots hold one running and two new tasks
    snapshot = Snapshot(nodes=(Node(name="n", pods=3),), jobs=(job(count=3), running("n")))
    assert broken(snapshot, on("n"), on("n", index=1)) == []
    assert broken(snapshot, on("n"), on("n", index=1), on("n", index=2)) == [
        "capacity: nodes[0]: n: pods adds up to 4 (1 of it by running work), at most 3"
    ]
    # a resource that a node does not list is not there; no figure for CPU is no limit
    licence = Snapshot(nodes=(Node(name="n", extended={"lic": 1}), Node(name="m")), jobs=(job(extended={"lic": 1}),))
    assert broken(licence, on("n")) == []
    assert broken(licence, on("m")) == ["capacity: nodes[1]: m: lic adds up to 1, at most 0"]


def test_overfull_running_work_is_carried_and_may_not_grow() -> None:
    # running: 3 of 2 cores, 0.75 + 0.5 of card 0, 12 + 12 of its 20 GiB, 1.25 + 1 cards of a cap of 2
    old = running("n", 0, name="a", gpu_share=0.75, gpu_memory="12Gi", cpu=3)
    more = running("n", 0, name="b", gpu_share="500m", gpu_memory="12Gi")
    other = running("m", 1, name="c")
    snapshot = Snapshot(
        nodes=(
            Node(name="n", cpu=2, gpus=(Gpu(model="A", count=2, memory="20Gi"),)),
            Node(name="m", gpus=(CARD, CARD)),
        ),
        limits=(DomainLimit(level="cluster", gpus=2),),
        jobs=(old, more, other, job(), job("cpu", cpu="1m"), job("card", gpus=1), job("share", gpus=1, gpu_share=0.1)),
    )
    assert overfull(snapshot) == [
        "n: cpu adds up to 3, at most 2",
        "n gpu 0: shares add up to 1.25, at most 1 (jobs a, b)",
        "n gpu 0: tasks need 24Gi of memory, at most 20Gi (jobs a, b)",
        "cluster: gpus in use adds up to 2.25, at most 2",
    ]
    assert broken(snapshot) == []
    assert broken(snapshot, on("n")) == []  # takes nothing of what is over-full
    assert broken(snapshot, on("n", name="cpu")) == [
        "capacity: nodes[0]: n: cpu adds up to 3.001 (3 of it by running work), at most 2"
    ]
    assert broken(snapshot, on("m", 0, name="card")) == [
        "limits: limits[0].gpus: cluster: gpus in use adds up to 3.25 (2.25 of it by running work), at most 2"
    ]
    free = replace(snapshot, limits=())
    assert broken(free, on("n", 1, name="card")) == []
    assert broken(free, on("n", 0, name="share")) == [
        "shares: nodes[0].gpus[0]: n gpu 0: shares add up to 1.35 (1.25 of it by running work), at most 1"
    ]


def test_nothing_is_overfull_at_exactly_full() -> None:
    snapshot = Snapshot(
        nodes=(Node(name="n", cpu=2, pods=1, gpus=(Gpu(model="A", memory="20Gi"),)),),
        limits=(DomainLimit(level="cluster", gpus=1, cpu=2),),
        jobs=(running("n", 0, cpu=2, gpu_memory="20Gi"),),
    )
    assert overfull(snapshot) == []
    assert broken(snapshot) == []


def test_limits() -> None:
    # rack r holds n-0 and n-1, the cluster m too. Cap of r: 2.5 cards, of which 1 runs: 1.5 are left
    snapshot = Snapshot(
        topology=("rack",),
        nodes=(
            Node(name="n", count=2, position={"rack": "r"}, extended={"lic": 4}, gpus=(Gpu(model="A", count=2),)),
            Node(name="m", extended={"lic": 4}, gpus=(Gpu(model="A", count=2),)),
        ),
        limits=(
            DomainLimit(level="rack", domain="r", gpus="2500m"),
            DomainLimit(level="cluster", cpu=3, memory="1Gi", extended={"lic": 5}),
        ),
        jobs=(
            running("n-0", 1, cpu=1, extended={"lic": 1}),
            job(count=4, gpus=1, gpu_share="500m"),
            job("whole", gpus=2),
            job("cpu", count=3, cpu=1, memory="512Mi"),
            job("lic", count=2, extended={"lic": 2}),
        ),
    )
    half = [on("n-0", 0), on("n-1", 0, index=1), on("n-1", 0, index=2)]  # 3 * 0.5 = 1.5
    assert broken(snapshot, *half) == []
    assert broken(snapshot, *half, on("m", 0, index=3)) == []
    assert broken(snapshot, *half, on("n-1", 1, index=3)) == [
        "limits: limits[0].gpus: rack r: gpus in use adds up to 3 (1 of it by running work), at most 2.5"
    ]
    # two cards of one task count twice: 1 + 2 = 3
    assert broken(snapshot, on("n-1", 0, 1, name="whole")) == [
        "limits: limits[0].gpus: rack r: gpus in use adds up to 3 (1 of it by running work), at most 2.5"
    ]
    # cores: 1 + 2 = 3 is the cap; memory: 2 * 512Mi = 1Gi is the cap; licences: 1 + 2 + 2 = 5 is the cap
    two = [on("m", name="cpu"), on("n-0", index=1, name="cpu")]
    licences = [on("m", name="lic"), on("n-1", index=1, name="lic")]
    assert broken(snapshot, *two, *licences) == []
    assert broken(snapshot, *two, *licences, on("n-0", index=2, name="cpu")) == [
        "limits: limits[1].cpu: cluster: cpu in use adds up to 4 (1 of it by running work), at most 3",
        "limits: limits[1].memory: cluster: memory in use adds up to 1536Mi, at most 1Gi",
    ]
    tighter = replace(snapshot, limits=(DomainLimit(level="cluster", extended={"lic": 4}),))
    assert broken(tighter, *licences) == [
        "limits: limits[0].extended.lic: cluster: lic in use adds up to 5 (1 of it by running work), at most 4"
    ]


def test_shares() -> None:
    # 0.4 runs on card 1; 0.6 fits beside it, 0.600001 does not, nor does a whole card
    snapshot = Snapshot(
        nodes=(Node(name="n", gpus=(Gpu(model="A"), Gpu(model="B"))),),
        jobs=(
            running("n", 1, gpu_share=0.4),
            job(gpus=1, gpu_share="600m"),
            job("more", gpus=1, gpu_share=0.600001),
            job("both", gpus=2),
        ),
    )
    assert broken(snapshot, on("n", 1)) == []
    assert broken(snapshot, on("n", 0), on("n", 1, name="more")) == [
        "shares: nodes[0].gpus[1]: n gpu 1: shares add up to 1.000001 (0.4 of it by running work), at most 1"
    ]
    assert broken(snapshot, on("n", 0, 1, name="both")) == [
        "shares: nodes[0].gpus[1]: n gpu 1: shares add up to 1.4 (0.4 of it by running work), at most 1"
    ]
    # two new tasks on one card: 0.6 + 0.600001
    assert broken(snapshot, on("n", 0), on("n", 0, name="more")) == [
        "shares: nodes[0].gpus[0]: n gpu 0: shares add up to 1.200001, at most 1"
    ]


def test_device_memory() -> None:
    # 16 GiB a card, 6 of which are taken on card 0: 10 fit, 10 GiB and a byte do not; an unknown size has no limit
    snapshot = Snapshot(
        nodes=(Node(name="n", gpus=(Gpu(model="A", memory="16Gi"), Gpu(model="A"))),),
        jobs=(
            running("n", 0, gpu_share=0.1, gpu_memory="6Gi"),
            job(gpus=1, gpu_share=0.1, gpu_memory="10Gi"),
            job("more", gpus=1, gpu_share=0.1, gpu_memory=10 * 2**30 + 1),
            job("both", gpus=2, gpu_share=0.1, gpu_memory="11Gi"),
        ),
    )
    assert broken(snapshot, on("n", 0)) == []
    assert broken(snapshot, on("n", 1), on("n", 1, name="more")) == []
    assert broken(snapshot, on("n", 0, name="more")) == [
        "device_memory: nodes[0].gpus[0]: n gpu 0: tasks need 17179869185 of memory (6Gi of it by running work), "
        "at most 16Gi"
    ]
    # the need is on each card: 11 and 11, not 11 in all
    assert broken(snapshot, on("n", 0, 1, name="both")) == [
        "device_memory: nodes[0].gpus[0]: n gpu 0: tasks need 17Gi of memory (6Gi of it by running work), at most 16Gi"
    ]


def test_every_rule_has_a_case_here_or_beside() -> None:
    beside = {"links", "identity", "gang", "snapshot", "objective", "bounds", "pending", "usage"}
    beside |= {"topology", "affinity", "locality", "numa", "nics", "cpuset", "run_time"}
    # in test_isolation, test_sharing, test_check_mig, test_mig_instance, test_tenants, test_running_broken
    # and test_queue_shares
    beside |= {"isolation", "replica_memory", "memory_limit", "clients", "mig", "mig_instance"}
    beside |= {"tenants", "notes", "queue_shares"}
    here = {rule for rule, _, _ in FILTERS} | {"capacity", "limits", "shares", "device_memory"}
    assert set(RULES) == here | beside
    assert set(RULES) >= PLACING
