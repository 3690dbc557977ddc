"""Clusters and pods in a few words, and what a snapshot makes of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from placement.formats.kubernetes import gangs, pods
from placement.formats.kubernetes.objects import Objects
from placement.formats.kubernetes.parts import Addition, Cluster, Devices, Gang, Offer
from placement.formats.ledger import Ledger
from placement.formats.source import File
from placement.snapshot import (
    Gpu,
    Job,
    MigInstance,
    Node,
    RunningTask,
    Snapshot,
)
from placement.snapshot.read import verified

GPU = "nvidia.com/gpu"
H100 = "NVIDIA-H100-80GB-HBM3"
EPOCH = "1970-01-01T00:01:40Z"


def node(name: str, count: int = 8, **more: Any) -> Node:
    labels = {"kubernetes.io/hostname": name, **more.pop("labels", {})}
    gpus = more.pop("gpus", (Gpu(model=H100, count=count, memory="80Gi"),) if count else ())
    return Node(name=name, labels=labels, gpus=gpus, cpu=64, memory="512Gi", pods=110, **more)


def cluster(*nodes: Node, offers: Mapping[str, Mapping[str, Offer]] | None = None, **more: Any) -> Cluster:
    """Return a cluster in which each node offers all of its cards, if nothing else is said."""
    given_ = dict(offers or {})
    for one in nodes:
        cards = sum(gpu.count for gpu in one.gpus)
        if one.name not in given_ and cards:
            given_[one.name] = {GPU: Offer(tuple(range(cards)))}
    return Cluster(
        nodes, offers=given_, level_of={"kubernetes.io/hostname": "node", **more.pop("level_of", {})}, **more
    )


def pod(name: str, node_: str = "", amounts: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    meta = {
        key: more.pop(key) for key in ("labels", "annotations", "ownerReferences", "deletionTimestamp") if key in more
    }
    phase = more.pop("phase", "Running" if node_ else "Pending")
    asked = {"requests": dict(amounts or {GPU: 1}), "limits": {}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ns", "uid": name, "creationTimestamp": EPOCH, **meta},
        "spec": {"containers": [{"name": "c", "resources": asked}], **({"nodeName": node_} if node_ else {}), **more},
        "status": {"phase": phase, **({"startTime": EPOCH} if node_ else {})},
    }


def read(
    cluster_: Cluster,
    objects: Sequence[dict[str, Any]],
    devices: Devices | None = None,
    additions: Sequence[Addition] = (),
    strict: bool = False,
    core: bool = False,
) -> Snapshot:
    """Return a verified snapshot, with its ledger."""
    ledger = Ledger(strict)
    data = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}).encode()
    found = Objects([File("pods.json", data)])
    systems = [*additions, *([gangs.read(found, ledger)] if core else [])]
    nodes, jobs = pods.read(found, cluster_, devices or Devices(), systems, ledger)
    made = Snapshot(time=1000.0, topology=cluster_.levels, nodes=nodes, jobs=jobs, ledger=ledger.entries())
    return verified(made)


def job(snapshot: Snapshot, name: str) -> Job:
    return next(one for one in snapshot.jobs if one.name == name)


def held(snapshot: Snapshot, name: str) -> tuple[RunningTask, ...]:
    running = job(snapshot, name).running
    assert running is not None
    return running.tasks


def cards(snapshot: Snapshot, name: str) -> tuple[int, ...]:
    return tuple(card for task in held(snapshot, name) for card in task.gpus)


def task(snapshot: Snapshot, name: str) -> Any:
    return job(snapshot, name).groups[0].task


def usable(snapshot: Snapshot, name: str) -> set[str]:
    """Return the nodes that the selector of a pending job admits."""
    wanted = task(snapshot, name).node_selector.items()
    return {one.name for one in snapshot.nodes if wanted <= one.labels.items()}


def said(snapshot: Snapshot, kind: str) -> dict[str, int]:
    return {entry.what: entry.count for entry in snapshot.ledger if entry.kind == kind}


MIG = Gpu(
    model="NVIDIA-A100-SXM4-40GB",
    mig_enabled=True,
    mig_static=True,
    mig_layout=(MigInstance(profile="3g.20gb", start=0), MigInstance(profile="3g.20gb", start=4)),
)
SLICED = {"n": {"nvidia.com/mig-3g.20gb": Offer((0, 0), 1, "3g.20gb", (0, 4))}}
SLICE = {"nvidia.com/mig-3g.20gb": 1}


NODES = (
    node("a", 0, labels={"zone": "1", "gen": "3"}),
    node("b", 0, labels={"zone": "2", "gen": "10"}),
    node("c", 0, labels={"gen": "x"}),
)


def terms(*expressions: dict[str, Any], fields: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    term = {"matchExpressions": list(expressions), "matchFields": list(fields)}
    required = {"nodeSelectorTerms": [{key: value for key, value in term.items() if value}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def away(label: str, kind: str = "podAntiAffinity", key: str = "kubernetes.io/hostname") -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": label}}}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def labelled(*gangs_: Gang) -> Addition:
    """Return a system in which two labels say gang and group."""

    def member(one: Any) -> tuple[str, str] | None:
        labels = one.metadata.labels or {}
        return (f"ns/{labels['gang']}", labels.get("group", "pods")) if "gang" in labels else None

    return Addition(gangs=gangs_, member=member)


def members(count: int, running: int = 0, **more: Any) -> list[dict[str, Any]]:
    labels = {"gang": "g", **more.pop("labels", {})}
    return [
        pod(
            f"g-{i}",
            "n" if i < running else "",
            labels={**labels, "batch.kubernetes.io/job-completion-index": f"{i}"},
            **more,
        )
        for i in range(count)
    ]
