"""Cases of the filter by NUMA resources of Kubernetes' scheduler plug-ins: one pod, one node with zones.

A zone has what is available in it. Devices by number become NICs, huge pages become cards, of a size that divides all
that is asked of them; what the node has beside its zones stays an extended resource. At container scope each container
is a task, and all those of a pod lie on one node; at pod scope there is one task with their sum. Init containers run
one after the other before the others start, so each has a node of its own, like the pod's. As in Kubernetes, CPU,
memory and huge pages are aligned for pods that state CPU and memory and set no limit above them; devices always are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from placement import units
from placement.snapshot import Gpu, Job, Nic, Node, NumaZone, Snapshot, Task, TaskGroup, Topology
from translate.common import Case, InexpressibleError, Translated, source_of

DEVICE = "vendor/nic1"
NAMES = {
    "extended": "namespace/extended",
    "nicResourceName": DEVICE,
    "nicResourceNameNoNUMA": "vendor.com/old-nic-model",
    "hugepages2Mi": "hugepages-2Mi",
}
"""What cases call the resources of a node in their pods."""
PAGES = "hugepages-2Mi"
STEP = "step"

Amounts = dict[str, Fraction]


def translate(case: Case) -> Translated:
    """Return a case as a snapshot.

    Raises
    ------
    InexpressibleError
        If the node has another policy than one zone for each container or pod.
    """
    scope = case["node"]["policies"][0].removeprefix("SingleNUMANode")
    if scope not in ("ContainerLevel", "PodLevel"):
        raise InexpressibleError("jobs.groups.task.numa", f"the policy {scope} is not about one zone")
    pod = case["pod"]
    containers = [_amounts(one["requests"]) for one in pod["containers"]]
    before = [_amounts(one["requests"]) for one in pod.get("init_containers", ())]
    aligned = pod["qos"] == "requests=limits" and all(one.get("cpu") and one.get("memory") for one in containers)
    if scope == "PodLevel":
        containers = [_sum(containers)]
    page = _page([*containers, *before])
    devices = any(DEVICE in one for one in containers)
    nodes = tuple(_node(case["node"], number, page, aligned, devices) for number in range(len(before) + 1))
    inits = [TaskGroup(name=f"init-{number}", task=_task(one, number, page)) for number, one in enumerate(before)]
    mains = tuple(
        TaskGroup(name=f"container-{i}", task=_task(one, len(before), page)) for i, one in enumerate(containers)
    )
    together = TaskGroup(name="pod", groups=mains, topology=Topology(required="node"))
    snapshot = Snapshot(
        source=source_of(case),
        licence=case["source"]["licence"],
        nodes=nodes,
        jobs=(Job(name="pod", groups=(*inits, together)),),
    )
    wanted = len(inits) + len(mains)
    return Translated(snapshot, wanted, wanted * case["expected"]["fit"])


def _amounts(requests: Mapping[str, str]) -> Amounts:
    return {NAMES.get(name, name): units.exact(text) for name, text in requests.items()}


def _sum(containers: Sequence[Amounts]) -> Amounts:
    names = dict.fromkeys(name for one in containers for name in one)
    return {name: sum((one.get(name, Fraction(0)) for one in containers), Fraction(0)) for name in names}


def _page(containers: Sequence[Amounts]) -> int:
    """Return bytes that divide all that is asked of huge pages; where nothing is, more than there are."""
    return math.gcd(*(int(one.get(PAGES, 0)) for one in containers)) or 1 << 60


def _task(amounts: Amounts, step: int, page: int) -> Task:
    inside = {"cpu", "memory", DEVICE, PAGES}
    return Task(
        cpu=_whole(amounts.get("cpu", Fraction(0))),
        memory=_whole(amounts.get("memory", Fraction(0))),
        nics=int(amounts.get(DEVICE, 0)),
        gpus=int(amounts.get(PAGES, 0)) // page,
        extended={name: _whole(amount) for name, amount in amounts.items() if name not in inside and amount},
        node_selector={STEP: str(step)},
        numa="single-numa-node",
    )


def _node(node: Case, step: int, page: int, aligned: bool, devices: bool) -> Node:
    """Return the node of a step.

    Where CPU and memory are not aligned, zones do not count them, nor does the filter; devices that no container asks
    for are left out.
    """
    available = [
        {resource["name"]: units.exact(resource["available"]) for resource in zone["resources"]}
        for zone in node["zones"]
    ]
    zones: list[NumaZone] = []
    cards = 0
    for zone, has in zip(node["zones"], available, strict=True):
        pages = int(has.get(PAGES, 0)) // page
        number = int(zone["name"].removeprefix("node-"))
        nics = tuple(Nic(name=f"nic{number}-{i}") for i in range(int(has.get(DEVICE, 0)) * devices))
        cpu, memory = (_whole(has[name]) if aligned else None for name in ("cpu", "memory"))
        zones.append(NumaZone(id=number, cpu=cpu, memory=memory, gpus=tuple(range(cards, cards + pages)), nics=nics))
        cards += pages
    return Node(
        name=f"{node['name']}-{step}",
        labels={STEP: str(step)},
        extended=dict(node["node_level_only"]),
        gpus=(Gpu(model="hugepages", count=cards),) if cards else (),
        zones=tuple(zones),
        cpu=_whole(sum((has["cpu"] for has in available), Fraction(0))) if aligned else None,
        memory=_whole(sum((has["memory"] for has in available), Fraction(0))) if aligned else None,
    )


def _whole(amount: Fraction) -> int | float:
    return int(amount) if amount.denominator == 1 else float(amount)
