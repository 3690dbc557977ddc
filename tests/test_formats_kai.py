"""Objects of KAI: levels, queues, gangs, pods that are being bound, and bind requests of a plan."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import placement as pl
from placement.errors import InputError
from placement.formats.kai.read import read
from placement.formats.kai.write import write
from placement.formats.kubernetes.card_names import named
from placement.formats.kubernetes.nested import leaves
from placement.formats.kubernetes.objects import KAI_LISTS, Objects
from placement.formats.kubernetes.parts import Addition, Gang, Level
from placement.formats.kubernetes.pod import Pod
from placement.formats.ledger import Ledger
from placement.formats.source import File
from placement.quota import Quotas
from placement.snapshot import (
    Gpu,
    Job,
    Node,
    Running,
    RunningTask,
    Slice,
    Snapshot,
    Task,
    TaskGroup,
    Topology,
)

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

from translate import kai_objects

Object = dict[str, Any]


def topology(*labels: str, name: str = "t", **aliases: str) -> Object:
    levels = [{"nodeLabel": label, **({"alias": aliases[label]} if label in aliases else {})} for label in labels]
    return {"metadata": {"name": name}, "spec": {"levels": levels}}


def queue(name: str, parent: str = "", gpu: Object | None = None, **spec: Any) -> Object:
    resources = {} if gpu is None else {"resources": {"gpu": gpu}}
    return {"metadata": {"name": name}, "spec": {"parentQueue": parent, **resources, **spec}}


def pod_group(name: str = "pg", annotations: Object | None = None, **spec: Any) -> Object:
    return {"metadata": {"name": name, "namespace": "ns", "annotations": annotations or {}}, "spec": spec}


def pod(name: str, group: str = "pg", subgroup: str = "", node: str = "", **labels: str) -> Object:
    if subgroup:
        labels["kai.scheduler/subgroup-name"] = subgroup
    meta = {
        "name": name,
        "namespace": "ns",
        "labels": labels,
        "annotations": {"pod-group-name": group} if group else {},
    }
    return {"metadata": meta, "spec": {"nodeName": node} if node else {}, "status": {"phase": "Pending"}}


def bind(name: str, node: str, phase: str = "Pending", groups: list[str] | None = None) -> Object:
    spec = {"podName": name, "selectedNode": node, "selectedGPUGroups": groups}
    return {"metadata": {"name": f"{name}-x", "namespace": "ns"}, "spec": spec, "status": {"phase": phase}}


def objects_of(**lists: list[Object]) -> Objects:
    return Objects([File("snapshot.zip/snapshot.json", json.dumps({"config": {}, "rawObjects": lists}).encode())])


def found(strict: bool = False, ledger: Ledger | None = None, **lists: list[Object]) -> Addition:
    return read(objects_of(**lists), Ledger(strict) if ledger is None else ledger)


def pods_of(*pods: Object) -> list[Pod]:
    return [item.value for item in objects_of(pods=list(pods)).of("", "Pod", Pod)]


def only(addition: Addition) -> Gang:
    (gang,) = addition.gangs
    return gang


def asked(gang: Gang) -> dict[str, tuple[int | None, int | None]]:
    return {path: (group.count, group.min_count) for path, group in leaves(gang.groups)}


def kinds(ledger: Ledger) -> dict[str, str]:
    return {entry.what: entry.kind for entry in ledger.entries()}


ANY = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
HOST = "kubernetes.io/hostname"


# --- the lists of a snapshot -------------------------------------------------------------------------------------


def test_the_same_objects_from_a_snapshot_and_from_kubectl() -> None:
    lists: dict[str, Any] = {
        "queues": [queue("q", gpu=ANY)],
        "podGroups": [pod_group(minMember=1, queue="q")],
        "pods": [pod("a")],
    }
    versions = {"queues": "scheduling.run.ai/v2", "podGroups": "scheduling.run.ai/v2alpha2", "pods": "v1"}
    items = [
        {"apiVersion": versions[name], "kind": KAI_LISTS[name][1], **value}
        for name, values in lists.items()
        for value in values
    ]
    kubectl = Objects([File("all.json", json.dumps({"kind": "List", "items": items}).encode())])
    one, other = found(**lists), read(kubectl, Ledger())
    assert one.queues == other.queues
    assert [(gang.key, gang.groups, gang.queue) for gang in one.gangs] == [
        (gang.key, gang.groups, gang.queue) for gang in other.gangs
    ]


# --- levels ------------------------------------------------------------------------------------------------------


def test_levels_of_all_topologies_in_one_order() -> None:
    """A row lies between zone and rack, though no topology says so but by what comes after it."""
    lists = [topology("zone", "rack", HOST), topology("row", "rack", name="u")]
    assert found(topologies=lists).levels == (Level("zone", "zone"), Level("row", "row"), Level("rack", "rack"))


@pytest.mark.parametrize(
    ("constraint", "rules"),
    [
        ({"topology": "t", "requiredTopologyLevel": "rack"}, Topology(required="rack")),
        ({"topology": "t", "requiredTopologyLevel": "r"}, Topology(required="rack")),
        ({"topology": "t", "preferredTopologyLevel": HOST}, Topology(preferred="node")),
        (
            {"topology": "t", "requiredTopologyLevel": "zone", "preferredTopologyLevel": "rack"},
            Topology(required="zone", preferred="rack"),
        ),
        (
            {"topology": "t", "requiredTopologyLevel": "rack", "preferredTopologyLevel": "zone"},
            Topology(required="rack"),
        ),
        ({"topology": "t"}, None),
    ],
)
def test_constraints(constraint: Object, rules: Topology | None) -> None:
    lists: dict[str, Any] = {"topologies": [topology("zone", "rack", HOST, rack="r")], "pods": [pod("a"), pod("b")]}
    gang = only(found(podGroups=[pod_group(minMember=2, topologyConstraint=constraint)], **lists))
    assert gang.groups[0].topology == rules


def test_constraints_and_segments_by_annotation() -> None:
    """Two segments of two, each in one rack, all in one zone."""
    notes = {
        "kai.scheduler/topology": "t",
        "kai.scheduler/topology-required-placement": "zone",
        "kai.scheduler/segment-size": "2",
        "kai.scheduler/segment-topology-required-placement": "rack",
    }
    pods = [pod(f"p{i}") for i in range(4)]
    gang = only(
        found(topologies=[topology("zone", "rack")], podGroups=[pod_group("pg", notes, minMember=4)], pods=pods)
    )
    assert gang.groups[0].topology == Topology(required="zone", slices=(Slice(level="rack", sizes=(2,)),))


def test_a_level_that_is_not_there_is_an_error_in_a_strict_import() -> None:
    lists: dict[str, Any] = {
        "podGroups": [pod_group(minMember=1, topologyConstraint={"topology": "u", "requiredTopologyLevel": "rack"})],
        "topologies": [topology("rack")],
        "pods": [pod("a")],
    }
    assert only(found(**lists)).groups[0].topology is None
    with pytest.raises(InputError, match="level of the topology"):
        found(strict=True, **lists)


# --- gangs -------------------------------------------------------------------------------------------------------


def test_pod_groups_without_subgroups() -> None:
    """An elastic one, and one of which pods are still to come."""
    lists: dict[str, Any] = {"podGroups": [pod_group(minMember=1), pod_group("late", minMember=3)]}
    one, late = found(pods=[pod("a"), pod("b"), pod("c", "late")], **lists).gangs
    assert asked(one) == {"default": (2, 1)}
    assert asked(late) == {"default": (3, None)}


def test_subgroups_within_subgroups() -> None:
    """One of two replicas is enough; each has its own two parts and lies in one rack."""
    rack = {"topology": "t", "requiredTopologyLevel": "rack"}
    subgroups = [
        {"name": "r0", "topologyConstraint": rack},
        {"name": "r1", "topologyConstraint": rack},
        *({"name": f"r{i}-{part}", "parent": f"r{i}", "minMember": 1} for i in range(2) for part in "ab"),
    ]
    pods = [pod(f"p{i}{part}", subgroup=f"r{i}-{part}") for i in range(2) for part in "ab"]
    lists: dict[str, Any] = {"topologies": [topology("rack")], "pods": [*pods, pod("more", subgroup="r0-a")]}
    got = found(podGroups=[pod_group(minSubGroup=1, subGroups=subgroups)], **lists)
    gang = only(got)
    assert asked(gang) == {
        "r0/r0-a": (2, 1),
        "r0/r0-b": (1, None),
        "r1/r1-a": (1, None),
        "r1/r1-b": (1, None),
    }
    assert [group.topology for group in gang.groups] == [Topology(required="rack")] * 2
    assert gang.min_groups == 1
    assert got.member(pods_of(pods[3])[0]) == ("ns/pg", "r1/r1-b")


@pytest.mark.parametrize(
    ("subgroups", "what"),
    [
        ([{"name": "a", "parent": "b"}], 'no subgroup "b"'),
        ([{"name": "a", "parent": "b"}, {"name": "b", "parent": "a"}], "round"),
        ([{"name": "a"}, {"name": "a"}], "listed twice"),
        ([{"name": "a", "minMember": -1}], "-1 are needed"),
    ],
)
def test_subgroups_that_make_no_tree_are_refused(subgroups: list[Object], what: str) -> None:
    with pytest.raises(InputError, match=what) as raised:
        found(podGroups=[pod_group(subGroups=subgroups)], pods=[pod("p", subgroup="a")])
    assert "rawObjects.podGroups[0].spec.subGroups[" in str(raised.value)


@pytest.mark.parametrize(
    ("spec", "priority", "preemptible"),
    [
        ({}, 50, True),
        ({"priorityClassName": "build-preemptible"}, 75, True),
        ({"priorityClassName": "build"}, 100, False),
        ({"priorityClassName": "inference", "preemptibility": "preemptible"}, 125, True),
        ({"priorityClassName": "train", "preemptibility": "non-preemptible"}, 50, False),
        ({"priorityClassName": "own"}, 120, False),
    ],
)
def test_priority_says_whether_a_job_may_be_stopped(spec: Object, priority: int, preemptible: bool) -> None:
    classes = [{"metadata": {"name": "own"}, "value": 120}]
    gang = only(found(podGroups=[pod_group(minMember=1, **spec)], pods=[pod("a")], priorityClasses=classes))
    assert (gang.priority, gang.preemptible) == (priority, preemptible)


# --- queues ------------------------------------------------------------------------------------------------------


def test_a_gang_beyond_the_limit_of_its_queue_never_fits() -> None:
    """6 workers of a card each in a queue that may have 4, whatever is free."""
    got = found(queues=[queue("q", gpu={"quota": 0, "limit": 4, "overQuotaWeight": 1})])
    quotas = Quotas(got.queues)
    assert quotas.fits("q", {"gpu": 4})
    assert not quotas.fits("q", {"gpu": 6})


def test_quotas_in_fractions_and_limits_of_parents() -> None:
    """The department's limit of 3 binds both; a may have 2.5 alone, and nothing limits c."""
    queues = [
        queue("department", gpu={"quota": 2, "limit": 3, "overQuotaWeight": 1}),
        queue("a", "department", gpu={"quota": 0.7, "limit": 2.5, "overQuotaWeight": 2}),
        queue("b", "department", gpu={"quota": -1, "limit": -1, "overQuotaWeight": 0}),
        queue("c", gpu=ANY),
    ]
    got = found(queues=queues)
    quotas = Quotas(got.queues)
    assert {one.name: one.parent for one in got.queues}["a"] == "department"
    assert {one.name: one.quota["*"] for one in got.queues}["a"] == "0.7"
    assert quotas.room("a", "*") == pytest.approx(2.5, abs=0)
    quotas.change("a", {"gpu": 2})
    assert quotas.room("b", "*") == 1
    assert (quotas.room("c", "*") or 0) > 100_000


