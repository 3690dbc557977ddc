"""What pods of one kind ask for, looked at once: of 100,000 pods few hundred differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import msgspec

from placement.formats.kubernetes.cards import Cards, Meaning, Part, made, offer_of, working
from placement.formats.kubernetes.claims import claimed_as, parts_of
from placement.formats.kubernetes.labels import Labels
from placement.formats.kubernetes.needs import COUNT, DEVICES, FRACTION, GPU, MEMORY, MILLI, VIRTUAL, Need, needs
from placement.formats.kubernetes.notes import Notes
from placement.formats.kubernetes.objects import Item
from placement.formats.kubernetes.parts import Offer
from placement.formats.kubernetes.pod import Pod
from placement.formats.kubernetes.requests import Amounts, amounts, guaranteed, together
from placement.formats.kubernetes.selection import selector, tolerations
from placement.snapshot import Task, Toleration
from placement.snapshot.fields import MOST_CARDS
from placement.snapshot.nothing import NOTHING
from placement.units import exact

ANNOTATIONS = (FRACTION, MEMORY, DEVICES, MILLI, COUNT)
"""Those that say what a pod asks for."""
PARTED = frozenset(name for names in VIRTUAL for name in names[1:])
"""Resources that are parts of the cards of a container."""
KUBELET = ("ephemeral-storage", "hugepages-")
"""Resources of every node, which those who write down nodes may leave out."""
RESERVATION = ("kai-resource-reservation", "runai-reservation")
"""Namespaces of pods that hold a card for the pods that share it."""
GROUP = "runai-gpu-group"
"""Label: which pods share one card."""
BOUND = ("single-numa-node", "restricted")
"""Policies of the kubelet's topology manager that refuse a pod."""

_encode = msgspec.msgpack.Encoder().encode
Tasks = tuple[Task, ...]
"""Tasks of one pod, on one node: one for each MIG instance and kind of card; the first asks for all the rest."""


@dataclass(frozen=True, slots=True, eq=False)
class Ask:
    """What pods of one kind ask for, before it is known what units of a resource are.

    Attributes
    ----------
    rest : dict of str to quantity
        Resources that stand for no cards.
    needs : tuple of Need
    selector : dict of str to str
    tolerations : tuple of Toleration
    aligned : bool
        Whether the kubelet gives it CPUs and devices of its own.
    notes : Notes
        For the ledger, of each pod.
    beyond : tuple of Need
        Those of more cards than a node can have, cut to that; they are whole in `rest`.
    claims : tuple of Part
        Cards of resources that stand for classes of devices, where no device plugin offers them.
    """

    rest: Amounts
    needs: tuple[Need, ...]
    selector: dict[str, str]
    tolerations: tuple[Toleration, ...]
    aligned: bool
    notes: Notes = field(default_factory=Notes)
    beyond: tuple[Need, ...] = ()
    claims: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class OnNode:
    """The tasks of a pod on a node, and of each the part of it that is cards."""

    tasks: Tasks
    parts: tuple[tuple[Part, Offer], ...]
    notes: Notes


