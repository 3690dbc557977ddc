"""Topologies of KAI: which node labels say the levels, and what a constraint asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from placement.formats.kai.records import KAI, KUEUE, Constraint, KaiTopology
from placement.formats.kubernetes.objects import Item, Meta, Objects
from placement.formats.kubernetes.parts import Level
from placement.formats.kubernetes.peers import by_name, wrong
from placement.formats.ledger import Ledger
from placement.snapshot import Slice, Topology
from placement.snapshot.report import show

HOST = "kubernetes.io/hostname"
TOPOLOGY = "kai.scheduler/topology"
REQUIRED = "kai.scheduler/topology-required-placement"
PREFERRED = "kai.scheduler/topology-preferred-placement"
SEGMENT = "kai.scheduler/segment-size"
SEGMENT_REQUIRED = "kai.scheduler/segment-topology-required-placement"
SEGMENT_PREFERRED = "kai.scheduler/segment-topology-preferred-placement"


@dataclass(frozen=True, slots=True)
class Levels:
    """Levels by topology.

    Attributes
    ----------
    levels : tuple of Level
        From wide to narrow; each is called as the node label that says it.
    known : mapping of str to (mapping of str to str)
        Level by what it may be called, by topology; from wide to narrow.
    """

    levels: tuple[Level, ...]
    known: Mapping[str, Mapping[str, str]]

    def rules(self, wanted: Constraint | None, ledger: Ledger, where: str) -> Topology | None:
        """Return what a constraint asks for."""
        if wanted is None or not (wanted.required_topology_level or wanted.preferred_topology_level):
            return None
        required = self._level(wanted.topology, wanted.required_topology_level, ledger, where)
        preferred = self._level(wanted.topology, wanted.preferred_topology_level, ledger, where)
        if required and preferred and self.wider(preferred, required):
            ledger.contradiction("a preferred level that is wider than the required one", "the required one", where)
            preferred = ""
        return Topology(required=required, preferred=preferred) if required or preferred else None

    def wider(self, one: str, other: str) -> bool:
        """Return whether a level is wider than another."""
        order = [*(level.name for level in self.levels), "node"]
        return order.index(one) < order.index(other)

    def segments(self, meta: Meta, asked: Constraint | None, ledger: Ledger, where: str) -> Slice | None:
        """Return the segments that annotations ask for."""
        notes = meta.annotations or {}
        text = notes.get(SEGMENT)
        if text is None:
            return None
        topology = notes.get(TOPOLOGY) or (asked.topology if asked else "")
        level = self._level(topology, notes.get(SEGMENT_REQUIRED, ""), ledger, where)
        if not (text.isascii() and text.isdigit() and int(text[:9]) > 0 and len(text) < 9):
            ledger.contradiction("a segment size that is no number", "there are no segments", where)
        elif level:
            return Slice(level=level, sizes=(int(text),))
        elif notes.get(SEGMENT_PREFERRED):
            ledger.ignored("segments that are preferred to lie together", "it is a preference", where)
        return None

    def _level(self, topology: str, name: str, ledger: Ledger, where: str) -> str:
        if not name:
            return ""
        found = self.known.get(topology, {}).get(name)
        if found is None and not topology and len(self.known) == 1:
            found = next(iter(self.known.values())).get(name)
        if found is None:
            why = "no Topology has it, so nothing says what is near what"
            ledger.unsupported("a level of the topology that is not there", why, where)
        return found or ""


def read(objects: Objects, ledger: Ledger) -> Levels:
    """Return the levels of all topologies in one order, wide before narrow.

    Older releases took the Topology objects of Kueue.

    Raises
    ------
    InputError
        If a topology lists a level twice.
    """
    found = dict(by_name(objects.of(KUEUE, "Topology", KaiTopology), lambda meta: meta.name))
    own = by_name(objects.of(KAI, "Topology", KaiTopology), lambda meta: meta.name)
    if own:
        ledger.read("topologies", count=len(own))
    order: list[str] = []
    known: dict[str, dict[str, str]] = {}
    for name, item in (found | own).items():
        names: dict[str, str] = {}
        for index, level in enumerate(item.value.spec.levels or ()):
            if not level.node_label:
                raise wrong(item, "the level has no label", "give `nodeLabel`", f"spec.levels[{index}]")
            if level.node_label in names:
                what = f"the level {show(level.node_label)} is listed twice"
                raise wrong(item, what, "keep it once", f"spec.levels[{index}]")
            names[level.node_label] = "node" if level.node_label == HOST else level.node_label
        labels = [label for label in names if label != HOST]
        if name in own:
            _merge(order, labels, item, ledger)
        for level in item.value.spec.levels or ():
            if level.alias:
                names.setdefault(level.alias, names[level.node_label])
        known[name] = names
    if not own:
        # what Kueue's reader lists, in the same order
        for item in found.values():
            _merge(
                order, [one.node_label for one in item.value.spec.levels or () if one.node_label != HOST], item, ledger
            )
    return Levels(tuple(Level(label, label) for label in order), known)


def _merge(order: list[str], labels: Sequence[str], item: Item[KaiTopology], ledger: Ledger) -> None:
    """Put labels into an order of labels, each new one before the next that is there."""
    there = [order.index(label) for label in labels if label in order]
    if there != sorted(there):
        ledger.contradiction("levels in another order than in another topology", "the first", item.where)
    at = len(order)
    for label in reversed(labels):
        if label in order:
            at = order.index(label)
        else:
            order.insert(at, label)