def test_a_queue_that_says_nothing_of_cards_has_none() -> None:
    """A limit that is 0 or absent allows nothing beyond the quota."""
    ledger = Ledger()
    quotas = Quotas(found(queues=[queue("q"), queue("r", gpu={"quota": 2})], ledger=ledger).queues)
    assert (quotas.room("q", "*"), quotas.room("r", "*")) == (0, 2)
    assert kinds(ledger)["the cards of a queue that says nothing of them"] == "assumed"


def test_the_least_run_time_is_that_of_the_nearest_queue_that_says_one() -> None:
    above = queue("above", gpu=ANY, preemptMinRuntime="1h30m", reclaimMinRuntime="90s")
    below = queue("q", "above", gpu=ANY, preemptMinRuntime="2m")
    got = found(queues=[above, below], podGroups=[pod_group(minMember=1, queue="q")], pods=[pod("a")])
    assert only(got).minimum_run_seconds == 120.0
    with pytest.raises(InputError, match="no duration"):
        found(queues=[queue("q", preemptMinRuntime="soon")], podGroups=[pod_group()])


def test_queues_of_pods() -> None:
    got = found(queues=[queue("q", gpu=ANY)])
    new, old, other = pods_of(
        pod("a", "", **{"kai.scheduler/queue": "q"}), pod("b", "", **{"runai/queue": "q"}), pod("c", "", queue="q")
    )
    assert [got.queue_of(one) for one in (new, old, other)] == ["q", "q", None]
    assert got.member(other) is None


