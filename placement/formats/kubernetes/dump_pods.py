"""Jobs of a snapshot as pods, and as the PodGroups and Workloads of the core's own gangs."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from placement.formats.kubernetes.annotations import GROUP, JOINED, WHOLE, of_place
from placement.formats.kubernetes.dump_nodes import CARDS, SHARES, label_of, product, slices, text, turns
from placement.formats.kubernetes.naming import Names, is_key, is_label, is_name
from placement.formats.tasks import copies
from placement.snapshot import Job, RunningTask, Task, TaskGroup
from placement.units import exact

NAMESPACE = "default"
"""Of jobs whose names say none."""
FRACTION = "gpu-fraction"
MANAGED = "scheduling.k8s.io/v1alpha2"
EARLIEST, LATEST = 0.0, 253402300799.0
"""Seconds of the years that a time of the API can be in."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A group of tasks, with all copies of what it is nested in.

    Attributes
    ----------
    path : str
    task : Task
    count, min_count : int
        Of all copies; the fewest without which the job does not run.
    level : str
        That one domain must hold the group of, or ``""``.
    """

    path: str
    task: Task
    count: int
    min_count: int
    level: str = ""


def leaves(job: Job) -> list[Leaf]:
    """Return the groups of tasks of a job in the order of the file."""
    return list(_leaves(job.groups, "", 1, 1))


def _leaves(groups: tuple[TaskGroup, ...], above: str, count: int, least: int) -> Iterator[Leaf]:
    for group in groups:
        many = count * group.count
        few = least * (group.count if group.min_count is None else group.min_count)
        if group.task is not None:
            level = group.topology.required if group.topology is not None and not above else ""
            yield Leaf(f"{above}{group.name}", group.task, many, few, level)
        yield from _leaves(group.groups, f"{above}{group.name}/", many, few)


def is_alone(job: Job) -> bool:
    """Return whether a job is a pod in no gang."""
    found = leaves(job)
    return len(found) == 1 and found[0].count == 1


class Pods:
    """Makes the objects of jobs.

    Parameters
    ----------
    nodes : mapping of str to str
        Name of the Node object by name of the node in the snapshot.
    replicas : mapping of str to (tuple of int)
        Units that each card of a node is, by name of the node in the snapshot.
    jobs : iterable of Job
        All jobs, of which the names are kept where they are some of pods or gangs.
    """

    def __init__(self, nodes: Mapping[str, str], replicas: Mapping[str, tuple[int, ...]], jobs: Iterable[Job]) -> None:
        self._nodes = nodes
        self._replicas = replicas
        self._units = frozenset(units for cards in replicas.values() for units in cards if units > 1)
        self._pods: dict[str, Names] = defaultdict(Names)
        self._gangs: dict[str, Names] = defaultdict(Names)
        for job in jobs:
            said = [name for given in job.task_names.values() for name in given]
            for name in filter(is_pod, [*said, *copies(job)]):
                namespace, _, rest = name.partition("/")
                self._pods[namespace].keep(rest)
                self._gangs[namespace].keep(rest)

    def of(self, job: Job) -> Iterator[dict[str, Any]]:
        """Yield the objects of a job: its gangs before their pods."""
        groups, places = leaves(job), _places(job)
        for name in copies(job):
            namespace, own = (name.partition("/")[0], name.partition("/")[2]) if is_pod(name) else (NAMESPACE, "")
            if (one := self._one_pod(job, groups, places)) is not None:
                yield one
                continue
            if is_alone(job):
                pod = own or self._pods[namespace].new(name)
                yield self._pod(job, groups[0], 0, places.get((groups[0].path, 0)), namespace, pod)
                continue
            gang = own or self._gangs[namespace].new(name)
            if len(groups) > 1:
                yield _workload(job, groups, namespace, gang)
            for group in groups:
                member = gang if len(groups) == 1 else self._gangs[namespace].new(f"{gang}-{_dashed(group.path)}")
                yield _pod_group(job, group, namespace, member, gang if len(groups) > 1 else "")
                for index in range(group.count):
                    pod = self._pods[namespace].new(f"{member}-{_padded(index, group.count)}")
                    yield self._pod(job, group, index, places.get((group.path, index)), namespace, pod, member)

    def _one_pod(
        self, job: Job, groups: list[Leaf], places: Mapping[tuple[str, int], RunningTask]
    ) -> dict[str, Any] | None:
        """Return the pod that all tasks of a job are, each with devices of its own; None where they are not one."""
        said = {name for group in groups for name in job.task_names.get(group.path, ())}
        if len(groups) < 2 or len(said) != 1 or any(group.count > 1 for group in groups) or not all(map(is_pod, said)):
            return None
        namespace, _, name = next(iter(said)).partition("/")
        made = [self._pod(job, group, 0, places.get((group.path, 0)), namespace, name) for group in groups]
        others = [{key: value for key, value in one["spec"].items() if key != "containers"} for one in made]
        if any(one != others[0] for one in others) or any(FRACTION in _said(one) for one in made):
            return None
        # the devices of a pod are in the order of its resources
        resources = [next(iter(_limits(one)), "") for one in made]
        order = sorted(range(len(made)), key=lambda number: resources.index(resources[number]))
        pod = made[0]
        parts = [made[number]["spec"]["containers"][0]["resources"] for number in order]
        summed = {kind: _sum([part.get(kind, {}) for part in parts]) for kind in ("requests", "limits")}
        pod["spec"]["containers"][0]["resources"] = {kind: amounts for kind, amounts in summed.items() if amounts}
        at = [place for number in order if (place := places.get((groups[number].path, 0))) is not None]
        slots = [slot for place in at for slot in place.mig_starts or [WHOLE] * len(place.gpus)]
        found = of_place(
            gpus=[gpu for place in at for gpu in place.gpus],
            mig_starts=slots if any(place.mig_starts for place in at) else (),
            zones=dict.fromkeys(place.zone for place in at if place.zone is not None),
            nics=[nic for place in at for nic in place.nics],
        )
        pod["metadata"] = {key: value for key, value in pod["metadata"].items() if key != "annotations"}
        if found:
            pod["metadata"]["annotations"] = found
        return pod

    def _pod(
        self, job: Job, group: Leaf, index: int, place: RunningTask | None, namespace: str, name: str, gang: str = ""
    ) -> dict[str, Any]:
        said = job.task_names.get(group.path, ())
        if index < len(said) and is_pod(said[index]):
            namespace, _, name = said[index].partition("/")
        made: dict[str, Any] = {"name": name, "namespace": namespace}
        if job.submit_time is not None and EARLIEST <= job.submit_time <= LATEST:
            made["creationTimestamp"] = moment(job.submit_time)
        devices, shares = self._devices(group.task, place)
        if found := shares | ({} if place is None else _annotated(place)):
            made["annotations"] = found
        status: dict[str, Any] = {"phase": "Pending" if place is None else "Running"}
        since = job.running.since if job.running is not None and place is not None else None
        if since is not None and EARLIEST <= since <= LATEST:
            status["startTime"] = moment(since)
        spec = _spec(job, group.task, devices)
        if place is not None:
            spec["nodeName"] = self._nodes[place.node]
        if gang:
            spec["schedulingGroup"] = {"podGroupName": gang}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": made, "spec": spec, "status": status}

    def _devices(self, task: Task, place: RunningTask | None) -> tuple[dict[str, str], dict[str, str]]:
        """Return what a pod asks for as resources, and as annotations of KAI for shares that are no replicas."""
        if task.mig_profile:
            return {slices(task.mig_profile): str(task.gpus)}, {}
        if not task.gpus:
            return {}, {}
        if task.gpu_share is None:
            return {CARDS: str(task.gpus)}, {}
        share = exact(task.gpu_share)
        units = self._units if place is None else {self._replicas[place.node][gpu] for gpu in place.gpus}
        if any(share * unit == 1 for unit in units if unit > 1):
            return {turns(task.mig_instance) if task.mig_instance else SHARES: str(task.gpus)}, {}
        several = {"gpu-fraction-num-devices": str(task.gpus)} if task.gpus > 1 else {}
        return {}, {"gpu-fraction": decimal(share), **several}


def _places(job: Job) -> dict[tuple[str, int], RunningTask]:
    return {} if job.running is None else {(one.group, one.index): one for one in job.running.tasks}


def _said(pod: Mapping[str, Any]) -> Mapping[str, str]:
    found: Mapping[str, str] = pod["metadata"].get("annotations", {})
    return found


def _limits(pod: Mapping[str, Any]) -> Mapping[str, str]:
    found: Mapping[str, str] = pod["spec"]["containers"][0]["resources"].get("limits", {})
    return found


def _sum(amounts: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return amounts added up; those that one says alone as it says them."""
    total: dict[str, str] = {}
    for given in amounts:
        for name, value in given.items():
            total[name] = value if name not in total else decimal(exact(total[name]) + exact(value))
    return total


