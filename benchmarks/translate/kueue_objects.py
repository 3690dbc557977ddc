"""Cases of Kueue's topology aware scheduling as objects of a cluster, for the readers and writers of outside formats.

`files` states a case as people would dump it: nodes, a Topology, a flavour and a queue, pods that run, and a Workload
that waits. `compare` takes the admissions that the writer makes of our plan, expands them, and judges fit and number of
domains as `benchmarks/cases.py` does.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from placement.formats.kueue.assignment import expanded
from placement.formats.source import File
from placement.plan import Plan
from placement.snapshot import Snapshot
from translate.common import HOST, Case, InexpressibleError

GROUP = "kueue.x-k8s.io"
VERSION = f"{GROUP}/v1beta2"
ENOUGH = 1_000_000
"""Quota of every resource, for the cases are about nodes."""

AGREES = "agrees"
BETTER = "better"


def files(case: Case) -> list[File]:
    """Return a case as files of `kubectl get -o json`.

    Raises
    ------
    InexpressibleError
        If it is about a workload of which some pods run.
    """
    if "running_workload" in case or any(r.get("previous_assignment") for r in case["requests"]):
        raise InexpressibleError("Workload", "some of its pods run and others wait; a plan starts whole jobs")
    if any(request.get("node_affinity") for request in case["requests"]):
        raise InexpressibleError("Workload", "the case does not say the expressions of its affinity")
    parts = {
        "nodes.json": [_node(case, node) for node in case["nodes"]],
        "queues.json": list(_queues(case)),
        "pods.json": list(_pods(case)),
        "workloads.json": [_workload(case)],
    }
    return [
        File(name, json.dumps({"apiVersion": "v1", "kind": "List", "items": part}).encode())
        for name, part in parts.items()
    ]


# --- objects -------------------------------------------------------------------------------------------------------


def _node(case: Case, node: Case) -> dict[str, Any]:
    spec: dict[str, Any] = {"unschedulable": True} if node.get("unschedulable") else {}
    if case["levels"][-1] == HOST and node.get("taints"):
        # Kueue looks at taints only where hosts are domains
        spec["taints"] = [
            {key: mark[key] for key in ("key", "value", "effect") if key in mark} for mark in node["taints"]
        ]
    ready = "True" if node.get("ready", True) else "False"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node["name"], "labels": node.get("labels", {})},
        "spec": spec,
        "status": {
            "allocatable": node["allocatable"],
            "capacity": node["allocatable"],
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }


def _queues(case: Case) -> Iterator[dict[str, Any]]:
    resources = sorted({name for request in case["requests"] for name in request["per_pod"]})
    quotas = [{"name": name, "nominalQuota": ENOUGH} for name in resources]
    flavours = [{"name": "tas", "resources": quotas}]
    groups = [{"coveredResources": resources, "flavors": flavours}] if resources else []
    labels = case.get("flavor_node_labels", {})
    yield _object("Topology", "tree", {"levels": [{"nodeLabel": level} for level in case["levels"]]})
    yield _object("ResourceFlavor", "tas", {"topologyName": "tree", "nodeLabels": labels})
    yield _object("ClusterQueue", "all", {"namespaceSelector": {}, "resourceGroups": groups})
    yield _object("LocalQueue", "user", {"clusterQueue": "all"}, namespace="default")


def _object(kind: str, name: str, spec: Mapping[str, Any], **metadata: str) -> dict[str, Any]:
    return {"apiVersion": VERSION, "kind": kind, "metadata": {"name": name, **metadata}, "spec": dict(spec)}


def _pods(case: Case) -> Iterator[dict[str, Any]]:
    """Yield the pods that run, or are bound to a node and about to; those that have ended too."""
    for index, pod in enumerate(case.get("existing_pods", ())):
        if pod["node"] is not None:
            yield _pod(f"pod-{index}", pod["requests"], pod["node"], pod["phase"])
    used = [*case.get("usage_already_admitted", ()), *case.get("usage_by_other_flavor_on_same_nodes", ())]
    for index, use in enumerate(used):
        keys = case["levels"][-len(use["domain"]) :]
        host = next(n for n in case["nodes"] if [n["labels"].get(key) for key in keys] == use["domain"])
        for number in range(use["pods"]):
            yield _pod(f"used-{index}-{number}", use["per_pod"], host["name"], "Running")


def _pod(name: str, requests: Mapping[str, str], node: str, phase: str) -> dict[str, Any]:
    spec = {"nodeName": node, "containers": [_container(requests)]}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": phase}}


def _container(requests: Mapping[str, str]) -> dict[str, Any]:
    return {"name": "main", "resources": {"requests": dict(requests)}}


def _workload(case: Case) -> dict[str, Any]:
    sets = [_pod_set(request) for request in case["requests"]]
    return _object("Workload", "workload", {"queueName": "user", "podSets": sets}, namespace="default")


def _pod_set(request: Case) -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [_container(request["per_pod"])]}
    if request.get("node_selector"):
        spec["nodeSelector"] = request["node_selector"]
    spec["tolerations"] = [
        {"key": t.get("key", ""), "operator": t["op"], "value": t.get("value", ""), "effect": t.get("effect", "")}
        for t in request.get("tolerations", ())
    ]
    return {
        "name": request["podset"],
        "count": request["count"],
        "template": {"spec": spec},
        "topologyRequest": _request(request),
    }


def _request(request: Case) -> dict[str, Any]:
    topology = request["topology"]
    asked: dict[str, Any] = {}
    if topology["mode"] in ("required", "preferred"):
        asked[topology["mode"]] = topology["level"]
    elif topology["mode"] == "unconstrained":
        asked["unconstrained"] = True
    if "slice_level" in topology:
        asked["podSetSliceRequiredTopology"] = topology["slice_level"]
    if "slice_size" in topology:
        asked["podSetSliceSize"] = topology["slice_size"]
    if topology.get("slice_layers"):
        layers = [{"topology": layer["level"], "size": layer["size"]} for layer in topology["slice_layers"]]
        asked["podsetSliceRequiredTopologyConstraints"] = layers
    if "colocate_group" in request:
        asked["podSetGroupName"] = request["colocate_group"]
    return asked


# --- our answer ----------------------------------------------------------------------------------------------------


def compare(case: Case, snapshot: Snapshot, plan: Plan, document: bytes) -> str:
    """Return how the admissions that were written compare with what the source expects.

    Parameters
    ----------
    case : mapping
    snapshot : Snapshot
        What the readers made of `files`.
    plan : Plan
        Ours, checked.
    document : bytes
        What the writer made of it, in either version.

    Returns
    -------
    str
        ``"agrees"``; ``"better"`` where ours fits and the source's does not, or in fewer domains; or what differs.
    """
    ours = _assigned(document)
    written = sum(count for domains in ours.values() for _, count in domains)
    if written != len(plan.tasks):
        return f"differs: {written} pods are written and {len(plan.tasks)} placed"
    wanted = {request["podset"]: request["count"] for request in case["requests"] if request["count"]}
    fits = {name: sum(count for _, count in domains) for name, domains in ours.items()} == wanted
    if ours and not fits:
        return "differs: some of the pods are placed, and not all"
    expected = all(part["fit"] for part in case["expected"])
    if not expected:
        return _extra(case, ours) if fits else AGREES
    if not fits:
        return "differs: the source fits and ours does not"
    theirs = _domains(case, [part for one in case["expected"] for part in _places(one)])
    mine = _domains(case, [(keys, c) for domains in ours.values() for keys, c in domains])
    return _judged(case, theirs, mine)


def _assigned(document: bytes) -> dict[str, list[tuple[dict[str, str], int]]]:
    """Return labels and pods of the domains of each pod set."""
    found: dict[str, list[tuple[dict[str, str], int]]] = {}
    for item in json.loads(document)["items"]:
        for one in item["status"]["admission"]["podSetAssignments"]:
            assignment = expanded(one["topologyAssignment"])
            pairs = [(dict(zip(assignment.levels, v, strict=True)), count) for v, count in assignment.domains]
            found[one["name"]] = pairs
    return found


def _places(expected: Case) -> Iterator[tuple[dict[str, str], int]]:
    assignment = expected.get("assignment", {})
    for part in assignment.get("domains", ()):
        yield dict(zip(assignment["levels"], part["values"], strict=True)), part["count"]


def _path(case: Case, labels: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the domain at each level, as the path down to it, of a domain that is given by some labels."""
    for node in case["nodes"]:
        own = {HOST: node["name"], **node.get("labels", {})}
        if all(own.get(key) == value for key, value in labels.items()):
            path = [own.get(level, "") for level in case["levels"]]
            return {level: tuple(path[: n + 1]) for n, level in enumerate(case["levels"])}
    return {}


