"""Cases of Volcano's allocation: pod groups with a least number of members, on a tree of hyper nodes.

A tier becomes a level, a hyper node a domain, and a pod group a job: its pods of one kind are a group, and where they
are divided into subgroups by a label, each subgroup is a group within that of its policy. Only the number of pods that
are bound is compared. Preemption and reclaiming stop running work, which a plan does not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from placement.snapshot import Job, Node, Snapshot, Task, TaskGroup
from translate.common import (
    HELD,
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

Kind = tuple[tuple[tuple[str, Any], ...], tuple[tuple[str, str], ...]]
"""What a node can tell of a pod: its requests and its node selector."""


def translate(case: Case) -> Translated:
    """Return a case as a snapshot.

    Raises
    ------
    InexpressibleError
        If it is about stopping running work or about shares of queues, or the format has no field for what it states.
    """
    if case["action"] != "allocate":
        raise InexpressibleError("jobs.preemptible", f"what the action {case['action']} stops is not placed by a plan")
    tree = _Tree(case)
    jobs = tuple(job for group in case["groups"] for job in _jobs(case, group, tree))
    snapshot = Snapshot(
        description=case.get("note", ""),
        source=source_of(case),
        licence=case["source"]["licence"],
        topology=tree.levels,
        nodes=tuple(_node(node, tree) for node in case["nodes"]),
        jobs=jobs,
    )
    wanted = sum(pod["phase"] == "Pending" for pod in case["pods"])
    return Translated(snapshot, wanted, case["expected"]["binds"])


# --- hyper nodes -----------------------------------------------------------------------------------------------------


class _Tree:
    """The tiers of a case as levels, from wide to narrow.

    Attributes
    ----------
    levels : tuple of str
    tiers : dict of int to str
        Level of each tier.
    position : dict of str to dict
        Domains of each node.
    """

    def __init__(self, case: Case) -> None:
        # a hyper node without a tier holds every node and is no level of its own
        entries = [entry for entry in case.get("hypernodes", ()) if entry["tier"] is not None]
        self.tiers = {tier: f"tier-{tier}" for tier in sorted({e["tier"] for e in entries}, reverse=True)}
        self.levels = tuple(self.tiers.values())
        self.names = {**case.get("tier_names", {}), **{e["tier_name"]: e["tier"] for e in entries if "tier_name" in e}}
        self.position: dict[str, dict[str, str]] = defaultdict(dict)
        for number, entry in enumerate(entries):
            # names may be given twice, so the place in the list is part of the domain's name
            for node in self._nodes(entry, entries):
                self.position[node][self.tiers[entry["tier"]]] = f"{entry['name']}#{number}"

    def _nodes(self, entry: Case, entries: Sequence[Case]) -> Iterator[str]:
        members = entry.get("all_nodes") or entry["members"]
        for member in [members] if isinstance(members, str) else members:
            below = [other for other in entries if other["name"] == member]
            if entry.get("member_kind") == "hypernode":
                for other in below:
                    yield from self._nodes(other, entries)
            else:
                yield member

    def rules(self, topology: Case | None) -> dict[str, str]:
        """Return a topology rule of a pod group or subgroup as fields of our own."""
        if not topology or "mode" not in topology or not self.tiers:
            return {}
        tier = topology.get("highest_tier", self.names.get(topology.get("highest_tier_name", "")))
        within = [level for known, level in self.tiers.items() if tier is not None and known <= tier]
        if topology["mode"] == "soft":
            return {"preferred": within[0] if within else self.levels[-1]}
        # above the highest tier there is only the cluster
        if tier is None or tier > max(self.tiers):
            return {}
        if not within:
            raise InexpressibleError("jobs.groups.topology.required", f"no hyper node has a tier up to {tier}")
        return {"required": within[0]}


def _node(node: Case, tree: _Tree) -> Node:
    return node_of(node, tree.position[node["name"]])


# --- pod groups ------------------------------------------------------------------------------------------------------


def _jobs(case: Case, group: Case, tree: _Tree) -> Iterator[Job]:
    """Yield the job of a pod group; one of which nothing waits is a fact for each of its pods."""
    pods = [pod for pod in case["pods"] if pod["group"] == group["name"]]
    if all(pod["phase"] == "Running" for pod in pods):
        yield from (fact(pod["name"], pod["requests"], [pod["node"]]) for pod in pods)
        return
    if group.get("subgroups"):
        parts = _policies(group, pods, tree)
    else:
        parts = _kinds(group["name"], pods, group.get("task_min", {}), group["min_member"])
    fewest = _fewest(group, pods, parts)
    top = TaskGroup(
        name="gang", groups=parts, min_groups=fewest, topology=topology_of(**tree.rules(group.get("topology")))
    )
    yield Job(name=group["name"], groups=(top,))


def _fewest(group: Case, pods: Sequence[Case], parts: Sequence[TaskGroup]) -> int | None:
    """Return how many of the parts of a pod group it needs; None for all."""
    least = group["min_member"]
    running = sum(pod["phase"] == "Running" for pod in pods)
    stated = any("min_subgroups" in policy for policy in group.get("subgroups", ()))
    if least >= len(pods) or running or stated or group.get("task_min") or len(parts) == 1:
        return None
    if least <= 1:
        return 1
    raise InexpressibleError("jobs.groups.min_count", f"{least} of {len(pods)} pods, whatever their kinds")


def _kinds(name: str, pods: Sequence[Case], task_min: dict[str, int], least: int) -> tuple[TaskGroup, ...]:
    """Return the groups of pods that nodes cannot tell apart; those that run are groups of their own."""
    if 0 in task_min.values():
        raise InexpressibleError("jobs.groups.min_count", "0, a group that may stay away beside one that may not")
    kinds: dict[tuple[str, Kind], list[Case]] = defaultdict(list)
    parts: list[TaskGroup] = []
    for pod in pods:
        if pod["phase"] == "Running":
            parts.append(held(f"{name}-{len(parts)}", 1, task_of(pod), pod["node"]))
        else:
            kinds[_spec(pod) if _spec(pod) in task_min else "", _kind(pod)].append(pod)
    for number, ((spec, _), members) in enumerate(kinds.items()):
        rest = least - len(parts) if len(kinds) == 1 else len(members) if least >= len(pods) else 1
        minimum = min(len(members), max(1, task_min.get(spec, rest)))
        parts.append(
            TaskGroup(name=f"{name}-{number}", count=len(members), min_count=minimum, task=task_of(members[0]))
        )
    return tuple(parts)


def _spec(pod: Case) -> str:
    return str(pod.get("labels", {}).get("volcano.sh/task-spec", ""))


def _kind(pod: Case) -> Kind:
    return tuple(sorted(pod["requests"].items())), tuple(sorted(pod.get("node_selector", {}).items()))


def task_of(pod: Case) -> Task:
    """Return what a pod asks for."""
    return Task(**amounts(pod["requests"]), node_selector=pod.get("node_selector", {}))


def _policies(group: Case, pods: Sequence[Case], tree: _Tree) -> tuple[TaskGroup, ...]:
    """Return a group for each rule that divides the pods by labels."""
    parts = []
    for policy in group["subgroups"]:
        found: dict[tuple[str, ...], list[Case]] = defaultdict(list)
        for pod in pods:
            values = tuple(pod.get("labels", {}).get(label, "") for label in policy["group_by_labels"])
            if all(values):
                found[values].append(pod)
        members = tuple(_subgroup(policy, values, some, tree) for values, some in found.items())
        fewest = policy.get("min_subgroups")
        if fewest is not None and any(_held(member) for member in members) and fewest < len(members):
            raise InexpressibleError("jobs.groups.min_groups", "a group that may stay away beside one that runs")
        # a subgroup fewer than are asked for is one that can never be
        if fewest is not None and fewest > len(members):
            raise InexpressibleError("jobs.groups.min_groups", f"{fewest} subgroups of {len(members)}")
        parts.append(TaskGroup(name=policy["name"], groups=members, min_groups=_least(group, pods, fewest)))
    return tuple(parts)


def _least(group: Case, pods: Sequence[Case], fewest: int | None) -> int | None:
    """Return how many subgroups a policy needs; a pod group that needs every pod needs all of them."""
    if group["min_member"] >= len(pods):
        return None
    return 1 if fewest is None and group["min_member"] <= 1 else fewest


def _held(group: TaskGroup) -> bool:
    return all(member.task is not None and member.name.startswith(HELD) for member in group.groups)


def _subgroup(policy: Case, values: tuple[str, ...], pods: Sequence[Case], tree: _Tree) -> TaskGroup:
    name = "-".join(values)
    parts = _kinds(name, pods, {}, policy.get("size", len(pods)))
    return TaskGroup(name=name, groups=parts, topology=topology_of(**tree.rules(policy)))
