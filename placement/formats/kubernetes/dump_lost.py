"""What of a snapshot its objects do not say: every field that is set and not carried, by name.

What is carried is listed; all else is lost, so a field that is new to the snapshot is named until somebody writes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec

from placement.formats.kubernetes.dump_nodes import product, replicas
from placement.formats.kubernetes.dump_pods import EARLIEST, LATEST, decimal, is_alone, is_pod, leaves
from placement.formats.kubernetes.naming import is_key, is_label, is_name
from placement.formats.tasks import copies
from placement.snapshot import Gpu, Job, Node, Running, Snapshot, Task, TaskGroup, Topology
from placement.units import exact

CARRIED: dict[type[msgspec.Struct], tuple[str, ...]] = {
    Snapshot: ("topology", "nodes", "jobs", "ledger"),
    Node: (
        *("name", "count", "position", "labels", "taints", "cordoned", "cpu", "memory", "pods", "extended"),
        *("driver", "cuda", "gpus", "nvlink_domain"),
    ),
    Gpu: (
        *("model", "count", "memory", "compute_capability", "health", "sharing", "replicas"),
        *("mig_enabled", "mig_layout", "mig_instance"),
    ),
    Job: ("name", "groups", "count", "priority", "submit_time", "running", "task_names"),
    TaskGroup: ("name", "count", "min_count", "task", "groups", "topology"),
    Topology: ("required",),
    Task: (
        *(
            "gpus",
            "gpu_share",
            "mig_profile",
            "mig_instance",
            "cpu",
            "memory",
            "extended",
            "gpu_models",
            "node_selector",
        ),
        "tolerations",
    ),
    Running: ("tasks", "since"),
}
"""Fields that objects say, by record; the functions below name those of which not every value is."""


MOST_GROUPS = 8
"""Groups of pods in a Workload of the core."""


def lost(snapshot: Snapshot) -> list[str]:
    """Return a line for each field that is set and that objects cannot say, with how often it is.

    Parameters
    ----------
    snapshot : Snapshot
        Verified.
    """
    found: Counter[str] = Counter()
    found.update(_unlisted(snapshot, ""))
    if len(snapshot.topology) > 1:
        found["topology: the order of the levels is in no object; give --level when they are imported"] += 1
    if not all(any(level in node.domains for node in snapshot.nodes) for level in snapshot.topology):
        found["topology: a level of which no node is in a domain is in no object"] += 1
    for node in snapshot.nodes:
        found.update(_of_node(node))
    units = {replicas(gpu) for node in snapshot.nodes for gpu in node.gpus if gpu.mig_instance}
    known: dict[int, tuple[str, ...]] = {}
    for job in snapshot.jobs:
        found.update(_unlisted(job, "jobs[]."))
        found.update(_of_job(job))
        # jobs of one kind share their groups
        if id(job.groups) not in known:
            known[id(job.groups)] = tuple(_of_groups(job.groups, ""))
        found.update(known[id(job.groups)])
        for group in leaves(job):
            share = group.task.gpu_share
            if group.task.mig_instance and share is not None and not any(exact(share) * unit == 1 for unit in units):
                found["jobs[].groups[].task.mig_instance of a share that is no replica is in no object"] += 1
    return [f"{what} ({count:,})" if count > 1 else what for what, count in found.items()]


def _unlisted(record: msgspec.Struct, path: str) -> Iterator[str]:
    """Yield the fields of a record that are set, and that no object says."""
    for name, default in _others(type(record)):
        if getattr(record, name) != default:
            yield f"{path}{name} is in no object"


@cache
def _others(kind: type[msgspec.Struct]) -> tuple[tuple[str, Any], ...]:
    """Return the fields of a record that no object says, with their defaults."""
    return tuple(
        (field.name, field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory())
        for field in msgspec.structs.fields(kind)
        if field.name not in CARRIED[kind]
    )


# --- nodes -------------------------------------------------------------------------------------------------------


def _of_node(node: Node) -> Iterator[str]:
    yield from _unlisted(node, "nodes[].")
    if not all(is_name(name) for name in copies(node)):
        yield "nodes[].name is no name of a Kubernetes object, and is written as one"
    if not all(is_label(domain) for domain in node.domains.values()):
        yield "nodes[].position has a domain that is no value of a label"
    if not all(is_key(key) and is_label(value) for key, value in node.labels.items()):
        yield "nodes[].labels has one that Kubernetes does not take"
    if not all(is_key(taint.key) and is_label(taint.value) for taint in node.taints):
        yield "nodes[].taints has one that Kubernetes does not take: the node looks open to all"
    if not all(is_key(name) for name in node.extended):
        yield "nodes[].extended has a name that is none of a resource"
    kinds = {msgspec.structs.replace(gpu, count=1, health="healthy", mig_layout=()) for gpu in node.gpus}
    if len(kinds) > 1:
        yield "nodes[].gpus are of several kinds, and labels describe one: that of the first card"
    if sum(before.health != after.health for before, after in zip(node.gpus, node.gpus[1:], strict=False)) > (
        1 if node.gpus and node.gpus[0].health == "healthy" else 0
    ):
        yield "nodes[].gpus[].health: a Node counts the cards that are well, and does not say which"
    shared = {(gpu.mig_instance, gpu.sharing, replicas(gpu)) for gpu in node.gpus if gpu.mig_instance}
    own = {instance.profile for gpu in node.gpus for instance in gpu.mig_layout}
    if len({profile for profile, _, _ in shared} - own) < len(shared):
        yield "nodes[].gpus[].mig_instance: instances of one profile that pods share in several ways, or not"
    for gpu in node.gpus:
        yield from _of_gpu(gpu)


def _of_gpu(gpu: Gpu) -> Iterator[str]:
    path = "nodes[].gpus[]."
    yield from _unlisted(gpu, path)
    if product(gpu.model) != gpu.model:
        yield f"{path}model is no value of a label, and is written as one"
    if gpu.memory is not None and exact(gpu.memory) % 2**20:
        yield f"{path}memory is written in whole MiB"
    if gpu.sharing in ("exclusive", "vgpu") or (gpu.sharing in ("time_slicing", "mps") and replicas(gpu) == 1):
        yield f"{path}sharing {gpu.sharing}, without replicas, is in no object"
    elif gpu.replicas is not None and replicas(gpu) == 1:
        yield f"{path}replicas of cards that are not time-sliced are in no object"
    if gpu.mig_instance and replicas(gpu) == 1:
        yield f"{path}mig_instance without replicas is in no object: it looks like a card"
    elif gpu.mig_instance:
        yield f"{path}memory of an instance is in no object: it comes back as the catalogue has it"
    if gpu.mig_enabled and not gpu.mig_layout:
        yield f"{path}mig_enabled: a card without instances is in no object"
    elif gpu.mig_layout:
        yield f"{path}mig_layout: a Node counts instances, and does not say on which card and slot each is"
        if not gpu.mig_static:
            yield f"{path}mig_layout of cards that may be cut anew: instances come back as they are to stay"


# --- jobs --------------------------------------------------------------------------------------------------------


def _of_job(job: Job) -> Iterator[str]:
    if not is_pod(job.name):
        yield "jobs[].name is not namespace/name, and is written as such"
    groups = leaves(job)
    if len(groups) > 1:
        yield "jobs[].groups: that several start together is an annotation of their Workload, for `import` alone"
    if len(groups) > MOST_GROUPS:
        yield f"jobs[].groups: more than {MOST_GROUPS}, which Kubernetes does not take in one Workload"
    if is_alone(job) and groups[0].path != "pod":
        yield "jobs[].groups[].name of a job of one task is in no object, and comes back as pod"
    if any(group.groups for group in job.groups):
        yield "jobs[].groups are nested: each group of tasks is a PodGroup of the least tasks of all copies"
    names = [name for given in job.task_names.values() for name in given]
    if not all(map(is_pod, names)):
        yield "jobs[].task_names has one that is not namespace/name"
    if not is_alone(job) and len(names) < sum(group.count for group in groups):
        yield "jobs[].groups: tasks get names of pods that the snapshot does not say"
    times = [job.submit_time, None if job.running is None else job.running.since]
    if any(time is not None and (time != int(time) or not EARLIEST <= time <= LATEST) for time in times):
        yield "jobs[]: times are written in whole seconds of the years 1970 to 9999"
    if job.running is not None:
        yield from _unlisted(job.running, "jobs[].running.")
        placed = {(task.group, task.index) for task in job.running.tasks}
        if len(placed) < sum(group.count for group in groups):
            yield "jobs[].running.tasks: those that do not run are pods that wait"


def _of_groups(groups: tuple[TaskGroup, ...], above: str) -> Iterator[str]:
    for group in groups:
        yield from _unlisted(group, "jobs[].groups[].")
        if group.topology is not None:
            yield from _unlisted(group.topology, "jobs[].groups[].topology.")
            if group.topology.required and (above or group.groups):
                yield "jobs[].groups[].topology.required of nested groups is in no object"
        if group.task is not None:
            yield from _of_task(group.task)
        yield from _of_groups(group.groups, f"{above}{group.name}/")


def _of_task(task: Task) -> Iterator[str]:
    path = "jobs[].groups[].task."
    yield from _unlisted(task, path)
    if task.gpu_share is not None and exact(decimal(exact(task.gpu_share))) != exact(task.gpu_share):
        yield f"{path}gpu_share is rounded up"
    if task.gpu_share is not None and exact(task.gpu_share) == 1:
        yield f"{path}gpu_share of a whole card is in no object: it comes back as a whole card that nobody shares"
    if not all(product(model) == model for model in task.gpu_models):
        yield f"{path}gpu_models has one that is no value of a label, and is written as one"
    if not all(is_key(key) and is_label(value) for key, value in task.node_selector.items()):
        yield f"{path}node_selector has one that Kubernetes does not take: the pod looks free of it"
    if not all(is_key(name) for name in task.extended):
        yield f"{path}extended has a name that is none of a resource"
