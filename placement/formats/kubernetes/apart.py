"""Pods that must, or must not, share a domain with other pods.

Against pods that run it is exact: the nodes that are left get a label. Among the pods of one gang it becomes the
topology of the gang. Against other pods that wait it cannot be said.

The rules: https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#inter-pod-affinity-and-anti-affinity
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from placement.errors import InputError
from placement.formats.kubernetes.entries import Entry
from placement.formats.kubernetes.labels import Labels
from placement.formats.kubernetes.namespaces import Namespaces
from placement.formats.kubernetes.objects import Item
from placement.formats.kubernetes.parts import Cluster
from placement.formats.kubernetes.pod import Pod
from placement.formats.kubernetes.selection import HOSTNAME, Expression
from placement.formats.ledger import Ledger

_encode = msgspec.msgpack.Encoder().encode
T = TypeVar("T")


class _Selector(msgspec.Struct, rename="camel", gc=False):
    match_labels: dict[str, str] | None = None
    match_expressions: list[Expression] | None = None


class _Term(msgspec.Struct, rename="camel", gc=False):
    topology_key: str = ""
    label_selector: _Selector | None = None
    namespaces: list[str] | None = None
    namespace_selector: _Selector | None = None
    match_label_keys: list[str] | None = None


class _Kind(msgspec.Struct, rename="camel", gc=False):
    required_during_scheduling_ignored_during_execution: list[_Term] | None = None
    preferred_during_scheduling_ignored_during_execution: list[Any] | None = None


class _Affinity(msgspec.Struct, rename="camel", gc=False):
    pod_affinity: _Kind | None = None
    pod_anti_affinity: _Kind | None = None


class _Spread(msgspec.Struct, rename="camel", gc=False):
    when_unsatisfiable: str = "DoNotSchedule"


@dataclass(frozen=True, slots=True)
class _Wish:
    """A term with what it takes from the pod that has it."""

    term: _Term
    namespace: str
    labels: Mapping[str, str]
    namespaces: Namespaces

    def admits(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Return whether a pod is one that the term is about."""
        term = self.term
        if not self._within(namespace):
            return False
        if term.label_selector is None or not _matches(term.label_selector, labels):
            return False
        return all(labels.get(key) == self.labels[key] for key in term.match_label_keys or () if key in self.labels)

    def unsure(self, namespaces: Iterable[str]) -> bool:
        """Return whether it is not known of some namespaces whether the term is about them."""
        chosen = self.term.namespace_selector
        if chosen is None:
            return False
        keys = {*(chosen.match_labels or ()), *(one.key for one in chosen.match_expressions or ())}
        return any(
            not self.namespaces.known(name, keys) for name in namespaces if name not in (self.term.namespaces or ())
        )

    def _within(self, namespace: str) -> bool:
        term, chosen = self.term, self.term.namespace_selector
        if chosen is None:
            return namespace in (term.namespaces or (self.namespace,))
        if namespace in (term.namespaces or ()) or self.unsure((namespace,)):
            return True
        return _matches(chosen, self.namespaces.labels(namespace))


@dataclass(slots=True)
class _Terms:
    """What pods of one kind ask of their neighbours."""

    near: list[_Wish] = field(default_factory=list)
    far: list[_Wish] = field(default_factory=list)
    preferred: bool = False


