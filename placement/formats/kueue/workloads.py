"""Workloads: what waits for admission, what was admitted, and whose pods they are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from placement.formats.kubernetes.objects import Item, Objects
from placement.formats.kueue.gangs import Context, gang, unique
from placement.formats.kueue.levels import RefusedError
from placement.formats.kueue.records import GROUP, PriorityClass, Workload, WorkloadSpec, WorkloadStatus, named, wrong
from placement.formats.ledger import Ledger
from placement.snapshot.report import show

Owner = tuple[str, str, str]
"""Namespace, kind and name of what pods belong to."""


@dataclass(slots=True)
class Owners:
    """Keys of gangs by what their pods are found by.

    Attributes
    ----------
    workloads : dict of str to str
        By ``namespace/name`` of the Workload.
    names : dict of Owner to str
    uids : dict of str to str
    groups : dict of str to tuple of str
        Names of the groups by key.
    finished : set of Owner
        Of which the Workload has finished.
    """

    workloads: dict[str, str] = field(default_factory=dict)
    names: dict[Owner, str] = field(default_factory=dict)
    uids: dict[str, str] = field(default_factory=dict)
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    finished: set[Owner] = field(default_factory=set)


def priorities(objects: Objects, ledger: Ledger) -> dict[str, int]:
    """Return the values of the priority classes."""
    found = {}
    for item in objects.of(GROUP, "WorkloadPriorityClass", PriorityClass):
        found[item.value.metadata.name] = _bounded(item, "value", item.value.value)
        ledger.read("priority classes", item.where)
    return found


def _bounded(item: Item[Any], end: str, value: int) -> int:
    if abs(value) > 2**31:
        raise wrong(item, end, f"found {show(value)}", "give a priority of 32 bits")
    return value


def read(objects: Objects, context: Context) -> Owners:
    """Add the gangs of all Workloads, and return whose pods they are."""
    owners = Owners()
    for item in objects.of(GROUP, "Workload", Workload):
        meta, status = item.value.metadata, item.value.status or WorkloadStatus()
        named(item, "metadata.name", meta.key)
        namespace = meta.namespace or "default"
        belongs = [(namespace, owner.kind, owner.name) for owner in meta.owner_references or ()]
        if any(one.type == "Finished" and one.status == "True" for one in status.conditions or ()):
            context.ledger.ignored("workloads that have finished", "they hold nothing", item.where)
            owners.finished.update(belongs)
            continue
        if meta.key in owners.workloads:
            context.ledger.contradiction("an object that is given twice", "the first one", item.where)
            continue
        key = unique(context, meta.key, "workload")
        owners.workloads[meta.key] = key
        for owner in meta.owner_references or ():
            owners.names.setdefault((namespace, owner.kind, owner.name), key)
            if owner.uid:
                owners.uids.setdefault(owner.uid, key)
        sets = (item.value.spec or WorkloadSpec()).pod_sets or ()
        owners.groups[key] = tuple(one.name for one in sets)
        _add(context, item, key, status)
    return owners


def _add(context: Context, item: Item[Workload], key: str, status: WorkloadStatus) -> None:
    meta, spec = item.value.metadata, item.value.spec or WorkloadSpec()
    started = status.admission is not None
    sets = spec.pod_sets or []
    if spec.priority is not None:
        _bounded(item, "spec.priority", spec.priority)
    if not any(one.count for one in sets):
        context.withhold(key, "workloads without pods", "there is nothing to place", item.where)
        return
    name = spec.queue_name or ""
    try:
        if status.admission is not None and status.admission.cluster_queue in context.queues.covered:
            queue = status.admission.cluster_queue or ""
        elif started:
            queue = ""
        else:
            queue = context.queue(meta.namespace, name, item.where)
        reference = spec.priority_class_ref.name if spec.priority_class_ref else spec.priority_class_name or ""
        made = gang(
            context,
            item,
            key,
            sets,
            queue=queue,
            priority=context.priority(spec.priority, reference, meta.annotations),
            submitted=meta.creation_timestamp,
            started=started,
            path="spec.podSets[]",
        )
    except RefusedError as why:
        context.refuse(key, why, item.where)
        return
    if spec.maximum_execution_time_seconds is not None:
        context.ledger.ignored("the longest time that a workload may run", "it does not say where it runs", item.where)
    if spec.active is False and not started:
        context.withhold(key, "workloads that are not active", "Kueue does not start them", item.where)
    elif not started and context.stopped(meta.namespace, name, queue):
        context.withhold(key, "workloads of a queue that is stopped", "Kueue does not start them", item.where)
    elif not started and not name and context.queues.covered:
        context.withhold(key, "workloads without a queue", "Kueue does not start them", item.where)
    else:
        context.gangs[key] = made
        context.ledger.read("admitted workloads" if started else "workloads that wait", item.where)
        if started:
            context.ledger.assumed("place of an admitted workload", "that of its pods", item.where)
