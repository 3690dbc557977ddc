"""A plan as ResourceClaims with their allocation, for pods on nodes of which the cards are devices of a ResourceSlice.

What is written is the status of claims: ``kubectl replace --subresource=status`` of each applies it. A claim is called
what its pod is, with one request ``gpu``, and its pool what the node is, as the driver does it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from placement.errors import InputError
from placement.formats.dra.slices import NVIDIA
from placement.formats.tasks import PlacedTask, placed, pod_of
from placement.plan import Plan
from placement.snapshot import Snapshot
from placement.snapshot.report import show

REQUEST = "gpu"


def write(snapshot: Snapshot, plan: Plan) -> bytes:
    """Return a ``List`` of ResourceClaims as JSON, one for each task that the plan starts on cards.

    Raises
    ------
    InputError
        If a task is no pod, shares a card or takes a MIG instance, or a node has no names of devices.
    """
    items = [_claim(task) for task in placed(snapshot, plan) if task.place.gpus]
    document = {"apiVersion": "v1", "kind": "List", "items": items}
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def _claim(task: PlacedTask) -> dict[str, Any]:
    namespace, name = pod_of(task)
    which = f"task {task.index} of {show(task.group)} in job {show(task.job_name)}"
    if task.task.mig_profile or task.task.gpu_share is not None:
        what = f"{which} takes a part of a card, which a claim of this writer cannot say"
        raise InputError.one(what, "write the plan in another format")
    devices = task.node.devices
    if not devices or any(device.startswith(("GPU-", "MIG-")) for device in devices):
        what = f"the snapshot does not say what a ResourceSlice calls the cards of node {show(task.place.node)}"
        raise InputError.one(what, "import the ResourceSlices too, or write the plan in another format")
    results = [
        {"request": REQUEST, "driver": NVIDIA, "pool": task.place.node, "device": devices[card]}
        for card in task.place.gpus
    ]
    here = {"key": "metadata.name", "operator": "In", "values": [task.place.node]}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"namespace": namespace, "name": name},
        "status": {
            "allocation": {
                "devices": {"results": results},
                "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [here]}]},
            },
            "reservedFor": [{"resource": "pods", "name": name}],
        },
    }
