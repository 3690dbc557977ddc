"""The NUMA zones of an instance worked out again from the snapshot, node by node and in fractions.

Import it as ``naive_zones``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations

from check_cases import device_indices
from test_compile_naive import free_of, tasks_of

from placement import units
from placement.instance import ANY, FEWEST, ONE, Instance, NodeClass
from placement.rules import CARD_FILTERS, NODE_FILTERS
from placement.snapshot import Job, Nic, Node, Task

POLICY = {"none": ANY, "best-effort": ANY, "restricted": FEWEST, "single-numa-node": ONE}
Load = tuple[frozenset[int], Fraction]
"""Zones by their place in the file, and what running work takes of a resource within them."""


def amount(task: Task, resource: str) -> Fraction:
    return Fraction(task.nics) if resource == "nics" else units.exact(getattr(task, resource))


def in_zones(node: Node, resource: str) -> list[Fraction] | None:
    """Return what each zone has of a resource, or None where zones do not count it."""
    if resource == "nics":
        return [Fraction(len(zone.nics)) for zone in node.zones]
    stated = [getattr(zone, resource, None) for zone in node.zones]
    return None if None in stated else [units.exact(one) for one in stated]


def subsets(count: int) -> Iterator[frozenset[int]]:
    for size in range(1, count + 1):
        yield from map(frozenset, combinations(range(count), size))


def fewest(job: Job, task: Task, node: Node) -> int | None:
    """Return the fewest zones of the empty node that hold the task."""
    gpus = [gpu for gpu in node.gpus for _ in range(gpu.count)]
    usable = {
        card
        for card, gpu in enumerate(gpus)
        if not any(rule.refusal(rule.task_key(job, task), rule.card_key(gpu, node)) for rule in CARD_FILTERS)
        and (gpu.memory is None or units.exact(gpu.memory) >= units.exact(task.gpu_memory or 0))
    }
    for some in subsets(len(node.zones)):
        there = [in_zones(node, resource) for resource in ("cpu", "memory", "nics")]
        asked = [amount(task, resource) for resource in ("cpu", "memory", "nics")]
        cards = usable & {card for zone in some for card in node.zones[zone].gpus}
        enough = all(
            have is None or sum(have[zone] for zone in some) >= ask for have, ask in zip(there, asked, strict=True)
        )
        if enough and len(cards) >= task.gpus:
            return len(some)
    return None


def loads(instance: Instance, number: int, resource: str) -> Iterator[Load]:
    """Yield what running work takes of a resource of a node in zones that it is known to lie in."""
    node, name = instance.snapshot.nodes[instance.node_spec[number]], instance.node_name(number)
    for job in instance.snapshot.jobs:
        for place in () if job.running is None else job.running.tasks:
            if place.node != name:
                continue
            task = dict(tasks_of(job.groups))[place.group]
            within: frozenset[int] = frozenset()
            if place.zone is not None:
                within = frozenset(i for i, zone in enumerate(node.zones) if zone.id == place.zone)
            elif POLICY[task.numa] != ANY:
                within = frozenset(i for i, zone in enumerate(node.zones) if set(zone.gpus) & set(place.gpus))
            if resource == "nics" and place.nics:
                for nic in place.nics:
                    yield frozenset(i for i, zone in enumerate(node.zones) if Nic(name=nic) in zone.nics), Fraction(1)
            elif within:
                yield within, amount(task, resource)


def held(within: list[Load], capacity: dict[int, Fraction]) -> Fraction:
    """Return how much of some loads zones hold, by pushing flow from loads to zones until no path is left."""
    flow = {(load, zone): Fraction(0) for load, (zones, _) in enumerate(within) for zone in zones}
    left = [size for _, size in within]
    room = dict(capacity)

    def push(load: int, want: Fraction, seen: set[int]) -> Fraction:
        seen.add(load)
        for zone in sorted(within[load][0]):
            if room[zone]:
                part = min(want, room[zone])
                room[zone] -= part
                flow[load, zone] += part
                return part
            for other in range(len(within)):  # it may make way to another zone
                if other not in seen and flow.get((other, zone)):
                    part = push(other, min(want, flow[other, zone]), seen)
                    if part:
                        flow[other, zone] -= part
                        flow[load, zone] += part
                        return part
        return Fraction(0)

    for load in range(len(within)):
        while left[load] and (part := push(load, left[load], set())):
            left[load] -= part
    return sum(flow.values(), Fraction(0))


def slack(instance: Instance, number: int, some: frozenset[int], resource: str, unit: Fraction) -> int | None:
    """Return what tasks bound within some zones of a node may take, or None where zones do not count the resource."""
    there = in_zones(instance.snapshot.nodes[instance.node_spec[number]], resource)
    if there is None:
        return None
    inside = [load for load in loads(instance, number, resource) if load[0] <= some and load[1]]
    capacity = {zone: there[zone] for zone in some}
    return math.floor((sum(capacity.values(), Fraction(0)) - held(inside, capacity)) / unit)


# --- comparisons ----------------------------------------------------------------------------------------------


def assert_bound(instance: Instance) -> None:
    for number in range(instance.jobs):
        job = instance.snapshot.jobs[instance.job_spec[number]]
        leaves = instance.job_classes[instance.job_class[number]].leaves
        for (_, task), leaf in zip(tasks_of(job.groups), leaves, strict=True):
            assert instance.shapes[leaf.shape].numa == POLICY[task.numa]
            for one in range(instance.nodes):
                node, k = instance.snapshot.nodes[instance.node_spec[one]], instance.node_class[one]
                count = fewest(job, task, node)
                bound = 0 if count == len(node.zones) else count
                if POLICY[task.numa] == ONE and (count or 2) > 1:
                    count = bound = None
                if POLICY[task.numa] == ANY:
                    count, bound = 0, 0
                refused = any(rule.refusal(rule.task_key(job, task), rule.node_key(node)) for rule in NODE_FILTERS)
                assert instance.admits_node[leaf.shape, k] == (count is not None and not refused)
                assert instance.bound[leaf.shape, k] == (bound or 0)


def assert_zones(instance: Instance, number: int) -> None:
    k = instance.node_class[number]
    node_class, node = instance.classes[k], instance.snapshot.nodes[instance.node_spec[number]]
    if not instance.bound[:, k].any():
        assert node_class.zones is None
        return
    zones = node_class.zones
    assert zones is not None
    count = len(node.zones)
    assert zones.count == count
    order = instance.node_zones.get(number, tuple(range(count)))
    assert sorted(order) == list(range(count))
    assert list(zones.card) == sorted(zones.card)
    assert_cards(instance, number, node_class)
    for device, zone in zip(device_indices(instance, number), zones.card, strict=True):
        assert device in node.zones[order[zone]].gpus
    for bits, row in zip(instance.zone_sets, zones.slack, strict=True):
        some = frozenset(order[zone] for zone in range(count) if bits >> zone & 1)
        proper = bits >> count == 0 and len(some) < count
        for resource, unit, have in zip(instance.resources, instance.resource_units, row, strict=True):
            want = slack(instance, number, some, resource, unit) if proper and resource != "pods" else None
            if want is None:  # that is no limit
                everything = sum(
                    instance.shapes[leaf.shape].demand[instance.resources.index(resource)] * leaf.count * leaf.copies
                    for job_class in instance.job_classes
                    for leaf in job_class.leaves
                    for _ in job_class.jobs
                )
                assert have >= everything
            else:
                assert have == want, (instance.node_name(number), some, resource)


def assert_cards(instance: Instance, number: int, node_class: NodeClass) -> None:
    _, cards = free_of(instance, number)
    devices = device_indices(instance, number)
    assert sorted(devices) == list(range(len(cards)))
    for device, (kind, free, memory) in zip(devices, node_class.cards, strict=True):
        model, units_left, memory_left = cards[device]
        assert (instance.card_kinds[kind].model, free) == (model, units_left)
        assert memory_left is None or memory <= memory_left


def assert_zoned_right(instance: Instance) -> None:
    """Compare everything that an instance says of zones."""
    assert_bound(instance)
    assert instance.zoned == bool(instance.bound.any())
    if instance.zoned:
        widest = max(c.zones.count for c in instance.classes if c.zones is not None)
        every = list(range(1, (1 << widest) - 1))
        assert list(instance.zone_sets) in (every, [1 << zone for zone in range(widest)])
        assert list(instance.zone_sets) == every or instance.bound.max() == 1
    for number in range(instance.nodes):
        assert_zones(instance, number)
