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

from collections.abc import Iterator
from typing import Any

import msgspec

from placement.errors import InputError
from placement.formats.kubernetes.annotations import of_place
from placement.formats.tasks import PlacedTask, placed, pod_of
from placement.plan import Plan
from placement.snapshot import Snapshot
from placement.snapshot.report import show


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
        If the snapshot does not say which pod a task is, or says one pod twice.
    """
    return _list([_binding(task, *pod) for task, pod in _pods(snapshot, plan)])


def write_patches(snapshot: Snapshot, plan: Plan) -> bytes:
    """Return a List of strategic merge patches, one for each pod that the plan starts; see `write`."""
    return _list([_patch(task, *pod) for task, pod in _pods(snapshot, plan)])


def _pods(snapshot: Snapshot, plan: Plan) -> Iterator[tuple[PlacedTask, tuple[str, str]]]:
    known: dict[tuple[str, str], str] = {}
    for task in placed(snapshot, plan):
        pod = pod_of(task)
        if pod in known:
            raise InputError.one(
                f"jobs {show(known[pod])} and {show(task.job_name)} both say that a task is the pod {show(task.name)}",
                "correct the `task_names` of one",
            )
        known[pod] = task.job_name
        yield task, pod


def _binding(task: PlacedTask, namespace: str, name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "namespace": namespace, **_annotated(task)},
        "target": {"apiVersion": "v1", "kind": "Node", "name": task.place.node},
    }


def _patch(task: PlacedTask, namespace: str, name: str) -> dict[str, Any]:
    here = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [task.place.node]}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, **_annotated(task)},
        "spec": {
            "affinity": {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [here]}}
            }
        },
    }


def _annotated(task: PlacedTask) -> dict[str, dict[str, str]]:
    place = task.place
    found = of_place(
        gpus=place.gpus,
        mig_starts=place.mig_starts,
        zones=place.zones,
        cpuset=place.cpus,
        nics=place.nics,
        devices=[task.node.devices[gpu] for gpu in place.gpus] if task.node.devices else (),
    )
    return {"annotations": found} if found else {}


def _list(items: list[dict[str, Any]]) -> bytes:
    return msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items}) + b"\n"
