"""Node objects: what a node has, its cards, and where it is.

The API: https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/node-v1/
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from placement.errors import InputError
from placement.formats.dra.slices import NVIDIA
from placement.formats.kubernetes import hami
from placement.formats.kubernetes.amounts import amounts, countable, fields
from placement.formats.kubernetes.device_cards import add_devices, cut_cards, pool_labels
from placement.formats.kubernetes.found import Source
from placement.formats.kubernetes.levels import whereabouts
from placement.formats.kubernetes.mig_pins import MIG, Pin, pins
from placement.formats.kubernetes.node_cards import cards
from placement.formats.kubernetes.node_labels import card_labels
from placement.formats.kubernetes.objects import Item, Meta, Objects
from placement.formats.kubernetes.parts import Addition, Cluster, Device, Devices, Offer, Zones
from placement.formats.kubernetes.zoned import zoned
from placement.formats.ledger import Ledger
from placement.formats.options import Options
from placement.snapshot import Node, Taint
from placement.snapshot.fields import wrong_name
from placement.snapshot.report import show
from placement.units import Quantity


class NodeTaint(msgspec.Struct, gc=False):
    """A taint."""

    key: str = ""
    value: str | None = None
    effect: str | None = None


class NodeSpec(msgspec.Struct, gc=False):
    """What is wanted of a node."""

    unschedulable: bool | None = None
    taints: list[NodeTaint] | None = None


class Condition(msgspec.Struct, gc=False):
    """A condition; that of type ``Ready`` says whether the kubelet works."""

    type: str = ""
    status: str = ""


class NodeStatus(msgspec.Struct, gc=False):
    """What a node reports."""

    capacity: dict[str, Quantity] | None = None
    allocatable: dict[str, Quantity] | None = None
    conditions: list[Condition] | None = None


class NodeObject(msgspec.Struct, gc=False):
    """A node, as the API writes it."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


def read(
    objects: Objects,
    devices: Devices,
    zones: Mapping[str, Zones],
    additions: Sequence[Addition],
    options: Options,
    ledger: Ledger,
) -> Cluster:
    """Return the nodes, and what the resources that pods ask for stand for on them.

    Parameters
    ----------
    objects : Objects
    devices : Devices
        Cards that slices list.
    zones : mapping of str to Zones
        By node.
    additions : sequence of Addition
        Levels of the topology that objects say.
    options : Options
    ledger : Ledger

    Raises
    ------
    InputError
        If a node is not what it has to be, or two have one name.
    """
    items = objects.of("", "Node", NodeObject)
    _judge_names(items)
    place = whereabouts(
        [(item.value.metadata.name, item.value.metadata.labels or {}, item.where) for item in items],
        additions,
        options,
        ledger,
    )
    pinned = pins(objects) if any(_sliced(item.value) for item in items) else {}
    cut = cut_cards(devices.claims.values())
    nodes: list[Node] = []
    offers: dict[str, Mapping[str, Offer]] = {}
    policies: dict[str, str] = {}
    for item, position in zip(items, place.positions, strict=True):
        name = item.value.metadata.name
        mine = zones.get(name)
        node, offers[name] = _node(
            item,
            position,
            mine,
            devices.by_node.get(name, ()),
            devices.drivers.get(name, (NVIDIA, ""))[0],
            cut.get(name, frozenset()),
            pinned.get(name, ()),
            ledger,
        )
        if name in devices.drivers and (more := pool_labels(name, *devices.drivers[name])):
            node = msgspec.structs.replace(node, labels={**node.labels, **more})
        nodes.append(node)
        if mine is not None and mine.policy:
            policies[name] = mine.policy
        ledger.read("nodes", item.where)
    known = {item.value.metadata.name for item in items}
    states = [item.value.status for item in items if item.value.status is not None]
    named = frozenset(name for one in states for side in (one.allocatable, one.capacity) for name in side or ())
    for what, given in (("cards in slices", devices.by_node), ("zones", zones)):
        for name in given:
            if name not in known:
                ledger.ignored(f"{what} of a node that is not in the files", "there is nothing to put them on", name)
    return Cluster(tuple(nodes), place.levels, place.level_of, offers, policies, named)


