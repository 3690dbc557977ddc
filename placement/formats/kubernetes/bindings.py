"""Writers of a plan for a Kubernetes cluster: Bindings, or patches of pods that are held back by a gate.

**Bindings** (``kubernetes``) are what a scheduler sends: one ``Binding`` a pod, with the node as its target. The API
server takes one while ``spec.nodeName`` of the pod is empty, sets it, and merges the annotations of the Binding into
those of the pod (``setPodHostAndAnnotations`` in ``pkg/registry/core/pod/storage/storage.go`` of kubernetes), so the
node learns which cards are meant in the same write. ``kubectl create -f FILE`` sends them all; ``apply`` cannot, for
there is nothing to read back.

**Patches** (``kubernetes-patches``) leave the binding to the scheduler of the cluster: strategic merge patches, each a
Pod with nothing but what it changes, for ``kubectl patch pod NAME -n NAMESPACE --type strategic``. The required node
affinity matches ``metadata.name`` in ``matchFields``, which is the node itself whatever its labels are. They are for
pods that are held back by a scheduling gate (KEP-3838, "Pod Mutable Scheduling Directives"): only then may their
affinity change, and only where they require none of their own, for the terms of ``nodeSelectorTerms`` are alternatives
and none may be added. The API server refuses the others, and it refuses Bindings of pods with a gate. Who applies a
patch removes the gate afterwards.

Both carry the annotations that `placement.formats.kubernetes.annotations` lists. Pods that run already are in neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from placement.formats.kubernetes.annotations import WHOLE, of_place
from placement.formats.listed import listed
from placement.formats.tasks import PlacedTask, pods
from placement.plan import Plan
from placement.snapshot import Snapshot


def write(snapshot: Snapshot, plan: Plan) -> bytes:
    """Return a List of Bindings, one for each pod that the plan starts, in the order of the plan.

    Parameters
    ----------
    snapshot : Snapshot
        Verified, and the one that the plan is of.
    plan : Plan
        Checked.

    Raises
    ------
    InputError
        If the snapshot does not say of any task which pod it is, or two jobs have one pod.
    """
    return listed([_binding(tasks, *pod) for pod, tasks in pods(snapshot, plan).items()])


def write_patches(snapshot: Snapshot, plan: Plan) -> bytes:
    """Return a List of strategic merge patches, one for each pod that the plan starts; see `write`."""
    return listed([_patch(tasks, *pod) for pod, tasks in pods(snapshot, plan).items()])


def _binding(tasks: Sequence[PlacedTask], namespace: str, name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "namespace": namespace, **_annotated(tasks)},
        "target": {"apiVersion": "v1", "kind": "Node", "name": tasks[0].place.node},
    }


def _patch(tasks: Sequence[PlacedTask], namespace: str, name: str) -> dict[str, Any]:
    here = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [tasks[0].place.node]}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, **_annotated(tasks)},
        "spec": {
            "affinity": {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [here]}}
            }
        },
    }


def _annotated(tasks: Sequence[PlacedTask]) -> dict[str, dict[str, str]]:
    """Return the annotations of a pod: cards of all its tasks in turn, each with its slot where it is an instance."""
    gpus, devices = [gpu for task in tasks for gpu in task.place.gpus], tasks[0].node.devices
    slots = [slot for task in tasks for slot in task.place.mig_starts or [WHOLE] * len(task.place.gpus)]
    found = of_place(
        gpus=gpus,
        mig_starts=slots if any(task.place.mig_starts for task in tasks) else (),
        zones=dict.fromkeys(zone for task in tasks for zone in task.place.zones),
        cpuset=",".join(dict.fromkeys(task.place.cpus for task in tasks if task.place.cpus)),
        nics=[nic for task in tasks for nic in task.place.nics],
        devices=[devices[gpu] for gpu in gpus] if devices else (),
    )
    return {"annotations": found} if found else {}
