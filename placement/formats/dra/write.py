"""A plan as ResourceClaims with their allocation, for pods on nodes of which the cards are devices of a ResourceSlice.

What is written is the status of claims: ``kubectl replace --subresource=status`` of each applies it. A claim is called
what its pod is, with one request ``gpu``, and its pool what the node is, unless labels of the node name it.
The scheduler of the cluster then binds the pod to the node of its claim, and reserves the claim for it: a reservation
has the uid of the pod, which a snapshot does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from placement.errors import InputError
from placement.formats.dra.slices import DRIVER_LABEL, NVIDIA, POOL_LABEL
from placement.formats.listed import listed
from placement.formats.tasks import PlacedTask, pods, unnamed
from placement.plan import Plan
from placement.snapshot import Snapshot
from placement.snapshot.report import show

REQUEST = "gpu"


def write(snapshot: Snapshot, plan: Plan) -> bytes:
    """Return a ``List`` of ResourceClaims as JSON, one for each task that the plan starts on cards.

    A claim is called as `Job.claims` says, and else like its pod, with one request `REQUEST`.

    Raises
    ------
    InputError
        If no task is a pod, one shares a card or takes a MIG instance, or a node has no names of devices.
    """
    claimed = {pod: [task for task in tasks if task.place.gpus] for pod, tasks in pods(snapshot, plan).items()}
    items = [_claim(tasks, *pod) for pod, tasks in claimed.items() if tasks]
    return listed(items)


def notes(snapshot: Snapshot, plan: Plan) -> list[str]:
    """Return what the claims do not say of a plan, a line each."""
    bare = sum(not any(task.place.gpus for task in tasks) for tasks in pods(snapshot, plan).values())
    said = [f"left out: {bare:,} pods without cards; write them as kubernetes"] if bare else []
    found = [tasks[0] for tasks in pods(snapshot, plan).values() if any(task.place.gpus for task in tasks)]
    guessed = sum(task.name not in task.job.claims for task in found)
    if guessed:
        what = f"{guessed:,} claims are called what their pods are, each with one request gpu"
        said.append(f"{what}: name them as they are in the cluster")
    return [*said, *unnamed(snapshot, plan)]


def _claim(tasks: Sequence[PlacedTask], namespace: str, name: str) -> dict[str, Any]:
    claim, _, request = tasks[0].job.claims.get(tasks[0].name, f"{name}/{REQUEST}").partition("/")
    results = [result for task in tasks for result in _results(task, request)]
    here = {"key": "metadata.name", "operator": "In", "values": [tasks[0].place.node]}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"namespace": namespace, "name": claim},
        "status": {
            "allocation": {
                "devices": {"results": results},
                "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [here]}]},
            },
        },
    }


def _results(task: PlacedTask, request: str) -> list[dict[str, str]]:
    which = f"task {task.index} of {show(task.group)} in job {show(task.job_name)}"
    if task.task.mig_profile or task.task.gpu_share is not None:
        what = f"{which} takes a part of a card, which a claim of this writer cannot say"
        raise InputError.one(what, "write the plan in another format")
    devices = task.node.devices
    if not devices or any(device.startswith(("GPU-", "MIG-")) for device in devices):
        what = f"the snapshot does not say what a ResourceSlice calls the cards of node {show(task.place.node)}"
        raise InputError.one(what, "import the ResourceSlices too, or write the plan in another format")
    labels = task.node.labels
    return [
        {
            "request": request,
            "driver": labels.get(DRIVER_LABEL, NVIDIA),
            "pool": labels.get(POOL_LABEL, task.place.node),
            "device": devices[card],
        }
        for card in task.place.gpus
    ]
