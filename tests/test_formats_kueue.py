"""Kueue's objects read, and its admissions written."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.engine import solve
from placement.errors import InputError
from placement.formats.kubernetes.objects import Meta, Objects, Owner
from placement.formats.kubernetes.parts import Addition, Level
from placement.formats.kubernetes.pod import Container, Pod, PodSpec, PodToleration, Resources
from placement.formats.kueue import write
from placement.formats.kueue.assignment import Assignment, expanded, long, short
from placement.formats.kueue.read import read
from placement.formats.ledger import Ledger
from placement.formats.source import File
from placement.snapshot import Affinity, Job, Node, Queue, Slice, Snapshot, Task, TaskGroup, Topology
from placement.snapshot.read import verified

BLOCK, RACK, HOST = "cloud.provider.com/topology-block", "cloud.provider.com/topology-rack", "kubernetes.io/hostname"
NOTE = "kueue.x-k8s.io/"


# --- objects -------------------------------------------------------------------------------------------------------


def a(kind: str, name: str, spec: Any = None, version: str = "v1beta2", **more: Any) -> dict[str, Any]:
    namespaced = {"namespace": "default"} if kind in ("LocalQueue", "Workload") else {}
    metadata = {"name": name, **namespaced, **more.pop("metadata", {})}
    made = {"apiVersion": f"kueue.x-k8s.io/{version}", "kind": kind, "metadata": metadata, **more}
    return made if spec is None else {**made, "spec": spec}


def node(name: str, **labels: str) -> dict[str, Any]:
    own = {{"block": BLOCK, "rack": RACK}.get(key, key): value for key, value in labels.items()}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {HOST: name, **own}}}


def template(annotations: dict[str, str] | None = None, /, **requests: str) -> dict[str, Any]:
    asked = {"gpu": "nvidia.com/gpu"}
    resources = {"requests": {asked.get(key, key): value for key, value in requests.items()}}
    metadata = {"annotations": {f"{NOTE}{key}": value for key, value in (annotations or {}).items()}}
    return {"metadata": metadata, "spec": {"containers": [{"name": "main", "resources": resources}]}}


def pod_set(name: str, count: int, request: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"name": name, "count": count, "template": template(gpu="1"), "topologyRequest": request, **more}


def workload(name: str, *sets: dict[str, Any], status: Any = None, **spec: Any) -> dict[str, Any]:
    return a("Workload", name, {"queueName": "user", "podSets": list(sets), **spec}, status=status)


def quota(flavour: str, gpus: Any, resource: str = "nvidia.com/gpu", **limits: Any) -> dict[str, Any]:
    return {"name": flavour, "resources": [{"name": resource, "nominalQuota": gpus, **limits}]}


def cluster_queue(name: str, *flavours: dict[str, Any], **spec: Any) -> dict[str, Any]:
    resources = [one["name"] for flavour in flavours[:1] for one in flavour["resources"]]
    groups = [{"coveredResources": resources, "flavors": list(flavours)}]
    return a("ClusterQueue", name, {"namespaceSelector": {}, "resourceGroups": groups, **spec})


TREE = a("Topology", "tree", {"levels": [{"nodeLabel": BLOCK}, {"nodeLabel": RACK}, {"nodeLabel": HOST}]})
FLAVOUR = a("ResourceFlavor", "tas", {"topologyName": "tree"})
QUEUE = cluster_queue("cq", quota("tas", 16))
LOCAL = a("LocalQueue", "user", {"clusterQueue": "cq"})
NODES = [node(f"n{i}", block="b1", rack=f"r{i // 2}") for i in range(4)]
BASE = [*NODES, TREE, FLAVOUR, QUEUE, LOCAL]


def read_all(*objects: Any, strict: bool = False) -> tuple[Addition, Ledger]:
    ledger = Ledger(strict)
    data = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}).encode()
    return read(Objects([File("dump.json", data)]), ledger), ledger


def noted(ledger: Ledger, kind: str) -> list[str]:
    return [entry.what for entry in ledger.entries() if entry.kind == kind]


# --- levels --------------------------------------------------------------------------------------------------------


def test_levels_are_named_by_the_last_part_of_their_label() -> None:
    found, _ = read_all(*BASE)
    assert found.levels == (Level("block", BLOCK), Level("rack", RACK))


def test_names_of_levels_differ_and_are_none_that_snapshots_keep() -> None:
    labels = ["a.io/rack", "b.io/topology-rack", "c.io/node", "rack"]
    tree = a("Topology", "t", {"levels": [{"nodeLabel": label} for label in labels]})
    labelled = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": dict.fromkeys(labels, "x")}}
    found, _ = read_all(tree, labelled)
    assert [level.name for level in found.levels] == ["rack", "b.io/topology-rack", "c.io/node", "rack-2"]


def test_the_topology_that_a_flavour_names_counts() -> None:
    other = a("Topology", "a-other", {"levels": [{"nodeLabel": "zone"}]}, version="v1alpha1")
    found, ledger = read_all(other, *BASE)
    assert [level.label for level in found.levels] == [BLOCK, RACK]
    assert "a further Topology" in noted(ledger, "ignored")
    with pytest.raises(InputError, match="a further Topology"):
        read_all(other, *BASE, strict=True)


def test_a_level_that_no_node_has_is_no_level() -> None:
    """Nodes without the label of a level are left out of the tree; no rack without a name is invented."""
    bare = [node("n0", block="b1"), node("n1", block="b1")]
    ask = [
        workload("w", pod_set("main", 2, {"preferred": RACK})),
        workload("v", pod_set("main", 2, {"required": BLOCK})),
    ]
    found, ledger = read_all(*bare, *BASE[4:], *ask)
    assert found.levels == (Level("block", BLOCK),)
    assert noted(ledger, "contradiction") == ["a level of the Topology, and no node has its label"]
    assert found.withheld == {"default/w"}
    assert [gang.key for gang in found.gangs] == ["default/v"]


def test_nodes_without_a_label_of_their_topology_are_named_and_not_used() -> None:
    found, ledger = read_all(node("lost", block="b1"), *BASE, workload("w", pod_set("main", 1)))
    entry = next(entry for entry in ledger.entries() if entry.what == f"nodes without the label {RACK}")
    assert entry.where == ("dump.json: items[0]",)
    spec = found.gangs[0].groups[0].template
    assert spec is not None
    assert spec.affinity == {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": RACK, "operator": "Exists"}]}]
            }
        }
    }


def test_without_a_topology_levels_are_the_labels_that_workloads_name() -> None:
    """There are two racks and one block, so the block is wider."""
    ask = workload(
        "w", pod_set("main", 4, {"required": BLOCK, "podSetSliceRequiredTopology": RACK, "podSetSliceSize": 2})
    )
    found, ledger = read_all(*NODES, QUEUE, LOCAL, a("ResourceFlavor", "tas", {}), ask)
    assert found.levels == (Level("block", BLOCK), Level("rack", RACK))
    assert found.gangs[0].groups[0].topology == Topology(required="block", slices=(Slice(level="rack", sizes=(2,)),))
    assert "levels of the topology" in noted(ledger, "assumed")


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        (
            [{"nodeLabel": HOST}, {"nodeLabel": RACK}],
            r"items\[0\].spec.levels\[0\].nodeLabel: the host name is not the",
        ),
        (
            [{"nodeLabel": RACK}, {"nodeLabel": RACK}],
            r"levels\[1\].nodeLabel: the label is that of a wider level already",
        ),
        ([{"nodeLabel": " "}], "the label has no name"),
        ([{}], "the label has no name"),
    ],
)
def test_impossible_levels_are_errors(levels: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_all(a("Topology", "t", {"levels": levels}))


# --- what pod sets ask ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "count", "expected"),
    [
        (None, 4, None),
        ({"unconstrained": True}, 4, None),
        ({"required": RACK}, 4, Topology(required="rack")),
        ({"preferred": HOST}, 4, Topology(preferred="node")),
        (
            {"podSetSliceRequiredTopology": HOST, "podSetSliceSize": 2},
            4,
            Topology(slices=(Slice(level="node", sizes=(2,)),)),
        ),
        # the last slice of 5 pods by twos has one
        (
            {"podSetSliceRequiredTopology": RACK, "podSetSliceSize": 2},
            5,
            Topology(slices=(Slice(level="rack", sizes=(2, 2, 1)),)),
        ),
        (
            {
                "required": BLOCK,
                "podsetSliceRequiredTopologyConstraints": [
                    {"topology": RACK, "size": 4},
                    {"topology": HOST, "size": "2"},
                ],
            },
            8,
            Topology(required="block", slices=(Slice(level="rack", sizes=(4,)), Slice(level="node", sizes=(2,)))),
        ),
        (
            {"podsetSliceRequiredTopologyConstraints": [{"topology": RACK, "sizes": [1, 3, 4]}]},
            8,
            Topology(slices=(Slice(level="rack", sizes=(1, 3, 4)),)),
        ),
        ({"required": RACK, "podSetSliceRequiredTopology": HOST, "podSetSliceSize": 1}, 1, Topology(required="rack")),
    ],
)
def test_topology_requests(request_: Any, count: int, expected: Topology | None) -> None:
    found, _ = read_all(*BASE, workload("w", pod_set("main", count, request_)))
    assert found.gangs[0].groups[0].topology == expected


@pytest.mark.parametrize(
    ("request_", "what"),
    [
        ({"required": "zone"}, "a topology level that the Topology does not list"),
        ({"podSetSliceRequiredTopology": RACK}, "slices without a size"),
        ({"podSetSliceRequiredTopology": RACK, "podSetSliceSize": 0}, "slices without a size"),
        (
            {
                "podsetSliceRequiredTopologyConstraints": [
                    {"topology": HOST, "size": 2},
                    {"topology": RACK, "size": 4},
                ],
            },
            "slices that are not from wide to narrow",
        ),
        (
            {"podsetSliceRequiredTopologyConstraints": [{"topology": RACK, "size": 3}, {"topology": HOST, "size": 1}]},
            "slices that do not divide the pods of the pod set",
        ),
    ],
)
def test_what_kueue_refuses_is_left_out_and_noted(request_: Any, what: str) -> None:
    objects = (*BASE, workload("w", pod_set("main", 4, request_)))
    found, ledger = read_all(*objects)
    assert (len(found.gangs), found.withheld) == (0, frozenset({"default/w"}))
    assert what in noted(ledger, "ignored")
    with pytest.raises(InputError, match=what):
        read_all(*objects[:5], a("ClusterQueue", "cq", {}), LOCAL, objects[-1], strict=True)


def test_leader_and_workers_are_placed_as_one() -> None:
    """The leader and its workers need one rack; of the leader, slices do not matter."""
    ask = {"required": RACK, "podSetGroupName": "g", "podSetSliceRequiredTopology": HOST}
    sets = pod_set("leader", 1, ask), pod_set("workers", 4, {**ask, "podSetSliceSize": 2})
    gang = read_all(*BASE, workload("w", *sets))[0].gangs[0]
    assert gang.topology == Topology(required="rack")
    assert [(g.name, g.count, g.topology) for g in gang.groups] == [
        ("leader", 1, None),
        ("workers", 4, Topology(slices=(Slice(level="node", sizes=(2,)),))),
    ]


def test_a_part_of_the_pod_sets_that_is_placed_as_one_shares_a_domain() -> None:
    ask = {"required": RACK, "podSetGroupName": "g"}
    sets = pod_set("driver", 1), pod_set("leader", 1, ask), pod_set("workers", 4, ask)
    gang = read_all(*BASE, workload("w", *sets))[0].gangs[0]
    assert gang.topology is None
    assert gang.affinity == (Affinity(a="leader", b="workers", level="rack", kind="together"),)
    assert [group.topology for group in gang.groups] == [None, Topology(required="rack"), Topology(required="rack")]


# --- queues --------------------------------------------------------------------------------------------------------


def queues_of(*objects: Any) -> dict[str, Queue]:
    return {queue.name: queue for queue in read_all(*objects)[0].queues}


def test_quotas_are_of_the_model_that_flavours_name() -> None:
    flavours = [
        a("ResourceFlavor", name, {"nodeLabels": {"nvidia.com/gpu.product": product}})
        for name, product in (("a", "NVIDIA-A100-SXM4-80GB"), ("s", "NVIDIA-A100-SXM4-80GB-SHARED"), ("h", "H100"))
    ]
    # 8 and 4 of the A100 are 12; one of the two has no limit on borrowing, so together they have none
    queue = cluster_queue(
        "cq",
        quota("a", 8, borrowingLimit=4, lendingLimit=2),
        quota("s", "4"),
        quota("h", 2, borrowingLimit=0),
        cohortName="all",
    )
    assert queues_of(*flavours, queue) == {
        "cq": Queue(
            name="cq",
            parent="all",
            quota={"NVIDIA-A100-SXM4-80GB": 12, "H100": 2},
            borrowing_limit={"H100": 0},
            lending_limit={"NVIDIA-A100-SXM4-80GB": 6},
        ),
        "all": Queue(name="all"),
    }


def test_a_flavour_without_a_model_makes_all_quotas_of_its_tree_count_any() -> None:
    flavours = (
        a("ResourceFlavor", "a", {"nodeLabels": {"nvidia.com/gpu.product": "A100"}}),
        a("ResourceFlavor", "x", {}),
    )
    both = (
        cluster_queue("one", quota("a", 8), quota("x", 4), cohort="c"),
        cluster_queue("two", quota("a", 1), cohort="c"),
    )
    other = cluster_queue("three", quota("a", 5))
    found = queues_of(*flavours, *both, other)
    assert [found[name].quota for name in ("one", "two", "three")] == [{"*": 12}, {"*": 1}, {"A100": 5}]


def test_the_tree_is_that_of_the_cohorts() -> None:
    cohorts = (
        a("Cohort", "top", {}),
        a("Cohort", "left", {"parentName": "top", "fairSharing": {"weight": "500m"}}),
        a("Cohort", "right", {"parent": "top", "resourceGroups": QUEUE["spec"]["resourceGroups"]}, version="v1alpha1"),
    )
    queues = (
        cluster_queue("q", quota("tas", 1), cohort="left"),
        cluster_queue("left", quota("tas", 1), cohortName="right"),
    )
    found = queues_of(FLAVOUR, *cohorts, *queues)
    # a queue and a cohort of one name are two
    assert {name: queue.parent for name, queue in found.items()} == {
        "q": "left (cohort)",
        "left": "right",
        "top": "",
        "left (cohort)": "top",
        "right": "top",
    }
    assert (found["left (cohort)"].weight, found["right"].quota) == (0.5, {"*": 16})


def test_a_queue_that_covers_no_cards_takes_none() -> None:
    found = queues_of(a("ResourceFlavor", "x", {}), cluster_queue("cpu", quota("x", 8, "cpu"), cohort="c"))
    assert found["cpu"] == Queue(name="cpu", parent="c", quota={"*": 0}, borrowing_limit={"*": 0})
    mig = cluster_queue("mig", quota("x", 8, "nvidia.com/mig-1g.5gb"))
    assert queues_of(mig)["mig"] == Queue(name="mig")


def test_limits_that_cannot_be_are_named() -> None:
    alone = cluster_queue("alone", quota("tas", 4, borrowingLimit=1, lendingLimit=1))
    lends = cluster_queue("lends", quota("tas", 4, lendingLimit=9), cohort="c")
    found, ledger = read_all(FLAVOUR, alone, lends)
    assert found.queues[0] == Queue(name="alone", quota={"*": 4})
    assert found.queues[1].lending_limit == {"*": 4}
    assert noted(ledger, "contradiction") == [
        "a limit on lending or borrowing without a cohort",
        "a lending limit above the quota",
    ]


@pytest.mark.parametrize("amount", ["9223372036854775808", "-1", "6GiB", "", "NaN", 1e30])
@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "cpu"])
def test_quotas_out_of_range_are_named(amount: Any, resource: str) -> None:
    """A quota that does not fit in 64 bits is an error, and never another number."""
    with pytest.raises(
        InputError, match=r"items\[1\].spec.resourceGroups\[0\].flavors\[0\].resources\[0\].nominalQuota"
    ):
        read_all(FLAVOUR, cluster_queue("cq", quota("tas", amount, resource)))


def test_a_quota_of_an_exabyte_of_cores_is_read_exactly() -> None:
    assert queues_of(FLAVOUR, cluster_queue("cq", quota("tas", "1E")))["cq"].quota == {"*": 10**18}


def test_cohorts_that_go_round_are_an_error() -> None:
    with pytest.raises(InputError, match=r"the parents of the Cohort go round"):
        read_all(a("Cohort", "x", {"parentName": "y"}), a("Cohort", "y", {"parentName": "x"}))


def test_an_object_that_is_given_twice_counts_once() -> None:
    found, ledger = read_all(
        *BASE, QUEUE, FLAVOUR, LOCAL, workload("w", pod_set("m", 1)), workload("w", pod_set("m", 2))
    )
    assert (len(found.queues), len(found.gangs)) == (1, 1)
    assert [e.count for e in ledger.entries() if e.what == "an object that is given twice"] == [4]


# --- flavours ------------------------------------------------------------------------------------------------------


def spec_of(found: Addition) -> PodSpec:
    spec = found.gangs[0].groups[0].template
    assert spec is not None
    return spec


def test_the_only_flavour_of_a_queue_says_nodes_and_tolerations() -> None:
    toleration = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    flavour = a("ResourceFlavor", "tas", {"nodeLabels": {"pool": "gpu"}, "tolerations": [toleration]})
    spec = spec_of(read_all(*NODES, flavour, QUEUE, LOCAL, workload("w", pod_set("main", 1)))[0])
    assert spec.node_selector == {"pool": "gpu"}
    assert spec.tolerations == [PodToleration(key="nvidia.com/gpu", operator="Exists", effect="NoSchedule")]


def test_of_several_flavours_any_will_do() -> None:
    flavours = [a("ResourceFlavor", name, {"nodeLabels": {"pool": name}}) for name in ("x", "y")]
    queue = cluster_queue("cq", quota("x", 1), quota("y", 1))
    found, ledger = read_all(*flavours, queue, LOCAL, workload("w", pod_set("main", 1)))
    terms = [{"matchExpressions": [{"key": "pool", "operator": "In", "values": [name]}]} for name in ("x", "y")]
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    assert spec_of(found).affinity == {"nodeAffinity": {required: {"nodeSelectorTerms": terms}}}
    assert "a choice among several flavours" in noted(ledger, "ignored")


def test_what_a_pod_selects_picks_the_flavour() -> None:
    flavours = [a("ResourceFlavor", name, {"nodeLabels": {"pool": name}}) for name in ("x", "y")]
    queue = cluster_queue("cq", quota("x", 1), quota("y", 1))
    for pool, withheld in (("y", set()), ("z", {"default/w"})):
        wish = pod_set("main", 1)
        wish["template"]["spec"]["nodeSelector"] = {"pool": pool}
        assert read_all(*flavours, queue, LOCAL, workload("w", wish))[0].withheld == withheld


def test_a_flavour_on_tainted_nodes_takes_pods_that_tolerate_them() -> None:
    taint = {"key": "spot", "value": "true", "effect": "NoSchedule"}
    flavour = a("ResourceFlavor", "tas", {"nodeLabels": {"instance-type": "spot"}, "nodeTaints": [taint]})
    wish, willing = pod_set("main", 1), pod_set("main", 1)
    willing["template"]["spec"]["tolerations"] = [{"key": "spot", "operator": "Equal", "value": "true"}]
    found, _ = read_all(flavour, QUEUE, LOCAL, workload("no", wish), workload("yes", willing))
    assert found.withheld == {"default/no"}
    assert [gang.key for gang in found.gangs] == ["default/yes"]


def test_what_has_no_quota_is_still_asked_for() -> None:
    """Quota and capacity are separate: a resource that no queue counts limits where pods go."""
    wish = pod_set("main", 3)
    wish["template"] = template(None, **{"example.com/test": "1"})
    spec = spec_of(read_all(*BASE, workload("w", wish))[0])
    assert spec.containers == [Container(name="main", resources=Resources(requests={"example.com/test": "1"}))]


# --- workloads -----------------------------------------------------------------------------------------------------


def finished(kind: str = "Finished") -> dict[str, Any]:
    return {"conditions": [{"type": kind, "status": "True"}]}


def test_what_waits_runs_and_has_ended() -> None:
    admitted = {"admission": {"clusterQueue": "cq", "podSetAssignments": [{"name": "main", "count": 2}]}}
    found, ledger = read_all(
        *BASE,
        workload("waits", pod_set("main", 4, minCount=2), priority=7),
        workload("runs", pod_set("main", 2), status=admitted),
        workload("over", pod_set("main", 2), status=finished()),
        workload("off", pod_set("main", 2), active=False),
        workload("nothing", pod_set("main", 0)),
        workload("lost", pod_set("main", 1), queueName="nowhere"),
    )
    waits, runs = found.gangs
    assert (waits.key, waits.queue, waits.priority) == ("default/waits", "cq", 7)
    assert [(g.name, g.count, g.min_count) for g in waits.groups] == [("main", 4, 2)]
    # what was admitted is made of its pods
    assert [(g.name, g.count, g.template) for g in runs.groups] == [("main", None, None)]
    assert found.withheld == {"default/off", "default/nothing", "default/lost"}
    assert {"workloads that have finished", "workloads that are not active"} <= set(noted(ledger, "ignored"))


def test_a_stopped_queue_starts_nothing() -> None:
    held = cluster_queue("cq", quota("tas", 16), stopPolicy="Hold")
    found, _ = read_all(*BASE[:-2], held, LOCAL, workload("w", pod_set("main", 1)))
    assert (len(found.gangs), found.withheld) == (0, frozenset({"default/w"}))
    local = a("LocalQueue", "user", {"clusterQueue": "cq", "stopPolicy": "HoldAndDrain"})
    assert read_all(*BASE[:-1], local, workload("w", pod_set("main", 1)))[0].withheld == {"default/w"}


def test_priorities_come_from_the_workload_its_class_and_its_boost() -> None:
    classes = a("WorkloadPriorityClass", "high", value=100)
    named = workload("b", pod_set("main", 1), priorityClassRef={"group": "kueue.x-k8s.io", "name": "high"})
    boosted = workload("c", pod_set("main", 1), priority=5)
    boosted["metadata"]["annotations"] = {f"{NOTE}priority-boost": "-2"}
    found, _ = read_all(*BASE, classes, workload("a", pod_set("main", 1)), named, boosted)
    assert [gang.priority for gang in found.gangs] == [None, 100, 3]


def test_policies_of_preemption_say_who_may_be_stopped() -> None:
    reclaims = cluster_queue("r", quota("tas", 1), cohort="c", preemption={"reclaimWithinCohort": "Any"})
    lends = cluster_queue("l", quota("tas", 1), cohort="c")
    own = cluster_queue("o", quota("tas", 1), preemption={"withinClusterQueue": "LowerPriority"})
    local = [a("LocalQueue", name, {"clusterQueue": name}) for name in "rlo"]
    waits = [workload(name, pod_set("main", 1), queueName=name) for name in "rlo"]
    found, _ = read_all(FLAVOUR, reclaims, lends, own, *local, *waits)
    assert [gang.preemptible for gang in found.gangs] == [False, True, True]


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        ([pod_set("a", 1), pod_set("a", 1)], r"podSets\[1\].name: two pod sets have this name"),
        ([pod_set("a", -1)], r"podSets\[0\].count: found -1"),
        ([pod_set("a", 10**12)], r"podSets\[0\].count"),
        ([pod_set("a", 1, minCount=2)], r"podSets\[0\].minCount: found 2"),
        ([pod_set("a/b", 1)], r"podSets\[0\].name: not a name"),
    ],
)
def test_impossible_pod_sets_are_errors(sets: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_all(*BASE, workload("w", *sets))


# --- jobs without a workload ---------------------------------------------------------------------------------------


def job(api: str, kind: str, spec: Any, name: str = "j", **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "labels": {f"{NOTE}queue-name": "user"}, **more.pop("metadata", {})}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec, **more}


def shape(*objects: Any) -> list[tuple[str, list[tuple[str, int | None, int | None]]]]:
    found, _ = read_all(*BASE, *objects)
    return [(gang.key, [(g.name, g.count, g.min_count) for g in gang.groups]) for gang in found.gangs]


def test_a_job_starts_as_many_pods_as_run_at_once() -> None:
    note = {"annotations": {f"{NOTE}job-min-parallelism": "2"}}
    spec = {"parallelism": 6, "completions": 4, "template": template({"podset-required-topology": RACK})}
    found, _ = read_all(*BASE, job("batch/v1", "Job", spec, metadata=note))
    group = found.gangs[0].groups[0]
    assert (group.name, group.count, group.min_count, group.topology) == ("main", 4, 2, Topology(required="rack"))
    generated = job("batch/v1", "Job", {"template": template()}, metadata={"name": "", "generateName": "tas-sample-"})
    assert shape(generated, generated) == [
        ("default/tas-sample", [("main", 1, None)]),
        ("default/tas-sample (Job)", [("main", 1, None)]),
    ]


def test_each_replica_of_a_leader_with_workers_is_a_gang() -> None:
    note = {"podset-required-topology": RACK, "podset-group-name": "g"}
    parts = {"size": 3, "leaderTemplate": template(note, cpu="1"), "workerTemplate": template(note, gpu="1")}
    spec = {"replicas": 2, "leaderWorkerTemplate": parts}
    found, _ = read_all(*BASE, job("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", spec, "lws"))
    assert [(g.key, [(p.name, p.count) for p in g.groups], g.topology) for g in found.gangs] == [
        (f"default/lws-{copy}", [("leader", 1), ("worker", 2)], Topology(required="rack")) for copy in range(2)
    ]


def test_other_kinds_of_jobs() -> None:
    sets = [
        {"name": "Driver", "template": {"spec": {"template": template()}}},
        {"name": "ps", "replicas": 2, "template": {"spec": {"parallelism": 3, "template": template()}}},
    ]
    torch = {"Worker": {"replicas": 3, "template": template()}, "Master": {"template": template()}}
    groups = [{"groupName": "gpu", "replicas": 2, "numOfHosts": 2, "template": template()}]
    ray = {"headGroupSpec": {"template": template()}, "workerGroupSpecs": groups}
    assert shape(
        job("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": sets}, "a"),
        job("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": torch}, "b"),
        job("ray.io/v1", "RayJob", {"rayClusterSpec": ray}, "c"),
    ) == [
        ("default/a", [("driver", 1, None), ("ps", 6, None)]),
        ("default/c", [("head", 1, None), ("gpu", 4, None)]),
        ("default/b", [("master", 1, None), ("worker", 3, None)]),
    ]


def test_jobs_that_are_not_kueues_or_not_their_own_are_left_alone() -> None:
    plain = job("batch/v1", "Job", {"template": template()}, "plain", metadata={"labels": {}})
    over = job("batch/v1", "Job", {"template": template()}, "over", status=finished("Complete"))
    inner = job("batch/v1", "Job", {}, "in", metadata={"ownerReferences": [{"kind": "JobSet", "name": "s"}]})
    known = workload("job-w", pod_set("main", 1))
    known["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "known", "uid": "u"}]
    assert shape(plain, over, inner, known, job("batch/v1", "Job", {}, "known")) == [
        ("default/job-w", [("main", 1, None)])
    ]


# --- pods ----------------------------------------------------------------------------------------------------------


def pod(name: str, labels: dict[str, str], annotations: dict[str, str] | None = None, **meta: Any) -> Pod:
    return Pod(metadata=Meta(name=name, namespace="default", labels=labels, annotations=annotations, **meta))


def test_pods_are_found_by_note_owner_and_label() -> None:
    lws = {"size": 3, "leaderTemplate": template(), "workerTemplate": template()}
    owned = workload("job-w", pod_set("a", 1), pod_set("b", 1))
    owned["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "train", "uid": "u-1"}]
    found, _ = read_all(
        *BASE, owned, job("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", {"leaderWorkerTemplate": lws}, "l")
    )
    key = "default/job-w"
    worker = {"leaderworkerset.sigs.k8s.io/name": "l", "leaderworkerset.sigs.k8s.io/group-index": "0"}
    index = "leaderworkerset.sigs.k8s.io/worker-index"
    owner = [Owner(kind="Job", name="train", uid="u-1")]
    assert found.member(pod("p", {f"{NOTE}podset": "b"}, {f"{NOTE}workload": "job-w"})) == (key, "b")
    assert found.member(pod("p", {f"{NOTE}podset": "a"}, owner_references=owner)) == (key, "a")
    assert found.member(pod("p", {"batch.kubernetes.io/job-name": "train"})) == (key, "a")
    assert found.member(pod("p", {**worker, index: "0"})) == ("default/l-0", "leader")
    assert found.member(pod("p", {**worker, index: "2"})) == ("default/l-0", "worker")
    assert found.member(pod("p", {"app": "web"})) is None
    assert found.queue_of(pod("p", {f"{NOTE}queue-name": "user"})) == "cq"
    assert found.queue_of(pod("p", {f"{NOTE}queue-name": "other"})) is None


def pods(number: int, total: int, **note: str) -> list[dict[str, Any]]:
    notes = {f"{NOTE}pod-group-total-count": str(total), **{f"{NOTE}{k.replace('_', '-')}": v for k, v in note.items()}}
    labels = {f"{NOTE}queue-name": "user", f"{NOTE}pod-group-name": "g"}
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"p{i}", "namespace": "default", "labels": labels, "annotations": notes},
        }
        for i in range(number)
    ]


def test_a_group_of_pods_waits_until_it_is_whole() -> None:
    found, _ = read_all(*BASE, *pods(3, 3, podset_required_topology=RACK))
    gang = found.gangs[0]
    assert (gang.key, gang.queue, gang.groups[0].topology) == ("default/g", "cq", Topology(required="rack"))
    assert found.member(pod("p1", {f"{NOTE}pod-group-name": "g"})) == ("default/g", "main")
    assert read_all(*BASE, *pods(2, 3))[0].withheld == {"default/g"}


def test_a_pod_alone_gets_what_the_flavour_adds() -> None:
    flavour = a("ResourceFlavor", "tas", {"nodeLabels": {"pool": "gpu"}})
    found, _ = read_all(flavour, QUEUE, LOCAL)
    waits = pod("p", {f"{NOTE}queue-name": "user"})
    waits.spec = PodSpec(containers=[Container(resources=Resources(limits={"nvidia.com/gpu": 1}))])
    assert found.spec_of(waits).node_selector == {"pool": "gpu"}
    assert found.spec_of(pod("p", {})) == PodSpec()


# --- any file at all -----------------------------------------------------------------------------------------------

WHOLE = [
    *BASE,
    a("Cohort", "c", {"parentName": "d"}),
    a("WorkloadPriorityClass", "high", value=1),
    cluster_queue("x", quota("tas", 1, borrowingLimit=1, lendingLimit=1), cohort="c", fairSharing={"weight": 2}),
    workload("w", pod_set("a", 4, {"required": RACK, "podSetSliceRequiredTopology": HOST, "podSetSliceSize": 2})),
    job("batch/v1", "Job", {"parallelism": 2, "template": template({"podset-slice-size": "2"})}),
    job("jobset.x-k8s.io/v1", "JobSet", {"replicatedJobs": [{"name": "r", "template": {"spec": {}}}]}, "s"),
    *pods(2, 2),
]


def leaves(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [way, *(leaf for key, part in inner for leaf in leaves(part, (*way, key)))][bool(not way) :]


def inside(value: Any, key: Any) -> bool:
    if isinstance(value, dict):
        return key in value
    return isinstance(value, list) and isinstance(key, int) and key < len(value)


PLACES = [way for way in leaves(WHOLE) if len(way) > 1 and way[-1] not in ("kind", "apiVersion")]
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([-1, 0, 10**30, 1.5, 1e308, "", "\u0000", "-3", "1e400", "default", [], {}, [None], {"a": None}]),
    st.text(max_size=5),
)


@settings(max_examples=120, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PLACES), JUNK), min_size=1, max_size=3))
def test_a_changed_file_is_read_or_refused(changes: list[tuple[tuple[Any, ...], Any]]) -> None:
    objects = copy.deepcopy(WHOLE)
    for way, junk in changes:
        inner: Any = objects
        for key in way[:-1]:
            inner = inner[key] if inside(inner, key) else None
        if inside(inner, way[-1]):
            inner[way[-1]] = junk
    try:
        found, _ = read_all(*objects)
    except InputError as error:
        refused = str(error)
        assert "dump.json" in refused
    else:
        assert read_all(*objects)[0].gangs == found.gangs


# --- assignments ---------------------------------------------------------------------------------------------------


def test_short_forms_say_once_what_is_common() -> None:
    values = [("b1", "rack-1-a"), ("b1", "rack-2-a"), ("b1", "rack-22-a")]
    domains = tuple((one, 4) for one in values)
    assert short(Assignment(("block", "rack"), domains)) == {
        "levels": ["block", "rack"],
        "slices": [
            {
                "domainCount": 3,
                "valuesPerLevel": [
                    {"universal": "b1"},
                    {"individual": {"prefix": "rack-", "suffix": "-a", "roots": ["1", "2", "22"]}},
                ],
                "podCounts": {"universal": 4},
            }
        ],
    }


def test_prefix_and_suffix_do_not_overlap() -> None:
    domains = ((("aba",), 1), (("ababa",), 2))
    one = short(Assignment(("l",), domains))["slices"][0]
    assert one["valuesPerLevel"] == [{"individual": {"prefix": "aba", "roots": ["", "ba"]}}]
    assert one["podCounts"] == {"individual": [1, 2]}


VALUES = st.text("ab-1", min_size=1, max_size=70)


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 3), st.data())
def test_what_is_written_short_expands_to_what_it_was(levels: int, data: st.DataObject) -> None:
    rows = st.tuples(st.tuples(*[VALUES] * levels), st.integers(1, 5))
    domains = tuple(data.draw(st.lists(rows, min_size=1, max_size=8)))
    whole = Assignment(tuple(f"l{n}" for n in range(levels)), domains)
    form = json.loads(json.dumps(short(whole)))
    assert expanded(form) == whole == expanded(json.loads(json.dumps(long(whole))))
    for values, part in zip(
        zip(*(v for v, _ in domains), strict=True), form["slices"][0]["valuesPerLevel"], strict=True
    ):
        assert ("universal" in part) == (len(set(values)) == 1)
        own = part.get("individual", {})
        assert len(own.get("prefix", "-")) in range(1, 64)
        assert len(own.get("suffix", "-")) in range(1, 64)
    assert ("universal" in form["slices"][0]["podCounts"]) == (len({count for _, count in domains}) == 1)


def test_slices_that_list_too_much_do_not_expand() -> None:
    part = {"domainCount": 2, "valuesPerLevel": [{"individual": {"roots": ["a"]}}], "podCounts": {"universal": 1}}
    with pytest.raises(ValueError, match="1 values for 2 domains"):
        expanded({"levels": ["l"], "slices": [part]})


# --- admissions ----------------------------------------------------------------------------------------------------


def hosts(*cores: int) -> tuple[Node, ...]:
    return tuple(
        Node(
            name=f"node-{i}",
            cpu=c,
            pods=10,
            position={"rack": "b1/r1"},
            labels={HOST: f"h{i}", RACK: "r1", BLOCK: "b1"},
        )
        for i, c in enumerate(cores)
    )


LEADER = TaskGroup(
    name="gang",
    groups=(
        TaskGroup(name="leader", task=Task(cpu=1)),
        TaskGroup(name="workers", count=4, task=Task(cpu=2)),
    ),
    topology=Topology(required="rack"),
)


def test_a_leader_goes_where_it_leaves_room_for_its_workers() -> None:
    """Of hosts with 2, 4 and 3 cores the leader takes one of the 3; the workers take 1, 2 and 1: nothing else fits."""
    snapshot = verified(
        Snapshot(topology=("rack",), nodes=hosts(2, 4, 3), jobs=(Job(name="default/lws-0", groups=(LEADER,)),))
    )
    plan = solve(snapshot)
    item = json.loads(write.write(snapshot, plan))["items"][0]
    assert item == {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"namespace": "default", "name": "lws-0"},
        "status": {
            "admission": {
                "podSetAssignments": [
                    {
                        "name": "leader",
                        "count": 1,
                        "topologyAssignment": {
                            "levels": [HOST],
                            "slices": [
                                {
                                    "domainCount": 1,
                                    "valuesPerLevel": [{"universal": "h2"}],
                                    "podCounts": {"universal": 1},
                                }
                            ],
                        },
                    },
                    {
                        "name": "workers",
                        "count": 4,
                        "topologyAssignment": {
                            "levels": [HOST],
                            "slices": [
                                {
                                    "domainCount": 3,
                                    "valuesPerLevel": [{"individual": {"prefix": "h", "roots": ["0", "1", "2"]}}],
                                    "podCounts": {"individual": [1, 2, 1]},
                                }
                            ],
                        },
                    },
                ]
            }
        },
    }


def test_older_versions_and_wider_levels_have_the_values_that_the_nodes_have() -> None:
    snapshot = verified(
        Snapshot(topology=("rack",), nodes=hosts(2, 4, 3), jobs=(Job(name="default/lws-0", groups=(LEADER,)),))
    )
    plan = solve(snapshot)
    old = json.loads(write.write_v1beta1(snapshot, plan))["items"][0]
    assert old["apiVersion"] == "kueue.x-k8s.io/v1beta1"
    assert old["status"]["admission"]["podSetAssignments"][1]["topologyAssignment"] == {
        "levels": [HOST],
        "domains": [{"values": [f"h{i}"], "count": count} for i, count in enumerate((1, 2, 1))],
    }
    wide = json.loads(write.document(snapshot, plan, version="v1beta1", labels=(BLOCK, RACK)))["items"][0]
    assert wide["status"]["admission"]["podSetAssignments"][1]["topologyAssignment"] == {
        "levels": [BLOCK, RACK],
        "domains": [{"values": ["b1", "r1"], "count": 4}],
    }
    with pytest.raises(InputError, match='node "node-2" has no label "zone"'):
        write.document(snapshot, plan, labels=("zone",))


def test_pods_alone_are_counted_as_left_out_and_other_names_refused() -> None:
    alone = Job(name="default/p", groups=(TaskGroup(name="pod", task=Task(cpu=1)),))
    rest = Job(name="default/w#pending", groups=(TaskGroup(name="main", count=2, task=Task(cpu=1)),))
    snapshot = verified(Snapshot(nodes=hosts(3), topology=("rack",), jobs=(alone, rest)))
    written = json.loads(write.write(snapshot, solve(snapshot)))
    said = "1 pods that are in no workload; 2 pods of workloads that are admitted already"
    assert (written["items"], written["metadata"]) == ([], {"annotations": {"gpu-placement.io/left-out": said}})
    other = Job(name="4711", groups=(TaskGroup(name="main", task=Task(cpu=1)),))
    snapshot = verified(Snapshot(nodes=hosts(2), topology=("rack",), jobs=(other,)))
    with pytest.raises(InputError, match='the job "4711" is not named as a Workload is'):
        write.write(snapshot, solve(snapshot))


def test_a_pod_that_is_several_tasks_counts_once() -> None:
    parts = tuple(TaskGroup(name=str(n), task=Task(cpu=1)) for n in (1, 2))
    one = TaskGroup(name="pod", groups=parts, topology=Topology(required="node"))
    job = Job(name="default/w", groups=(TaskGroup(name="main", count=3, groups=(one,)),))
    snapshot = verified(Snapshot(nodes=hosts(6), topology=("rack",), jobs=(job,)))
    item = json.loads(write.write_v1beta1(snapshot, solve(snapshot)))["items"][0]
    assert item["status"]["admission"]["podSetAssignments"] == [
        {
            "name": "main",
            "count": 3,
            "topologyAssignment": {"levels": [HOST], "domains": [{"values": ["h0"], "count": 3}]},
        }
    ]


def test_two_pod_sets_do_not_take_one_place_twice() -> None:
    """Two pods of 3 cores do not fit on 5 cores, nor two on one pod slot; what is written is all or nothing."""
    sets = tuple(TaskGroup(name=name, task=Task(cpu=3)) for name in ("a", "b"))
    for nodes in (hosts(5), (Node(name="n", cpu=10, pods=1, position={"rack": "r"}),)):
        snapshot = verified(Snapshot(topology=("rack",), nodes=nodes, jobs=(Job(name="default/w", groups=sets),)))
        assert json.loads(write.write(snapshot, solve(snapshot)))["items"] == []
