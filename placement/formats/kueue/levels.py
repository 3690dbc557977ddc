"""Levels of the topology, and what pod sets ask of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from placement.formats.kubernetes.objects import Item, Objects
from placement.formats.kubernetes.parts import Level
from placement.formats.kueue.records import GROUP, Constraint, NodeObject, TopologyObject, TopologyRequest, at, wrong
from placement.formats.ledger import Ledger
from placement.snapshot import Slice, Topology

HOST = "kubernetes.io/hostname"
NODE = "node"

REQUIRED = f"{GROUP}/podset-required-topology"
PREFERRED = f"{GROUP}/podset-preferred-topology"
UNCONSTRAINED = f"{GROUP}/podset-unconstrained-topology"
SLICE_LEVEL = f"{GROUP}/podset-slice-required-topology"
SLICE_SIZE = f"{GROUP}/podset-slice-size"
SLICE_LAYERS = f"{GROUP}/podset-slice-required-topology-constraints"
PODSET_GROUP = f"{GROUP}/podset-group-name"

RESERVED = frozenset({NODE, "cluster"})
"""Names that a level of a snapshot may not have."""

MOST_SIZES = 100_000
"""Most slices that are listed one by one."""


class RefusedError(Exception):
    """Kueue would not admit a workload; it waits, whatever is free.

    Parameters
    ----------
    what, why : str
        For the ledger.
    """

    def __init__(self, what: str, why: str) -> None:
        super().__init__(what, why)
        self.what, self.why = what, why


# --- the levels ----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Levels:
    """The levels of a topology.

    Attributes
    ----------
    name_of : dict of str to str
        Name by label, from wide to narrow; the host name is `NODE`.
    domains : mapping of str to int
        How many values nodes have of a label.
    stated : bool
        Whether a Topology lists the levels; else they are the labels of nodes that workloads name.
    """

    name_of: dict[str, str]
    domains: Mapping[str, int]
    stated: bool = True

    @property
    def levels(self) -> tuple[Level, ...]:
        """Levels above the node at which some node is, from wide to narrow."""
        return tuple(
            Level(name, label) for label, name in self.name_of.items() if label != HOST and self.domains.get(label)
        )

    def rank(self, name: str) -> int:
        """Return the number of a level, from wide to narrow."""
        return list(self.name_of.values()).index(name)

    def name(self, label: str) -> str:
        """Return the name of a level.

        Raises
        ------
        RefusedError
            If no topology has it, or no node is at it.
        """
        if label == HOST:
            return NODE
        if label in self.name_of or not self.stated:
            if not self.domains.get(label):
                raise RefusedError(
                    "a topology level that no node has a label for", "the workload is left out: it fits nowhere"
                )
            if label not in self.name_of:
                self._take(label)
            return self.name_of[label]
        raise RefusedError(
            "a topology level that the Topology does not list", "the workload is left out: Kueue does not admit it"
        )

    def _take(self, label: str) -> None:
        """Add a level; the fewer domains it has, the wider it is."""
        labels = sorted({*self.name_of, label} - {HOST}, key=lambda one: (self.domains[one], one))
        taken = {**self.name_of, label: _name(label, self.name_of.values())}
        self.name_of = {one: taken[one] for one in (*labels, HOST)}


def read(objects: Objects, used: Sequence[str], ledger: Ledger) -> Levels:
    """Return the levels of the topology in use.

    Parameters
    ----------
    objects : Objects
    used : sequence of str
        Names of Topologies by flavours, most wanted first.
    ledger : Ledger
    """
    domains = _domains(objects)
    found = objects.of(GROUP, "Topology", TopologyObject)
    if not found:
        return Levels({HOST: NODE}, domains, stated=False)
    by_name = {item.value.metadata.name: item for item in reversed(found)}
    first = next((by_name[name] for name in used if name in by_name), found[0])
    labels = _labels(first)
    for item in found:
        if _labels(item) != labels:
            ledger.unsupported(
                "a further Topology", "a snapshot has one tree of levels: that of the flavour listed first", item.where
            )
    names: dict[str, str] = {}
    for index, label in enumerate(labels):
        names[label] = _name(label, names.values())
        if label != HOST and domains and label not in domains:
            ledger.contradiction(
                "a level of the Topology, and no node has its label", "the nodes", at(first, f"spec.levels[{index}]")
            )
    ledger.read("levels of the topology", first.where, len(labels))
    return Levels({**names, HOST: NODE}, domains)


def _domains(objects: Objects) -> dict[str, int]:
    """Return how many values nodes have of each label."""
    values: dict[str, set[str]] = {}
    for node in objects.of("", "Node", NodeObject):
        for label, value in (node.value.metadata.labels or {}).items():
            values.setdefault(label, set()).add(value)
    return {label: len(found) for label, found in values.items()}


def _labels(item: Item[TopologyObject]) -> list[str]:
    levels = (item.value.spec.levels if item.value.spec else None) or []
    labels = [level.node_label for level in levels]
    for index, label in enumerate(labels):
        end = f"spec.levels[{index}].nodeLabel"
        if not label.strip() or not label.isprintable():
            raise wrong(item, end, "the label has no name", "name the node label of the level")
        if label in labels[:index]:
            raise wrong(item, end, "the label is that of a wider level already", "list each level once")
        if label == HOST and index + 1 < len(labels):
            raise wrong(item, end, "the host name is not the narrowest level", "list it last")
    return labels


def short(label: str) -> str:
    """Return the last part of a label, without what labels of levels usually begin with.

    Examples
    --------
    >>> short("cloud.provider.com/topology-rack"), short("nvidia.com/gpu.clique")
    ('rack', 'gpu.clique')
    """
    last = label.rpartition("/")[2]
    return last.removeprefix("topology-") or last


def _name(label: str, taken: Collection[str]) -> str:
    """Return a name for a level; the label itself where the short name is taken, numbered where that is."""
    if label == HOST:
        return NODE
    names = (short(label), label, *(f"{label}-{number}" for number in range(2, len(taken) + 4)))
    return next(name for name in names if name and name not in taken and name not in RESERVED)


# --- requests ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Wish:
    """What a pod set asks of the topology, in levels of the snapshot.

    Attributes
    ----------
    place : Topology
        Where the whole of it is.
    parts : tuple of Slice
        What lies together within it.
    group : str
        Name of the pod sets that are placed as one; empty for this one alone.
    """

    place: Topology
    parts: tuple[Slice, ...]
    group: str

    @property
    def topology(self) -> Topology | None:
        """All rules; None if there are none."""
        if self.place == Topology() and not self.parts:
            return None
        return msgspec.structs.replace(self.place, slices=self.parts)


def annotated(annotations: Mapping[str, str] | None) -> TopologyRequest | None:
    """Return what annotations of a pod template ask for; None for nothing.

    Raises
    ------
    RefusedError
        If they are no request.
    """
    given = annotations or {}
    asked = {REQUIRED, PREFERRED, UNCONSTRAINED, SLICE_LEVEL, SLICE_SIZE, SLICE_LAYERS, PODSET_GROUP} & given.keys()
    if not asked:
        return None
    layers = None
    if SLICE_LAYERS in given:
        try:
            layers = msgspec.json.decode(given[SLICE_LAYERS], type=list[Constraint])
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            raise RefusedError("slices that are not a JSON list of topology and size", _REFUSED) from None
    return TopologyRequest(
        required=given.get(REQUIRED),
        preferred=given.get(PREFERRED),
        pod_set_group_name=given.get(PODSET_GROUP),
        pod_set_slice_required_topology=given.get(SLICE_LEVEL),
        pod_set_slice_size=given.get(SLICE_SIZE),
        podset_slice_required_topology_constraints=layers,
    )


_REFUSED = "the workload is left out: Kueue does not admit it"


def wish(request: TopologyRequest | None, count: int, levels: Levels, ledger: Ledger, where: str) -> Wish:
    """Return a request in levels of the snapshot.

    Raises
    ------
    RefusedError
        If Kueue does not admit a workload with such a request.
    """
    if request is None:
        return Wish(Topology(), (), "")
    required = levels.name(request.required) if request.required else ""
    preferred = levels.name(request.preferred) if request.preferred else ""
    if required and preferred and levels.rank(preferred) < levels.rank(required):
        ledger.ignored("a preferred level", "it is wider than the required one", where)
        preferred = ""
    group = request.pod_set_group_name or ""
    layers = _layers(request)
    if count == 1 and group:
        # a leader has the slices of its workers said, which are theirs
        layers = []
    parts = tuple(
        Slice(level=levels.name(layer.topology), sizes=_sizes(layer, count, len(layers), ledger, where))
        for layer in layers
    )
    ranks = [levels.rank(part.level) for part in parts]
    if sorted(set(ranks)) != ranks:
        raise RefusedError("slices that are not from wide to narrow", _REFUSED)
    place = Topology(required=required, preferred=preferred)
    return Wish(place, parts if count > 1 else (), group)


def _layers(request: TopologyRequest) -> Sequence[Constraint]:
    """Return the layers of slices that are asked for."""
    layers = request.podset_slice_required_topology_constraints or ()
    if layers or not request.pod_set_slice_required_topology:
        return layers
    return [Constraint(topology=request.pod_set_slice_required_topology, size=request.pod_set_slice_size)]


def _sizes(layer: Constraint, count: int, layers: int, ledger: Ledger, where: str) -> tuple[int, ...]:
    if layer.sizes:
        if min(layer.sizes) < 1 or sum(layer.sizes) != count:
            raise RefusedError("sizes of slices that do not add up to the pods of the pod set", _REFUSED)
        return tuple(layer.sizes)
    size = layer.size
    if isinstance(size, str):
        size = int(size) if size.isascii() and size.isdigit() and len(size) < 10 else 0
    if size is None or size < 1:
        raise RefusedError("slices without a size", _REFUSED)
    whole, rest = divmod(count, size)
    if not rest:
        return (size,)
    if layers > 1 or whole >= MOST_SIZES:
        raise RefusedError("slices that do not divide the pods of the pod set", _REFUSED)
    ledger.assumed("slices that do not divide the pods of the pod set", "the last one is smaller", where)
    return (*[size] * whole, rest)
