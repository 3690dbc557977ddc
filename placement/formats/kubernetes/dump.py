"""Writer of a snapshot as the objects of a Kubernetes cluster: Nodes, pods, and the core's own gangs.

What comes out is a List as ``kubectl get -o json`` prints one, to try a cluster in a simulator such as kwok, or to hand
a snapshot to what reads Kubernetes alone. `placement.formats.kubernetes.read` makes a snapshot of it again.

**Nodes** have capacity and allocatable amounts, taints, labels, and ``unschedulable`` where cordoned. A domain at a
level is the label ``topology.gpu-placement.io/LEVEL``; ``--level LEVEL=topology.gpu-placement.io/LEVEL``, once for
each from wide to narrow, brings the levels back. Cards are ``nvidia.com/gpu``, time-sliced and MPS cards with replicas
``nvidia.com/gpu.shared`` (the name that ``renameByDefault`` of NVIDIA's device plugin gives, so that nobody who asks
for a card gets a replica), MIG instances ``nvidia.com/mig-PROFILE``, with the labels of gpu-feature-discovery beside
them. Cards that are not well are in the capacity alone.

**Pods** ask in their one container for what a task asks for. A share of a card that is no replica is the annotation
``gpu-fraction`` of KAI. Running tasks are bound pods with the annotations that
`placement.formats.kubernetes.annotations` lists.
A job of several pods is a ``PodGroup`` of ``scheduling.k8s.io/v1alpha2``, and one of several groups a ``Workload`` with
a PodGroup for each, of which an annotation of ours alone says that all have to start; their pods name them in
``spec.schedulingGroup``.

Not carried: what `placement.formats.kubernetes.dump_lost` names, which `lost` does for a snapshot at hand: NUMA zones,
links, NICs, names of cards, limits, reservations, queues, the policy, run times, deadlines, order, affinity, where data
are, isolation, device memory, NUMA policies, preferred levels, slices, nesting of groups, and names that no object of
Kubernetes can have.
"""

from __future__ import annotations

from typing import Any

from placement.collector import collector_paused
from placement.errors import InputError
from placement.formats.kubernetes.dump_lost import lost as lost
from placement.formats.kubernetes.dump_nodes import node_objects, replicas
from placement.formats.kubernetes.dump_pods import Pods
from placement.formats.kubernetes.naming import named
from placement.formats.listed import listed
from placement.formats.tasks import copies
from placement.snapshot import Snapshot


def write(snapshot: Snapshot) -> bytes:
    """Return a snapshot as a List of objects; counted nodes and jobs are written out.

    Parameters
    ----------
    snapshot : Snapshot
        Verified.

    Raises
    ------
    InputError
        If two tasks say that they are one pod.
    """
    with collector_paused():
        nodes = named(name for node in snapshot.nodes for name in copies(node))
        cards = {
            name: tuple(replicas(gpu) for gpu in node.gpus for _ in range(gpu.count))
            for node in snapshot.nodes
            for name in copies(node)
        }
        items: list[dict[str, Any]] = [made for node in snapshot.nodes for made in node_objects(node, nodes)]
        pods = Pods(nodes, cards, snapshot.jobs)
        items.extend(made for job in snapshot.jobs for made in pods.of(job))
        _refuse_twice(items)
        return listed(items)


def _refuse_twice(items: list[dict[str, Any]]) -> None:
    known = set()
    for item in items:
        key = item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]
        if key in known:
            raise InputError.one(
                f"there would be two objects {key[0]} {key[1]}/{key[2]}", "correct the `task_names` of one job"
            )
        known.add(key)
