"""Flavours: kinds of nodes, and what pods of a queue need to run on them.

A queue hands out each resource in one or more flavours. Kueue picks one for a pod set and then adds its node labels
and tolerations to the pods. Where only one is possible, that is done here; where several are, pods may use the nodes of
any.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from placement.formats.kubernetes.objects import Objects
from placement.formats.kubernetes.pod import PodSpec, PodToleration
from placement.formats.kueue.levels import HOST, Levels, RefusedError
from placement.formats.kueue.records import GROUP, FlavorSpec, NodeObject, NodeTaint, ResourceFlavor
from placement.formats.ledger import Ledger

MOST_TERMS = 256
"""Most alternatives among nodes that a pod is given."""

Covered = tuple[frozenset[str], tuple[str, ...]]
"""Resources, and the flavours that they come in."""


@dataclass(frozen=True, slots=True)
class Flavours:
    """Flavours, and the resources that queues hand out in them.

    Attributes
    ----------
    specs : mapping of str to FlavorSpec
        By name.
    covered : mapping of str to tuple of Covered
        By queue.
    gaps : mapping of str to tuple of str
        By flavour with a Topology, labels of levels that some of its nodes do not have. Kueue does not use such nodes.
    """

    specs: Mapping[str, FlavorSpec] = field(default_factory=dict)
    covered: Mapping[str, tuple[Covered, ...]] = field(default_factory=dict)
    gaps: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def adjusted(self, spec: PodSpec, queue: str, ledger: Ledger, where: str) -> PodSpec:
        """Return what a pod asks for in a queue, with what its flavours add.

        Raises
        ------
        RefusedError
            If no flavour of the queue suits it.
        """
        asked = frozenset(_resources(spec))
        for covered, names in self.covered.get(queue, ()):
            if not (asked | {"pods"}) & covered:
                continue
            possible = [name for name in names if name in self.specs and _suits(self.specs[name], spec)]
            if not possible:
                raise RefusedError(
                    "pods that no flavour of their queue suits",
                    "the workload is left out: Kueue does not admit it",
                )
            if len(possible) == 1:
                spec = _one(spec, self.specs[possible[0]], self.gaps.get(possible[0], ()))
            else:
                spec = _several(spec, [self.specs[name] for name in possible], ledger, where)
        return spec


def read(objects: Objects, ledger: Ledger) -> Mapping[str, FlavorSpec]:
    """Return the flavours by name."""
    found: dict[str, FlavorSpec] = {}
    for item in objects.of(GROUP, "ResourceFlavor", ResourceFlavor):
        name = item.value.metadata.name
        if name in found:
            ledger.contradiction("an object that is given twice", "the first one", item.where)
            continue
        found[name] = item.value.spec or FlavorSpec()
        ledger.read("flavours", item.where)
    return found


def gaps(
    objects: Objects, specs: Mapping[str, FlavorSpec], levels: Levels, ledger: Ledger
) -> dict[str, tuple[str, ...]]:
    """Return the labels of levels that some nodes of flavours do not have, and note these nodes."""
    labels = [label for label in levels.name_of if label != HOST] if levels.stated else []
    missing: dict[str, set[str]] = {name: set() for name, spec in specs.items() if spec.topology_name}
    for item in objects.of("", "Node", NodeObject):
        own = item.value.metadata.labels or {}
        lacks = [label for label in labels if label not in own]
        for name, found in missing.items() if lacks else ():
            if all(own.get(key) == value for key, value in (specs[name].node_labels or {}).items()):
                found.update(lacks)
                ledger.ignored(
                    f"nodes without the label {lacks[0]}", "workloads of their flavour do not use them", item.where
                )
    return {name: tuple(label for label in labels if label in found) for name, found in missing.items()}


def _resources(spec: PodSpec) -> Iterator[str]:
    for container in (*(spec.containers or ()), *(spec.init_containers or ())):
        if container.resources is not None:
            yield from container.resources.requests or ()
            yield from container.resources.limits or ()
    if spec.resources is not None:
        yield from spec.resources.requests or ()


def _suits(flavour: FlavorSpec, spec: PodSpec) -> bool:
    """Return whether a pod may get a flavour: its selector does not contradict it, and it tolerates its taints."""
    selected, labels = spec.node_selector or {}, flavour.node_labels or {}
    if any(selected.get(key, value) != value for key, value in labels.items()):
        return False
    tolerations = (*(spec.tolerations or ()), *(flavour.tolerations or ()))
    taints = [taint for taint in flavour.node_taints or () if taint.effect in ("NoSchedule", "NoExecute")]
    return all(any(_tolerates(toleration, taint) for toleration in tolerations) for taint in taints)


def _tolerates(toleration: PodToleration, taint: NodeTaint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return bool(toleration.key) and (toleration.value or "") == (taint.value or "")


def _one(spec: PodSpec, flavour: FlavorSpec, gaps: Sequence[str]) -> PodSpec:
    there = [{"key": label, "operator": "Exists"} for label in gaps]
    return msgspec.structs.replace(
        spec,
        node_selector={**(spec.node_selector or {}), **(flavour.node_labels or {})},
        affinity=_narrowed(spec.affinity, [{"matchExpressions": there}]) if there else spec.affinity,
        tolerations=[*(spec.tolerations or ()), *(flavour.tolerations or ())],
    )


def _several(spec: PodSpec, possible: Sequence[FlavorSpec], ledger: Ledger, where: str) -> PodSpec:
    """Return a pod that may run on the nodes of any of several flavours."""
    ledger.unsupported("a choice among several flavours", "pods of a pod set may get different ones", where)
    labels = [flavour.node_labels or {} for flavour in possible]
    tolerations = [list(flavour.tolerations or ()) for flavour in possible]
    if not all(labels):
        # any node will do for the flavour without labels, which does not let pods on the tainted nodes of the others
        kept = [t for t in tolerations[0] if all(t in others for others in tolerations)]
        return msgspec.structs.replace(spec, tolerations=[*(spec.tolerations or ()), *kept])
    terms = [
        {"matchExpressions": [{"key": k, "operator": "In", "values": [v]} for k, v in sorted(label.items())]}
        for label in labels
    ]
    return msgspec.structs.replace(
        spec,
        affinity=_narrowed(spec.affinity, terms),
        tolerations=[*(spec.tolerations or ()), *(t for several in tolerations for t in several)],
    )


def _narrowed(affinity: dict[str, Any] | None, terms: list[dict[str, Any]]) -> dict[str, Any]:
    """Return an affinity with which a node suits one of its own terms, and one of these."""
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    whole = dict(affinity or {})
    to_nodes = whole.get("nodeAffinity")
    to_nodes = dict(to_nodes) if isinstance(to_nodes, dict) else {}
    selector = to_nodes.get(required)
    own = selector.get("nodeSelectorTerms") if isinstance(selector, dict) else None
    own = [term for term in own if isinstance(term, dict)] if isinstance(own, list) else []
    if own and len(own) * len(terms) <= MOST_TERMS:
        terms = [{key: [*_list(a, key), *_list(b, key)] for key in {**a, **b}} for a in own for b in terms]
    elif own:
        terms = own
    to_nodes[required] = {"nodeSelectorTerms": terms}
    return {**whole, "nodeAffinity": to_nodes}


def _list(term: dict[str, Any], key: str) -> list[Any]:
    found = term.get(key)
    return found if isinstance(found, list) else []
