"""What units of a resource are on a node, and the cards that a pod so asks for.

The same number means whole cards on one node, shares on another and MIG instances on a third: a running pod has what
its node gives, and a pending one is kept to nodes on which its number means one thing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from placement.formats.kubernetes.labels import Labels
from placement.formats.kubernetes.needs import GPU, PARTS, Need
from placement.formats.kubernetes.notes import Notes
from placement.formats.kubernetes.parts import Cluster, Devices, Offer
from placement.hardware import mig
from placement.snapshot import Gpu, Node
from placement.snapshot.fields import MOST_CARDS
from placement.units import Quantity, exact

MIG = "nvidia.com/mig-"
REGISTERED = (GPU, "nvidia.com/vgpu", "volcano.sh/vgpu-number")
"""Resources of cards that an annotation of the node registers, by memory."""
CARDS = (GPU, "nvidia.com/gpu.shared", "amd.com/gpu")
"""Resources that are cards though no node may offer them now, as when a device plugin is gone."""
Meaning = tuple[int, str, str]
"""Units that one card is, the MIG profile of a unit, and that of the instance which a unit is a share of."""


@dataclass(frozen=True, slots=True)
class Part:
    """Cards of one kind that one task holds.

    Attributes
    ----------
    gpus : int
    share : quantity of a card, optional
    profile : str
    memory : int, optional
        Bytes of each card.
    models : tuple of str
    resource : str
        Of which the cards are units; empty for those of a claim.
    instance : str
        MIG profile of the instance that it has a share of.
    """

    gpus: int
    share: Quantity | None = None
    profile: str = ""
    memory: int | None = None
    models: tuple[str, ...] = ()
    resource: str = ""
    instance: str = ""


class Cards:
    """What the resources of a cluster's nodes stand for.

    Parameters
    ----------
    cluster : Cluster
    devices : Devices
    labels : Labels
    """

    def __init__(self, cluster: Cluster, devices: Devices, labels: Labels) -> None:
        self.cluster = cluster
        self.labels = labels
        self.devices = devices
        self._numbers = {
            labels.index[name]: len(found) for name, found in devices.by_node.items() if name in labels.index
        }
        self.listed = frozenset(self._numbers)
        self._known: dict[tuple[str, frozenset[int]], tuple[int, int | None, bool]] = {}
        self._told: dict[tuple[str, frozenset[int]], tuple[tuple[str, ...], bool]] = {}
        self._of: dict[int, tuple[Gpu, ...]] = {}
        self._kept: list[tuple[Gpu, ...]] = []

    def of(self, node: Node) -> tuple[Gpu, ...]:
        """Return the cards of a node by index."""
        found = self._of.get(id(node.gpus))
        if found is None:
            found = self._of[id(node.gpus)] = tuple(gpu for gpu in node.gpus for _ in range(gpu.count))
            self._kept.append(node.gpus)
        return found

    @cached_property
    def meanings(self) -> dict[str, dict[Meaning, frozenset[int]]]:
        """Nodes by what a unit is on them, by resource."""
        found: dict[str, dict[Meaning, set[int]]] = {}
        for index, node in enumerate(self.cluster.nodes):
            for resource, offer in self.cluster.offers.get(node.name, {}).items():
                found.setdefault(resource, {}).setdefault((offer.replicas, offer.profile, offer.instance), set()).add(
                    index
                )
        return {name: {key: frozenset(nodes) for key, nodes in one.items()} for name, one in found.items()}

    @cached_property
    def sliced(self) -> frozenset[int]:
        """Nodes with MIG on."""
        return frozenset(i for i, node in enumerate(self.cluster.nodes) if any(gpu.mig_enabled for gpu in node.gpus))

    @cached_property
    def whole(self) -> frozenset[int]:
        """Nodes with cards that are not sliced."""
        return frozenset(
            i
            for i, node in enumerate(self.cluster.nodes)
            if any(not gpu.mig_enabled and not gpu.mig_instance for gpu in node.gpus)
        )

    @cached_property
    def turns(self) -> frozenset[int]:
        """Nodes with MIG instances that pods share."""
        return frozenset(i for i, node in enumerate(self.cluster.nodes) if any(gpu.mig_instance for gpu in node.gpus))

    @cached_property
    def claimed(self) -> tuple[str, ...]:
        """Models of the cards that slices list, where some node has others besides; else none."""
        mine: set[str] = set()
        others: set[str] = set()
        for index, number in self._numbers.items():
            for card, gpu in enumerate(self.of(self.cluster.nodes[index])):
                (mine if card < number else others).add(gpu.model)
        return tuple(sorted(mine)) if others - mine else ()

    def countable(self, resource: str) -> bool:
        """Return whether a resource stands for cards on some node, or instances that some node could have."""
        if resource in self.meanings or (resource in CARDS and self.whole):
            return True
        return _profile(resource) != "" and bool(self.sliced)

    # --- pending -------------------------------------------------------------------------------------------------

    def wanted(self, need: Need, selector: dict[str, str], notes: Notes) -> tuple[list[Part], dict[str, str]]:
        """Return the cards that a pending pod asks for, and a selector that keeps it to nodes where they are these."""
        allowed = self.labels.matching(selector)
        known = self.meanings.get(need.resource, {})
        here = {meaning: nodes for meaning, nodes in known.items() if nodes & allowed} or known
        if not here:
            return self._unknown(need, selector, allowed, notes)
        meaning = min(here, key=lambda one: (one != (1, "", ""), -len(here[one] & allowed), one))
        if len(here) > 1:
            notes.assumed(
                "what a unit of a resource is, where nodes differ",
                "whole cards, or else what most of the nodes have that the pod may use",
            )
        nodes = here[meaning]
        parts = self.parts(need, meaning, nodes & allowed or nodes, notes)
        if not meaning[1] and not meaning[2] and (models := self._models(need.resource, nodes & allowed, notes)):
            parts = [replace(part, models=models) for part in parts]
        others = self._apart(need.resource) if meaning[1] else self.turns if meaning[2] else self.whole
        if (allowed & others) - nodes:
            selector = self.labels.narrow(selector, nodes, "cards")
        return parts, selector

    def _unknown(
        self, need: Need, selector: dict[str, str], allowed: frozenset[int], notes: Notes
    ) -> tuple[list[Part], dict[str, str]]:
        """Return the same for what no node offers now: instances that could be made, or nothing that there is."""
        profile = _profile(need.resource)
        if profile:
            parts = [Part(1, profile=profile, resource=need.resource)] * need.units
            apart = self._apart(need.resource)
            return parts, self.labels.narrow(selector, self.sliced - apart, "cards") if allowed & apart else selector
        notes.assumed("cards that no node offers", "the pods that ask for them fit nowhere")
        selector = self.labels.narrow(selector, frozenset(), "cards")
        return self.parts(need, (1, "", ""), frozenset(), notes), selector

    def _apart(self, resource: str) -> frozenset[int]:
        """Return nodes with MIG on where instances go by another name than this one."""
        if not resource.startswith(MIG):
            return self.sliced
        plain = {
            index
            for index in self.sliced
            if any(
                offer.profile and not name.startswith(MIG)
                for name, offer in self.cluster.offers.get(self.cluster.nodes[index].name, {}).items()
            )
        }
        return frozenset(plain)

    def parts(self, need: Need, meaning: Meaning, nodes: frozenset[int], notes: Notes) -> list[Part]:
        """Return the cards that units are, on nodes where they mean the same."""
        most, memory, registered = self._facts(need.resource, nodes)
        return made(need, meaning, most, memory, notes, registered)

    def _facts(self, resource: str, nodes: frozenset[int]) -> tuple[int, int | None, bool]:
        """Return the most cards of a node, the most memory of one, and whether memory is what is given out."""
        found = self._known.get((resource, nodes))
        if found is None:
            kinds: dict[tuple[int, Offer], Node] = {}
            for index in nodes:
                node = self.cluster.nodes[index]
                offer = self.cluster.offers.get(node.name, {}).get(resource)
                if offer is not None:
                    kinds.setdefault((id(node.gpus), offer), node)
            most = max((len(working(offer, self.of(node))) for (_, offer), node in kinds.items()), default=MOST_CARDS)
            memory = max((self.memory(node, offer) or 0 for (_, offer), node in kinds.items()), default=0)
            registered = any(self.registered(node, resource, offer) for (_, offer), node in kinds.items())
            found = self._known[resource, nodes] = most, memory or None, registered
        return found

    def _models(self, resource: str, nodes: frozenset[int], notes: Notes) -> tuple[str, ...]:
        """Return the models that a resource stands for, where its nodes have cards of others too; else none."""
        found = self._told.get((resource, nodes))
        if found is None:
            kinds: dict[tuple[int, Offer], Node] = {}
            for index in nodes:
                node = self.cluster.nodes[index]
                kinds.setdefault((id(node.gpus), self.cluster.offers[node.name][resource]), node)
            mine: set[str] = set()
            others: set[str] = set()
            for (_, offer), node in kinds.items():
                for card, gpu in enumerate(self.of(node)):
                    if not gpu.mig_enabled and not gpu.mig_instance:
                        (mine if card in offer.cards else others).add(gpu.model)
            found = self._told[resource, nodes] = tuple(sorted(mine)) if others else (), bool(mine & others)
        if found[1]:
            notes.unsupported("cards of one model that are different resources", "the pod may get any of them")
        return found[0]

    # --- running -------------------------------------------------------------------------------------------------

    def memory(self, node: Node, offer: Offer) -> int | None:
        """Return the bytes of the largest of the cards that an offer is about; None where it is not known."""
        gpus = self.of(node)
        known = [memory for card in offer.cards if card < len(gpus) and (memory := gpus[card].memory) is not None]
        return max((int(exact(memory)) for memory in set(known)), default=None)

    def registered(self, node: Node, resource: str, offer: Offer) -> bool:
        """Return whether cards are given out by memory, of which who asks for none gets all."""
        gpus = self.of(node)
        return resource in REGISTERED and any(
            card < len(gpus) and gpus[card].sharing == "shared" and gpus[card].replicas is not None
            for card in offer.cards[:1]
        )


def made(
    need: Need, meaning: Meaning, most: int, memory: int | None, notes: Notes, registered: bool = False
) -> list[Part]:
    """Return the cards that units are.

    Parameters
    ----------
    need : Need
    meaning : (int, str, str)
    most : int
        Cards of a node that has most of them.
    memory : int, optional
        Bytes of a card.
    notes : Notes
    registered : bool
        Whether who asks for no memory gets all of a card.
    """
    replicas, profile, instance = meaning
    if profile:
        return [Part(1, profile=profile, resource=need.resource)] * need.units
    if instance:
        if (Fraction(1000) / replicas).denominator != 1:
            notes.assumed(
                "shares that are no whole thousandth of a card", "rounded down, so that all of them fit on it"
            )
        share = thousandths(Fraction(1, replicas))
        return [Part(1, share, resource=need.resource, instance=instance)] * need.units
    if need.measure is not None:
        return [_measured(need, need.measure, replicas, memory, notes)]
    if need.limited:
        return [_limited(need, replicas, memory, notes)]
    if replicas > 1 and registered:
        notes.assumed("memory of a card, where a pod that shares cards by memory asks for none", "all of it")
    if replicas == 1 or registered:
        return [Part(need.units, resource=need.resource)]
    cards = min(need.units, max(most, 1))
    if need.units > cards:
        notes.assumed("more shares than a node has cards", "as many on each of its cards")
    elif cards > 1:
        notes.assumed("several shares of cards", "each on a card of its own")
    each = Fraction(math.ceil(Fraction(need.units, cards)), replicas)
    if each >= 1:
        # more units than a node has are that many cards, which it has not either
        return [Part(need.units if each > 1 else cards, resource=need.resource)]
    if (1000 * each).denominator != 1:
        notes.assumed("shares that are no whole thousandth of a card", "rounded down, so that all of them fit on it")
    return [Part(cards, thousandths(each), resource=need.resource)]


def _limited(need: Need, replicas: int, memory: int | None, notes: Notes) -> Part:
    """Return a part of a card by memory or time; where only memory is asked for, it is memory that has to suffice."""
    size = need.memory
    if size is None and need.part is not None and memory is not None:
        size = math.ceil(need.part * memory)
    share: Quantity | None = None
    if need.share is not None:
        share = None if need.share == 1 else decimal(need.share)
    elif replicas > 1 and need.resource not in PARTS:
        share = thousandths(Fraction(1, replicas))
        notes.assumed("time of a card, where only its memory is asked for", "an equal share for each that it may have")
    elif memory and size is not None:
        share = thousandths(Fraction(size, memory)) if size < memory else None
        notes.assumed("time of a card, where only its memory is asked for", "the same part as of the memory")
    elif need.part is not None:
        share = decimal(need.part) if need.part < 1 else None
    else:
        notes.assumed("share of a card of which the memory is not known", "the whole card")
    return Part(need.units, share, memory=size, resource=need.resource)


def _measured(need: Need, measure: int, replicas: int, memory: int | None, notes: Notes) -> Part:
    """Return parts of cards that are measured in units of the node."""
    cards = need.units or max(1, math.ceil(Fraction(measure, replicas)))
    each = Fraction(measure, cards * replicas)
    if each > 1:
        notes.contradiction("more of each card than a card has", "all of the card")
    if cards > 1 and not need.units and each < 1:
        notes.assumed("parts of several cards", "the same part of each")
    if each >= 1:
        return Part(cards, resource=need.resource)
    # rounded down, so that as many fit as have room; memory is exact where it is known
    size = None if memory is None or not need.resource.endswith(("mem", "memory")) else math.floor(each * memory)
    return Part(cards, thousandths(each), memory=size, resource=need.resource)


def working(offer: Offer, gpus: Sequence[Gpu]) -> set[int]:
    """Return the cards of an offer that work, or all of them where none does."""
    cards = {card for card in offer.cards if card < len(gpus)}
    return {card for card in cards if gpus[card].health == "healthy"} or cards


def thousandths(share: Fraction) -> str:
    """Return a share in thousandths, rounded down, and at least one."""
    return f"{max(1, math.floor(share * 1000))}m"


def decimal(share: Fraction) -> str:
    """Return a share that somebody asked for as it is; beyond nine digits it is rounded up."""
    billionths = math.ceil(share * 10**9)
    return f"{billionths // 10**6}m" if billionths % 10**6 == 0 else f"{billionths}n"


def _profile(resource: str) -> str:
    """Return the MIG profile that a resource names; empty for none that is known."""
    if not resource.startswith(MIG):
        return ""
    profile = mig.plain_profile(resource)
    return profile if mig.fraction(profile) is not None else ""


def offer_of(offers: Mapping[str, Offer], resource: str, gpus: tuple[Gpu, ...]) -> Offer | None:
    """Return what a resource is on a node where something that has it runs, though the node may not list it."""
    offer = offers.get(resource)
    if offer is not None:
        return offer
    profile = _profile(resource)
    if profile:
        made_of = instances(profile, gpus)
        return made_of if made_of.cards else None
    bare = tuple(card for card, gpu in enumerate(gpus) if not gpu.mig_enabled and not gpu.mig_instance)
    return Offer(cards=bare) if bare and not resource.startswith(MIG) else None


def instances(profile: str, gpus: Sequence[Gpu]) -> Offer:
    """Return where instances of a profile can be on the cards of a node.

    The last slots come first: where instances are taken one after the other, the large ones before the small ones,
    those of 4g and 7g keep the first slot, at which alone they start.
    """
    pairs = [
        (card, start)
        for card, gpu in enumerate(gpus)
        if gpu.mig_enabled and (geometry := mig.geometry(gpu.model)) is not None
        if (found := geometry.profile(profile)) is not None
        for start in sorted(found.starts, reverse=True)
    ]
    return Offer(tuple(card for card, _ in pairs), profile=profile, starts=tuple(start for _, start in pairs))
