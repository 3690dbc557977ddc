"""Whose pods are whose: from a pod to its workload and pod set."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import msgspec

from placement.formats.kubernetes.objects import Item, Meta, Objects
from placement.formats.kubernetes.pod import Pod, PodSpec
from placement.formats.kueue.gangs import CLASS_LABEL, Context, gang
from placement.formats.kueue.jobs import QUEUE_LABEL
from placement.formats.kueue.levels import RefusedError, annotated, wish
from placement.formats.kueue.records import GROUP, PodSet, Record, Template
from placement.formats.kueue.workloads import Owners

WORKLOAD = f"{GROUP}/workload"
POD_SET = f"{GROUP}/podset"
PREBUILT = f"{GROUP}/prebuilt-workload-name"
POD_GROUP = f"{GROUP}/pod-group-name"
POD_GROUP_SIZE = f"{GROUP}/pod-group-total-count"
ROLE = f"{GROUP}/role-hash"

OWNING: tuple[tuple[str, str], ...] = (
    ("jobset.sigs.k8s.io/jobset-name", "JobSet"),
    ("training.kubeflow.org/job-name", "PyTorchJob"),
    ("training.kubeflow.org/job-name", "MPIJob"),
    ("training.kubeflow.org/job-name", "TFJob"),
    ("training.kubeflow.org/job-name", "XGBoostJob"),
    ("ray.io/originated-from-cr-name", "RayJob"),
    ("ray.io/cluster", "RayCluster"),
    ("batch.kubernetes.io/job-name", "Job"),
    ("job-name", "Job"),
)
"""Labels of pods that name what they belong to, and its kind."""

SETS = (
    POD_SET,
    "jobset.sigs.k8s.io/replicatedjob-name",
    "training.kubeflow.org/replica-type",
    "ray.io/group",
    "ray.io/node-type",
)
"""Labels of pods that name their pod set, from sure to less so."""

LWS_NAME, LWS_GROUP = "leaderworkerset.sigs.k8s.io/name", "leaderworkerset.sigs.k8s.io/group-index"
LWS_WORKER = "leaderworkerset.sigs.k8s.io/worker-index"


class _Phase(Record):
    phase: str | None = None


class _Bound(Record):
    node_name: str | None = None


class SeenPod(Record):
    """What tells a pod's gang."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    spec: _Bound | None = None
    status: _Phase | None = None


@dataclass(slots=True)
class Members:
    """Knows the gang and the queue of a pod."""

    context: Context
    owners: Owners

    def member(self, pod: Pod) -> tuple[str, str] | None:
        """Return key of the gang and name of the group; None for a pod that Kueue knows nothing of."""
        key = self.key(pod.metadata)
        return None if key is None else (key, self.group(key, pod.metadata))

    def key(self, meta: Meta) -> str | None:
        """Return the key of a pod's gang."""
        namespace, labels, notes = meta.namespace or "default", meta.labels or {}, meta.annotations or {}
        for name in (notes.get(WORKLOAD), labels.get(WORKLOAD), labels.get(PREBUILT), labels.get(POD_GROUP)):
            if name and (found := self.owners.workloads.get(f"{namespace}/{name}")):
                return found
        for owner in meta.owner_references or ():
            found = self.owners.uids.get(owner.uid) if owner.uid else None
            found = found or self.owners.names.get((namespace, owner.kind, owner.name))
            if found:
                return found
        found = self.owners.names.get((namespace, "Pod", meta.name))
        if found:
            return found
        if LWS_NAME in labels:
            name = f"{labels[LWS_NAME]}-{labels.get(LWS_GROUP, '')}"
            if found := self.owners.names.get((namespace, "LeaderWorkerSet", name)):
                return found
        for label, kind in OWNING:
            if label in labels and (found := self.owners.names.get((namespace, kind, labels[label]))):
                return found
        return f"{namespace}/{labels[POD_GROUP]}" if labels.get(POD_GROUP) else None

    def group(self, key: str, meta: Meta) -> str:
        """Return the group that a pod of a gang belongs to."""
        known, labels = self.owners.groups.get(key, ()), meta.labels or {}
        role = (meta.annotations or {}).get(ROLE) or labels.get(ROLE) or ""
        if not known:
            return role or "main"
        if len(known) == 1:
            return known[0]
        for name in (role, *(labels.get(label, "").lower() for label in SETS)):
            if name in known:
                return name
        if LWS_WORKER in labels:
            return known[0] if labels[LWS_WORKER] == "0" else known[1]
        return known[0]

    def queue_of(self, pod: Pod) -> str | None:
        """Return the queue of a pod, by its label."""
        return self.queue(pod.metadata)

    def queue(self, meta: Meta) -> str | None:
        """Return the queue that labels name; None where it is not there."""
        name = (meta.labels or {}).get(QUEUE_LABEL)
        if not name:
            return None
        queue = self.context.queues.local.get(f"{meta.namespace or 'default'}/{name}", "")
        return queue if queue in self.context.queues.covered else None

    def spec_of(self, pod: Pod) -> PodSpec:
        """Return what a pod that waits asks for, with what the flavours of its queue add."""
        key = self.key(pod.metadata)
        made = self.context.gangs.get(key) if key else None
        queue = made.queue if made is not None else self.queue_of(pod)
        if not queue:
            return pod.spec
        try:
            return self.context.flavours.adjusted(pod.spec, queue, self.context.ledger, _where(pod.metadata))
        except RefusedError as why:
            self.context.ledger.unsupported(why.what, why.why, _where(pod.metadata))
            return pod.spec


