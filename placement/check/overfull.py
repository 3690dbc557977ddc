"""What running work overfills today; reported, never refused, and new work may not make it worse."""

from __future__ import annotations

from collections.abc import Iterator

from placement.check.capacity import amount, label
from placement.check.facts import GPU_MEMORY, GPUS, Facts, facts_of
from placement.check.limits import name
from placement.check.load import Load, NodeLoad
from placement.check.violation import decimal, show
from placement.snapshot import Snapshot


def overfull(snapshot: Snapshot) -> list[str]:
    """Return one line for each node resource, card and cap that running work alone exceeds.

    Parameters
    ----------
    snapshot : Snapshot
        Valid, with every field honoured.

    Returns
    -------
    list of str
        Such as ``"n-3 gpu 1: shares add up to 1.25, at most 1"``; nodes in the order of the snapshot, then caps.
    """
    facts = facts_of(snapshot)
    load = Load(facts)
    found: list[str] = []
    for node in sorted(load.nodes.values(), key=lambda node: facts.node_names.find(node.name) or (0, 0)):
        found += _resources(facts, node)
        found += _cards(facts, node)
    for index, caps in enumerate(facts.caps):
        for resource, cap in caps.items():
            taken = load.running[index].get(resource, 0)
            if taken > cap:
                text = f"adds up to {amount(facts, resource, taken)}, at most {amount(facts, resource, cap)}"
                found.append(f"{name(snapshot.limits[index])}: {label(resource)} in use {text}")
    return found


def _resources(facts: Facts, node: NodeLoad) -> Iterator[str]:
    for resource, taken in node.running.demand.items():
        capacity = node.fact.capacity.get(resource, 0)
        if capacity is not None and taken > capacity:
            text = f"adds up to {amount(facts, resource, taken)}, at most {amount(facts, resource, capacity)}"
            yield f"{show(node.name)}: {label(resource)} {text}"


def _cards(facts: Facts, node: NodeLoad) -> Iterator[str]:
    for device in sorted(node.running.share):
        where = f"{show(node.name)} gpu {device}"
        share = node.running.share[device]
        if share > facts.scale[GPUS]:
            yield f"{where}: shares add up to {decimal(facts.base(GPUS, share))}, at most 1"
        needed, memory = node.running.memory[device], node.card(device).memory
        if memory is not None and needed > memory:
            text = f"{amount(facts, GPU_MEMORY, needed)} of memory, at most {amount(facts, GPU_MEMORY, memory)}"
            yield f"{where}: tasks need {text}"