# --- pods that are being bound, and cards that are shared ----------------------------------------------------------


def test_a_pod_with_a_bind_request_holds_its_place() -> None:
    got = found(bindRequests=[bind("a", "n1"), bind("b", "n2", "Failed"), bind("c", "n3", groups=["g"])])
    a, b, c, bound = pods_of(pod("a"), pod("b"), pod("c"), pod("a", node="n9"))
    assert [got.bound(one) for one in (a, b, c, bound)] == ["n1", None, "n3", None]
    assert [got.shared(one) for one in (a, c)] == [(), ("g",)]
    with pytest.raises(InputError, match="another node"):
        found(bindRequests=[bind("a", "n1"), bind("a", "n2")])


@pytest.mark.parametrize(("limit", "attempts", "holds"), [(None, None, False), (3, 2, True), (3, 3, False)])
def test_a_bind_request_that_failed_is_tried_again(limit: int | None, attempts: int | None, holds: bool) -> None:
    request = bind("a", "n1", "Failed")
    request["spec"]["backoffLimit"], request["status"]["failedAttempts"] = limit, attempts
    (pod_,) = pods_of(pod("a"))
    assert found(bindRequests=[request], queues=[queue("q")]).bound(pod_) == ("n1" if holds else None)


def test_pods_of_one_gpu_group_are_on_one_card() -> None:
    got = found(queues=[queue("q", gpu=ANY)])
    one, two = pods_of(
        pod("a", **{"runai-gpu-group": "g"}), pod("b", **{"runai-gpu-group/h": "h", "runai-gpu-group/g": "g"})
    )
    assert (got.shared(one), got.shared(two)) == (("g",), ("g", "h"))


