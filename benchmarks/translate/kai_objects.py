"""Cases of KAI as the snapshot that its scheduler gives, the way `placement import` gets it, and what becomes of them.

A running pod with a share of a card carries the name of the card's group, and a reservation keeps the card, as in a
cluster. Work that is leaving is a pod that is being deleted.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from placement.formats.source import File
from placement.hardware import mig
from placement.plan import Plan
from placement.snapshot import Snapshot
from translate import kai
from translate.common import HOST, Case, InexpressibleError, UntranslatedError

Object = dict[str, Any]

SPACE = "default"
RESERVATIONS = "kai-resource-reservation"
LEAVES = ("Releasing", "StuckInReleasing")
HELD = ("Running", *LEAVES)
"""States of pods that hold their cards."""
LEAVING = "2025-01-01T00:00:00Z"


def files(case: Case) -> list[File]:
    """Return a case as what ``/get-snapshot`` gives, unpacked."""
    lists = {
        "nodes": list(_nodes(case)),
        "queues": list(_queues(case)),
        "priorityClasses": list(_classes(case)),
        "topologies": list(_topologies(case)),
        "podGroups": list(_groups(case)),
        "pods": [*_pods(case), *_reservations(case)],
        "bindRequests": list(_requests(case)),
    }
    return [File(f"{case['case_id']}/snapshot.json", json.dumps({"rawObjects": lists}).encode())]


def compare(case: Case, snapshot: Snapshot, plan: Plan, document: bytes) -> str:
    """Return how the pods that an exported plan binds compare with those that the source binds.

    Parameters
    ----------
    case : Case
    snapshot : Snapshot
        What was imported.
    plan : Plan
    document : bytes
        What was exported.
    """
    specs = [item["spec"] for item in json.loads(document)["items"]]
    jobs = {_pod_name(job, i): job["name"] for job, i, pod in _each(case) if pod["state"] in ("Pending", "Pipelined")}
    names = [spec["podName"] for spec in specs]
    if len(set(names)) != len(names) or bool(names) != bool(len(plan.tasks)) or not set(names) <= set(jobs):
        return "differs: what is exported are not the pods that wait"
    if not {spec["selectedNode"] for spec in specs} <= {node.name for node in snapshot.nodes}:
        return "differs: a node that is not there"
    ours = Counter(jobs[name] for name in names)
    theirs: Counter[str] = Counter()
    try:
        for job, number, pod in _each(case):
            if pod["state"] == "Pending" and kai.expected(case, job, number)["state"] in kai.STARTED:
                theirs[job["name"]] += 1
        if ours == theirs:
            return "agrees"
        kai.translate(case)
    except (InexpressibleError, UntranslatedError) as why:
        return f"cannot be said: {why}"
    return "better" if ours >= theirs else f"differs: {dict(ours)} start, not {dict(theirs)}"


def _each(case: Case) -> Iterator[tuple[Case, int, Case]]:
    for job in case["jobs"]:
        for number, pod in enumerate(job["pods"]):
            yield job, number, pod


def _pod_name(job: Case, number: int) -> str:
    return f"{job['name']}-{number}".replace("_", "-")


def _nodes(case: Case) -> Iterator[Object]:
    for node in case["nodes"]:
        instances = {name: count for name, count in node.get("mig_instances", {}).items() if count}
        labels = {HOST: node["name"], **node.get("labels", {})}
        cards = node["gpus"] + sum(instances.values())
        if cards:
            # where there are MIG instances, each is the only one of a card
            labels["nvidia.com/gpu.count"] = str(cards)
            labels["nvidia.com/gpu.memory"] = str(node.get("gpu_memory_mib", kai.CARD_MIB))
            labels["nvidia.com/gpu.product"] = node.get("gpu_product", _model(instances))
        if "mig_strategy" in node:
            labels["nvidia.com/mig.strategy"] = node["mig_strategy"]
        amounts = {
            "cpu": f"{node['cpu_milli']}m",
            "memory": str(node["memory_bytes"]),
            "pods": "110",
            **({"nvidia.com/gpu": str(node["gpus"])} if node["gpus"] else {}),
            **{name: str(count) for name, count in instances.items()},
        }
        yield {
            "metadata": {"name": node["name"], "labels": labels},
            "spec": {},
            "status": {
                "allocatable": amounts,
                "capacity": amounts,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }


def _model(instances: Case) -> str:
    """Return the first model of card that has all profiles; any where there are none."""
    wanted = {mig.plain_profile(name) for name in instances}
    fitting = (one.model for one in mig.geometries() if wanted <= {profile.name for profile in one.profiles})
    return next(fitting, kai.MODEL) if wanted else kai.MODEL


def _queues(case: Case) -> Iterator[Object]:
    for queue in (*case.get("parent_queues", ()), *case["queues"]):
        resources = {
            kind: {
                "quota": queue.get(f"guaranteed_{field}", without),
                "limit": queue.get(f"limit_{field}", -1),
                "overQuotaWeight": queue.get("over_quota_weight", 1),
            }
            for kind, field, without in (("gpu", "gpus", 0), ("cpu", "cpu_milli", -1), ("memory", "memory", -1))
        }
        spec: Object = {"resources": resources}
        if queue.get("parent"):
            spec["parentQueue"] = queue["parent"]
        if "priority" in queue:
            spec["priority"] = queue["priority"]
        yield {"metadata": {"name": queue["name"]}, "spec": spec}


def _classes(case: Case) -> Iterator[Object]:
    for value in sorted({job["priority"] for job in case["jobs"]} - {None}):
        yield {"metadata": {"name": f"priority-{value}"}, "value": value}


def _topologies(case: Case) -> Iterator[Object]:
    for one in case.get("topologies", ()):
        levels = [{"nodeLabel": level} for level in one["levels"]]
        yield {"metadata": {"name": one["name"]}, "spec": {"levels": levels}}


def _constraint(stated: Case | None) -> Object | None:
    if not stated:
        return None
    return {
        "topology": stated.get("topology", ""),
        "requiredTopologyLevel": stated.get("required_level", ""),
        "preferredTopologyLevel": stated.get("preferred_level", ""),
    }


def _subgroups(gang: Case, parent: str = "") -> Iterator[Object]:
    """Yield the groups of a gang, and their sets of pods."""
    above = {"parent": parent} if parent else {}
    for group in gang.get("groups", ()):
        yield {"name": group["name"], **above, "topologyConstraint": _constraint(group.get("topology"))}
        yield from _subgroups(group, group["name"])
    for podset in gang.get("podsets", ()):
        rules = _constraint(podset.get("topology"))
        yield {"name": podset["name"], "minMember": podset["min"], **above, "topologyConstraint": rules}


def _groups(case: Case) -> Iterator[Object]:
    for job in case["jobs"]:
        gang = job["gang"]
        subgroups = list(_subgroups(gang))
        spec: Object = {"queue": job["queue"]}
        if job["priority"] is not None:
            spec["priorityClassName"] = f"priority-{job['priority']}"
        if len(subgroups) == 1 and subgroups[0]["name"] == "default":
            spec["minMember"] = subgroups[0]["minMember"]
        elif subgroups:
            spec["subGroups"] = subgroups
        else:
            spec["minMember"] = gang.get("all_or_nothing", len(job["pods"]))
        rules = _constraint(gang.get("topology"))
        if rules:
            spec["topologyConstraint"] = rules
        yield {"metadata": {"name": job["name"].replace("_", "-"), "namespace": SPACE}, "spec": spec}


def _pods(case: Case) -> Iterator[Object]:
    for job, number, pod in _each(case):
        notes = {"pod-group-name": job["name"].replace("_", "-")}
        labels = {"kai.scheduler/queue": job["queue"]}
        if "podset" in pod:
            labels["kai.scheduler/subgroup-name"] = pod["podset"]
        requests: dict[str, str] = {name: str(count) for name, count in pod.get("mig", {}).items()}
        cards = pod.get("gpus", job.get("gpus_per_pod", 0))
        if "gpu_memory_per_pod_mib" in job:
            notes["gpu-memory"] = str(job["gpu_memory_per_pod_mib"])
        elif cards != int(cards):
            notes["gpu-fraction"] = str(cards)
        elif cards:
            requests["nvidia.com/gpu"] = str(int(cards))
        if "cpu_milli_per_pod" in job:
            requests["cpu"] = f"{job['cpu_milli_per_pod']}m"
        if "memory_bytes_per_pod" in job:
            requests["memory"] = str(job["memory_bytes_per_pod"])
        group = _card_group(job, pod)
        if group:
            labels["runai-gpu-group"] = group
        meta: Object = {"name": _pod_name(job, number), "namespace": SPACE, "labels": labels, "annotations": notes}
        if pod["state"] in LEAVES:
            meta["deletionTimestamp"] = LEAVING
        spec: Object = {
            "schedulerName": "kai-scheduler",
            **({"priority": job["priority"]} if job["priority"] is not None else {}),
            "containers": [{"name": "main", "resources": {"requests": requests, "limits": requests}}],
        }
        held = pod["state"] in HELD
        if held:
            spec["nodeName"] = pod["node"]
        if "only_nodes" in pod:
            spec["affinity"] = _only(pod["only_nodes"])
        status = {"phase": "Running" if held else "Pending"}
        if pod["state"] == "Pipelined" and "node" in pod:
            status["nominatedNodeName"] = pod["node"]
        yield {"metadata": meta, "spec": spec, "status": status}


def _only(nodes: Any) -> Object:
    terms = [{"matchExpressions": [{"key": HOST, "operator": "In", "values": list(nodes)}]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def _shares(job: Case, pod: Case) -> bool:
    cards = pod.get("gpus", job.get("gpus_per_pod", 0))
    return "gpu_memory_per_pod_mib" in job or cards != int(cards)


def _card_group(job: Case, pod: Case) -> str:
    """Return the name of the group of the card that a running pod shares; empty where it is not known."""
    devices = pod.get("gpu_devices", ())
    if "node" not in pod or len(devices) != 1 or not _shares(job, pod):
        return ""
    return f"{pod['node']}-card-{devices[0]}"


def _reservations(case: Case) -> Iterator[Object]:
    """Yield a pod for each card that running pods share: it has the whole card, so that nobody else gets it."""
    cards = {}
    for job, _, pod in _each(case):
        group = _card_group(job, pod)
        if group and pod["state"] in HELD:
            cards[group] = (pod["node"], pod["gpu_devices"][0])
    for group, (node, device) in cards.items():
        amounts = {"nvidia.com/gpu": "1"}
        meta = {
            "name": f"gpu-reservation-{group}",
            "namespace": RESERVATIONS,
            "labels": {"app": RESERVATIONS, "runai-gpu-group": group},
            "annotations": {"run.ai/reserve_for_gpu_index": str(device)},
        }
        spec = {
            "nodeName": node,
            "containers": [{"name": "main", "resources": {"requests": amounts, "limits": amounts}}],
        }
        yield {"metadata": meta, "spec": spec, "status": {"phase": "Running"}}


def _requests(case: Case) -> Iterator[Object]:
    for job, number, pod in _each(case):
        if pod["state"] == "Binding":
            name = _pod_name(job, number)
            spec = {"podName": name, "selectedNode": pod["node"]}
            meta = {"name": name, "namespace": SPACE}
            yield {"metadata": meta, "spec": spec, "status": {"phase": "Pending"}}
