"""Jobs that are given without the Workload that Kueue makes of them: Job, JobSet, LeaderWorkerSet, Ray and Kubeflow.

Only those with the label of a queue are Kueue's. What has been started is its pods; what waits is made as Kueue makes
its Workload: https://kueue.sigs.k8s.io/docs/tasks/run/
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from placement.formats.kubernetes.objects import Item, Meta, Objects
from placement.formats.kueue.gangs import CLASS_LABEL, Context, gang, unique
from placement.formats.kueue.levels import RefusedError
from placement.formats.kueue.records import GROUP, Condition, PodSet, Record, Template, named
from placement.formats.kueue.workloads import Owners

QUEUE_LABEL = f"{GROUP}/queue-name"
MIN_PARALLELISM = f"{GROUP}/job-min-parallelism"

OVER = frozenset({"Complete", "Completed", "Failed", "Succeeded"})


class _Replicas(Record):
    replicas: int | None = None
    template: Template = msgspec.field(default_factory=Template)


class _InnerSpec(Record):
    parallelism: int | None = None
    completions: int | None = None
    template: Template = msgspec.field(default_factory=Template)


class _Inner(Record):
    spec: _InnerSpec = msgspec.field(default_factory=_InnerSpec)


class _ReplicatedJob(Record):
    name: str = ""
    replicas: int | None = None
    template: _Inner = msgspec.field(default_factory=_Inner)


class _Leader(Record):
    size: int | None = None
    leader_template: Template | None = None
    worker_template: Template = msgspec.field(default_factory=Template)


class _RayWorkers(Record):
    group_name: str = ""
    replicas: int | None = None
    num_of_hosts: int | None = None
    template: Template = msgspec.field(default_factory=Template)


class _RayHead(Record):
    template: Template = msgspec.field(default_factory=Template)


class _Ray(Record):
    head_group_spec: _RayHead = msgspec.field(default_factory=_RayHead)
    worker_group_specs: list[_RayWorkers] | None = None


class _RunPolicy(Record):
    suspend: bool | None = None


class _Spec(Record):
    suspend: bool | None = None
    run_policy: _RunPolicy | None = None
    # batch/v1 Job
    parallelism: int | None = None
    completions: int | None = None
    template: Template | None = None
    # JobSet
    replicated_jobs: list[_ReplicatedJob] | None = None
    # LeaderWorkerSet
    replicas: int | None = None
    leader_worker_template: _Leader | None = None
    # RayJob and RayCluster
    ray_cluster_spec: _Ray | None = None
    head_group_spec: _RayHead | None = None
    worker_group_specs: list[_RayWorkers] | None = None
    # Kubeflow
    pytorch_replica_specs: dict[str, _Replicas] | None = None
    mpi_replica_specs: dict[str, _Replicas] | None = None
    tf_replica_specs: dict[str, _Replicas] | None = None
    xgb_replica_specs: dict[str, _Replicas] | None = None


class _Status(Record):
    conditions: list[Condition] | None = None
    active: int | None = None
    ready_replicas: int | None = None
    start_time: str | None = None


class JobObject(Record):
    """An object of any of the kinds."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status | None = None


def _one(value: int | None) -> int:
    return 1 if value is None else value


# --- pod sets by kind ----------------------------------------------------------------------------------------------


def _job(item: JobObject) -> Iterator[PodSet]:
    count = _pods(item.spec.parallelism, item.spec.completions)
    text = (item.metadata.annotations or {}).get(MIN_PARALLELISM, "")
    least = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0
    minimum = least if 0 < least < count else None
    yield PodSet("main", count, minimum, item.spec.template or Template())


def _pods(parallelism: int | None, completions: int | None) -> int:
    """Return how many pods of a Job run at once."""
    return _one(parallelism) if completions is None else min(_one(parallelism), completions)


def _job_set(item: JobObject) -> Iterator[PodSet]:
    for part in item.spec.replicated_jobs or ():
        inner = part.template.spec
        count = _one(part.replicas) * _pods(inner.parallelism, inner.completions)
        yield PodSet(part.name.lower(), count, None, inner.template)


def _leader_worker(item: JobObject) -> Iterator[PodSet]:
    parts = item.spec.leader_worker_template or _Leader()
    size = _one(parts.size)
    if parts.leader_template is None:
        yield PodSet("main", size, None, parts.worker_template)
    else:
        yield PodSet("leader", 1, None, parts.leader_template)
        yield PodSet("worker", size - 1, None, parts.worker_template)


def _ray(item: JobObject) -> Iterator[PodSet]:
    spec = item.spec
    ray = spec.ray_cluster_spec or _Ray(spec.head_group_spec or _RayHead(), spec.worker_group_specs)
    yield PodSet("head", 1, None, ray.head_group_spec.template)
    for group in ray.worker_group_specs or ():
        count = _one(group.replicas) * max(1, _one(group.num_of_hosts))
        yield PodSet(group.group_name.lower(), count, None, group.template)