# --- bind requests of a plan -------------------------------------------------------------------------------------


def job_of(name: str, task: Task, running: Running | None = None) -> Job:
    return Job(name=f"ns/{name}", groups=(TaskGroup(name="pod", task=task),), running=running)


def requests(snapshot: Snapshot) -> dict[str, Object]:
    document = json.loads(write(snapshot, pl.solve(snapshot)))
    assert {item["kind"] for item in document["items"]} == {"BindRequest"}
    return {item["spec"]["podName"]: item for item in document["items"]}


def test_bind_requests() -> None:
    """One whole card, two thirds and a third of the other, which is one group; a pod without cards."""
    nodes = (Node(name="n", gpus=(Gpu(model="m", count=2, memory="80Gi"),)),)
    shares = [job_of("third", Task(gpus=1, gpu_share="250m")), job_of("most", Task(gpus=1, gpu_share=0.75))]
    jobs = (job_of("whole", Task(gpus=1)), *shares, job_of("none", Task(cpu=1)))
    got = requests(Snapshot(nodes=nodes, jobs=jobs))
    assert got["whole"] == {
        "apiVersion": "scheduling.run.ai/v1alpha2",
        "kind": "BindRequest",
        "metadata": {"name": "whole", "namespace": "ns", "labels": {"selected-node": "n"}},
        "spec": {
            "podName": "whole",
            "selectedNode": "n",
            "receivedResourceType": "Regular",
            "receivedGPU": {"count": 1, "portion": "1.00"},
        },
    }
    assert got["none"]["spec"]["receivedGPU"] == {"count": 0, "portion": "0.00"}
    assert got["third"]["spec"]["receivedResourceType"] == "Fraction"
    assert [got[name]["spec"]["receivedGPU"]["portion"] for name in ("third", "most")] == ["0.25", "0.75"]
    assert got["third"]["spec"]["selectedGPUGroups"] == got["most"]["spec"]["selectedGPUGroups"]


def test_a_share_beside_running_work_has_no_name_to_join_it_by() -> None:
    nodes = (Node(name="n", gpus=(Gpu(model="m"),)),)
    running = Running(tasks=(RunningTask(group="pod", index=0, node="n", gpus=(0,)),))
    half = Task(gpus=1, gpu_share=0.5)
    snapshot = Snapshot(nodes=nodes, jobs=(job_of("runs", half, running), job_of("waits", half)))
    with pytest.raises(InputError, match="no name for its group"):
        requests(snapshot)


def test_a_share_joins_the_group_of_the_card_where_the_node_names_it() -> None:
    nodes = named((Node(name="n", gpus=(Gpu(model="m", count=2),)), Node(name="o")), {("n", 1): "g"})
    assert [node.devices for node in nodes] == [("0", "g"), ()]
    running = Running(tasks=(RunningTask(group="pod", index=0, node="n", gpus=(1,)),))
    half = Task(gpus=1, gpu_share=0.5)
    whole = job_of("whole", Task(gpus=1), Running(tasks=(RunningTask(group="pod", index=0, node="n", gpus=(0,)),)))
    jobs = (job_of("runs", half, running), whole, job_of("waits", half))
    assert requests(Snapshot(nodes=nodes, jobs=jobs))["waits"]["spec"]["selectedGPUGroups"] == ["g"]


