"""A plan as bind requests: what KAI's scheduler hands to its binder.

The form: ``pkg/apis/scheduling/v1alpha2/bindrequest_types.go`` of kai-scheduler/KAI-Scheduler, filled in as
``createBindRequest`` of ``pkg/scheduler/cache/cache.go`` does. A pod with whole cards gets them from the kubelet, which
chooses which. Pods with shares of one card are put together by the name of a group; of a card that nobody shares yet
the group is new, and its name follows from node and index. `Node.devices` are the names of groups where cards have one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Context, Decimal
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from placement.errors import InputError
from placement.formats.listed import listed
from placement.formats.tasks import PlacedTask, pods
from placement.plan import Plan
from placement.snapshot import Job, Snapshot, Task
from placement.snapshot.leaves import leaf_tasks
from placement.snapshot.report import show
from placement.units import exact

API = "scheduling.run.ai/v1alpha2"


def write(snapshot: Snapshot, plan: Plan) -> bytes:
    """Return a ``List`` of ``BindRequest`` objects, one for each task.

    Parameters
    ----------
    snapshot : Snapshot
        Verified.
    plan : Plan
        Checked.

    Raises
    ------
    InputError
        If the snapshot does not say which pod a task is, or a share goes to a card that running pods share, for a
        snapshot does not have the name of their group.
    """
    shared = _shared(snapshot)
    items = [_request(pod, tasks, shared) for pod, tasks in pods(snapshot, plan).items()]
    return listed(items)


def _request(
    pod: tuple[str, str], tasks: Sequence[PlacedTask], shared: Mapping[tuple[str, int], str]
) -> dict[str, Any]:
    namespace, name = pod
    node = tasks[0].place.node
    # instances are resources by name, of which nothing is said here
    whole = [task for task in tasks if not task.task.mig_profile]
    shares = [task for task in whole if task.task.gpu_share is not None and task.task.gpus]
    kind = "Fraction" if shares else "Regular" if whole or not tasks[0].task.gpus else "MigInstance"
    count = sum(len(task.place.gpus) for task in whole)
    spec: dict[str, Any] = {
        "podName": name,
        "selectedNode": node,
        "receivedResourceType": kind,
        "receivedGPU": {
            "count": count,
            "portion": _portion(shares[0].task) if shares else "1.00" if count else "0.00",
        },
    }
    if shares:
        spec["selectedGPUGroups"] = [_group(task, card, shared) for task in shares for card in task.place.gpus]
    return {
        "apiVersion": API,
        "kind": "BindRequest",
        "metadata": {"name": name, "namespace": namespace, "labels": {"selected-node": node}},
        "spec": spec,
    }


def _portion(task: Task) -> str:
    share = exact(task.gpu_share or 0)
    portion = Context(prec=18).divide(Decimal(share.numerator), Decimal(share.denominator))
    return format(max(portion, portion.quantize(Decimal("0.01"))), "f")


def _shared(snapshot: Snapshot) -> dict[tuple[str, int], str]:
    """Return a running job that has a share of a card, by node and index of the card."""
    found: dict[tuple[str, int], str] = {}
    for job in snapshot.jobs:
        if job.running is None:
            continue
        shares = _shares(job)
        for place in job.running.tasks:
            if place.group in shares:
                found.update(dict.fromkeys(((place.node, card) for card in place.gpus), job.name))
    return found


def _shares(job: Job) -> set[str]:
    return {path for path, task in leaf_tasks(job.groups) if task.gpu_share is not None}


def _group(task: PlacedTask, card: int, shared: Mapping[tuple[str, int], str]) -> str:
    """Return the name of the group of pods on a card: that of the card, where the node names its cards."""
    node = task.place.node
    if task.node.devices:
        return task.node.devices[card]
    if (node, card) in shared:
        other = show(shared[node, card])
        what = f"card {card} of {show(node)} is shared with job {other}, and the snapshot has no name for its group"
        raise InputError.one(what, "let KAI itself place the pods that join others on a card", path=show(task.job_name))
    return str(uuid5(NAMESPACE_URL, f"{node}/{card}"))