def is_pod(name: str) -> bool:
    """Return whether a name is that of an object in a namespace: ``namespace/name``."""
    namespace, slash, rest = name.partition("/")
    return bool(slash) and is_name(namespace) and "." not in namespace and len(namespace) < 64 and is_name(rest)


def moment(seconds: float) -> str:
    """Return a time as the API writes it, in whole seconds."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _annotated(place: RunningTask) -> dict[str, str]:
    zones = () if place.zone is None else (place.zone,)
    return of_place(gpus=place.gpus, mig_starts=place.mig_starts, zones=zones, nics=place.nics)


def _spec(job: Job, task: Task, devices: dict[str, str]) -> dict[str, Any]:
    requests = {name: text(amount) for name, amount in (("cpu", task.cpu), ("memory", task.memory)) if exact(amount)}
    devices = {name: text(amount) for name, amount in task.extended.items() if is_key(name)} | devices
    resources: dict[str, Any] = {"requests": {**requests, **devices}, **({"limits": devices} if devices else {})}
    spec: dict[str, Any] = {"containers": [{"name": "main", "resources": resources}], "priority": job.priority}
    selector = {key: value for key, value in task.node_selector.items() if is_key(key) and is_label(value)}
    if selector:
        spec["nodeSelector"] = selector
    if task.gpu_models:
        models = [product(model) for model in task.gpu_models]
        term = {"matchExpressions": [{"key": "nvidia.com/gpu.product", "operator": "In", "values": models}]}
        required = {"nodeSelectorTerms": [term]}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    if task.tolerations:
        spec["tolerations"] = [
            {key: value for key, value in zip(("key", "operator", "value", "effect"), each, strict=True) if value}
            for each in ((one.key, one.operator, one.value, one.effect) for one in task.tolerations)
        ]
    return spec


def decimal(share: Fraction) -> str:
    """Return a share as a decimal fraction; one that has no end is rounded up, so that no card takes too many."""
    digits = math.ceil(share * 10**9)
    return f"{digits // 10**9}.{digits % 10**9:09d}".rstrip("0").rstrip(".")


def _pod_group(job: Job, group: Leaf, namespace: str, name: str, workload: str) -> dict[str, Any]:
    template = {"workload": {"workloadName": workload, "podGroupTemplateName": _dashed(group.path)}}
    return {
        "apiVersion": MANAGED,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace, "annotations": {GROUP: group.path}},
        "spec": {
            **({"podGroupTemplateRef": template} if workload else {}),
            **_policy(job, group),
        },
    }


def _workload(job: Job, groups: list[Leaf], namespace: str, name: str) -> dict[str, Any]:
    templates = [{"name": _dashed(group.path), **_policy(job, group)} for group in groups]
    return {
        "apiVersion": MANAGED,
        "kind": "Workload",
        "metadata": {"name": name, "namespace": namespace, "annotations": {JOINED: "true"}},
        "spec": {"podGroupTemplates": templates},
    }


def _policy(job: Job, group: Leaf) -> dict[str, Any]:
    policy: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": group.min_count}}, "priority": job.priority}
    if group.level:
        policy["schedulingConstraints"] = {"topology": [{"key": label_of(group.level)}]}
    return policy


def _dashed(path: str) -> str:
    return "-".join("".join(c if c.isascii() and c.isalnum() else " " for c in path.lower()).split()) or "group"


def _padded(index: int, count: int) -> str:
    return f"{index:0{len(str(count - 1))}d}"
