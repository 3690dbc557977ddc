"""Kueue's objects to a snapshot, its plan, and the admissions: what users of Kueue reported, each as a kind."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from placement.check import check
from placement.engine import solve
from placement.errors import InputError
from placement.formats.kueue import write
from placement.formats.kueue.assignment import expanded
from placement.formats.read import read
from placement.formats.source import File
from placement.snapshot import Snapshot

BLOCK, RACK, HOST = "cloud.provider.com/topology-block", "cloud.provider.com/topology-rack", "kubernetes.io/hostname"
WITHOUT = ("queues", "jobs.queue", "jobs.preemptible")


def node(name: str, rack: str | None = "r1", pods: int = 110, **amounts: str) -> dict[str, Any]:
    labels = {HOST: name, BLOCK: "b1"} | ({RACK: rack} if rack else {})
    amounts = {{"test": "example.com/test"}.get(key, key): text for key, text in amounts.items()}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": {
            "allocatable": {"memory": "1Ti", "pods": str(pods), **amounts},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def spec(**requests: str) -> dict[str, Any]:
    asked = {{"test": "example.com/test"}.get(key, key): text for key, text in requests.items()}
    return {"containers": [{"name": "main", "resources": {"requests": asked}}]}


def runs(name: str, on: str, **requests: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    status = {"phase": "Running"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {**spec(**requests), "nodeName": on},
        "status": status,
    }


def waits(name: str, **meta: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "labels": {"kueue.x-k8s.io/queue-name": "user"}, **meta}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec(cpu="1")}


def pod_set(name: str, count: int, required: str = "", group: str = "", **requests: str) -> dict[str, Any]:
    request = {"required": required, "podSetGroupName": group} if required else None
    return {"name": name, "count": count, "template": {"spec": spec(**requests)}, "topologyRequest": request}


def made(kind: str, name: str, content: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": content,
    }


def workload(*sets: dict[str, Any], name: str = "w") -> dict[str, Any]:
    return made("Workload", name, {"queueName": "user", "podSets": list(sets)})


def kueue(resource: str = "cpu", nominal: str = "1E", **more: Any) -> list[dict[str, Any]]:
    flavours = [{"name": "tas", "resources": [{"name": resource, "nominalQuota": nominal}]}]
    return [
        made("Topology", "tree", {"levels": [{"nodeLabel": label} for label in (BLOCK, RACK, HOST)]}),
        made("ResourceFlavor", "tas", {"topologyName": "tree", "tolerations": [{"key": "gpu", "operator": "Exists"}]}),
        made("ClusterQueue", "cq", {"resourceGroups": [{"coveredResources": [resource], "flavors": flavours}], **more}),
        made("LocalQueue", "user", {"clusterQueue": "cq"}),
    ]


def snapshot_of(*objects: Any) -> Snapshot:
    data = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}).encode()
    return read([File("dump.json", data)])


def admitted(*objects: Any) -> dict[str, dict[str, dict[str, int]]]:
    """Return pods by host, by pod set, by workload, as the admissions say them."""
    snapshot = snapshot_of(*objects)
    plan = solve(snapshot, without=WITHOUT)
    assert check(snapshot, plan, without=WITHOUT) == []
    found: dict[str, dict[str, dict[str, int]]] = {}
    for item in json.loads(write.write(snapshot, plan))["items"]:
        sets = found[item["metadata"]["name"]] = {}
        for one in item["status"]["admission"]["podSetAssignments"]:
            domains = expanded(one["topologyAssignment"]).domains
            assert sum(count for _, count in domains) == one["count"]
            sets[one["name"]] = {values[0]: count for values, count in domains}
    return found


def test_all_pods_on_a_node_take_its_slots() -> None:
    """Of 3 slots one has another pod and two have own ones: none is left for a pod of 0.1 cores."""
    full = [runs(f"p{i}", "n1", cpu="100m") for i in range(3)]
    ask = workload(pod_set("main", 1, cpu="100m"))
    assert admitted(node("n1", cpu="1", pods=3), *full, *kueue(), ask) == {}
    assert admitted(node("n1", cpu="1", pods=3), *full[:2], *kueue(), ask) == {"w": {"main": {"n1": 1}}}


def test_pod_sets_of_a_workload_share_what_there_is() -> None:
    """One slot for two pods; 5 cores for 3 and 3; and two nodes of 5, which have one each."""
    small = workload(pod_set("a", 1, cpu="1"), pod_set("b", 1, cpu="1"))
    large = workload(pod_set("a", 1, cpu="3"), pod_set("b", 1, cpu="3"))
    assert admitted(node("n1", cpu="10", pods=1), *kueue(), small) == {}
    assert admitted(node("n1", cpu="5"), *kueue(), large) == {}
    both = admitted(node("n1", cpu="5"), node("n2", cpu="5"), *kueue(), large)
    assert sorted(host for hosts in both["w"].values() for host in hosts) == ["n1", "n2"]


def test_a_leader_does_not_take_the_place_of_a_worker() -> None:
    """Workers of 2 cores fit on 2, 4 and 3 cores 1, 2 and 1 times, so the leader of 1 core gets what is over."""
    nodes = [node(f"h{i}", cpu=str(cores)) for i, cores in ((1, 2), (2, 4), (3, 3))]
    sets = pod_set("leader", 1, RACK, "g", cpu="1"), pod_set("workers", 4, RACK, "g", cpu="2")
    assert admitted(*nodes, *kueue(), workload(*sets)) == {
        "w": {"leader": {"h3": 1}, "workers": {"h1": 1, "h2": 2, "h3": 1}}
    }


def test_a_full_node_does_not_make_room_in_its_rack() -> None:
    """A rack with a full node and one of 2 cores has no room for three pods of 1 core; a rack of 3 cores has."""
    rack = [node("full", "r1", cpu="4"), node("small", "r1", cpu="2"), runs("p", "full", cpu="4")]
    ask = workload(pod_set("leader", 1, RACK, "g", cpu="1"), pod_set("workers", 2, RACK, "g", cpu="1"))
    assert admitted(*rack, *kueue(), ask) == {}
    found = admitted(*rack, node("large", "r2", cpu="3"), *kueue(), ask)
    assert found == {"w": {"leader": {"large": 1}, "workers": {"large": 2}}}


def test_what_no_queue_counts_is_still_there_or_not() -> None:
    """Two units on one node are not three, nor are there any on a node that does not list them."""
    nodes = node("n1", cpu="8", test="2"), node("n2", cpu="8")
    assert admitted(*nodes, *kueue(), workload(pod_set("main", 3, cpu="1", test="1"))) == {}
    assert admitted(*nodes, *kueue(), workload(pod_set("main", 2, cpu="1", test="1"))) == {"w": {"main": {"n1": 2}}}


def test_overfull_nodes_count_as_full_and_pods_add_up() -> None:
    """Ten hosts of 4 units, of which three are charged 6, 8 and 5: seven have room for one pod of 4 each."""
    nodes = [node(f"n{i}", cpu="64", test="4") for i in range(10)]
    over = [runs(f"p{i}", f"n{i}", test=amount) for i, amount in enumerate("685")]
    for count, fits in ((7, True), (8, False)):
        found = admitted(*nodes, *over, *kueue(), workload(pod_set("main", count, BLOCK, test="4")))
        assert Counter(found.get("w", {}).get("main", {})) == Counter(
            {f"n{i}": 1 for i in range(3, 10)} if fits else {}
        )


def test_amounts_that_add_up_beyond_64_bits_start_nothing() -> None:
    """Twice 2^63 - 1 is no less than nothing: no node has so much."""
    huge = str(2**63 - 1)
    sets = pod_set("a", 1, test=huge), pod_set("b", 1, test=huge)
    assert admitted(node("n1", cpu="8", test="10"), *kueue("example.com/test", "10"), workload(*sets)) == {}
    with pytest.raises(InputError, match=r"dump\.json: items"):
        snapshot_of(node("n1", cpu="8"), *kueue(), workload(pod_set("a", 1, test="9223372036854775808")))


def test_a_request_of_nothing_fits_where_there_is_nothing() -> None:
    ask = workload(pod_set("main", 1, cpu="1", **{"nvidia.com/gpu": "0"}))
    assert admitted(node("n1", cpu="1"), *kueue(), ask) == {"w": {"main": {"n1": 1}}}


def test_a_hundred_small_pods_fit_beside_ten_others() -> None:
    others = [runs(f"p{i}", "n1", cpu="1m") for i in range(11)]
    ask = workload(pod_set("main", 100, cpu="100m", memory="100Mi"))
    cluster = node("n1", cpu="100")
    assert admitted(cluster, *others[:10], *kueue(), ask) == {"w": {"main": {"n1": 100}}}
    assert admitted(cluster, *others, *kueue(), ask) == {}


def test_nodes_that_lack_a_label_of_the_topology_are_named_and_left_alone() -> None:
    objects = node("n1", cpu="1"), node("n2", None, cpu="8"), *kueue()
    assert admitted(*objects, workload(pod_set("main", 2, cpu="1"))) == {}
    assert admitted(*objects, workload(pod_set("main", 1, cpu="1"))) == {"w": {"main": {"n1": 1}}}
    ledger = snapshot_of(*objects, workload(pod_set("main", 2, cpu="1"))).ledger
    entry = next(entry for entry in ledger if entry.what == f"nodes without the label {RACK}")
    assert (entry.count, entry.where) == (1, ("dump.json: items[1]",))


def test_pods_that_their_queue_does_not_start_are_no_jobs() -> None:
    cluster = node("n1", cpu="8")
    assert [job.name for job in snapshot_of(cluster, *kueue(), waits("p")).jobs] == ["default/p"]
    assert snapshot_of(cluster, *kueue(stopPolicy="Hold"), waits("p")).jobs == ()
    lost = waits("p", annotations={"kueue.x-k8s.io/podset-required-topology": "zone"})
    assert snapshot_of(cluster, *kueue(), lost).jobs == ()


def test_pods_that_wait_get_the_tolerations_of_their_flavour() -> None:
    job = snapshot_of(node("n1", cpu="8"), *kueue(), waits("p")).jobs[0]
    assert job.groups[0].task is not None
    assert [toleration.key for toleration in job.groups[0].task.tolerations] == ["gpu"]


def test_some_pod_sets_share_a_rack_and_others_do_not() -> None:
    """Each rack has 3 cores: leader and worker take one, and the driver of 2 cores the other."""
    nodes = node("n1", "r1", cpu="3"), node("n2", "r2", cpu="3")
    sets = (
        pod_set("driver", 1, cpu="2"),
        pod_set("leader", 1, RACK, "g", cpu="1"),
        pod_set("worker", 1, RACK, "g", cpu="2"),
    )
    found = admitted(*nodes, *kueue(), workload(*sets))["w"]
    assert found["leader"] == found["worker"] != found["driver"]
