"""Importing what kubectl prints of a large cluster: seconds, and the most memory of the process.

The objects are drawn with a seed: nodes with eight cards each and the labels of a real one, and pods of some 5 KB with
the clutter that the API adds (managed fields, conditions, volumes, statuses of containers), of which most run. Nine
pods in ten are of a hundred kinds of service; the others ask for cards. The file is written once and read in a fresh
process, which checks the snapshot as `placement import` does.

    python benchmarks/importing.py --output importing.json
    python benchmarks/importing.py --nodes 500 --pods 10000
    python benchmarks/importing.py --nodes 500 --pods 10000 --profile
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from table import Column, Row, heading, line, machine, write

HERE = Path(__file__).resolve().parent
COLUMNS = (
    Column("nodes", "nodes", 6),
    Column("pods", "pods", 7),
    Column("MB", "megabytes", 6, ".0f"),
    Column("seconds", "seconds", 8, ".2f"),
    Column("peak MiB", "peak", 9, ".0f"),
    Column("jobs", "jobs", 7),
    Column("running", "running", 8),
    Column("entries", "ledger", 8),
)
CARDS = 8
"""Cards of a node."""
MODEL = "NVIDIA-H100-80GB-HBM3"
EPOCH = "2026-01-01T00:00:00Z"


# --- drawing ---------------------------------------------------------------------------------------------------


def node(index: int) -> Row:
    """Return a Node object."""
    name = f"gpu-{index:05}"
    amounts = {"cpu": "127400m", "memory": "1048002Mi", "pods": "250", "ephemeral-storage": "3600Gi"}
    amounts["nvidia.com/gpu"] = str(CARDS)
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "topology.kubernetes.io/zone": f"zone-{index // 1000}",
        "nvidia.com/gpu.product": MODEL,
        "nvidia.com/gpu.count": str(CARDS),
        "nvidia.com/gpu.memory": "81559",
        "nvidia.com/mig.capable": "true",
        "nvidia.com/mig.strategy": "single",
        "nvidia.com/gpu.replicas": "1",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"n{index:035}", "labels": labels, "managedFields": fields(labels)},
        "spec": {"podCIDR": f"10.{index % 250}.0.0/24"},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": EPOCH}],
            "images": [
                {"names": [f"registry.example/image-{i}@sha256:{i:064}"], "sizeBytes": 10**9} for i in range(20)
            ],
        },
    }


def fields(labels: dict[str, str]) -> list[Row]:
    """Return managed fields, which nobody reads and which make up much of an object."""
    keys: Row = {f"f:{key}": {} for key in labels}
    spec: Row = {f'k:{{"name":"field-{i}"}}': {".": {}, "f:name": {}, "f:value": {}} for i in range(18)}
    return [
        {"manager": "kube-controller-manager", "operation": "Update", "fieldsV1": {"f:metadata": {"f:labels": keys}}},
        {"manager": "kubelet", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": spec}},
    ]


def pod(rng: random.Random, index: int, free: dict[int, int], nodes: int) -> Row:
    """Return a Pod object; `free` has the cards left of each node, and loses those of the pod."""
    kind = rng.randrange(100)
    cards = rng.choice((1, 1, 2, 4, 8)) if rng.random() < 0.1 else 0
    where = rng.randrange(nodes)
    bound = free[where] >= cards and rng.random() < 0.95
    if bound:
        free[where] -= cards
    amounts = {"cpu": f"{100 * (1 + kind % 20)}m", "memory": f"{256 * (1 + kind % 12)}Mi"}
    if cards:
        amounts["nvidia.com/gpu"] = str(cards)
    labels = {"app": f"service-{kind}", "pod-template-hash": f"{kind:010}", "team": f"team-{kind % 7}"}
    mounts = [{"name": f"volume-{i}", "mountPath": f"/var/run/secrets/volume-{i}", "readOnly": True} for i in range(4)]
    container = {
        "name": "main",
        "image": f"registry.example/team-{kind % 7}/service-{kind}:1.{kind}.0",
        "env": [{"name": f"SETTING_{i}", "value": f"value-{i}-of-service-{kind}"} for i in range(12)],
        "resources": {"requests": amounts, "limits": {key: amounts[key] for key in amounts if key != "cpu"}},
        "volumeMounts": mounts,
        "terminationMessagePath": "/dev/termination-log",
    }
    spec: Row = {
        "containers": [container],
        "volumes": [{"name": f"volume-{i}", "projected": {"defaultMode": 420, "sources": []}} for i in range(4)],
        "tolerations": [
            {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            for what in ("not-ready", "unreachable")
        ],
        "serviceAccountName": f"service-{kind}",
        "schedulerName": "default-scheduler",
        "priority": 1000 * (kind % 3),
    }
    status: Row = {"phase": "Pending", "qosClass": "Burstable"}
    if bound:
        spec["nodeName"] = f"gpu-{where:05}"
        status = {
            "phase": "Running",
            "startTime": EPOCH,
            "podIP": f"10.{where % 250}.{index % 250}.7",
            "conditions": [
                {"type": what, "status": "True", "lastProbeTime": None, "lastTransitionTime": EPOCH}
                for what in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
            ],
            "containerStatuses": [{"name": "main", "ready": True, "imageID": f"sha256:{index:064}", "restartCount": 0}],
        }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"service-{kind}-{kind:010}-{index:06}",
            "namespace": f"team-{kind % 7}",
            "uid": f"p{index:035}",
            "creationTimestamp": EPOCH,
            "labels": labels,
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"service-{kind}"}],
            "managedFields": fields(labels),
        },
        "spec": spec,
        "status": status,
    }


def objects(nodes: int, pods: int, seed: int) -> Iterator[Row]:
    """Yield all objects."""
    rng = random.Random(seed)
    free = dict.fromkeys(range(nodes), CARDS)
    yield from (node(index) for index in range(nodes))
    yield from (pod(rng, index, free, nodes) for index in range(pods))


def drawn(path: Path, nodes: int, pods: int, seed: int) -> None:
    """Write a List of all objects, as kubectl prints one."""
    with path.open("w") as file:
        file.write('{"apiVersion": "v1", "kind": "List", "items": [\n')
        for number, one in enumerate(objects(nodes, pods, seed)):
            file.write((",\n" if number else "") + json.dumps(one, indent=1))
        file.write("\n]}\n")


# --- measuring -------------------------------------------------------------------------------------------------


def inside(path: Path, profiled: bool) -> Row:
    """Import a file; in a process of its own."""
    from placement.formats.read import read
    from placement.formats.source import files

    profile = cProfile.Profile()
    began = time.perf_counter()
    if profiled:
        profile.enable()
    snapshot = read(list(files(str(path))))
    profile.disable()
    seconds = time.perf_counter() - began
    if profiled:
        pstats.Stats(profile, stream=sys.stderr).sort_stats("tottime").print_stats(25)
    return {
        "seconds": round(seconds, 2),
        "peak": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        "jobs": len(snapshot.jobs),
        "running": sum(job.running is not None for job in snapshot.jobs),
        "ledger": len(snapshot.ledger),
    }


def measure(nodes: int, pods: int, seed: int, profiled: bool) -> Row:
    """Return one row of the table."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "objects.json"
        drawn(path, nodes, pods, seed)
        argv = [sys.executable, __file__, "--inside", str(path), *(["--profile"] if profiled else [])]
        found: Row = json.loads(subprocess.run(argv, stdout=subprocess.PIPE, check=True).stdout)
        return {"nodes": nodes, "pods": pods, "seed": seed, "megabytes": path.stat().st_size / 1e6, **found}


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--profile", action="store_true", help="say where the time goes")
    parser.add_argument("--output", type=Path, help="file for the results as JSON")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.inside is not None:
        print(json.dumps(inside(wanted.inside, wanted.profile)))
        return
    print(heading(COLUMNS))
    row = measure(wanted.nodes, wanted.pods, wanted.seed, wanted.profile)
    print(line(COLUMNS, row))
    write(wanted.output, machine=machine(), rows=[row])


if __name__ == "__main__":
    main()