def test_a_pod_of_several_instances_is_one_request() -> None:
    """Two kinds of instances of one card: two tasks on one node."""
    profiles = ("1g.10gb", "2g.20gb")
    tasks = tuple(TaskGroup(name=str(i), task=Task(gpus=1, mig_profile=name)) for i, name in enumerate(profiles))
    group = TaskGroup(name="pod", groups=tasks, topology=Topology(required="node"))
    names: dict[str, tuple[str, ...]] = {f"pod/{i}": ("ns/a",) for i in range(2)}
    nodes = (Node(name="n", gpus=(Gpu(model="H100-80", mig_enabled=True),)),)
    got = requests(Snapshot(nodes=nodes, jobs=(Job(name="j", groups=(group,), task_names=names),)))
    assert got["a"]["spec"] == {
        "podName": "a",
        "selectedNode": "n",
        "receivedResourceType": "MigInstance",
        "receivedGPU": {"count": 0, "portion": "0.00"},
    }


# --- cases of the source as objects ------------------------------------------------------------------------------


def test_a_case_as_objects_and_what_becomes_of_it() -> None:
    """A running half of card 1, and a gang of two in one rack: the objects say it, and outcomes are told apart."""
    half = {"state": "Running", "node": "n", "gpu_devices": ["1"]}
    running = {"name": "r_0", "queue": "q", "priority": 50, "gpus_per_pod": 0.5, "gang": {"all_or_nothing": 1}}
    rack = {"topology": "t", "required_level": "rack"}
    waiting = {"name": "w_0", "queue": "q", "priority": 100, "gpus_per_pod": 1}
    case = {
        "case_id": "k",
        "source": {"repo": "here", "path": "none", "commit": "0", "licence": "none"},
        "action": "allocate",
        "nodes": [{"name": "n", "gpus": 4, "cpu_milli": 9, "memory_bytes": 9, "labels": {"rack": "a"}}],
        "queues": [{"name": "q", "guaranteed_gpus": 4}],
        "topologies": [{"name": "t", "levels": ["rack"]}],
        "jobs": [
            {**running, "pods": [half]},
            {**waiting, "gang": {"all_or_nothing": 2, "topology": rack}, "pods": [{"state": "Pending"}] * 2},
        ],
        "expected": {"jobs": {"r_0": {"state": "Running"}, "w_0": {"state": "Binding"}}},
    }
    objects = Objects(kai_objects.files(case))
    got = read(objects, Ledger())
    assert [(gang.key, gang.queue, gang.priority, gang.preemptible) for gang in got.gangs] == [
        ("default/r-0", "q", 50, True),
        ("default/w-0", "q", 100, False),
    ]
    assert got.gangs[1].groups[0].topology == Topology(required="rack")
    (share,) = (got.shared(item.value) for item in objects.of("", "Pod", Pod) if item.value.metadata.name == "r-0-0")
    assert share == ("n-card-1",)
    names: dict[str, tuple[str, ...]] = {"pod": ("default/w-0-0", "default/w-0-1")}
    group = TaskGroup(name="pod", count=2, task=Task(gpus=1))
    nodes = (Node(name="n", gpus=(Gpu(model="m", count=4),)),)
    snapshot = Snapshot(nodes=nodes, jobs=(Job(name="default/w-0", groups=(group,), task_names=names),))
    plan = pl.solve(snapshot)
    assert kai_objects.compare(case, snapshot, plan, write(snapshot, plan)) == "agrees"
    empty = Snapshot(nodes=nodes)
    none = pl.solve(empty)
    assert kai_objects.compare(case, empty, none, write(empty, none)).startswith("differs: {} start")


def test_shared_cards_of_a_request_as_newer_versions_say_them() -> None:
    """What is deprecated is still read; where both are said, the newer one holds."""
    request = bind("a", "n", groups=["old"])
    assert shared_of(request) == ("old",)
    request["spec"]["selectedFractionalGpuGroups"] = [{"id": "new", "computeSharingMode": "time-slicing"}]
    assert shared_of(request) == ("new",)
    del request["spec"]["selectedGPUGroups"]
    assert shared_of(request) == ("new",)


def shared_of(request: Object) -> tuple[str, ...]:
    (one,) = pods_of(pod("a"))
    return found(bindRequests=[request]).shared(one)