class Asks:
    """Reads what pods ask for, and keeps equal tasks once.

    Parameters
    ----------
    cards : Cards
    labels : Labels
    """

    def __init__(self, cards: Cards, labels: Labels) -> None:
        self.cards = cards
        self.labels = labels
        self._listed = frozenset(name for node in labels.nodes for name in node.extended)
        self._taints = tuple(dict.fromkeys(taint for node in labels.nodes for taint in node.taints))
        named = self._listed | cards.cluster.named
        self._unsaid = tuple(stem for stem in KUBELET if not any(name.startswith(stem) for name in named))
        self._asks: dict[bytes, Ask] = {}
        self._tasks: dict[bytes, Tasks] = {}
        self._pending: dict[tuple[int, tuple[Part, ...], frozenset[int] | None], tuple[Tasks, Notes]] = {}
        self._running: dict[tuple[object, ...], OnNode] = {}

    def of(self, item: Item[Pod], pinned: bool = False, alone: bool = False) -> Ask:
        """Return what a pod asks for.

        Parameters
        ----------
        item : Item of Pod
        pinned : bool
            Whether it is where it has to be, so that its affinity says no more.
        alone : bool
            Whether no pod shares the card that it reserves for others.
        """
        pod, spec = item.value, item.value.spec
        annotations = pod.metadata.annotations or {}
        said = {key: annotations[key] for key in ANNOTATIONS if key in annotations}
        holder = pod.metadata.namespace in RESERVATION and not alone
        claimed = claimed_as(pod, self.cards.devices.claims)
        affinity = None if pinned else (spec.affinity or {}).get("nodeAffinity")
        parts = (
            spec.containers,
            spec.init_containers,
            spec.overhead,
            spec.resources,
            spec.node_selector,
            affinity,
            spec.tolerations,
            said,
            holder,
            claimed,
        )
        try:
            key = _encode(parts)
        except (OverflowError, TypeError):
            return self._read(item, said, holder, pinned, claimed)
        ask = self._asks.get(key)
        if ask is None:
            ask = self._asks[key] = self._read(item, said, holder, pinned, claimed)
        return ask

    def _read(self, item: Item[Pod], said: dict[str, str], holder: bool, pinned: bool, claimed: tuple[str, ...]) -> Ask:
        spec, path = item.value.spec, f"{item.path}.spec".removeprefix(".")
        notes = Notes()
        asked = amounts(spec, item.file, path)
        for name in ("cpu", "memory"):
            if name not in asked:
                notes.assumed(f"{name} of pods that ask for none", "none")
        if "memory" in asked and exact(asked["memory"]).denominator != 1:
            notes.assumed("memory in thousandths of a byte", "just that; 256Mi is what 256m is often meant to be")
        asked.pop("pods", None)
        # a claim that the scheduler made has what these stand for
        for name in claimed:
            asked.pop(name, None)
        claims = self._by_class(asked, notes)
        if holder and GPU in asked:
            asked.pop(GPU)
            notes.ignored("card of a pod that reserves it for others", "those that share the card have it")
        offered = {name for name in asked if self.cards.countable(name)} | self.cards.meanings.keys()
        each = together(spec) if asked.keys() & PARTED else ()
        found, rest = needs(asked, said, offered, item.file, path, each)
        for name, value in asked.items():
            if name not in rest and name in self._listed and not self.cards.countable(name):
                rest[name] = value
            if self._unsaid and name.startswith(self._unsaid):
                rest.pop(name, None)
                notes.ignored("storage and huge pages that no node lists", "nothing says how much there is")
        for need in found:
            if need.units > MOST_CARDS:
                rest[need.resource] = need.units
                notes.contradiction("more cards than a node can have", "it asks for them, and fits nowhere")
        chosen = selector(spec, self.labels, notes, item.file, path)
        if pinned and spec.affinity and spec.affinity.get("nodeAffinity"):
            notes.ignored("node affinity of running pods of a DaemonSet", "each is on its own node for good")
            chosen = dict(spec.node_selector or {})
        return Ask(
            rest,
            tuple(need for need in found if need.units <= MOST_CARDS and (need.units or need.measure)),
            chosen,
            tolerations(spec.tolerations, item.file, path, self._taints),
            guaranteed(spec) and (bool(found) or exact(rest.get("cpu", 0)) % 1 == 0),
            notes,
            tuple(replace(need, units=MOST_CARDS) for need in found if need.units > MOST_CARDS),
            claims,
        )

    def _by_class(self, asked: Amounts, notes: Notes) -> tuple[Part, ...]:
        """Take resources away that stand for classes of devices and return what they are."""
        found: list[Part] = []
        for name, claim in self.cards.devices.resources.items():
            if name in asked and name in self.cards.meanings:
                what = "a resource of some nodes that stands for a class of devices on others"
                notes.unsupported(what, "the pod is kept to nodes that list it")
            elif name in asked and exact(asked[name]) <= MOST_CARDS:
                number = int(exact(asked.pop(name)))
                notes.assumed("a resource that stands for a class of devices", "so many devices of the class")
                found += parts_of(replace(claim, gpus=claim.gpus * number))
        return tuple(found)

    # --- pending -------------------------------------------------------------------------------------------------

    def pending(
        self, ask: Ask, claims: tuple[Part, ...] = (), within: frozenset[int] | None = None
    ) -> tuple[Tasks, Notes]:
        """Return the tasks of a pending pod.

        Parameters
        ----------
        ask : Ask
        claims : tuple of Part
            Cards that its claims ask for.
        within : frozenset of int, optional
            Nodes that it is kept to besides.
        """
        claims = (*claims, *ask.claims)
        key = id(ask), claims, within
        found = self._pending.get(key)
        if found is None:
            notes, chosen = Notes(), ask.selector
            parts = [part if part.models else replace(part, models=self.cards.claimed) for part in claims]
            for need in ask.needs:
                more, chosen = self.cards.wanted(need, chosen, notes)
                parts += more
            if claims and (self.labels.matching(chosen) & (self.cards.whole | self.cards.sliced)) - self.cards.listed:
                chosen = self.labels.narrow(chosen, self.cards.listed, "cards")
            if within is not None:
                chosen = self.labels.narrow(chosen, within, "affinity")
            _note_slots(parts, notes)
            numa = self._policy(ask, parts, chosen, notes)
            found = self._pending[key] = self._made(ask, ask.rest, chosen, parts, numa), notes
        return found

    def _policy(self, ask: Ask, parts: Sequence[Part], chosen: dict[str, str], notes: Notes) -> str:
        """Return the NUMA policy that all nodes have which such a pod may use."""
        policies = self.cards.cluster.policies
        if not ask.aligned or not policies or any(part.profile or part.instance for part in parts):
            return "none"
        nodes = self.labels.matching(chosen)
        if parts:
            nodes &= self.cards.whole
        found = {
            policies.get(node.name, "") if node.zones else "" for node in (self.labels.nodes[index] for index in nodes)
        }
        if len(found) == 1 and (policy := next(iter(found))) in BOUND:
            return policy
        if found & set(BOUND):
            notes.assumed("NUMA policy of pods that may run on nodes with different ones", "none")
        return "none"

    # --- running -------------------------------------------------------------------------------------------------

    def running(self, ask: Ask, claims: tuple[Part, ...], index: int) -> OnNode:
        """Return the tasks of a pod that runs on a node; those with cards have an offer that says which they may be."""
        node = self.labels.nodes[index]
        claims = (*claims, *ask.claims)
        offers = self.cards.cluster.offers.get(node.name, {})
        gpus = self.cards.of(node)
        policy = self.cards.cluster.policies.get(node.name, "") if ask.aligned and node.zones else ""
        key: tuple[object, ...] = (
            id(ask),
            claims,
            policy,
            *((offers.get(need.resource), id(node.gpus)) for need in (*ask.needs, *ask.beyond)),
        )
        found = self._running.get(key)
        if found is not None:
            return found
        notes, rest = Notes(), dict(ask.rest)
        parts: list[tuple[Part, Offer]] = [(part, Offer(())) for part in claims]
        for need in (*ask.needs, *ask.beyond):
            offer = offer_of(offers, need.resource, gpus)
            if offer is None:
                rest.setdefault(need.resource, need.units)
                notes.contradiction("a pod runs with cards on a node that has none", "it asks for what is not there")
                continue
            if need.resource not in offers and not offer.profile:
                notes.contradiction("a pod runs with cards of a resource that its node does not list", "it has them")
            if offer.profile:
                most = len(offer.cards)
            else:
                most = len({card for card in offer.cards if card < len(gpus) and not gpus[card].mig_enabled})
            if most == 0:
                rest.setdefault(need.resource, need.units)
                notes.contradiction("a pod runs with cards on a node that has none", "it asks for what is not there")
                continue
            rest.pop(need.resource, None)
            meaning: Meaning = offer.replicas, offer.profile, offer.instance
            memory, registered = self.cards.memory(node, offer), self.cards.registered(node, need.resource, offer)
            able = most if offer.profile else min(most, len(working(offer, gpus)))
            for part in made(need, meaning, able, memory, notes, registered):
                if part.gpus > most:
                    notes.contradiction("a pod runs with more cards than its node has", "it has all of them")
                    part = replace(part, gpus=most)
                parts.append((part, offer))
        bare = [part for part, _ in parts]
        _note_slots(bare, notes)
        numa = (
            policy
            if policy in BOUND and len(bare) <= 1 and not any(part.profile or part.instance for part in bare)
            else "none"
        )
        found = OnNode(self._made(ask, rest, ask.selector, bare, numa), tuple(parts), notes)
        self._running[key] = found
        return found

    def without(self, task: Task) -> Task:
        """Return a task that holds no card."""
        return self.kept(
            (
                msgspec.structs.replace(
                    task, gpus=0, gpu_share=None, mig_profile="", mig_instance="", gpu_memory=None, gpu_models=()
                ),
            )
        )[0]

    def kept_to(self, tasks: Tasks, nodes: frozenset[int], stem: str) -> Tasks:
        """Return tasks that keep to some nodes besides."""
        return self.kept(
            tuple(
                msgspec.structs.replace(task, node_selector=self.labels.narrow(task.node_selector, nodes, stem))
                for task in tasks
            )
        )

    def _made(self, ask: Ask, rest: Amounts, chosen: dict[str, str], parts: Sequence[Part], numa: str) -> Tasks:
        extended = {name: value for name, value in rest.items() if name not in ("cpu", "memory")}
        made_: list[Task] = []
        for part in parts or (Part(0),):
            first = not made_
            if part.gpus > MOST_CARDS:
                extended[part.resource or "gpu"] = part.gpus
                part = Part(0)
            made_.append(
                Task(
                    gpus=part.gpus,
                    gpu_share=part.share,
                    mig_profile=part.profile,
                    mig_instance=part.instance,
                    gpu_memory=part.memory,
                    gpu_models=part.models,
                    cpu=rest.get("cpu", 0) if first else 0,
                    memory=rest.get("memory", 0) if first else 0,
                    extended=(extended if first else None) or NOTHING,
                    node_selector=chosen or NOTHING,
                    tolerations=ask.tolerations,
                    numa=numa if len(parts) <= 1 else "none",  # type: ignore[arg-type] # one of BOUND, or none
                )
            )
        return self.kept(tuple(made_))

    def kept(self, tasks: Tasks) -> Tasks:
        """Return the one object for equal tasks."""
        return self._tasks.setdefault(_encode(tasks), tasks)


def _note_slots(parts: Sequence[Part], notes: Notes) -> None:
    """Note that a pod of several tasks counts as several pods."""
    if len(parts) > 1:
        notes.assumed("pods with devices of several kinds, or several instances", "each device takes a slot for pods")
