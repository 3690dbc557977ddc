"""What is in use in the rarer forms: several vendors, cards passed through, reserved cards, shares by annotation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from placement import formats
from placement.formats.kubernetes.dump_lost import lost
from placement.formats.read import read
from placement.formats.source import File
from placement.snapshot import Gpu, Job, Node, Running, RunningTask, Snapshot, Task, TaskGroup
from placement.snapshot.leaves import leaf_tasks
from placement.units import exact

GPU, A100 = "nvidia.com/gpu", "NVIDIA-A100-SXM4-40GB"
DRIVER = "gpu.nvidia.com"
Thing = dict[str, Any]


def node(
    amounts: Mapping[str, Any], labels: Mapping[str, str] | None = None, annotations: Mapping[str, str] | None = None
) -> Thing:
    capacity = {"cpu": "64", "memory": "64Gi", "pods": "110", **{key: str(value) for key, value in amounts.items()}}
    said = {"nvidia.com/gpu.product": A100, "nvidia.com/gpu.memory": "40960", **(labels or {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n", "labels": said, "annotations": annotations or {}},
        "status": {"capacity": capacity, "allocatable": capacity, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def pod(name: str, *containers: Mapping[str, Any], on: str = "n", claim: str = "", **meta: Any) -> Thing:
    made = [{"resources": {"limits": {key: str(value) for key, value in one.items()}}} for one in containers or ({},)]
    spec: Thing = {"containers": made, **({"nodeName": on} if on else {})}
    if "init" in meta:
        spec["initContainers"] = [{"resources": {"limits": meta.pop("init")}}]
    if claim:
        spec["resourceClaims"] = [{"name": "x", "resourceClaimName": claim}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "ns", **meta}, "spec": spec}


def devices(*entries: Thing) -> Thing:
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "s"},
        "spec": {"driver": DRIVER, "nodeName": "n", "pool": pool, "devices": list(entries)},
    }


def device(index: int, kind: str = "gpu") -> Thing:
    said = {"type": kind, "productName": "NVIDIA A100-SXM4-40GB"}
    bus = {"resource.kubernetes.io/pciBusID": {"string": f"0000:0{index}:00.0"}}
    attributes = {**{key: {"string": value} for key, value in said.items()}, **bus}
    return {"name": f"gpu-{index}" if kind == "gpu" else f"gpu-{kind}-{index}", "attributes": attributes}


def claim(name: str, kind: str = "gpu", *allocated: str) -> Thing:
    results = [{"request": "r", "driver": DRIVER, "pool": "n", "device": one} for one in allocated]
    classed = DRIVER if kind == "gpu" else f"{kind}.{DRIVER}"
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "ns"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": classed}}]}},
        "status": {"allocation": {"devices": {"results": results}}} if results else {},
    }


def of(*things: Thing, smi: str = "") -> Snapshot:
    files = [File("k.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": things}).encode())]
    return read([*files, File("smi.txt", smi.encode(), node="n")] if smi else files)


def job(snapshot: Snapshot, name: str) -> Job:
    return next(one for one in snapshot.jobs if one.name == f"ns/{name}")


def task(snapshot: Snapshot, name: str) -> Task:
    (group,) = job(snapshot, name).groups
    assert group.task is not None
    return group.task


def cards(snapshot: Snapshot, name: str) -> list[tuple[int, ...]]:
    running = job(snapshot, name).running
    assert running is not None
    return [one.gpus for one in running.tasks]


def said(snapshot: Snapshot, kind: str) -> set[str]:
    return {entry.what for entry in snapshot.ledger if entry.kind == kind}


def test_cards_of_another_vendor_stay_beside_those_of_slices() -> None:
    found = of(
        node({"amd.com/gpu": 2}, {"amd.com/gpu.product-name": "MI300X"}),
        devices(device(0), device(1)),
        claim("c", "gpu", "gpu-1"),
        claim("d"),
        pod("a", claim="c"),
        pod("b", {"amd.com/gpu": 1}),
        pod("p", {"amd.com/gpu": 1}, on=""),
        pod("q", claim="d", on=""),
    )
    assert [(gpu.model, gpu.count) for gpu in found.nodes[0].gpus] == [(A100, 2), ("MI300X", 2)]
    assert (cards(found, "a"), cards(found, "b")) == ([(1,)], [(2,)])
    assert (task(found, "p").gpu_models, task(found, "q").gpu_models) == (("MI300X",), (A100,))


def test_the_same_cards_by_a_resource_and_by_slices_are_once_there() -> None:
    both = {GPU: 2, "amd.com/gpu": 3}
    found = of(node(both, {"amd.com/gpu.product-name": "MI300X"}), devices(device(0), device(1)))
    assert [(gpu.model, gpu.count) for gpu in found.nodes[0].gpus] == [(A100, 2), ("MI300X", 3)]


def test_cards_of_slices_come_first_whatever_the_resources_are() -> None:
    cut = devices({"name": "card-0", "attributes": {"type": {"string": "amdgpu"}, "productName": {"string": "MI300X"}}})
    cut["spec"]["driver"] = "gpu.amd.com"
    has = claim("c", "gpu", "card-0")
    has["status"]["allocation"]["devices"]["results"][0]["driver"] = "gpu.amd.com"
    labels = {"amd.com/gpu.product-name": "MI300X"}
    found = of(node({GPU: 2, "amd.com/gpu": 1}, labels), cut, has, pod("a", claim="c"), pod("b", {GPU: 2}))
    assert [(gpu.model, gpu.count) for gpu in found.nodes[0].gpus] == [("MI300X", 1), (A100, 2)]
    assert (cards(found, "a"), cards(found, "b")) == ([(0,)], [(1, 2)])


def test_who_has_a_card_passed_through_has_the_card() -> None:
    found = of(
        node({}),
        devices(device(0), device(1), device(0, "vfio"), device(1, "vfio")),
        claim("c", "vfio", "gpu-vfio-1"),
        claim("d", "vfio", "gpu-vfio-0"),
        pod("a", claim="c"),
    )
    assert (cards(found, "a"), cards(found, "d#claim")) == ([(1,)], [(0,)])


def test_cards_that_are_known_of_one_pod_come_before_those_assumed_of_another() -> None:
    found = of(
        node({GPU: 3}),
        devices(device(0), device(1), device(2)),
        claim("c", "gpu", "gpu-0"),
        claim("d", "gpu", "gpu-1"),
        pod("a", {GPU: 1}, claim="c"),
        pod("b", claim="d"),
    )
    assert (cards(found, "a"), cards(found, "b")) == ([(0,), (2,)], [(1,)])
    assert not said(found, "contradiction")


RESERVED = {"namespace": "kai-resource-reservation", "labels": {"runai-gpu-group": "g"}}


def test_a_card_that_kai_reserves_and_that_nobody_shares_is_held() -> None:
    reserves = pod("r", {GPU: 1}, annotations={"run.ai/reserve_for_gpu_index": "1"})
    reserves["metadata"] |= RESERVED
    half: Thing = {"labels": {"runai-gpu-group": "g"}, "annotations": {"gpu-fraction": "0.5"}}
    alone, shared = of(node({GPU: 2}), reserves), of(node({GPU: 2}), reserves, pod("a", **half))
    (holder,) = alone.jobs
    assert holder.running is not None
    assert [one.gpus for one in holder.running.tasks] == [(1,)]
    assert cards(shared, "a") == [(1,)]
    assert sum(group.task.gpus for one in shared.jobs for group in one.groups if group.task is not None) == 1


def test_groups_of_several_cards_are_known_without_objects_of_kai() -> None:
    two: Thing = {"labels": {"runai-gpu-group/g": "g", "runai-gpu-group/h": "h"}}
    parts: Thing = {"annotations": {"gpu-fraction": "0.5", "gpu-fraction-num-devices": "2"}}
    one: Thing = {"labels": {"runai-gpu-group": "h"}, "annotations": {"gpu-fraction": "0.5"}}
    other: Thing = {"labels": {"runai-gpu-group": "i"}, "annotations": {"gpu-fraction": "0.5"}}
    found = of(node({GPU: 4}), pod("a", **two, **parts), pod("b", **other), pod("c", **one))
    assert cards(found, "b") not in ([(0,)], [(1,)])
    assert cards(found, "c")[0][0] == cards(found, "a")[0][1]


HAMI = {"hami.io/node-nvidia-register": "".join(f"{name},10,40960,100,A100,0,true:" for name in ("GPU-a", "GPU-b"))}
VOLCANO = {"volcano.sh/node-vgpu-register": "".join(f"{name},10,40960,A100,true:" for name in ("GPU-a", "GPU-b"))}


def test_who_asks_for_time_of_a_card_alone_has_all_of_its_memory() -> None:
    found = of(node({GPU: 20}, annotations=HAMI), pod("a", {GPU: 1, "nvidia.com/gpucores": 30}))
    assert (task(found, "a").gpu_share, task(found, "a").gpu_memory) == ("300m", 40960 * 2**20)


def test_volcano_says_cards_by_uuid() -> None:
    part = {"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory": 10000}
    says = {"volcano.sh/vgpu-ids-new": "GPU-b,NVIDIA,10000,0:;"}
    found = of(node({"volcano.sh/vgpu-number": 20}, annotations=VOLCANO), pod("a", part, annotations=says))
    assert cards(found, "a") == [(1,)]


def test_cards_of_init_containers_that_are_over_are_not_those_of_the_pod() -> None:
    says = {HAMI_SAYS: "GPU-a,NVIDIA,20000,0:;GPU-b,NVIDIA,10000,0:;"}
    first = {GPU: "1", "nvidia.com/gpumem": "20000"}
    found = of(
        node({GPU: 20}, annotations=HAMI), pod("a", {GPU: 1, "nvidia.com/gpumem": 10000}, init=first, annotations=says)
    )
    assert cards(found, "a") == [(1,)]
    assert "a pod is said to have more cards than its containers have at a time" in said(found, "contradiction")


HAMI_SAYS = "hami.io/vgpu-devices-allocated"


def test_replicas_beside_whole_cards_are_those_of_the_other_cards() -> None:
    """Two cards in all, one of them whole: four units are one card of four."""
    found = of(node({GPU: 1, "nvidia.com/gpu.shared": 4}, {"nvidia.com/gpu.count": "2"}))
    assert [(gpu.count, gpu.replicas) for gpu in found.nodes[0].gpus] == [(1, None), (1, 4)]
    assert "the label nvidia.com/gpu.count and the cards of the resource" not in said(found, "contradiction")


def test_a_workload_that_was_admitted_and_has_no_pods_is_named() -> None:
    pod_set = {"name": "main", "count": 2, "template": {"spec": {"containers": [{}]}}}
    workload = {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": {"name": "w", "namespace": "ns"},
        "spec": {"queueName": "q", "podSets": [pod_set]},
        "status": {"admission": {"clusterQueue": "cq", "podSetAssignments": [{"name": "main", "count": 2}]}},
    }
    found = of(node({GPU: 8}), workload)
    assert "a gang that was started, without pods" in said(found, "ignored")


def test_nvidia_smi_is_not_read_of_instances_that_are_cards() -> None:
    labels = {
        "nvidia.com/gpu.product": f"{A100}-MIG-1g.5gb-SHARED",
        "nvidia.com/gpu.count": "1",
        "nvidia.com/gpu.replicas": "2",
    }
    listing = "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-0)\n  MIG 1g.5gb      Device  0: (UUID: MIG-0)\n"
    found = of(node({GPU: 2}, labels), smi=listing)
    (gpu,) = found.nodes[0].gpus
    assert (gpu.mig_instance, gpu.mig_enabled, found.nodes[0].devices) == ("1g.5gb", False, ())
    assert len(said(found, "ignored")) == 1


def test_a_resource_that_stands_for_a_class_is_what_its_claim_has() -> None:
    named = {"name": DRIVER}
    classed = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": named,
        "spec": {"extendedResourceName": GPU, "selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]},
    }
    runs = pod("a", {GPU: 1})
    mapped = [{"containerName": "c", "resourceName": GPU, "requestName": "r"}]
    runs["status"] = {"extendedResourceClaimStatus": {"resourceClaimName": "made", "requestMappings": mapped}}
    slices = devices(device(0), device(1))
    found = of(node({}), slices, classed, runs, claim("made", "gpu", "gpu-1"), pod("p", {GPU: 2}, on=""))
    assert {one.name for one in found.jobs} == {"ns/a", "ns/p"}
    assert (cards(found, "a"), task(found, "p").gpus) == ([(1,)], 2)
    assert not task(found, "p").extended
    assert not task(found, "p").node_selector
    # where a device plugin offers it too, a pod that waits is kept to the nodes of that
    other = node({GPU: 2})
    other["metadata"] = {**other["metadata"], "name": "o"}
    mixed = of(node({}), other, slices, classed, pod("p", {GPU: 2}, on=""))
    chosen = task(mixed, "p").node_selector
    assert [one.name for one in mixed.nodes if chosen.items() <= one.labels.items()] == ["o"]
    assert "a resource of some nodes that stands for a class of devices on others" in said(mixed, "ignored")


def test_instances_that_pods_share_come_back_from_objects() -> None:
    turn = Task(gpus=1, gpu_share="250m", mig_instance="1g.5gb")
    shared = Gpu(model=A100, count=2, memory="4864Mi", sharing="mps", replicas=4, mig_instance="1g.5gb")
    places = {"a": (turn, (3,)), "w": (Task(gpus=1), (0,))}
    jobs = [
        Job(
            name=f"ns/{name}",
            groups=(TaskGroup(name="pod", task=asked),),
            running=Running(tasks=(RunningTask(group="pod", index=0, node="n", gpus=at),)),
        )
        for name, (asked, at) in places.items()
    ]
    jobs.append(Job(name="ns/p", groups=(TaskGroup(name="pod", task=turn),)))
    given = Snapshot(nodes=(Node(name="n", gpus=(Gpu(model=A100, count=2), shared)),), jobs=tuple(jobs))
    found = read([File("k.json", formats.dump("kubernetes-objects", given))])
    assert found.nodes[0].gpus == given.nodes[0].gpus
    assert (cards(found, "a"), cards(found, "w")) == ([(3,)], [(0,)])
    assert [(task(found, name).mig_instance, task(found, name).gpu_share) for name in "ap"] == [("1g.5gb", "250m")] * 2
    assert not said(found, "contradiction")
    assert not any("in no object" in line and "mig_instance" in line for line in lost(given))
    bare = msgspec.structs.replace(shared, sharing="shared", replicas=None)
    assert any(
        "mig_instance without replicas" in line for line in lost(Snapshot(nodes=(Node(name="n", gpus=(bare,)),)))
    )


def test_a_node_with_devices_of_claims_that_are_not_there_takes_no_new_work() -> None:
    runs = pod("a", claim="c")
    assert of(node({}), devices(device(0)), runs).nodes[0].cordoned
    assert not of(node({}), devices(device(0)), runs, claim("c", "gpu", "gpu-0")).nodes[0].cordoned
    # without slices there are no devices that could look free
    assert not of(node({GPU: 1}), runs).nodes[0].cordoned


@pytest.mark.parametrize(
    ("always", "expected"),
    [(True, [(10000, 0), (5000, 1), (20000, 1)]), (False, [(10000, 0), (5000, 1)])],
)
def test_cards_that_hami_says_go_to_containers_by_their_memory(always: bool, expected: list[tuple[int, int]]) -> None:
    """The init container comes first in the annotation; where it stays it holds its card, and else that is free."""
    says = {HAMI_SAYS: "GPU-b,NVIDIA,20000,0:;GPU-a,NVIDIA,10000,0:;GPU-b,NVIDIA,5000,0:;"}
    asked = [{GPU: 1, "nvidia.com/gpumem": size} for size in (10000, 5000)]
    runs = pod("a", *asked, init={GPU: "1", "nvidia.com/gpumem": "20000"}, annotations=says)
    if always:
        runs["spec"]["initContainers"][0]["restartPolicy"] = "Always"
    found = of(node({GPU: 20}, annotations=HAMI), runs)
    sizes = dict(leaf_tasks(job(found, "a").groups))
    running = job(found, "a").running
    assert running is not None
    assert [(exact(sizes[one.group].gpu_memory or 0) // 2**20, one.gpus[0]) for one in running.tasks] == expected


def test_a_pod_of_several_tasks_is_one_object_and_comes_back() -> None:
    small, large = "nvidia.com/mig-1g.5gb", "nvidia.com/mig-3g.20gb"
    there = node({small: 3, large: 1, GPU: 1}, {"nvidia.com/gpu.count": "2", "nvidia.com/mig.strategy": "mixed"})
    asked = {"cpu": "1500m", small: 2, large: 1, GPU: 1}
    first = of(there, pod("a", asked), pod("p", {small: 1, large: 1}, on=""))
    objects = formats.dump("kubernetes-objects", first)
    assert [item["metadata"]["name"] for item in json.loads(objects)["items"] if item["kind"] == "Pod"] == ["a", "p"]
    again = read([File("k.json", objects)])

    def held(snapshot: Snapshot) -> list[tuple[str, tuple[int, ...], tuple[int, ...]]]:
        tasks = dict(leaf_tasks(job(snapshot, "a").groups))
        running = job(snapshot, "a").running
        assert running is not None
        return sorted((tasks[one.group].mig_profile, one.gpus, one.mig_starts) for one in running.tasks)

    assert len(held(first)) == 4
    assert held(again) == held(first)
    for snapshot in (first, again):
        assert [sum(exact(one.cpu) for _, one in leaf_tasks(job(snapshot, "a").groups))] == [exact("1500m")]
    assert job(again, "p").groups == job(first, "p").groups
    assert not said(again, "contradiction")