def _domains(case: Case, places: list[tuple[dict[str, str], int]]) -> dict[str, int]:
    used: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for labels, _ in places:
        for level, path in _path(case, labels).items():
            used[level].add(path)
    return {level: len(paths) for level, paths in used.items()}


def _extra(case: Case, ours: Mapping[str, list[tuple[dict[str, str], int]]]) -> str:
    """Return what a fit is worth that the source does not have."""
    for domains in ours.values():
        for labels, _ in domains:
            if not all(path[-1] for path in _path(case, labels).values()):
                return "differs: ours uses a node without the labels of all levels"
    return f"{BETTER}: ours fits, and the source says it does not"


def _judged(case: Case, theirs: Mapping[str, int], mine: Mapping[str, int]) -> str:
    asked = [r["topology"]["level"] for r in case["requests"] if r["topology"]["mode"] in ("required", "preferred")]
    deepest = max((case["levels"].index(level) for level in asked), default=-1)
    ruled = case["levels"][: deepest + 1]
    said = ", ".join(f"{level.rpartition('/')[2]} {theirs.get(level)}/{mine.get(level)}" for level in case["levels"])
    if any(theirs.get(level) == 1 and mine.get(level, 0) > 1 for level in ruled):
        return f"differs: more domains ({said})"
    if any(mine.get(level) == 1 and theirs.get(level, 0) > 1 for level in ruled):
        return f"{BETTER}: fewer domains ({said})"
    return AGREES