class Apart:
    """Knows the running pods and what they ask of their neighbours.

    Parameters
    ----------
    cluster : Cluster
    labels : Labels
    namespaces : Namespaces
    ledger : Ledger
    """

    def __init__(self, cluster: Cluster, labels: Labels, namespaces: Namespaces, ledger: Ledger) -> None:
        self.cluster = cluster
        self.labels = labels
        self.namespaces = namespaces
        self.ledger = ledger
        self._pods: dict[bytes, tuple[str, dict[str, str], set[int]]] = {}
        self._far: dict[bytes, tuple[_Wish, set[int]]] = {}
        self._terms: dict[bytes, _Terms] = {}
        self._allowed: dict[bytes, tuple[frozenset[int] | None, bool]] = {}
        self._spaces: set[str] = set()
        self._nobody = _Terms()

    def runs(self, item: Item[Pod], index: int) -> None:
        """Take a running pod into account."""
        pod = item.value
        namespace, labels = pod.metadata.namespace or "default", pod.metadata.labels or {}
        self._spaces.add(namespace)
        self._pods.setdefault(_encode((namespace, labels)), (namespace, labels, set()))[2].add(index)
        for wish in self._of(item).far:
            self._far.setdefault(_encode((wish.term, namespace, labels)), (wish, set()))[1].add(index)

    def of_itself(self, item: Item[Pod]) -> tuple[str, str]:
        """Return the node labels of which no two, and of which all pods that are like this one have the same value."""
        terms, pod = self._of(item), item.value
        namespace, labels = pod.metadata.namespace or "default", pod.metadata.labels or {}
        far = [wish.term.topology_key for wish in terms.far if wish.admits(namespace, labels)]
        near = [wish.term.topology_key for wish in terms.near if wish.admits(namespace, labels)]
        return next(iter(far), ""), next(iter(near), "")

    def note_alone(self, entry: Entry, where: str, file: str) -> None:
        """Note that a pending pod in no gang has to keep away from others that wait."""
        if entry.spread and not entry.node:
            self.ledger.unsupported(
                "anti-affinity among pods that wait", "it holds against pods that run, not among these", where, file
            )

    def allowed(self, item: Item[Pod]) -> frozenset[int] | None:
        """Return the nodes that a pending pod may use beside those that run; None for all."""
        pod = item.value
        for one in pod.spec.topology_spread_constraints or ():
            hard = _converted(one, _Spread, item, "topologySpreadConstraints").when_unsatisfiable != "ScheduleAnyway"
            if hard:
                why = "a spread over pods of which some run cannot be said"
                self.ledger.unsupported("topologySpreadConstraints", why, item.where, item.file)
            else:
                self.ledger.ignored("topologySpreadConstraints with ScheduleAnyway", "they are a wish", item.where)
        terms = self._of(item)
        if terms.preferred:
            self.ledger.ignored("preferred pod affinity", "it is a wish", item.where)
        if not terms.near and not terms.far and not self._far:
            return None
        namespace, labels = pod.metadata.namespace or "default", pod.metadata.labels or {}
        key = _encode((namespace, labels, [wish.term for wish in terms.near], [wish.term for wish in terms.far]))
        if key not in self._allowed:
            self._allowed[key] = self._look(namespace, labels, terms)
        found, lonely = self._allowed[key]
        if terms.far:
            self.ledger.assumed("pods that a pod must not be beside", "those that run now", item.where)
        if any(wish.unsure(self._spaces) for wish in terms.near):
            why = "all namespaces of which the files do not say the labels"
            self.ledger.unsupported("namespaceSelector of pod affinity", why, item.where, item.file)
        if any(wish.unsure(self._spaces) for wish in terms.far) or any(
            wish.unsure((namespace,)) for wish, _ in self._far.values()
        ):
            default = "all namespaces of which the files do not say the labels"
            self.ledger.assumed("namespaceSelector of pod anti-affinity", default, item.where)
        if lonely:
            self.ledger.unsupported("affinity to pods of which none runs", "it may go anywhere", item.where, item.file)
        return found

    def _look(self, namespace: str, labels: dict[str, str], terms: _Terms) -> tuple[frozenset[int] | None, bool]:
        left, lonely = self.labels.every, False
        for wish in terms.far:
            left -= self._domains(wish.term.topology_key, self._hosts(wish))
        for wish, hosts in self._far.values():
            if wish.admits(namespace, labels):
                left -= self._domains(wish.term.topology_key, hosts)
        # a running pod counts only where all terms are about it
        hosts = self._hosts(*terms.near) if terms.near else set()
        for wish in terms.near:
            key = wish.term.topology_key
            if hosts:
                left &= self._domains(key, hosts)
            elif key != HOSTNAME:
                left &= frozenset[int]().union(*self.labels.having(key).values())
            lonely = lonely or not (hosts or wish.admits(namespace, labels))
        return (None if left == self.labels.every else left), lonely

    def _hosts(self, *wishes: _Wish) -> set[int]:
        """Return the nodes with a running pod that all terms are about."""
        found: set[int] = set()
        for namespace, labels, nodes in self._pods.values():
            if all(wish.admits(namespace, labels) for wish in wishes):
                found |= nodes
        return found

    def _domains(self, key: str, hosts: set[int]) -> frozenset[int]:
        """Return all nodes of the domains that some nodes are in."""
        nodes = self.cluster.nodes
        values = {nodes[index].labels[key] for index in hosts if key in nodes[index].labels}
        found = frozenset[int]().union(*(self.labels.having(key)[value] for value in values))
        return found | hosts if key == HOSTNAME else found

    def _of(self, item: Item[Pod]) -> _Terms:
        """Return what a pod requires of its neighbours."""
        pod = item.value
        affinity = pod.spec.affinity
        if not affinity or not ("podAffinity" in affinity or "podAntiAffinity" in affinity):
            return self._nobody
        labels = pod.metadata.labels or {}
        part = {key: affinity.get(key) for key in ("podAffinity", "podAntiAffinity")}
        try:
            key = _encode((part, pod.metadata.namespace, labels))
        except (OverflowError, TypeError):
            return self._read(part, item)
        if key not in self._terms:
            self._terms[key] = self._read(part, item)
        return self._terms[key]

    def _read(self, part: dict[str, Any], item: Item[Pod]) -> _Terms:
        read = _converted(part, _Affinity, item, "affinity")
        namespace, labels = item.value.metadata.namespace or "default", item.value.metadata.labels or {}
        return _Terms(
            near=[_Wish(term, namespace, labels, self.namespaces) for term in _required(read.pod_affinity)],
            far=[_Wish(term, namespace, labels, self.namespaces) for term in _required(read.pod_anti_affinity)],
            preferred=any(
                kind is not None and kind.preferred_during_scheduling_ignored_during_execution
                for kind in (read.pod_affinity, read.pod_anti_affinity)
            ),
        )


def _required(kind: _Kind | None) -> Iterator[_Term]:
    return iter((kind.required_during_scheduling_ignored_during_execution if kind is not None else None) or ())


def _converted(value: object, record: type[T], item: Item[Pod], field_: str) -> T:
    try:
        return msgspec.convert(value, record)
    except msgspec.ValidationError as why:
        path = f"{item.path}.spec.{field_}".removeprefix(".")
        raise InputError.one(str(why).replace("`", ""), "correct the field", path=path, source=item.file) from None


def _matches(selector: _Selector, labels: Mapping[str, str]) -> bool:
    """Return whether labels are such; a selector that says nothing admits all."""
    if any(labels.get(key) != value for key, value in (selector.match_labels or {}).items()):
        return False
    for one in selector.match_expressions or ():
        has, values = one.key in labels, one.values or ()
        right = {
            "In": has and labels.get(one.key) in values,
            "NotIn": not has or labels.get(one.key) not in values,
            "Exists": has,
            "DoesNotExist": not has,
        }
        if not right.get(one.operator, False):
            return False
    return True
