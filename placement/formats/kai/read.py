"""KAI's objects."""

from __future__ import annotations

from collections.abc import Mapping

from placement.formats.kai import gangs, levels, queues
from placement.formats.kai.records import KAI, SCHEDULING, BindRequest, KaiPodGroup, KaiQueue
from placement.formats.kubernetes.objects import Item, Meta, Objects
from placement.formats.kubernetes.parts import Addition, Gang
from placement.formats.kubernetes.peers import by_name, members, priorities, wrong
from placement.formats.kubernetes.pod import Pod
from placement.formats.kubernetes.quotas import queued
from placement.formats.ledger import Ledger

QUEUE_LABELS = ("kai.scheduler/queue", "runai/queue")
"""Labels of a pod that name its queue, the older one last."""

GPU_GROUP = "runai-gpu-group"
"""Label of a pod with a share of a card: pods with the same are on the same card. With a slash it is one of several."""


def read(objects: Objects, ledger: Ledger) -> Addition:
    """Return the levels, queues, gangs and bindings that objects of KAI say.

    Raises
    ------
    InputError
        If they contradict one another.
    """
    topologies = levels.read(objects, ledger)
    stated = queues.found(objects)
    groups = gangs.grouped(by_name(objects.of(SCHEDULING, "PodGroup", KaiPodGroup), _key))
    requests = _requests(objects, ledger)
    known = queues.read(stated, ledger)
    if not groups.items and not stated and not requests and not topologies.known:
        return Addition(shared=lambda pod: _shared(requests, pod))
    made: tuple[Gang, ...] = ()
    if groups.items:
        found = members(objects, groups.member)
        seconds = queues.minimum_seconds(stated, ledger)
        reader = gangs.Reader(groups, found, topologies, priorities(objects), seconds, ledger)
        made = queued(tuple(reader.gangs()), known, ledger)
        ledger.read("pod groups of KAI", count=len(made))
        gangs.note_beyond(made, {name: _has_quota(item) for name, item in stated.items()}, ledger)
    names = frozenset(queue.name for queue in known)
    own = topologies.levels if objects.has(KAI, "Topology") else ()
    return Addition(
        levels=own,
        queues=known,
        gangs=made,
        member=lambda pod: groups.member(pod.metadata),
        queue_of=lambda pod: _queue_of(pod, names),
        bound=lambda pod: _node_of(requests, pod),
        shared=lambda pod: _shared(requests, pod),
    )


def _key(meta: Meta) -> str:
    return meta.key


def _has_quota(item: Item[KaiQueue]) -> bool:
    resources = item.value.spec.resources
    return resources is None or resources.gpu is None or 0 <= (resources.gpu.quota or 0) != (resources.gpu.limit or 0)


def _queue_of(pod: Pod, known: frozenset[str]) -> str | None:
    labels = pod.metadata.labels or {}
    return next((labels[key] for key in QUEUE_LABELS if labels.get(key) in known), None)


def _requests(objects: Objects, ledger: Ledger) -> dict[str, Item[BindRequest]]:
    """Return the requests that are still to be carried out, by the pod's ``namespace/name``.

    Raises
    ------
    InputError
        If two send a pod to two nodes.
    """
    found: dict[str, Item[BindRequest]] = {}
    for item in objects.of(SCHEDULING, "BindRequest", BindRequest):
        spec = item.value.spec
        if item.value.failed:
            ledger.ignored("bind requests that failed", "their pods wait", item.where)
            continue
        if not spec.pod_name or not spec.selected_node:
            raise wrong(item, "it names no pod or no node", "dump it again", "spec")
        first = found.setdefault(f"{item.value.metadata.namespace or 'default'}/{spec.pod_name}", item)
        if first.value.spec.selected_node != spec.selected_node:
            raise wrong(item, f"its pod is bound to another node at {first.where}", "keep one of them", "spec")
    if found:
        ledger.read("bind requests", count=len(found))
    return found


def _node_of(requests: Mapping[str, Item[BindRequest]], pod: Pod) -> str | None:
    if pod.spec.node_name:
        return None
    item = requests.get(pod.metadata.key)
    return item.value.spec.selected_node if item else None


def _shared(requests: Mapping[str, Item[BindRequest]], pod: Pod) -> tuple[str, ...]:
    labels = pod.metadata.labels or {}
    several = sorted(key.partition("/")[2] for key in labels if key.startswith(f"{GPU_GROUP}/"))
    if several:
        return tuple(several)
    if labels.get(GPU_GROUP):
        return (labels[GPU_GROUP],)
    item = requests.get(pod.metadata.key)
    return item.value.spec.groups if item else ()
