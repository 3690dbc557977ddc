"""Cases of Volcano as the objects of a cluster, the way `placement import` gets them, and what becomes of them.

A case says of a hyper node either its members or all nodes in it; names that are there twice are told apart by a
number. What the API requires and a case leaves out is left out: a network topology without a mode limits nothing there.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from placement.formats.source import File
from placement.plan import Plan
from placement.snapshot import Snapshot
from translate import volcano
from translate.common import HOST, Case, InexpressibleError, UntranslatedError

Object = dict[str, Any]

SPACE = "default"


def files(case: Case) -> list[File]:
    """Return the objects of a case, as kubectl prints them."""
    items = [*_nodes(case), *_hyper_nodes(case), *_queues(case), *_classes(case), *_groups(case), *_pods(case)]
    document = {"apiVersion": "v1", "kind": "List", "items": items}
    return [File(f"{case['case_id']}.json", json.dumps(document).encode())]


def compare(case: Case, snapshot: Snapshot, plan: Plan, document: bytes) -> str:
    """Return how the pods that an exported plan nominates compare with those that the source binds.

    Parameters
    ----------
    case : Case
    snapshot : Snapshot
        What was imported.
    plan : Plan
    document : bytes
        What was exported.
    """
    items = json.loads(document)["items"]
    names = [item["metadata"]["name"] for item in items]
    waiting = {pod["name"] for pod in case["pods"] if pod["phase"] == "Pending"}
    nodes = {node.name for node in snapshot.nodes}
    if len(set(names)) != len(names) or bool(names) != bool(len(plan.tasks)) or not set(names) <= waiting:
        return "differs: what is exported are not the pods that wait"
    if not {item["status"]["nominatedNodeName"] for item in items} <= nodes:
        return "differs: a node that is not there"
    wanted = case["expected"]["binds"]
    if len(names) == wanted:
        return "agrees"
    try:
        volcano.translate(case)
    except (InexpressibleError, UntranslatedError) as why:
        return f"cannot be said: {why}"
    return "better" if len(names) > wanted else f"differs: {len(names)} of {wanted} start"


def _meta(name: str, space: str = "", **more: Any) -> Object:
    return {
        "name": name,
        **({"namespace": space} if space else {}),
        **{key: value for key, value in more.items() if value},
    }


def _nodes(case: Case) -> Iterator[Object]:
    for node in case["nodes"]:
        ready = "True" if node.get("ready", True) else "False"
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": _meta(node["name"], labels={HOST: node["name"], **node.get("labels", {})}),
            "spec": {"unschedulable": True} if node.get("unschedulable") else {},
            "status": {
                "allocatable": node["allocatable"],
                "capacity": node["allocatable"],
                "conditions": [{"type": "Ready", "status": ready}],
            },
        }


def _hyper_nodes(case: Case) -> Iterator[Object]:
    # a hyper node without a tier holds every node and is no level of its own
    entries = [entry for entry in case.get("hypernodes", ()) if entry["tier"] is not None]
    times = Counter(entry["name"] for entry in entries)
    names = [entry["name"] if times[entry["name"]] == 1 else f"{entry['name']}-{i}" for i, entry in enumerate(entries)]
    for name, entry in zip(names, entries, strict=True):
        members = entry.get("all_nodes") or entry["members"]
        found = []
        for member in [members] if isinstance(members, str) else members:
            if entry.get("member_kind") != "hypernode":
                found.append(("Node", member))
                continue
            alike = [own for own, other in zip(names, entries, strict=True) if other["name"] == member]
            found += [("HyperNode", own) for own in alike or [member]]
        spec = {
            "tier": entry["tier"],
            "members": [{"type": kind, "selector": {"exactMatch": {"name": one}}} for kind, one in found],
        }
        if "tier_name" in entry:
            spec["tierName"] = entry["tier_name"]
        yield {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": _meta(name), "spec": spec}


def _queues(case: Case) -> Iterator[Object]:
    for queue in case["queues"]:
        spec = {key: queue[key] for key in ("weight", "capability", "priority") if key in queue}
        yield {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": _meta(queue["name"]),
            "spec": spec,
        }


def _classes(case: Case) -> Iterator[Object]:
    for one in case.get("priority_classes", ()):
        yield {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": _meta(one["name"]),
            "value": one["value"],
        }


def _rules(topology: Case | None) -> Object | None:
    if not topology or "mode" not in topology:
        return None
    names = {"mode": "mode", "highest_tier": "highestTierAllowed", "highest_tier_name": "highestTierName"}
    return {new: topology[old] for old, new in names.items() if old in topology}


def _groups(case: Case) -> Iterator[Object]:
    for group in case["groups"]:
        policies = [
            {
                "name": policy["name"],
                "matchLabelKeys": policy["group_by_labels"],
                "subGroupSize": policy.get("size"),
                "minSubGroups": policy.get("min_subgroups"),
                "networkTopology": _rules(policy),
            }
            for policy in group.get("subgroups", ())
        ]
        spec = {
            "minMember": group["min_member"],
            "minTaskMember": group.get("task_min"),
            "queue": group["queue"],
            "priorityClassName": group.get("priority_class"),
            "networkTopology": _rules(group.get("topology")),
            "subGroupPolicy": policies,
        }
        yield {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": _meta(group["name"], SPACE),
            "spec": {key: value for key, value in spec.items() if value is not None},
            "status": {"phase": group["phase"].removeprefix("PodGroup")},
        }


def _pods(case: Case) -> Iterator[Object]:
    for pod in case["pods"]:
        task = pod.get("labels", {}).get("volcano.sh/task-spec")
        notes = {"scheduling.k8s.io/group-name": pod["group"], **({"volcano.sh/task-spec": task} if task else {})}
        spec: Object = {
            "schedulerName": "volcano",
            "containers": [{"name": "main", "resources": {"requests": pod["requests"]}}],
        }
        names = {
            "node": "nodeName",
            "node_selector": "nodeSelector",
            "priority": "priorityClassName",
            "preemption_policy": "preemptionPolicy",
        }
        spec |= {new: pod[old] for old, new in names.items() if old in pod}
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": _meta(pod["name"], SPACE, labels=pod.get("labels"), annotations=notes),
            "spec": spec,
            "status": {"phase": pod["phase"]},
        }
