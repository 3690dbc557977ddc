"""Gangs of the core: PodGroup and Workload of scheduling.k8s.io, and what pods say of the set that they are in.

A pod names its PodGroup (``spec.schedulingGroup``) or, in the older form, a group of a Workload
(``spec.workloadRef``). Pods of a plain batch Job start one by one, and are no gang.

A Workload that says so in an annotation of ours (`annotations.JOINED`) is one gang, of which its PodGroups are groups.

The API: https://kubernetes.io/docs/concepts/workloads/podgroup-api/ and
https://kubernetes.io/docs/concepts/workloads/pods/workload-reference
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import msgspec

from placement.errors import InputError
from placement.formats.kubernetes.annotations import GROUP, JOINED
from placement.formats.kubernetes.entries import free_name
from placement.formats.kubernetes.objects import Item, Meta, Objects
from placement.formats.kubernetes.parts import Addition, Gang, GangGroup
from placement.formats.kubernetes.pod import Pod
from placement.formats.ledger import Ledger
from placement.snapshot import Topology
from placement.snapshot.report import show

LEADER_SET = "leaderworkerset.sigs.k8s.io/name"
LEADER_GROUP = "leaderworkerset.sigs.k8s.io/group-index"
WORKER_INDEX = "leaderworkerset.sigs.k8s.io/worker-index"


class _Gang(msgspec.Struct, rename="camel", gc=False):
    min_count: int = 1


class _Policy(msgspec.Struct, gc=False):
    gang: _Gang | None = None
    basic: dict[str, object] | None = None


class _Key(msgspec.Struct, gc=False):
    key: str = ""


class _Constraints(msgspec.Struct, gc=False):
    topology: list[_Key] | None = None


class _Reference(msgspec.Struct, rename="camel", gc=False):
    workload_name: str | None = None
    # an earlier form says the name one deeper
    workload: dict[str, object] | None = None

    @property
    def name(self) -> str:
        found = self.workload_name or (self.workload or {}).get("workloadName")
        return found if isinstance(found, str) else ""


class _Spec(msgspec.Struct, rename="camel", gc=False):
    scheduling_policy: _Policy | None = None
    scheduling_constraints: _Constraints | None = None
    disruption_mode: object = None
    pod_group_template_ref: _Reference | None = None
    priority: int | None = None


class _PodGroup(msgspec.Struct, gc=False):
    metadata: Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _Template(msgspec.Struct, gc=False):
    name: str = ""
    policy: _Policy | None = None


class _WorkloadSpec(msgspec.Struct, rename="camel", gc=False):
    pod_groups: list[_Template] | None = None


class _Workload(msgspec.Struct, gc=False):
    metadata: Meta
    spec: _WorkloadSpec = msgspec.field(default_factory=_WorkloadSpec)


def read(objects: Objects, ledger: Ledger) -> Addition:
    """Return what the gangs of the core say.

    Raises
    ------
    InputError
        If an object is not what its kind has to be.
    """
    gangs: dict[str, Gang] = {}
    loose: set[str] = set()
    parts: dict[str, tuple[str, str]] = {}
    joined = {
        item.value.metadata.key
        for item in objects.of("scheduling.k8s.io", "Workload", _Workload)
        if (item.value.metadata.annotations or {}).get(JOINED) == "true"
    }
    for item in objects.of("scheduling.k8s.io", "PodGroup", _PodGroup):
        spec = item.value.spec
        policy = spec.scheduling_policy or _Policy()
        key = item.value.metadata.key
        if policy.gang is None:
            loose.add(key)
            ledger.read("pod groups whose pods start one by one", item.where)
            continue
        topology = _topology(spec.scheduling_constraints, item, ledger)
        gang = _made(key, policy.gang, topology, spec.priority, item)
        whole = (
            f"{item.value.metadata.namespace or 'default'}/{spec.pod_group_template_ref.name}"
            if spec.pod_group_template_ref
            else ""
        )
        if whole in joined:
            gang = _joined(gangs.get(whole), replace(gang, key=whole))
        gangs[gang.key] = gang
        parts[key] = gang.key, gang.groups[-1].name
        ledger.read("gangs of the core", item.where)
    minimum: dict[tuple[str, str], _Gang | None] = {}
    for workload in objects.of("scheduling.k8s.io", "Workload", _Workload):
        for template in workload.value.spec.pod_groups or ():
            policy = template.policy or _Policy()
            if policy.gang is not None:
                _checked(policy.gang, workload.file, workload.path)
            minimum[workload.value.metadata.key, template.name] = policy.gang
    _of_workloads(objects, minimum, gangs)
    return Addition(gangs=tuple(gangs.values()), member=lambda pod: _member(pod, gangs, loose, minimum, parts))


def _joined(before: Gang | None, gang: Gang) -> Gang:
    """Return a gang with one group more, of a name that no other has."""
    if before is None:
        return gang
    (group,) = gang.groups
    name = free_name(group.name, {one.name for one in before.groups})
    return replace(before, groups=(*before.groups, replace(group, name=name)))


def _made(key: str, gang: _Gang, topology: Topology | None, priority: int | None, item: Item[_PodGroup]) -> Gang:
    _checked(gang, item.file, item.path)
    name = (item.value.metadata.annotations or {}).get(GROUP, "").replace("/", "-") or "pods"
    group = GangGroup(name=name, min_count=gang.min_count, topology=topology)
    return Gang(key=key, groups=(group,), priority=priority, where=item.where)


def _checked(gang: _Gang, file: str, path: str) -> None:
    if gang.min_count < 1:
        raise InputError.one(
            f"minCount is {show(gang.min_count)}, expected 1 or more", "correct it", path=f"{path}.spec", source=file
        )


def _topology(given: _Constraints | None, item: Item[_PodGroup], ledger: Ledger) -> Topology | None:
    """Return the label of the level that must hold the gang; pods.py knows what level that is."""
    keys = [one.key for one in (given.topology if given and given.topology else ()) if one.key]
    if len(keys) > 1:
        ledger.unsupported("topology constraint of a gang", "only the first of several is kept", item.where, item.file)
    return Topology(required=keys[0]) if keys else None


def _of_workloads(objects: Objects, minimum: Mapping[tuple[str, str], _Gang | None], gangs: dict[str, Gang]) -> None:
    """Add a gang for each replica of a Workload's group that pods name."""
    if not any(minimum.values()):
        return
    for item in objects.of("", "Pod", Pod):
        named = _workload_of(item.value)
        if named is not None and (gang := minimum.get(named[:2])) is not None and named[2] not in gangs:
            group = GangGroup(name=named[1] or "pods", min_count=gang.min_count)
            gangs[named[2]] = Gang(key=named[2], groups=(group,), where=item.where)


