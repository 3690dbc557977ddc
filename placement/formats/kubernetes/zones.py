"""NodeResourceTopology: the NUMA zones of nodes.

The API: https://github.com/k8stopologyawareschedwg/noderesourcetopology-api (v1alpha1 and v1alpha2, which differ in
where the policy of the kubelet is written).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction

import msgspec

from placement.errors import InputError
from placement.formats.kubernetes.objects import Item, Meta, Objects
from placement.formats.kubernetes.parts import Zones
from placement.formats.ledger import Ledger
from placement.snapshot import NumaZone
from placement.snapshot.fields import MOST_CARDS, MOST_ZONES
from placement.units import Quantity, exact

GROUP = "topology.node.k8s.io"

CARDS = ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe", "habana.ai/gaudi")
"""Resources of which a unit is a whole card."""

_POLICIES = (
    ("SingleNUMANode", "single-numa-node"),
    ("Restricted", "restricted"),
    ("BestEffort", "best-effort"),
    ("None", "none"),
)
"""Beginnings of the names in ``topologyPolicies``, and the policy of the kubelet that each stands for."""


class _Amounts(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    capacity: Quantity | None = None
    allocatable: Quantity | None = None
    available: Quantity | None = None


class _Named(msgspec.Struct, gc=False):
    name: str = ""
    value: str | int | None = None


class _Zone(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    type: str = ""
    costs: list[_Named] | None = None
    resources: list[_Amounts] | None = None


class _Topology(msgspec.Struct, rename="camel", gc=False):
    metadata: Meta = msgspec.field(default_factory=Meta)
    topology_policies: list[str] | None = None
    attributes: list[_Named] | None = None
    zones: list[_Zone] | None = None


def read(objects: Objects, ledger: Ledger) -> Mapping[str, Zones]:
    """Return what the objects say of zones, by node.

    Raises
    ------
    InputError
        If an amount is none.
    """
    found: dict[str, Zones] = {}
    for item in objects.of(GROUP, "NodeResourceTopology", _Topology):
        name = item.value.metadata.name
        if not name:
            raise _error(item, "the object has no name, which says the node", "dump it again", "metadata.name")
        if name in found:
            ledger.contradiction("several NodeResourceTopology objects of one node", "the first", item.where)
            continue
        zones = _zones(item, ledger)
        if zones is not None:
            found[name] = zones
            ledger.read("NUMA zones of a node", item.where)
    return found


def _error(item: Item[_Topology], what: str, remedy: str, path: str) -> InputError:
    return InputError.one(what, remedy, path=f"{item.path}.{path}".removeprefix("."), source=item.file)


def _zones(item: Item[_Topology], ledger: Ledger) -> Zones | None:
    policy = _policy(item.value, item.where, ledger)
    listed = item.value.zones or []
    kept = [(index, zone) for index, zone in enumerate(listed) if zone.type in ("Node", "")]
    if len(kept) < len(listed):
        ledger.ignored("zones that are no NUMA nodes", "a task is bound to NUMA nodes alone", item.where)
    amounts = {index: _amounts(item, index, zone) for index, zone in kept}
    # memory of a card is a zone for the operating system, and has no CPUs
    with_cpu = [(index, zone) for index, zone in kept if _worth(amounts[index].get("cpu"))]
    without = [index for index, _ in kept if not _worth(amounts[index].get("cpu"))] if with_cpu else []
    if without:
        ledger.ignored("NUMA zones without CPU", "they are memory alone", item.where)
        kept = with_cpu
    if not kept:
        ledger.ignored("NodeResourceTopology without zones", "it says nothing", item.where)
        return None
    if len(kept) > MOST_ZONES:
        ledger.unsupported("NUMA zones of a node", f"there are more than {MOST_ZONES}", item.where)
        return None
    _note_costs(kept, item.where, ledger)
    _note_others([amounts[index] for index, _ in kept], policy, item.where, ledger)
    cards = _cards(item, amounts, [index for index, _ in kept], without, ledger)
    ids = _ids([zone.name for _, zone in kept], item.where, ledger)
    stated = {key: all(key in amounts[index] for index, _ in kept) for key in ("cpu", "memory")}
    for key, everywhere in stated.items():
        if not everywhere and any(key in amounts[index] for index, _ in kept):
            ledger.ignored(f"{key} of NUMA zones", "not every zone of the node says it", item.where)
    return Zones(
        zones=tuple(
            NumaZone(
                id=number,
                cpu=amounts[index]["cpu"] if stated["cpu"] else None,
                memory=amounts[index]["memory"] if stated["memory"] else None,
            )
            for number, (index, _) in zip(ids, kept, strict=True)
        ),
        cards=cards,
        policy=policy,
    )


def _worth(amount: Quantity | None) -> Fraction:
    return Fraction(0) if amount is None else exact(amount)


def _amounts(item: Item[_Topology], index: int, zone: _Zone) -> dict[str, Quantity]:
    """Return what a zone has of each resource: what pods may use, whether or not they do.

    Of cards that is their number, with those that are broken.
    """
    found: dict[str, Quantity] = {}
    for position, resource in enumerate(zone.resources or ()):
        amounts = (resource.allocatable, resource.capacity, resource.available)
        if resource.name in CARDS:
            amounts = (resource.capacity, resource.allocatable, resource.available)
        amount = next((one for one in amounts if one is not None), None)
        path = f"zones[{index}].resources[{position}]"
        if amount is None:
            continue
        if resource.name in found:
            raise _error(item, "the zone lists the resource twice", "keep it once", path)
        try:
            exact(amount)
        except ValueError as why:
            raise _error(item, f"{why}, expected an amount", "correct it", path) from None
        found[resource.name] = amount
    return found


def _policy(topology: _Topology, where: str, ledger: Ledger) -> str:
    """Return the policy of the kubelet; the attributes are newer than the list."""
    said = {one.name: str(one.value or "") for one in topology.attributes or ()}
    old = topology.topology_policies or [""]
    scope = said.get("topologyManagerScope", "")
    if scope == "container" or (not scope and old[0].endswith("ContainerLevel")):
        ledger.ignored("scope of the topology manager", "a pod is aligned as a whole, which is no less strict", where)
    listed = next((policy for start, policy in _POLICIES if old[0].startswith(start)), "")
    policy = said.get("topologyManagerPolicy", "")
    known = {one for _, one in _POLICIES}
    if policy and listed and policy != listed:
        ledger.contradiction("policy of the topology manager", "the attribute", where)
    if (policy or old[0]) and policy not in known and not listed:
        ledger.unsupported("policy of the topology manager", "it is none of the four that there are", where)
    return policy if policy in known else listed


def _ids(names: Sequence[str], where: str, ledger: Ledger) -> list[int]:
    """Return the numbers of zones: those that their names end with."""
    ends = [re.search(r"([0-9]{1,6})$", name) for name in names]
    ids = [int(end[1]) for end in ends if end is not None]
    if len(set(ids)) == len(names):
        return ids
    ledger.assumed("numbers of NUMA zones", "counted from 0, for their names do not say them", where)
    return list(range(len(names)))


def _cards(
    item: Item[_Topology],
    amounts: Mapping[int, Mapping[str, Quantity]],
    kept: Sequence[int],
    without: Sequence[int],
    ledger: Ledger,
) -> tuple[int, ...]:
    resource = next((name for name in CARDS if any(name in amounts[index] for index in kept)), None)
    if any(_worth(amounts[index].get(name)) for index in without for name in CARDS):
        ledger.contradiction(
            "cards in a NUMA zone without CPU", "none: which zone cards are in is left open", item.where
        )
        return ()
    if resource is None:
        return ()
    found = [_worth(amounts[index].get(resource)) for index in kept]
    if any(one.denominator != 1 or one > MOST_CARDS for one in found):
        what = f"a zone has {resource} in fractions, or more than {MOST_CARDS}"
        raise _error(item, what, "give whole cards", "zones")
    return tuple(map(int, found))


def _note_costs(kept: Sequence[tuple[int, _Zone]], where: str, ledger: Ledger) -> None:
    """Note distances, and those that differ by direction: they are not mirrored, for they are not used."""
    costs = {(zone.name, cost.name): cost.value for _, zone in kept for cost in zone.costs or ()}
    if not costs:
        return
    if any(costs.get((other, one), value) != value for (one, other), value in costs.items()):
        ledger.contradiction("distance of NUMA zones that differs by direction", "neither: none is used", where)
    ledger.ignored("distances of NUMA zones", "a task is in one zone, or in any of them", where)


def _note_others(amounts: Sequence[Mapping[str, Quantity]], policy: str, where: str, ledger: Ledger) -> None:
    """Note other resources by zone: a snapshot has them for the whole node."""
    names = {name for one in amounts for name, amount in one.items() if _worth(amount)}
    if names <= {"cpu", "memory", "pods", "ephemeral-storage", *CARDS}:
        return
    what, why = "other resources by NUMA zone", "they are the node's as a whole"
    if policy in ("restricted", "single-numa-node"):
        ledger.unsupported(what, why, where)
    else:
        ledger.ignored(what, why, where)
