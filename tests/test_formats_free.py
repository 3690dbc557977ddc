"""What of a Kubernetes cluster is free, and which pod may go where, by the rules of Kubernetes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

import placement
from placement.errors import InputError
from placement.formats.kubernetes.mig_pins import around
from placement.formats.read import read
from placement.formats.source import File
from placement.snapshot import Job, Snapshot, Task, TaskGroup

GPU, MIG = "nvidia.com/gpu", "nvidia.com/mig-"
A100, T4, V100 = "NVIDIA-A100-SXM4-40GB", "Tesla-T4", "Tesla-V100-SXM2-32GB"
HOST = "kubernetes.io/hostname"
Thing = dict[str, Any]


def node(
    name: str, amounts: Mapping[str, Any], labels: Mapping[str, str] | None = None, model: str = A100, **more: Any
) -> Thing:
    capacity = {"cpu": "64", "memory": "64Gi", "pods": "110", **{key: str(value) for key, value in amounts.items()}}
    said = {HOST: name, "nvidia.com/gpu.product": model, **(labels or {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": said, "annotations": more.pop("annotations", {})},
        "spec": {},
        "status": {
            "capacity": capacity,
            "allocatable": {**capacity, **more.pop("working", {})},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(name: str, *containers: Mapping[str, Any], on: str = "", **more: Any) -> Thing:
    meta = {key: more.pop(key) for key in ("labels", "annotations") if key in more}
    made = [{"resources": {"limits": {key: str(value) for key, value in one.items()}}} for one in containers or ({},)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": more.pop("namespace", "ns"), "uid": name, **meta},
        "spec": {"containers": made, **({"nodeName": on} if on else {}), **more},
        "status": {"phase": "Running" if on else "Pending"},
    }


def imported(*things: Thing, strict: bool = False, smi: str = "") -> Snapshot:
    files = [File("c.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": things}).encode())]
    return read([*files, *([File("topo.txt", smi.encode(), node="n")] if smi else [])], strict=strict)


def job(snapshot: Snapshot, name: str) -> Job:
    return next(one for one in snapshot.jobs if one.name == f"ns/{name}")


def tasks(snapshot: Snapshot, name: str) -> list[Task]:
    def inner(groups: tuple[TaskGroup, ...]) -> Iterator[Task]:
        for group in groups:
            if group.task is not None:
                yield group.task
            yield from inner(group.groups)

    return list(inner(job(snapshot, name).groups))


def places(snapshot: Snapshot, name: str) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    running = job(snapshot, name).running
    assert running is not None
    return [(place.gpus, place.mig_starts) for place in running.tasks]


def nodes_of(snapshot: Snapshot, name: str) -> set[str]:
    """Return the nodes that carry all labels that a pod selects."""
    wanted = tasks(snapshot, name)[0].node_selector.items()
    return {one.name for one in snapshot.nodes if wanted <= one.labels.items()}


def noted(snapshot: Snapshot, kind: str, what: str) -> int:
    return sum(entry.count for entry in snapshot.ledger if entry.kind == kind and what in entry.what)


# --- amounts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("named", "asked", "kept"),
    [
        ({"hugepages-2Mi": "0"}, "hugepages-2Mi", True),  # no node has any: it fits nowhere
        ({"hugepages-2Mi": "0"}, "hugepages-1Gi", True),  # nodes list their huge pages, and of these none
        ({}, "hugepages-2Mi", False),  # nobody wrote down any
        ({"hugepages-2Mi": "0"}, "ephemeral-storage", False),
        ({"ephemeral-storage": "0"}, "ephemeral-storage", True),
    ],
)
def test_what_nodes_have_nothing_of_is_asked_for(named: dict[str, str], asked: str, kept: bool) -> None:
    found = imported(node("n", named), pod("a", {asked: "1Gi"}))
    assert (asked in tasks(found, "a")[0].extended) == kept
    assert noted(found, "ignored", "storage and huge pages") == (not kept)


@pytest.mark.parametrize(("container", "memory"), [({"requests": {"memory": "0"}}, 0), ({}, 2**30)])
def test_a_limit_of_a_pod_is_its_request_where_no_container_states_one(container: Thing, memory: int) -> None:
    one = pod("a", resources={"limits": {"memory": "1Gi"}})
    one["spec"]["containers"] = [{"resources": container}]
    assert tasks(imported(node("n", {}), one), "a")[0].memory == memory


# --- cards ---------------------------------------------------------------------------------------------------------


def test_pods_are_assumed_on_cards_that_work() -> None:
    # 3 cards of 3 units, 6 of which are allocatable: the pod has 3 of these 6, on the two cards that work
    shared = {"nvidia.com/gpu.replicas": "3", "nvidia.com/gpu.count": "3"}
    sliced = node("n", {GPU: 9}, shared, f"{T4}-SHARED", working={GPU: "6"})
    found = imported(sliced, pod("a", {GPU: 3}, on="n"), pod("b", {GPU: 3}))
    assert places(found, "a") == [((0, 1), ())]
    # ceil(3 / 2) units of each of two cards
    assert [task.gpu_share for task in (*tasks(found, "a"), *tasks(found, "b"))] == ["666m", "666m"]

    register = f"GPU-0,1,100,100,{T4},0,false:GPU-1,1,100,100,{T4},0,true:"
    registered = node("n", {GPU: 2}, model=T4, annotations={"hami.io/node-nvidia-register": register})
    found = imported(registered, pod("a", {GPU: 1}, on="n"), pod("b", {GPU: 1}, on="n"))
    assert [places(found, name) for name in "ab"] == [[((1,), ())], [((0,), ())]]


@pytest.mark.parametrize(("units", "fits"), [(1, True), (2, True), (3, True), (4, True), (5, False), (9, False)])
def test_more_units_than_a_node_has_fit_nowhere(units: int, fits: bool) -> None:
    """2 cards of 2 units are 4."""
    shared = {"nvidia.com/gpu.replicas": "2", "nvidia.com/gpu.count": "2"}
    found = imported(node("n", {GPU: 4}, shared, f"{T4}-SHARED"), pod("a", {GPU: units}))
    plan = placement.solve(found, solver="first-fit")
    assert (len(plan.tasks) == 1) == fits
    assert placement.check(found, plan) == []


def test_a_resource_is_its_own_cards_only() -> None:
    both = node("n", {GPU: 3, "amd.com/gpu": 1})
    found = imported(both, pod("a", {"amd.com/gpu": 1}), pod("b", {GPU: 2}), pod("c", {"amd.com/gpu": 1}, on="n"))
    assert tasks(found, "a")[0].gpu_models == ("AMD-GPU",)
    assert tasks(found, "b")[0].gpu_models == (A100,)
    assert places(found, "c") == [((3,), ())]
    assert tasks(imported(node("n", {GPU: 3}), pod("b", {GPU: 2})), "b")[0].gpu_models == ()


MEMORY, CORES = "nvidia.com/gpumem", "nvidia.com/gpucores"
SAID = "hami.io/vgpu-devices-allocated"


def virtual(cards: int) -> Thing:
    register = "".join(f"GPU-{index},10,32768,100,{V100},0,true:" for index in range(cards))
    return node("n", {GPU: 10 * cards}, model=V100, annotations={"hami.io/node-nvidia-register": register})


def test_containers_have_parts_of_cards_of_their_own() -> None:
    one = {GPU: 1, MEMORY: 3000, CORES: 60}
    said = {SAID: "GPU-1,NVIDIA,3000,60:;GPU-0,NVIDIA,3000,60:;"}
    found = imported(virtual(2), pod("a", one, one, on="n", annotations=said), pod("b", one, {**one, CORES: 30}))
    assert places(found, "a") == [((1,), ()), ((0,), ())]
    parts = [(task.gpus, task.gpu_share, task.gpu_memory) for task in tasks(found, "b")]
    assert parts == [(1, "600m", 3000 * 2**20), (1, "300m", 3000 * 2**20)]
    # each of its tasks takes one of the node's 110 slots for pods
    assert noted(found, "assumed", "pods with devices of several kinds") == 2


def test_containers_may_share_a_card() -> None:
    one = {GPU: 1, MEMORY: 3000, CORES: 40}
    said = {SAID: "GPU-0,NVIDIA,3000,40:;GPU-0,NVIDIA,3000,40:;"}
    for stated in (said, {}):
        found = imported(virtual(1), pod("a", one, one, on="n", annotations=stated))
        assert places(found, "a") == [((0,), ()), ((0,), ())]
        assert noted(found, "contradiction", "") == 0


# --- MIG ----------------------------------------------------------------------------------------------------------


def at(gpus: str, starts: str) -> dict[str, str]:
    return {"gpu-placement.io/gpus": gpus, "gpu-placement.io/mig-starts": starts}


def layouts(snapshot: Snapshot) -> list[list[tuple[str, int]]]:
    return [
        [(one.profile, one.start) for one in gpu.mig_layout] for gpu in snapshot.nodes[0].gpus for _ in range(gpu.count)
    ]


def test_instances_of_bound_pods_say_how_cards_are_laid_out() -> None:
    offered = node("n", {f"{MIG}1g.5gb": 1, f"{MIG}3g.20gb": 3}, {"nvidia.com/gpu.count": "2"})
    assert layouts(imported(offered)) == [[("3g.20gb", 0), ("3g.20gb", 4)], [("1g.5gb", 0), ("3g.20gb", 4)]]
    found = imported(
        offered,
        pod("a", {f"{MIG}1g.5gb": 1, f"{MIG}3g.20gb": 1}, on="n", annotations=at("0,0", "6,0")),
        pod("b", {f"{MIG}3g.20gb": 1}, on="n"),
    )
    assert layouts(found) == [[("3g.20gb", 0), ("1g.5gb", 6)], [("3g.20gb", 0), ("3g.20gb", 4)]]
    assert places(found, "a") == [((0,), (6,)), ((0,), (0,))]
    assert places(found, "b") == [((1,), (0,))]
    assert noted(found, "contradiction", "") == 0


@pytest.mark.parametrize(
    ("gpus", "starts"),
    [("0", "1"), ("2", "0"), ("0", "x"), ("0", "999999"), ("0,1", "0,0"), ("", ""), ("0", "0,4"), ("1", "-")],
)
def test_instances_that_cannot_be_leave_the_layout_alone(gpus: str, starts: str) -> None:
    offered = node("n", {f"{MIG}1g.5gb": 1, f"{MIG}3g.20gb": 3}, {"nvidia.com/gpu.count": "2"})
    found = imported(offered, pod("a", {f"{MIG}3g.20gb": 1}, on="n", annotations=at(gpus, starts)))
    assert layouts(found) == layouts(imported(offered))
    assert len(places(found, "a")[0][1]) == 1


def test_pods_that_are_over_or_wait_say_nothing_of_a_layout() -> None:
    offered = node("n", {f"{MIG}1g.5gb": 1, f"{MIG}3g.20gb": 3}, {"nvidia.com/gpu.count": "2"})
    over = pod("a", {f"{MIG}1g.5gb": 1}, on="n", annotations=at("0", "6"))
    over["status"]["phase"] = "Succeeded"
    waits = pod("b", {f"{MIG}1g.5gb": 1}, annotations=at("0", "6"))
    assert layouts(imported(offered, over, waits)) == layouts(imported(offered))


def test_layouts_around_instances() -> None:
    plain = ((("1g.5gb", 0), ("1g.5gb", 1), ("3g.20gb", 4)), (("2g.10gb", 0),))
    # as they are, with the cards exchanged, with instances moved from card to card, and not at all
    assert around(A100, plain, {0: [("1g.5gb", 1)]}) == plain
    assert around(A100, plain, {0: [("2g.10gb", 4)]}) == ((("2g.10gb", 4),), plain[0])
    assert around(A100, plain, {0: [("1g.5gb", 0)], 1: [("3g.20gb", 0)]}) == (
        (("1g.5gb", 0), ("1g.5gb", 1), ("2g.10gb", 2)),
        (("3g.20gb", 0),),
    )
    assert around(A100, plain, {0: [("3g.20gb", 0), ("3g.20gb", 4)]}) is None
    assert around(A100, plain, {2: [("1g.5gb", 0)]}) is None
    assert around("no such model", plain, {}) is None


# --- zones and NICs -------------------------------------------------------------------------------------------------

TOPO = """\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID
GPU0\t X \tNV4\tPIX\tSYS\t0-31\t0\tN/A
GPU1\tNV4\t X \tSYS\tPIX\t32-63\t1\tN/A
NIC0\tPIX\tSYS\t X \tSYS
NIC1\tSYS\tPIX\tSYS\t X \n
NIC Legend:\n
  NIC0: mlx5_0
  NIC1: mlx5_1
