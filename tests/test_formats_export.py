"""Plans for pods of several tasks, for gangs of which pods do not exist yet, and for pools of devices."""

from __future__ import annotations

import json
from typing import Any

import placement as pl
from placement.formats.kubernetes import dump
from placement.formats.options import Options
from placement.formats.read import read
from placement.formats.source import File
from placement.formats.tasks import unnamed
from placement.formats.write import WRITERS, PlanWriter
from placement.snapshot import Gpu, Job, MigInstance, Node, Snapshot, Task, TaskGroup, Topology
from placement.snapshot.read import verified

Object = dict[str, Any]
MIG = "nvidia.com/mig-"


def node(name: str, labels: Object | None = None, **amounts: str) -> Object:
    there = {"cpu": "8", "memory": "64Gi", "pods": "110", **amounts}
    status = {"allocatable": there, "capacity": there, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels or {}}, "status": status}


def pod(name: str, gang: str = "", **amounts: str) -> Object:
    resources = {"requests": amounts, "limits": {key: text for key, text in amounts.items() if "/" in key}}
    spec: Object = {"containers": [{"resources": resources}]}
    if gang:
        spec["schedulingGroup"] = {"podGroupName": gang}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "a"}, "spec": spec}


def gang(name: str, least: int) -> Object:
    policy = {"schedulingPolicy": {"gang": {"minCount": least}}}
    meta = {"name": name, "namespace": "a"}
    return {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": meta, "spec": policy}


def imported(*objects: Object, levels: tuple[tuple[str, str], ...] = ()) -> Snapshot:
    document = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    return read([File("c.json", document.encode())], Options(levels=levels, time=0.0))


def exported(name: str, snapshot: Snapshot) -> tuple[list[Object], list[str]]:
    """Return the items of a plan, and the warnings."""
    writer, plan = WRITERS[name], pl.solve(snapshot, solver="best-fit")
    assert isinstance(writer, PlanWriter)
    assert writer.notes is not None
    return json.loads(writer.write(snapshot, plan))["items"], list(writer.notes(snapshot, plan))


# --- pods of several tasks -----------------------------------------------------------------------------------------


def test_a_pod_of_several_instances_is_one_binding_and_comes_back() -> None:
    """A card of 7 slots with instances of 2 and 1: the pod has both, in whichever order it asks."""
    labels = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB", "nvidia.com/mig.strategy": "mixed"}
    cluster = node("n", labels, **{f"{MIG}1g.5gb": "1", f"{MIG}2g.10gb": "1"})
    ask = pod("p", **{"cpu": "1", f"{MIG}1g.5gb": "1", f"{MIG}2g.10gb": "1"})
    before = imported(cluster, ask)
    (layout,) = (gpu.mig_layout for gpu in before.nodes[0].gpus)
    starts = {instance.profile: instance.start for instance in layout}
    for name in ("kubernetes", "kubernetes-patches"):
        (item,), warnings = exported(name, before)
        assert warnings == []
        annotations = item["metadata"]["annotations"]
        assert annotations["gpu-placement.io/gpus"] == "0,0"
        slots = annotations["gpu-placement.io/mig-starts"].split(",")
        assert sorted(map(int, slots)) == sorted(starts.values())
        ask["spec"]["nodeName"] = "n"
        ask["metadata"]["annotations"] = annotations
        running = imported(cluster, ask).jobs[0].running
        assert running is not None
        assert sorted(task.mig_starts[0] for task in running.tasks) == sorted(starts.values())
        del ask["spec"]["nodeName"]


def test_a_whole_card_beside_an_instance_has_no_slot() -> None:
    layout = (MigInstance(profile="3g.20gb", start=4),)
    cards = (
        Gpu(model="A100-SXM4-40GB", mig_enabled=True, mig_static=True, mig_layout=layout),
        Gpu(model="A100-SXM4-40GB"),
    )
    tasks = (Task(gpus=1, mig_profile="3g.20gb"), Task(gpus=1))
    parts = tuple(TaskGroup(name=str(number), task=task) for number, task in enumerate(tasks, 1))
    group = TaskGroup(name="pod", groups=parts, topology=Topology(required="node"))
    names: dict[str, tuple[str, ...]] = {"pod/1": ("a/p",), "pod/2": ("a/p",)}
    job = Job(name="a/p", groups=(group,), task_names=names)
    (item,), _ = exported("kubernetes", verified(Snapshot(nodes=(Node(name="n", gpus=cards),), jobs=(job,))))
    assert item["metadata"]["annotations"] == {"gpu-placement.io/gpus": "0,1", "gpu-placement.io/mig-starts": "4,-"}


def test_a_pod_of_a_card_and_an_instance_comes_back_where_it_was() -> None:
    labels = {"nvidia.com/gpu.product": "A100-SXM4-40GB", "nvidia.com/gpu.count": "3"}
    labels["nvidia.com/mig.strategy"] = "mixed"
    there = node("n", labels, **{"nvidia.com/gpu": "2", f"{MIG}3g.20gb": "2"})
    ask = pod("p", **{"nvidia.com/gpu": "1", f"{MIG}3g.20gb": "1"})
    before = imported(there, ask)
    plan = pl.solve(before, solver="best-fit")
    places = [plan.tasks[job, group, index] for job, group, index, _, _ in plan.tasks]
    placed = sorted((tuple(place.gpus), tuple(place.mig_starts)) for place in places)
    assert sorted(len(starts) for _, starts in placed) == [0, 1]
    (item,), _ = exported("kubernetes", before)
    ask["spec"]["nodeName"] = item["target"]["name"]
    ask["metadata"]["annotations"] = item["metadata"]["annotations"]
    running = imported(there, ask).jobs[0].running
    assert running is not None
    assert sorted((task.gpus, task.mig_starts) for task in running.tasks) == placed


# --- pods that do not exist yet ------------------------------------------------------------------------------------


def test_pods_that_exist_are_written_and_the_others_named() -> None:
    """A gang of three of which two pods are there: two Bindings, and a warning for the third."""
    snapshot = imported(node("n"), gang("g", 3), pod("g-0", "g", cpu="1"), pod("g-1", "g", cpu="1"))
    (job,) = snapshot.jobs
    assert (job.groups[0].count, job.task_names) == (3, {"pods": ("a/g-0", "a/g-1")})
    for name in ("kubernetes", "kubernetes-patches", "volcano", "kai"):
        items, warnings = exported(name, snapshot)
        assert [item["metadata"]["name"] for item in items] == ["g-0", "g-1"]
        (warning,) = warnings
        assert 'job "a/g": 1 task not written' in warning


def test_a_gang_of_one_pod_that_does_not_exist_is_not_the_pod_of_its_name() -> None:
    """Two of a gang of three run, so one is left, and there is no pod called a/g#pending."""
    there = [pod(f"g-{number}", "g", cpu="1") for number in range(2)]
    for each in there:
        each["spec"]["nodeName"] = "n"
    snapshot = imported(node("n"), gang("g", 3), *there, pod("alone", cpu="1"))
    items, warnings = exported("kubernetes", snapshot)
    assert [item["metadata"]["name"] for item in items] == ["alone"]
    assert [warning.partition(":")[0] for warning in warnings] == ['job "a/g#pending"']
    assert unnamed(snapshot, pl.solve(snapshot, solver="best-fit")) == warnings


# --- devices -------------------------------------------------------------------------------------------------------


def test_claims_name_the_pool_of_the_slice() -> None:
    """Pools may be called otherwise than their nodes; what is allocated is named as the slice does."""
    device = {"name": "gpu-0", "attributes": {"type": {"string": "gpu"}, "productName": {"string": "NVIDIA H100"}}}
    pools = {"n1": "n1", "n2": "pool-of-n2"}
    api = "resource.k8s.io/v1"
    slices: list[Object] = [
        {
            "apiVersion": api,
            "kind": "ResourceSlice",
            "metadata": {"name": f"s-{name}"},
            "spec": {
                "driver": "gpu.nvidia.com",
                "nodeName": name,
                "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1},
                "devices": [device],
            },
        }
        for name, pool in pools.items()
    ]
    requests = {"requests": [{"name": "want", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}
    waits: list[Object] = []
    for name in ("p", "q"):
        waits.append(pod(name))
        waits[-1]["spec"]["resourceClaims"] = [{"name": "c", "resourceClaimName": f"cards-of-{name}"}]
        meta = {"name": f"cards-of-{name}", "namespace": "a"}
        waits.append({"apiVersion": api, "kind": "ResourceClaim", "metadata": meta, "spec": {"devices": requests}})
    items, notes = exported("dra", imported(node("n1"), node("n2"), *slices, *waits))
    assert not any("are called what their pods are" in note for note in notes)
    assert [item["metadata"] for item in items] == [{"namespace": "a", "name": f"cards-of-{name}"} for name in "pq"]
    assert {one["request"] for item in items for one in item["status"]["allocation"]["devices"]["results"]} == {"want"}
    found = [item["status"]["allocation"] for item in items]
    hosts = [one["nodeSelector"]["nodeSelectorTerms"][0]["matchFields"][0]["values"][0] for one in found]
    assert sorted(hosts) == ["n1", "n2"]
    assert [one["devices"]["results"][0]["pool"] for one in found] == [pools[host] for host in hosts]


# --- a snapshot as objects -----------------------------------------------------------------------------------------


def test_a_job_of_several_groups_comes_back_as_one() -> None:
    groups = (
        TaskGroup(name="leader", task=Task(cpu="1")),
        TaskGroup(name="workers", count=3, min_count=2, task=Task(cpu="2"), topology=Topology(required="rack")),
    )
    names = {"leader": ("a/l",), "workers": ("a/w-0", "a/w-1", "a/w-2")}
    nodes = (Node(name="n", cpu=8, position={"rack": "r"}),)
    jobs = (
        Job(name="a/j", groups=groups, task_names=names),
        Job(name="a/k", groups=(TaskGroup(name="ranks", count=2, task=Task(cpu="1")),)),
    )
    snapshot = verified(Snapshot(topology=("rack",), nodes=nodes, jobs=jobs))
    objects = json.loads(dump.write(snapshot))["items"]
    back = imported(*objects, levels=(("rack", "topology.gpu-placement.io/rack"),))
    assert [(job.name, job.groups) for job in back.jobs] == [(job.name, job.groups) for job in jobs]
    assert back.jobs[0].task_names == names
    # without the annotation they are what the core says: gangs by themselves
    for item in objects:
        if item["kind"] == "Workload":
            del item["metadata"]["annotations"]
    assert [job.name for job in imported(*objects).jobs] == ["a/j-leader", "a/j-workers", "a/k"]


def test_what_is_lost_of_layouts_levels_shares_and_names_is_named() -> None:
    layout = (MigInstance(profile="1g.5gb", start=0),)
    card = Gpu(model="A100-SXM4-40GB", mig_enabled=True, mig_layout=layout)
    job = Job(name="a/j", groups=(TaskGroup(name="main", task=Task(gpus=1, gpu_share=1)),))
    snapshot = verified(Snapshot(topology=("rack",), nodes=(Node(name="n", gpus=(card,)),), jobs=(job,)))
    lost = dump.lost(snapshot)
    for part in ("may be cut anew", "a level of which no node", "gpu_share of a whole card", "comes back as pod"):
        assert sum(part in line for line in lost) == 1, part


# --- gangs that were started ---------------------------------------------------------------------------------------


def test_a_workload_that_is_admitted_is_not_admitted_again() -> None:
    """Kueue takes no other assignment of a Workload that has one; its pods are written as Bindings."""
    template = {"spec": pod("w-0", cpu="1")["spec"]}
    made: Object = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": "w", "namespace": "a"},
        "spec": {"podSets": [{"name": "main", "count": 1, "template": template}]},
    }
    waits = pod("w-0", cpu="1")
    waits["metadata"]["annotations"] = {"kueue.x-k8s.io/workload": "w"}
    items, warnings = exported("kueue", imported(node("n"), made, waits))
    assert ([item["metadata"]["name"] for item in items], warnings) == (["w"], [])
    made["status"] = {"admission": {"clusterQueue": "q", "podSetAssignments": [{"name": "main", "count": 1}]}}
    admitted = imported(node("n"), made, waits)
    assert [job.name for job in admitted.jobs] == ["a/w#pending"]
    items, (warning,) = exported("kueue", admitted)
    assert items == []
    assert "1 pods of workloads that are admitted already" in warning
    assert [item["metadata"]["name"] for item in exported("kubernetes", admitted)[0]] == ["w-0"]


def test_devices_that_a_waiting_pod_has_are_not_free() -> None:
    """One node of one card, allocated to the claim of the pod that comes later in time but has the lower priority."""
    api, meta = "resource.k8s.io/v1", {"name": "p", "namespace": "a"}
    device = {"name": "gpu-0", "attributes": {"type": {"string": "gpu"}, "productName": {"string": "NVIDIA H100"}}}
    spec: Object = {"driver": "gpu.nvidia.com", "nodeName": "n", "devices": [device]}
    spec["pool"] = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    cards = {"apiVersion": api, "kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": spec}
    ask = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}}
    result = {"request": "gpu", "driver": "gpu.nvidia.com", "pool": "n", "device": "gpu-0"}
    status = {"allocation": {"devices": {"results": [result]}}}
    first = {"apiVersion": api, "kind": "ResourceClaim", "metadata": meta, "spec": ask, "status": status}
    second = {"apiVersion": api, "kind": "ResourceClaim", "metadata": {**meta, "name": "q"}, "spec": ask}
    waits = [pod("q"), pod("p")]
    for each in waits:
        each["spec"]["resourceClaims"] = [{"name": "c", "resourceClaimName": each["metadata"]["name"]}]
    waits[0]["spec"]["priority"] = 9
    snapshot = imported(node("n"), cards, first, second, *waits)
    running = {job.name: [task.gpus for task in job.running.tasks] for job in snapshot.jobs if job.running is not None}
    assert running == {"a/p": [(0,)]}
    assert list(pl.solve(snapshot, solver="best-fit").tasks) == []