def _where(meta: Meta) -> str:
    return f"pod {meta.key}"


# --- groups of pods ------------------------------------------------------------------------------------------------


def read(objects: Objects, members: Members) -> None:
    """Add the gangs of pods that say they are a group, where no Workload is there for it.

    Pods alone are no gangs; of those only what Kueue does not start is noted.
    """
    found: dict[str, list[Item[SeenPod]]] = {}
    for item in objects.of("", "Pod", SeenPod):
        labels = item.value.metadata.labels or {}
        if not (labels.get(POD_GROUP) or labels.get(QUEUE_LABEL)) or not _lives(item.value):
            continue
        key = members.key(item.value.metadata)
        if key is None:
            _alone(members, item)
        elif key not in members.owners.groups:
            found.setdefault(key, []).append(item)
    for key, pods in found.items():
        _group(members, key, pods)


def _lives(pod: SeenPod) -> bool:
    return pod.status is None or pod.status.phase not in ("Succeeded", "Failed")


def _waits(pod: SeenPod) -> bool:
    return pod.spec is None or not pod.spec.node_name


def _queue(context: Context, meta: Meta, where: str) -> str:
    """Return the queue of a pod that waits.

    Raises
    ------
    RefusedError
        If it is not there.
    """
    return context.queue(meta.namespace, (meta.labels or {}).get(QUEUE_LABEL, ""), where)


def _stopped(context: Context, meta: Meta, queue: str) -> bool:
    return context.stopped(meta.namespace, (meta.labels or {}).get(QUEUE_LABEL, ""), queue)


def _alone(members: Members, item: Item[SeenPod]) -> None:
    """Withhold a pod alone that Kueue does not start."""
    context, meta = members.context, item.value.metadata
    if not _waits(item.value):
        return
    try:
        wish(annotated(meta.annotations), 1, context.levels, context.ledger, item.where)
        if not _stopped(context, meta, _queue(context, meta, item.where)):
            return
        context.withhold(meta.key, "pods of a queue that is stopped", "Kueue does not start them", item.where)
    except RefusedError as why:
        context.refuse(meta.key, why, item.where)
    members.owners.names[meta.namespace or "default", "Pod", meta.name] = meta.key
    members.owners.groups[meta.key] = ("pod",)


def _group(members: Members, key: str, pods: list[Item[SeenPod]]) -> None:
    context, first = members.context, pods[0]
    meta = first.value.metadata
    total = (meta.annotations or {}).get(POD_GROUP_SIZE, "")
    waits = all(_waits(item.value) for item in pods)
    if waits and total.isascii() and total.isdigit() and len(total) < 9 and int(total) > len(pods):
        context.withhold(key, "groups of pods that are not complete", "Kueue waits for the rest", first.where)
        return
    names = [members.group(key, item.value.metadata) for item in pods]
    notes = dict(zip(reversed(names), (item.value.metadata.annotations for item in reversed(pods)), strict=True))
    sets = [PodSet(n, count, None, Template(Meta(annotations=notes[n]))) for n, count in Counter(names).items()]
    try:
        queue = _queue(context, meta, first.where) if waits else members.queue(meta) or ""
        priority = context.priority(None, (meta.labels or {}).get(CLASS_LABEL, ""), None)
        made = gang(context, first, key, sets, queue="", priority=priority, submitted=None, started=not waits)
    except RefusedError as why:
        context.refuse(key, why, first.where)
        return
    if waits and _stopped(context, meta, queue):
        context.withhold(key, "pods of a queue that is stopped", "Kueue does not start them", first.where)
        return
    # the pods are there: what they ask for is read from them
    groups = tuple(replace(group, count=None, template=None) for group in made.groups)
    preemptible = queue in context.queues.preemptible
    context.gangs[key] = replace(made, groups=groups, queue=queue, preemptible=preemptible, started=False)
    context.ledger.read("groups of pods", first.where)
