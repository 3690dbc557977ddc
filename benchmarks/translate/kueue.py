"""Cases of Kueue's topology aware scheduling: a workload of pod sets on a tree of labelled nodes.

A pod set becomes a group, pod sets that share a domain a group of groups, and the workload a job of them all, for Kueue
admits all or nothing. Levels are label keys; the host name is the level ``node``. A domain is known by its path, so
rack r1 of block b1 is not rack r1 of block b2.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import msgspec

from placement import units
from placement.snapshot import Job, Node, Slice, Snapshot, Taint, Task, TaskGroup, Toleration, Topology
from translate.common import (
    HOST,
    Case,
    InexpressibleError,
    Translated,
    amounts,
    fact,
    held,
    node_of,
    source_of,
    topology_of,
)


def translate(case: Case) -> Translated:
    """Return a case as a snapshot.

    Raises
    ------
    InexpressibleError
        If the format has no field for what it states.
    """
    nodes = tuple(_node(case, node) for node in case["nodes"])
    groups = tuple(_groups(case))
    stays = _stays(case)
    facts = tuple(_facts(case))
    if stays:
        work = tuple(_fact_of(case, f"workload-{i}", c, p) for i, (c, p) in enumerate(_current(case)))
    else:
        work = (Job(name="workload", groups=groups),)
    snapshot = Snapshot(
        description=case.get("note", ""),
        source=source_of(case),
        licence=case["source"]["licence"],
        topology=tuple(level for level in case["levels"] if level != HOST),
        nodes=nodes,
        jobs=(*facts, *work),
    )
    wanted = 0 if stays else sum(request["count"] for request in case["requests"])
    fits = all(expected["fit"] for expected in case["expected"])
    return Translated(
        snapshot,
        wanted,
        wanted if fits else 0,
        held=True,
        domains={} if stays else _domains(case),
        ruled=tuple(_ruled(case)),
        overcharged=_overcharged(case),
        uneven=_uneven(case),
        malformed=any("slice level" in expected.get("cause", "") for expected in case["expected"]),
    )


# --- the cluster -----------------------------------------------------------------------------------------------------


def _path(case: Case, node: Case) -> dict[str, str]:
    """Return a node's domain at every level, as the path of label values down to it; none below a missing label."""
    path: list[str] = []
    domains = {}
    for level in case["levels"]:
        if level not in node.get("labels", {}):
            break
        path.append(node["labels"][level])
        domains[level] = "/".join(path)
    return domains


def _node(case: Case, node: Case) -> Node:
    position = {level: domain for level, domain in _path(case, node).items() if level != HOST}
    made = node_of(node, position)
    # Kueue looks at taints only where hosts are domains
    marks = node.get("taints", ()) if case["levels"][-1] == HOST else ()
    whole = len(_path(case, node)) == len(case["levels"])
    return msgspec.structs.replace(
        made, taints=tuple(Taint(**mark) for mark in marks), cordoned=made.cordoned or not whole
    )


def _hosts(case: Case, values: list[str]) -> list[Case]:
    """Return the nodes of a domain that is given by its last label values."""
    keys = case["levels"][-len(values) :]
    return [node for node in case["nodes"] if [node["labels"].get(key) for key in keys] == values]


# --- what runs -------------------------------------------------------------------------------------------------------


def _fact_of(case: Case, name: str, count: int, host: str) -> Job:
    return fact(name, case["requests"][0]["per_pod"], [host] * count)


def _facts(case: Case) -> Iterator[Job]:
    """Yield the pods that run, or are bound to a node and about to."""
    for index, pod in enumerate(case.get("existing_pods", ())):
        if pod["node"] is not None and pod["phase"] in ("Running", "Pending"):
            yield fact(f"pod-{index}", pod["requests"], [pod["node"]])
    used = [*case.get("usage_already_admitted", ()), *case.get("usage_by_other_flavor_on_same_nodes", ())]
    for index, use in enumerate(used):
        host = _hosts(case, use["domain"])[0]["name"]
        yield fact(f"used-{index}", use["per_pod"], [host] * use["pods"])


def _current(case: Case) -> list[tuple[int, str]]:
    """Return the pods of the workload that run, as counts on nodes."""
    parts = case.get("running_workload", {}).get("current_assignment", ())
    return [(part["count"], _hosts(case, part["values"])[0]["name"]) for part in parts]


def _stays(case: Case) -> bool:
    """Return whether the workload is a pod that nobody would make again, which stays on its failed node."""
    running = case.get("running_workload", {})
    asked = case.get("feature_gates", {}).get("SkipReassignmentForPodOwnedWorkloads", False)
    return bool(asked) and running.get("owners") == ["Pod"] and not running.get("is_pod_group", False)


# --- the workload ----------------------------------------------------------------------------------------------------


def _groups(case: Case) -> Iterator[TaskGroup]:
    alone: dict[str, list[Case]] = defaultdict(list)
    for request in case["requests"]:
        alone[request.get("colocate_group", request["podset"])].append(request)
    for name, requests in alone.items():
        if "colocate_group" not in requests[0]:
            yield _group(case, requests[0], topology_of(**_place(requests[0]), **_parts(case, requests[0])))
        else:
            members = tuple(_group(case, request, topology_of(**_parts(case, request))) for request in requests)
            yield TaskGroup(name=name, groups=members, topology=topology_of(**_place(requests[-1])))


