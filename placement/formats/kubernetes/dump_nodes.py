"""Nodes of a snapshot as Node objects, with the labels by which gpu-feature-discovery describes cards."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from placement.formats.kubernetes.annotations import PREFIX
from placement.formats.kubernetes.naming import is_key, is_label
from placement.formats.tasks import copies
from placement.snapshot import Gpu, Node
from placement.units import Quantity, exact

CARDS = "nvidia.com/gpu"
SHARES = "nvidia.com/gpu.shared"
"""Replicas of shared cards, under the name that they have with ``renameByDefault``: who asks for it gets no whole card
of another node, and who asks for a card no replica."""

LEVEL = f"topology.{PREFIX}/"
"""Before the name of a level: the label that says the domain of a node."""


def slices(profile: str) -> str:
    """Return the resource that instances of a MIG profile are in the mixed strategy."""
    return f"nvidia.com/mig-{profile.replace('+', '.')}"


def turns(profile: str) -> str:
    """Return the resource that shares of instances of a MIG profile are."""
    return f"{slices(profile)}.shared"


def text(quantity: Quantity) -> str:
    """Return a quantity as the API writes it."""
    return quantity if isinstance(quantity, str) else repr(quantity)


def replicas(gpu: Gpu) -> int:
    """Return how many units a card is; 1 where it is not shared by counted replicas."""
    return gpu.replicas or 1 if gpu.sharing in ("time_slicing", "mps") and not gpu.mig_enabled else 1


def label_of(level: str) -> str:
    """Return the label that says the domains of a level."""
    return "kubernetes.io/hostname" if level == "node" else f"{LEVEL}{level}"


def node_objects(node: Node, names: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Yield a Node object for each node that an entry stands for."""
    labels, capacity, allocatable = _labels(node), _amounts(node, True), _amounts(node, False)
    taints = [
        {"key": taint.key, **({"value": taint.value} if taint.value else {}), "effect": taint.effect}
        for taint in node.taints
        if is_key(taint.key) and is_label(taint.value)
    ]
    for each in copies(node):
        name = names[each]
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
            "spec": {
                **({"unschedulable": True} if node.cordoned else {}),
                **({"taints": taints} if taints else {}),
            },
            "status": {
                "capacity": capacity,
                "allocatable": allocatable,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }


def _amounts(node: Node, broken: bool) -> dict[str, str]:
    """Return the amounts of a node, with or without those of broken cards."""
    amounts: dict[str, str] = {}
    for name, quantity in (("cpu", node.cpu), ("memory", node.memory), ("pods", node.pods)):
        if quantity is not None:
            amounts[name] = text(quantity)
    amounts |= {name: text(quantity) for name, quantity in node.extended.items() if is_key(name)}
    units: Counter[str] = Counter()
    for gpu in node.gpus:
        count = gpu.count if broken or gpu.health == "healthy" else 0
        if gpu.mig_enabled:
            for instance in gpu.mig_layout:
                units[slices(instance.profile)] += count
        elif gpu.mig_instance and replicas(gpu) > 1:
            units[turns(gpu.mig_instance)] += count * replicas(gpu)
        else:
            units[SHARES if replicas(gpu) > 1 else CARDS] += count * replicas(gpu)
    return amounts | {name: str(count) for name, count in units.items()}


def _labels(node: Node) -> dict[str, str]:
    labels: dict[str, str] = {}
    if node.gpus:
        labels |= _card_labels(node)
    if node.driver:
        labels["nvidia.com/cuda.driver-version.full"] = node.driver
    if node.cuda:
        labels["nvidia.com/cuda.runtime-version.full"] = node.cuda
    labels |= {label_of(level): domain for level, domain in node.domains.items() if is_label(domain)}
    # what the snapshot itself calls a label is what tasks select by
    return labels | {key: value for key, value in node.labels.items() if is_key(key) and is_label(value)}


def _card_labels(node: Node) -> dict[str, str]:
    """Return what gpu-feature-discovery says of the cards of a node: one model, one way of sharing."""
    gpu = next((each for each in node.gpus if not each.mig_instance), node.gpus[0])
    shared = replicas(gpu) > 1 and not gpu.mig_instance
    labels = {
        "nvidia.com/gpu.product": product(gpu.model),
        "nvidia.com/gpu.count": str(sum(each.count for each in node.gpus if not each.mig_instance)),
        "nvidia.com/gpu.replicas": str(replicas(gpu) if shared else 1),
        "nvidia.com/gpu.sharing-strategy": gpu.sharing.replace("_", "-") if shared else "none",
    }
    if gpu.memory is not None:
        labels["nvidia.com/gpu.memory"] = str(math.floor(exact(gpu.memory) / 2**20))
    major, dot, minor = gpu.compute_capability.partition(".")
    if dot:
        labels |= {"nvidia.com/gpu.compute.major": major, "nvidia.com/gpu.compute.minor": minor}
    counts: Counter[str] = Counter()
    for each in node.gpus:
        if each.mig_instance and replicas(each) > 1:
            name = slices(each.mig_instance)
            counts[name] += each.count
            labels[f"{name}.replicas"] = str(replicas(each))
            labels[f"{name}.sharing-strategy"] = each.sharing.replace("_", "-")
    if any(each.mig_enabled for each in node.gpus):
        labels |= {"nvidia.com/mig.capable": "true", "nvidia.com/mig.strategy": "mixed"}
        for each in node.gpus:
            for instance in each.mig_layout:
                counts[slices(instance.profile)] += each.count
    return labels | {f"{name}.count": str(count) for name, count in counts.items()}


def product(model: str) -> str:
    """Return a model as the label says it: dashes for what a label does not take, such as blanks."""
    return re.sub(r"[^A-Za-z0-9_.]+", "-", model)[:63].strip("-_.")