def _workload_of(pod: Pod) -> tuple[str, str, str] | None:
    """Return key of the Workload and name of the group that a pod refers to, and the key of its gang."""
    reference = pod.spec.workload_ref or {}
    name, group, replica = (reference.get(key) for key in ("name", "podGroup", "podGroupReplicaKey"))
    if not isinstance(name, str) or not name:
        return None
    group = group if isinstance(group, str) else ""
    workload = f"{pod.metadata.namespace or 'default'}/{name}"
    return workload, group, "-".join(part for part in (workload, group, replica) if isinstance(part, str) and part)


def _member(
    pod: Pod,
    gangs: Mapping[str, Gang],
    loose: set[str],
    minimum: Mapping[tuple[str, str], _Gang | None],
    parts: Mapping[str, tuple[str, str]],
) -> tuple[str, str] | None:
    spec = pod.spec
    if spec.scheduling_group is not None:
        name = spec.scheduling_group.get("podGroupName")
        key = f"{pod.metadata.namespace or 'default'}/{name}"
        return parts.get(key, (key, "pods")) if isinstance(name, str) and name and key not in loose else None
    if spec.workload_ref is not None and (named := _workload_of(pod)) is not None:
        workload, group, key = named
        if minimum.get((workload, group), _Gang()) is None:
            return None
        return key, gangs[key].groups[0].name if key in gangs else group or "pods"
    labels = pod.metadata.labels
    if labels is not None and LEADER_SET in labels and LEADER_GROUP in labels:
        key = f"{pod.metadata.namespace or 'default'}/{labels[LEADER_SET]}-{labels[LEADER_GROUP]}"
        return key, "leader" if labels.get(WORKER_INDEX) == "0" else "workers"
    return None