def _group(case: Case, request: Case, topology: Topology | None) -> TaskGroup:
    """Return the group of a pod set; pods that run are groups of their own in it, in the order of their ranks."""
    name, count, task = request["podset"], request["count"], _task(case, request)
    parts = _parts_held(case, request)
    if all(node is None for _, node in parts):
        return TaskGroup(name=name, count=count, task=task, topology=topology)
    members = (
        TaskGroup(name=f"new-{i}", count=size, task=task) if node is None else held(str(i), size, task, node)
        for i, (size, node) in enumerate(parts)
    )
    return TaskGroup(name=name, groups=tuple(members), topology=topology)


def _parts_held(case: Case, request: Case) -> list[tuple[int, str | None]]:
    """Return the pods of a pod set by rank, as numbers of pods and the node that has them already."""
    if "running_workload" in case:
        lost = set(case["running_workload"]["unhealthy_nodes"])
        return [(count, None if host in lost or _named(case, host) in lost else host) for count, host in _current(case)]
    kept: list[tuple[int, str | None]] = []
    left = request["count"]
    for part in request.get("previous_assignment", {}).get("domains", ()):
        hosts = _hosts(case, part["values"])
        if hosts and left:
            kept.append((min(left, part["count"]), hosts[0]["name"]))
            left -= kept[-1][0]
    return [*kept, (left, None)] if left else kept


def _named(case: Case, host: str) -> str:
    """Return the host name that a node is labelled with."""
    return next(str(node["labels"].get(HOST, host)) for node in case["nodes"] if node["name"] == host)


def _task(case: Case, request: Case) -> Task:
    if request.get("node_affinity"):
        raise InexpressibleError("jobs.groups.task", "an expression over labels, or a preference among nodes")
    tolerations = tuple(
        Toleration(key=t.get("key", ""), operator=t["op"], value=t.get("value", ""), effect=t.get("effect", ""))
        for t in request.get("tolerations", ())
    )
    labels = {**case.get("flavor_node_labels", {}), **request.get("node_selector", {})}
    return Task(**amounts(request["per_pod"]), tolerations=tolerations, node_selector=labels)


def _level(name: str) -> str:
    return "node" if name == HOST else name


def _place(request: Case) -> dict[str, str]:
    topology = request["topology"]
    return {topology["mode"]: _level(topology["level"])} if topology["mode"] in ("required", "preferred") else {}


def _parts(case: Case, request: Case) -> dict[str, Any]:
    """Return the rules on parts of a pod set: slices, and an even split."""
    topology = request["topology"]
    layers = [(layer["level"], layer["size"]) for layer in topology.get("slice_layers", ())]
    if "slice_level" in topology and not ("colocate_group" in request and request["count"] == 1):
        layers = [(topology["slice_level"], topology.get("slice_size"))]
    slices = tuple(Slice(level=_level(level), sizes=(size,) if size else ()) for level, size in layers)
    return {"slices": slices, "balanced": _level(_balanced(case, request) or "")}


def _balanced(case: Case, request: Case) -> str | None:
    """Return the level over which Kueue splits evenly, one below that which is preferred; None if it does not."""
    topology = request["topology"]
    asked = case.get("feature_gates", {}).get("TASBalancedPlacement", False)
    if not asked or topology["mode"] != "preferred" or request["count"] == 1:
        return None
    below = case["levels"].index(topology["level"]) + 1
    return str(case["levels"][min(below, len(case["levels"]) - 1)])


# --- the source's answer ---------------------------------------------------------------------------------------------


def _assigned(case: Case) -> Iterator[tuple[Case, int, list[Case]]]:
    """Yield (request, pods, nodes of the domain) of the source's answer."""
    for request, expected in zip(case["requests"], case["expected"], strict=True):
        for part in expected.get("assignment", {}).get("domains", ()):
            yield request, part["count"], _hosts(case, part["values"])


def _domains(case: Case) -> dict[str, int]:
    used: dict[str, set[str]] = defaultdict(set)
    for _, _, hosts in _assigned(case):
        for level, domain in _path(case, hosts[0]).items():
            used[_level(level)].add(domain)
    return {level: len(domains) for level, domains in used.items()}


def _ruled(case: Case) -> Iterator[str]:
    """Yield the levels of the tree down to the narrowest that is required or preferred."""
    asked = [r["topology"]["level"] for r in case["requests"] if r["topology"]["mode"] in ("required", "preferred")]
    deepest = max((case["levels"].index(level) for level in asked), default=-1)
    yield from map(_level, case["levels"][: deepest + 1])


def _overcharged(case: Case) -> str:
    """Return where the source's own answer uses more than the nodes of a domain have together."""
    use: dict[tuple[tuple[str, ...], str], Fraction] = defaultdict(Fraction)
    have: dict[tuple[tuple[str, ...], str], Fraction] = {}
    for request, pods, hosts in _assigned(case):
        names = tuple(host["name"] for host in hosts)
        for resource, amount in request["per_pod"].items():
            use[names, resource] += pods * units.exact(amount)
            have[names, resource] = sum((units.exact(h["allocatable"].get(resource, 0)) for h in hosts), Fraction(0))
    return next((f"{resource} of {', '.join(n)}" for (n, resource), u in use.items() if u > have[n, resource]), "")


def _uneven(case: Case) -> str:
    """Return where the source's numbers of pods differ by more than a slice; its even split is a wish, ours a rule."""
    found: dict[tuple[str, str, int], Counter[str]] = defaultdict(Counter)
    for request, pods, hosts in _assigned(case):
        if level := _balanced(case, request):
            size = request["topology"].get("slice_size", 1)
            found[request["podset"], level, size][_path(case, hosts[0])[level]] += pods
    wrong = (
        f"{podset} by {level}: {', '.join(map(str, counts.values()))}"
        for (podset, level, size), counts in found.items()
        if max(counts.values()) - min(counts.values()) > size
    )
    return next(wrong, "")