def _kubeflow(item: JobObject) -> Iterator[PodSet]:
    spec = item.spec
    found: Mapping[str, _Replicas] = (
        spec.pytorch_replica_specs or spec.mpi_replica_specs or spec.tf_replica_specs or spec.xgb_replica_specs or {}
    )
    first = ("Master", "Launcher", "Chief")
    for role in sorted(found, key=lambda role: (role not in first, role)):
        yield PodSet(role.lower(), _one(found[role].replicas), None, found[role].template)


KINDS: Sequence[tuple[str, str, Callable[[JobObject], Iterator[PodSet]]]] = (
    ("jobset.x-k8s.io", "JobSet", _job_set),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet", _leader_worker),
    ("ray.io", "RayJob", _ray),
    ("ray.io", "RayCluster", _ray),
    ("kubeflow.org", "PyTorchJob", _kubeflow),
    ("kubeflow.org", "MPIJob", _kubeflow),
    ("kubeflow.org", "TFJob", _kubeflow),
    ("kubeflow.org", "XGBoostJob", _kubeflow),
    ("batch", "Job", _job),
)
"""API group, kind, and the pod sets of an object."""


# --- gangs ---------------------------------------------------------------------------------------------------------


def read(objects: Objects, context: Context, owners: Owners) -> None:
    """Add the gangs of jobs that no Workload is there for."""
    known = {*owners.names, *owners.finished}
    for group, kind, sets_of in KINDS:
        for item in objects.of(group, kind, JobObject):
            meta = item.value.metadata
            queue = (meta.labels or {}).get(QUEUE_LABEL, "")
            owner = (meta.namespace or "default", kind, _name(meta))
            nested = any(one.kind in _NESTING for one in meta.owner_references or ())
            if not queue or nested or owner in known:
                continue
            if any(one.type in OVER and one.status == "True" for one in _status(item).conditions or ()):
                context.ledger.ignored("jobs that have finished", "they hold nothing", item.where)
                continue
            copies = max(0, _one(item.value.spec.replicas)) if kind == "LeaderWorkerSet" else 1
            if copies > _MOST_COPIES:
                context.ledger.ignored(
                    "replicas of a LeaderWorkerSet", f"only the first {_MOST_COPIES:,} are read", item.where
                )
            for copy in range(min(copies, _MOST_COPIES)):
                tail = f"-{copy}" if kind == "LeaderWorkerSet" else ""
                _add(context, item, kind, tail, list(sets_of(item.value)), queue, owners)


_NESTING = frozenset({"JobSet", "RayJob", "MPIJob", "PyTorchJob", "TFJob", "TrainJob", "AppWrapper"})
"""Kinds of which the jobs that they own are not queued by themselves."""

_MOST_COPIES = 100_000


def _name(meta: Meta) -> str:
    return meta.name or meta.generate_name.rstrip("-.")


def _status(item: Item[JobObject]) -> _Status:
    return item.value.status or _Status()


def _add(
    context: Context, item: Item[JobObject], kind: str, tail: str, sets: list[PodSet], local: str, owners: Owners
) -> None:
    meta = item.value.metadata
    namespace = meta.namespace or "default"
    name = f"{_name(meta) or kind.lower()}{tail}"
    key = unique(context, named(item, "metadata.name", f"{namespace}/{name}"), kind)
    owners.names.setdefault((namespace, kind, name), key)
    if meta.uid and not tail:
        owners.uids.setdefault(meta.uid, key)
    owners.groups[key] = tuple(one.name for one in sets)
    started = _started(item)
    try:
        if not any(one.count > 0 for one in sets):
            context.withhold(key, "workloads without pods", "there is nothing to place", item.where)
            return
        queue = context.queue(namespace, local, item.where)
        made = gang(
            context,
            item,
            key,
            sets,
            queue=queue,
            priority=context.priority(None, (meta.labels or {}).get(CLASS_LABEL, ""), meta.annotations),
            submitted=meta.creation_timestamp,
            started=started,
        )
    except RefusedError as why:
        context.refuse(key, why, item.where)
        return
    if not started and context.stopped(namespace, local, queue):
        context.withhold(key, "workloads of a queue that is stopped", "Kueue does not start them", item.where)
        return
    context.gangs[key] = made
    context.ledger.read("jobs in a queue, without a Workload", item.where)


def _started(item: Item[JobObject]) -> bool:
    """Return whether a job has been let go: Kueue keeps those that wait suspended."""
    spec, status = item.value.spec, _status(item)
    suspended = spec.suspend or (spec.run_policy is not None and spec.run_policy.suspend)
    return not suspended and bool(status.active or status.start_time or status.ready_replicas)