"""


def said(**values: str) -> dict[str, str]:
    return {f"gpu-placement.io/{key}": value for key, value in values.items()}


def held(snapshot: Snapshot, name: str) -> tuple[int | None, tuple[str, ...], int]:
    running = job(snapshot, name).running
    assert running is not None
    return running.tasks[0].zone, running.tasks[0].nics, tasks(snapshot, name)[0].nics


def test_zones_and_nics_of_running_pods_are_read_back() -> None:
    found = imported(
        node("n", {GPU: 2}),
        pod("a", {GPU: 1}, on="n", annotations=said(gpus="1", zones="1", nics="mlx5_1")),
        pod("b", on="n", annotations=said(zones="0", nics="mlx5_0")),
        smi=TOPO,
    )
    assert (held(found, "a"), held(found, "b")) == ((1, ("mlx5_1",), 1), (0, ("mlx5_0",), 1))
    assert noted(found, "contradiction", "") == 0


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"zones": "2"}, (None, (), 0)),
        ({"zones": "x"}, (None, (), 0)),
        ({"nics": "mlx5_7"}, (None, (), 1)),  # it has one, whichever it is
        ({"nics": "mlx5_0,mlx5_0"}, (None, (), 2)),
        ({"nics": "a\tb"}, (None, (), 0)),
    ],
)
def test_zones_and_nics_that_are_not_there_are_contradictions(
    values: dict[str, str], expected: tuple[int | None, tuple[str, ...], int]
) -> None:
    found = imported(node("n", {GPU: 2}), pod("a", {GPU: 1}, on="n", annotations=said(**values)), smi=TOPO)
    assert held(found, "a") == expected
    assert noted(found, "contradiction", "annotation") == 1


def test_a_nic_has_one_pod_and_a_cluster_without_nics_has_none() -> None:
    pods = [pod(name, on="n", annotations=said(nics="mlx5_0", zones="0")) for name in "ab"]
    found = imported(node("n", {GPU: 2}), *pods, smi=TOPO)
    assert (held(found, "a"), held(found, "b")) == ((0, ("mlx5_0",), 1), (0, (), 1))
    assert noted(found, "contradiction", "one NIC twice") == 1
    found = imported(node("n", {GPU: 2}), *pods)
    assert held(found, "a") == (None, (), 0)
    assert noted(found, "contradiction", "does not have") == 4


def test_several_zones_are_none_in_particular() -> None:
    found = imported(node("n", {GPU: 2}), pod("a", {GPU: 2}, on="n", annotations=said(zones="0,1")), smi=TOPO)
    assert held(found, "a") == (None, (), 0)
    assert noted(found, "assumed", "several NUMA zones") == 1


# --- neighbours -----------------------------------------------------------------------------------------------------


def near(*terms: Thing, kind: str = "podAffinity") -> Thing:
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def term(key: str, labels: dict[str, str], **more: Any) -> Thing:
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}, **more}


def zoned(name: str, zone: str) -> Thing:
    return node(name, {}, {"zone": zone} if zone else None)


def test_one_pod_has_to_meet_all_terms_of_an_affinity() -> None:
    nodes = [zoned("m", "a"), zoned("n", "a"), zoned("o", "b")]
    wants = pod("p", affinity=near(term("zone", {"x": "1"}), term(HOST, {"y": "1"})))
    apart = [pod("a", on="m", labels={"x": "1"}), pod("b", on="n", labels={"y": "1"})]
    # either term has a pod, both of them none: the scheduler finds no node
    found = imported(*nodes, *apart, wants)
    assert noted(found, "ignored", "affinity to pods of which none runs") == 1
    found = imported(*nodes, *apart, pod("c", on="n", labels={"x": "1", "y": "1"}), wants)
    assert nodes_of(found, "p") == {"n"}


def test_the_first_pod_of_an_affinity_needs_a_domain() -> None:
    wants = pod("p", labels={"x": "1"}, affinity=near(term("zone", {"x": "1"})))
    assert nodes_of(imported(zoned("m", "a"), zoned("n", ""), wants), "p") == {"m"}


def chosen(key: str, value: str) -> Thing:
    return {"namespaceSelector": {"matchLabels": {key: value}}}


NAME = "kubernetes.io/metadata.name"


@pytest.mark.parametrize(
    ("selector", "namespaces", "away"),
    [
        (chosen(NAME, "other"), [], {"m"}),
        (chosen(NAME, "third"), [], {"m", "n"}),
        ({**chosen(NAME, "third"), "namespaces": ["other"]}, [], {"m"}),
        (chosen("team", "t"), [{"team": "t"}], {"m"}),
        (chosen("team", "u"), [{"team": "t"}], {"m", "n"}),
        (chosen("team", "t"), [], {"m"}),  # not known: all of them
        ({"namespaceSelector": {}}, [], {"m"}),
        ({}, [], {"m", "n"}),  # its own
    ],
)
def test_namespaces_are_chosen_by_their_labels(selector: Thing, namespaces: list[Thing], away: set[str]) -> None:
    things = [zoned("m", "a"), zoned("n", "b"), pod("a", on="n", labels={"x": "1"}, namespace="other")]
    things += [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other", "labels": one}} for one in namespaces
    ]
    wanted = term("zone", {"x": "1"}, **selector)
    found = imported(*things, pod("p", affinity=near(wanted, kind="podAntiAffinity")))
    assert nodes_of(found, "p") == away
    unknown = "team" in str(selector) and not namespaces
    assert noted(found, "assumed", "namespaceSelector") == unknown
    if unknown:
        with pytest.raises(InputError, match="namespaceSelector"):
            imported(*things, pod("p", affinity=near(wanted)), strict=True)


# --- ports and volumes ----------------------------------------------------------------------------------------------


def opens(name: str, port: Thing, on: str = "", **more: Any) -> Thing:
    found = pod(name, on=on, **more)
    found["spec"]["containers"][0]["ports"] = [port]
    return found


@pytest.mark.parametrize(
    ("taken", "wanted", "free"),
    [
        ({"hostPort": 80}, {"hostPort": 80}, {"m"}),
        ({"hostPort": 80}, {"hostPort": 81}, {"m", "n"}),
        ({"hostPort": 80}, {"hostPort": 80, "protocol": "UDP"}, {"m", "n"}),
        ({"containerPort": 80}, {"hostPort": 80}, {"m", "n"}),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "10.0.0.2"}, {"m", "n"}),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "0.0.0.0"}, {"m"}),
        ({"hostPort": 80}, {"hostPort": 80, "hostIP": "10.0.0.2"}, {"m"}),
    ],
)
def test_a_port_of_a_node_has_one_pod(taken: Thing, wanted: Thing, free: set[str]) -> None:
    found = imported(node("m", {}), node("n", {}), opens("a", taken, on="n"), opens("p", wanted))
    assert nodes_of(found, "p") == free


def test_pods_in_the_network_of_the_node_take_its_ports_and_those_that_wait_are_noted() -> None:
    nodes = [node("m", {}), node("n", {})]
    found = imported(*nodes, opens("a", {"containerPort": 80}, on="n", hostNetwork=True), opens("p", {"hostPort": 80}))
    assert nodes_of(found, "p") == {"m"}
    both = [opens(name, {"hostPort": 80}) for name in "pq"]
    assert noted(imported(*nodes, *both), "ignored", "host ports") == 1
    with pytest.raises(InputError, match="host ports"):
        imported(*nodes, *both, strict=True)


def claimed(volume: str, terms: list[Thing] | None) -> list[Thing]:
    affinity = {} if terms is None else {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}
    return [
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": affinity},
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "c", "namespace": "ns"},
            "spec": {"volumeName": volume},
        },
    ]


IN_A = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]


@pytest.mark.parametrize(
    ("things", "free", "noted_"),
    [
        (claimed("v", IN_A), {"m"}, 0),
        (claimed("v", None), {"m", "n"}, 0),
        (claimed("", IN_A), {"m", "n"}, 1),
        ([], {"m", "n"}, 1),
    ],
)
def test_volumes_keep_pods_to_the_nodes_that_reach_them(things: list[Thing], free: set[str], noted_: int) -> None:
    wants = pod(
        "p", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}, {"name": "e", "emptyDir": {}}]
    )
    found = imported(zoned("m", "a"), zoned("n", "b"), *things, wants)
    assert nodes_of(found, "p") == free
    assert noted(found, "ignored", "volumes of pods that wait") == noted_


# --- instances that pods share --------------------------------------------------------------------------------------


def test_pods_take_turns_on_instances() -> None:
    # 2 cards of 2 + 2 instances: each of the four small ones counts as 3 units, 12 in all
    small, large = f"{MIG}1g.5gb", f"{MIG}3g.20gb"
    labels = {f"{small}.count": "4", f"{small}.replicas": "3", f"{large}.count": "2", "nvidia.com/gpu.count": "2"}
    found = imported(
        node("n", {small: 12, large: 2}, labels),
        pod("a", {small: 2}, on="n"),
        pod("b", {small: 1}),
        pod("c", {large: 1}),
        pod("d", {GPU: 1}),
    )
    assert [(gpu.count, gpu.mig_instance, gpu.mig_enabled) for gpu in found.nodes[0].gpus] == [
        (4, "1g.5gb", False),
        (2, "", True),
    ]
    assert [(task.gpu_share, task.mig_instance) for task in tasks(found, "a")] == [("333m", "1g.5gb")] * 2
    assert places(found, "a") == [((0,), ()), ((1,), ())]
    assert [task.mig_profile for task in tasks(found, "c")] == ["3g.20gb"]
    assert tasks(found, "d")[0].extended == {GPU: "1"}  # no node has a whole card
    # 12 - 2 units are left: ten more pods run there, and an eleventh does not
    many = imported(
        node("n", {small: 12, large: 2}, labels),
        pod("a", {small: 2}, on="n"),
        *(pod(f"b{index}", {small: 1}) for index in range(11)),
    )
    plan = placement.solve(many, solver="first-fit")
    assert len(plan.tasks) == 10
    assert placement.check(many, plan) == []


def test_a_unit_is_a_whole_card_or_a_turn_on_an_instance_by_node() -> None:
    turns = {"nvidia.com/gpu.replicas": "2", "nvidia.com/gpu.count": "7"}
    things = [node("m", {GPU: 14}, turns, f"{A100}-MIG-1g.5gb-SHARED"), node("n", {GPU: 2})]
    found = imported(*things, pod("a", {GPU: 1}), pod("b", {GPU: 1}, nodeSelector={HOST: "m"}))
    kinds = [(task.gpu_share, task.mig_instance) for name in "ab" for task in tasks(found, name)]
    assert kinds == [(None, ""), ("500m", "1g.5gb")]


@pytest.mark.parametrize(
    ("operator", "value", "tolerated"),
    [
        ("Gt", "900", {"950"}),
        ("Gt", "700", {"800", "950"}),
        ("Lt", "900", {"800"}),
        ("Lt", "800", set()),
        ("Exists", "", {"800", "950", "x"}),
    ],
)
def test_tolerations_may_compare_numbers(operator: str, value: str, tolerated: set[str]) -> None:
    nodes = [node(f"n{level}", {}) for level in ("800", "950", "x")]
    for one in nodes:
        one["spec"]["taints"] = [{"key": "sla", "value": one["metadata"]["name"][1:], "effect": "NoSchedule"}]
    found = imported(*nodes, pod("a", tolerations=[{"key": "sla", "operator": operator, "value": value}]))
    allowed = set()
    for there in found.nodes:
        (taint,) = there.taints
        if any(t.operator == "Exists" or t.value == taint.value for t in tasks(found, "a")[0].tolerations):
            allowed.add(taint.value)
    assert allowed == tolerated


# --- cards that do not work, and pods of one name ------------------------------------------------------------------


def left(snapshot: Snapshot) -> int:
    """Return the cards that work and that nobody holds."""
    held = {
        (task.node, card) for one in snapshot.jobs if one.running for task in one.running.tasks for card in task.gpus
    }
    return sum(
        gpu.health == "healthy" and (one.name, card) not in held
        for one in snapshot.nodes
        for card, gpu in enumerate(gpu for gpu in one.gpus for _ in range(gpu.count))
    )


@pytest.mark.parametrize(
    ("allocatable", "cards", "free"),
    [
        (2, ["6", "7"], 0),  # 2 can be given out and 2 are: nothing is left, whichever they are
        (3, ["7", "0"], 1),
        (8, ["7"], 7),
        (1, ["6,7"], 0),  # more than can be given out
    ],
)
def test_cards_that_pods_say_they_have_work(allocatable: int, cards: list[str], free: int) -> None:
    pods = [
        pod(f"p{i}", {GPU: len(text.split(","))}, on="n", annotations={"gpu-placement.io/gpus": text})
        for i, text in enumerate(cards)
    ]
    snapshot = imported(node("n", {GPU: 8}, working={GPU: str(allocatable)}), *pods)
    assert left(snapshot) == free
    assert sum(gpu.count for gpu in snapshot.nodes[0].gpus if gpu.health == "healthy") == allocatable
    assert [job(snapshot, f"p{i}").running.tasks[0].gpus for i in range(len(cards))] == [  # type: ignore[union-attr]
        tuple(map(int, text.split(","))) for text in cards
    ]


def test_pods_of_one_name_on_two_nodes_both_hold_their_cards() -> None:
    one, two = pod("p", {GPU: 3}, on="n"), pod("p", {GPU: 2}, on="m")
    snapshot = imported(node("n", {GPU: 8}), node("m", {GPU: 8}), one, two)
    assert left(snapshot) == 16 - 5
    assert {"pods of one name that run on several nodes"} == {
        entry.what for entry in snapshot.ledger if entry.kind == "contradiction"
    }
    # on one node it is one pod, dumped twice
    assert left(imported(node("n", {GPU: 8}), one, one)) == 5
