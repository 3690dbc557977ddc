"""A plan as nominations of nodes: where Volcano tries each pod first (``status.nominatedNodeName``).

Each pod is a patch of its status, as ``kubectl patch pod NAME -n NAMESPACE --subresource=status --patch …`` takes it.
The pods of a pod group follow one another.
"""

from __future__ import annotations

from typing import Any

from placement.formats.listed import listed
from placement.formats.tasks import pods as pods_of
from placement.plan import Plan
from placement.snapshot import Snapshot


def write(snapshot: Snapshot, plan: Plan) -> bytes:
    """Return a ``List`` of pods, each with its name and the node that it is nominated to.

    Parameters
    ----------
    snapshot : Snapshot
        Verified.
    plan : Plan
        Checked.

    Raises
    ------
    InputError
        If the snapshot does not say which pod a task is.
    """
    gangs: dict[str, list[dict[str, Any]]] = {}
    for (namespace, name), tasks in pods_of(snapshot, plan).items():
        gangs.setdefault(tasks[0].job_name, []).append(_pod(namespace, name, tasks[0].place.node))
    items = [pod for pods in gangs.values() for pod in pods]
    return listed(items)


def _pod(namespace: str, name: str, node: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "status": {"nominatedNodeName": node},
    }
