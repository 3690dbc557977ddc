"""Whether a task fits beside others where tasks are bound to NUMA zones, from the definition, for every test that asks.

Import it as ``zoned_room``. It knows of an instance what is in its classes and works everything out anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from placement.instance import Instance

Placed = tuple[int, int, tuple[int, ...]]
"""Shape, node, and positions of cards and zones."""


def zones_of(instance: Instance, positions: tuple[int, ...]) -> set[int]:
    return {position - instance.widest for position in positions if position >= instance.widest}


def fits_beside(instance: Instance, placed: list[Placed], new: Placed) -> bool:
    """Return whether a task fits beside others, from the definition: node, cards, zones, and every set of zones."""
    shape, node, positions = new
    node_class = instance.classes[instance.node_class[node]]
    here = [(one, where) for one, at, where in placed if at == node]
    task = instance.shapes[shape]
    cards = [position for position in positions if position < instance.widest]
    for resource, free in enumerate(node_class.free):
        taken = sum(instance.shapes[one].demand[resource] for one, _ in here)
        if taken + task.demand[resource] > free:
            return False
    if len(set(cards)) != task.gpus:
        return False
    for card in cards:
        kind, units, memory = node_class.cards[card]
        others = [instance.shapes[one] for one, where in here if card in where]
        if not instance.admits_card[shape, kind] or sum(o.units for o in others) + task.units > units:
            return False
        if task.memory and sum(o.memory for o in others) + task.memory > memory:
            return False
    bound = int(instance.bound[shape, instance.node_class[node]])
    mine = zones_of(instance, positions)
    if len(mine) != bound:
        return False
    if not bound:
        return True
    zones = node_class.zones
    assert zones is not None
    if max(mine) >= zones.count or any(zones.card[card] not in mine for card in cards):
        return False
    for number, bits in enumerate(instance.zone_sets):
        inside = {zone for zone in range(zones.count) if bits >> zone & 1}
        if mine <= inside:
            loads = [
                instance.shapes[one].demand
                for one, where in [*here, (shape, positions)]
                if is_inside(where, inside, instance)
            ]
            for resource, slack in enumerate(zones.slack[number]):
                if task.demand[resource] and sum(load[resource] for load in loads) > slack:
                    return False
    return True


def is_inside(where: tuple[int, ...], inside: set[int], instance: Instance) -> bool:
    zones = zones_of(instance, where)
    return bool(zones) and zones <= inside


def all_spots(instance: Instance, shape: int, node: int) -> Iterator[tuple[int, ...]]:
    """Yield every choice of cards and zones there is on a node."""
    node_class = instance.classes[instance.node_class[node]]
    bound = int(instance.bound[shape, instance.node_class[node]])
    count = node_class.zones.count if node_class.zones is not None else 0
    for cards in combinations(range(len(node_class.cards)), instance.shapes[shape].gpus):
        for zones in combinations(range(count), bound):
            yield (*cards, *(instance.widest + zone for zone in zones))
