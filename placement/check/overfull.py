"""What running work overfills today; reported, never refused, and new work may not make it worse."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placement.check import clients, device_memory, tenants
from placement.check.amounts import GPU_MEMORY, GPUS
from placement.check.capacity import amount, exceeds, in_order, label
from placement.check.facts import Facts, facts_of
from placement.check.limits import name
from placement.check.load import Load
from placement.check.uses import nothing
from placement.check.violation import decimal, many, show
from placement.snapshot import Snapshot


def overfull(snapshot: Snapshot) -> list[str]:
    """Return one line for each node resource, card and cap that running work alone exceeds.

    So for each card, node or domain in which running work of tenants is together that are to be kept apart.

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
    load = Load(facts, facts.running, nothing())
    found = sorted([*_resources(facts, load), *_cards(facts, load)])
    lines = [text for *_, text in found]
    for index, caps in enumerate(facts.caps):
        for resource, cap in caps.items():
            taken = load.running.caps[index].get(resource, 0)
            if taken > cap:
                text = f"adds up to {amount(facts, resource, taken)}, at most {amount(facts, resource, cap)}"
                lines.append(f"{name(snapshot.limits[index])}: {label(resource)} in use {text}")
    return [*lines, *tenants.together(facts, load)]


Line = tuple[int, int, bool, int, str]
"""Entry of the node and number within it, whether it is about a card, a number to keep the order, and the text."""


def _resources(facts: Facts, load: Load) -> Iterator[Line]:
    over = {resource: exceeds(load, resource, taken) for resource, taken in load.running.demand.items()}
    for order, (node, resource) in enumerate(in_order(load, load.running, over)):
        capacity = facts.kinds[int(load.kind[node])].capacity.get(resource, 0) or 0
        taken = int(load.running.demand[resource][node])
        text = f"adds up to {amount(facts, resource, taken)}, at most {amount(facts, resource, capacity)}"
        place = int(load.spec[node]), int(load.copy[node])
        yield *place, False, order, f"{show(load.name(node))}: {label(resource)} {text}"


def _cards(facts: Facts, load: Load) -> Iterator[Line]:
    shared, needed = load.running.share > facts.scale[GPUS], device_memory.exceeds(load, load.running.memory)
    tasks, most = clients.on_cards(load, load.running), clients.allowed_on(facts)[load.card]
    for card in np.flatnonzero(shared | needed | (tasks > most)).tolist():
        node_name, device, _, fact = load.where(card)
        node = int(load.card_node[card])
        place = int(load.spec[node]), int(load.copy[node])
        where = f"{show(node_name)} gpu {device}"
        if shared[card]:
            share = decimal(facts.base(GPUS, load.running.share[card]))
            yield *place, True, 3 * card, f"{where}: shares add up to {share}, at most 1"
        if tasks[card] > most[card]:
            yield *place, True, 3 * card + 1, f"{where}: {many(int(tasks[card]), 'task')} on it, at most {most[card]}"
        if needed[card]:
            taken, memory = (amount(facts, GPU_MEMORY, size) for size in (load.running.memory[card], fact.memory or 0))
            yield *place, True, 3 * card + 2, f"{where}: tasks need {taken} of memory, at most {memory}"