def _judge_names(items: Sequence[Item[NodeObject]]) -> None:
    first: dict[str, Item[NodeObject]] = {}
    for item in items:
        name = item.value.metadata.name
        path = f"{item.path}.metadata.name".removeprefix(".")
        if what := wrong_name(name):
            raise InputError.one(f"a node: {what}", "name the node", path=path, source=item.file)
        if name in first:
            what = f"the node {show(name)} is in {first[name].where} too"
            raise InputError.one(what, "give each node once, as it is at one moment", path=path, source=item.file)
        first[name] = item
        for key, value in (item.value.metadata.labels or {}).items():
            # a value may be empty
            if what := wrong_name(key) or (value and wrong_name(value)):
                where = f"{item.path}.metadata.labels".removeprefix(".")
                raise InputError.one(f"a label: {what}", "correct the label", path=where, source=item.file)


def _node(
    item: Item[NodeObject],
    position: dict[str, str],
    zones: Zones | None,
    devices: Sequence[Device],
    driver: str,
    cut: set[int] | frozenset[int],
    pinned: tuple[Pin, ...],
    ledger: Ledger,
) -> tuple[Node, Mapping[str, Offer]]:
    meta, status = item.value.metadata, item.value.status or NodeStatus()
    where = item.where
    labels = meta.labels or {}
    there = amounts(item, status.allocatable, status.capacity, ledger)
    known = card_labels(labels, ledger, where)
    source = Source(there, labels, known, hami.shared_cards(item, meta.annotations or {}), ledger, pinned)
    found = cards(source)
    add_devices(source, found, devices, driver, cut)
    if known.count and not found.gpus and not any(name.startswith("nvidia.com/") for name in there.names()):
        ledger.contradiction("cards in the labels of a node that no resource offers", "it has none", where)
    cpu, memory, pods = fields(there, ledger)
    node = Node(
        name=meta.name,
        position=position,
        labels=labels,
        taints=_taints(item, ledger),
        cordoned=_cordoned(item, ledger),
        cpu=cpu,
        memory=memory,
        pods=pods,
        extended=countable(there, frozenset(found.taken), ledger),
        driver=known.driver,
        cuda=known.cuda,
        gpus=tuple(found.gpus),
        zones=zoned(zones, found, cpu, memory, ledger, where) if zones is not None and zones.zones else (),
        devices=tuple(found.devices),
    )
    return node, found.offers


def _sliced(node: NodeObject) -> bool:
    """Return whether a node may offer MIG instances."""
    resources = (node.status.allocatable if node.status is not None else None) or {}
    return any(name.startswith(MIG) for name in resources) or "-MIG-" in (node.metadata.labels or {}).get(
        "nvidia.com/gpu.product", ""
    )


def _cordoned(item: Item[NodeObject], ledger: Ledger) -> bool:
    """Return whether a node takes no new pods: it is cordoned, goes away, or its kubelet is not heard of."""
    spec, status = item.value.spec, item.value.status
    if spec is not None and spec.unschedulable:
        return True
    if item.value.metadata.deletion_timestamp:
        ledger.assumed("a node that is being deleted", "cordoned", item.where)
        return True
    conditions = (status.conditions if status is not None else None) or ()
    if not conditions:
        ledger.assumed("a node without conditions", "it is ready", item.where)
        return False
    ready = [condition.status for condition in conditions if condition.type == "Ready"]
    if ready[-1:] != ["True"]:
        ledger.assumed("a node that is not ready", "cordoned: what runs on it stays, nothing new is placed", item.where)
        return True
    return False


def _taints(item: Item[NodeObject], ledger: Ledger) -> tuple[Taint, ...]:
    spec = item.value.spec
    taints = []
    for index, taint in enumerate((spec.taints if spec is not None else None) or ()):
        path = f"{item.path}.spec.taints[{index}]".removeprefix(".")
        if taint.effect == "PreferNoSchedule":
            ledger.ignored("taints with the effect PreferNoSchedule", "a preference, which forbids nothing", item.where)
            continue
        effect: Literal["NoSchedule", "NoExecute"]
        if taint.effect == "NoSchedule":
            effect = "NoSchedule"
        elif taint.effect == "NoExecute":
            effect = "NoExecute"
        else:
            what = f"found the effect {show(taint.effect)}, expected NoSchedule, NoExecute or PreferNoSchedule"
            raise InputError.one(what, "correct the taint", path=f"{path}.effect", source=item.file)
        if not taint.key:
            raise InputError.one("the taint has no key", "name it", path=f"{path}.key", source=item.file)
        taints.append(Taint(key=taint.key, value=taint.value or "", effect=effect))
    return tuple(taints)
