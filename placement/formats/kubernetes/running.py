"""Running pods: which tasks they are, and which cards they hold.

Those of which something says the cards come first, then those with whole cards and instances, then those with shares.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from placement.formats.kubernetes.annotations import NICS, ZONES, numbers
from placement.formats.kubernetes.asks import GROUP, RESERVATION, Asks, OnNode
from placement.formats.kubernetes.cards import Cards, Part, instances
from placement.formats.kubernetes.claims import Claims, allocated
from placement.formats.kubernetes.entries import Entry
from placement.formats.kubernetes.holdings import GPUS, HAMI, Held, Holdings, says, stated
from placement.formats.kubernetes.labels import Labels
from placement.formats.kubernetes.parts import Claim, Offer
from placement.formats.kubernetes.pod import Pod
from placement.formats.ledger import Ledger
from placement.hardware import mig
from placement.snapshot import Node
from placement.snapshot.fields import MOST_CARDS, wrong_name

RESERVED = "run.ai/reserve_for_gpu_index"
"""Annotation of a pod that reserves a card: its index or UUID."""


class Runs:
    """Gives each running pod what it holds.

    Parameters
    ----------
    labels : Labels
    cards : Cards
    asks : Asks
    claims : Claims
    ledger : Ledger
    """

    def __init__(self, labels: Labels, cards: Cards, asks: Asks, claims: Claims, ledger: Ledger) -> None:
        self.labels = labels
        self.cards = cards
        self.asks = asks
        self.claims = claims
        self.ledger = ledger
        self.holdings = Holdings(ledger)

    def hold(self, entries: Sequence[Entry]) -> None:
        """Set tasks and cards of running pods, all of them at once.

        Parameters
        ----------
        entries : sequence of Entry
            On nodes that there are.
        """
        later: list[tuple[Entry, OnNode, int]] = []
        shared = {(entry.node, name) for entry in entries if not _reserves(entry.item.value) for name in _names(entry)}
        for entry in entries:
            item, index = entry.item, self.labels.index[entry.node]
            alone = _reserves(item.value) and not any((entry.node, name) in shared for name in _names(entry))
            if alone:
                self.ledger.assumed("cards reserved for pods that are not there", "the reserving pod", item.where)
            ask = self.asks.of(item, pinned=of_daemon(item.value), alone=alone)
            ask.notes.say(self.ledger, item.where, item.file)
            claimed = self.claims.of(item)
            if item.value.spec.resource_claims and index in self.cards.listed and self.claims.missing(item.value):
                what = "devices of running pods whose claims are not in the files"
                self.ledger.assumed(what, "any of their nodes, which take no new work", item.where)
                self.labels.cordoned.add(index)
            found = self.asks.running(ask, tuple(part for part, _ in claimed), index)
            found.notes.say(self.ledger, item.where, item.file)
            entry.tasks = found.tasks
            entry.held = (Held(()),) * len(found.tasks)
            self._note_group(item.value, self.labels.nodes[index])
            first = self._known(entry, found, [claim for _, claim in claimed]) if found.parts else 0
            if first < len(found.parts):
                later.append((entry, found, first))
        later.sort(key=self._size, reverse=True)
        for shares in (False, True):
            for entry, found, first in later:
                if any(part.share is not None for part, _ in found.parts[first:]) == shares:
                    self._assumed(entry, found, first)
        for entry in entries:
            self._in_zones(entry)

    def _in_zones(self, entry: Entry) -> None:
        """Give a pod the NUMA zone and the NICs that annotations say."""
        said = entry.item.value.metadata.annotations
        if not said or not said.keys() & {ZONES, NICS}:
            return
        zones = numbers(said[ZONES]) if ZONES in said else []
        nics = tuple(name.strip() for name in said.get(NICS, "").split(",") if name.strip())
        if zones is None or len(nics) > MOST_CARDS or any(wrong_name(name) for name in nics):
            self.ledger.contradiction(
                "an annotation says zones or NICs in no known form", "it is as if it were not there", entry.item.where
            )
            return
        if len(zones) > 1:
            self.ledger.assumed("pods in several NUMA zones", "those of their cards, or any", entry.item.where)
        entry.zone = zones[0] if len(zones) == 1 else None
        entry.nics = nics
        if nics:
            entry.tasks = self.asks.kept((msgspec.structs.replace(entry.tasks[0], nics=len(nics)), *entry.tasks[1:]))

    def _size(self, one: tuple[Entry, OnNode, int]) -> int:
        """Return the slots of the largest instance of a pod: small ones go where they leave room for large ones."""
        entry, found, first = one
        profiles = {part.profile for part, _ in found.parts[first:] if part.profile}
        if not profiles:
            return 0
        gpus = self.cards.of(self.labels.nodes[self.labels.index[entry.node]])
        models = {gpu.model for gpu in gpus if gpu.mig_enabled}
        known = [geometry for model in models if (geometry := mig.geometry(model)) is not None]
        sizes = [
            profile.size for geometry in known for name in profiles if (profile := geometry.profile(name)) is not None
        ]
        return max(sizes, default=0)

    def _note_group(self, pod: Pod, node: Node) -> None:
        """Note the card that a reserving pod holds for others."""
        group, card = (pod.metadata.labels or {}).get(GROUP, ""), self._reserved(pod, node)
        if group and card is not None:
            self.holdings.name_group(node, group, card)

    def _reserved(self, pod: Pod, node: Node) -> int | None:
        """Return the card that a reserving pod says it holds; None for others."""
        said = (pod.metadata.annotations or {}).get(RESERVED)
        if said is None or not _reserves(pod):
            return None
        cards = {name: index for index, name in enumerate(node.devices)}
        card = cards.get(said, int(said) if said.isascii() and said.isdigit() and len(said) < 4 else -1)
        return card if 0 <= card < len(self.cards.of(node)) else None

    def _known(self, entry: Entry, found: OnNode, claims: Sequence[Claim]) -> int:
        """Give a pod the cards that something says it has; return of how many of its parts, the first ones."""
        node = self.labels.nodes[self.labels.index[entry.node]]
        annotations = entry.item.value.metadata.annotations or {}
        said: list[tuple[int, int | None]] | None = None
        covered = len(found.parts)
        if annotations.keys() & {GPUS, *HAMI}:
            said = stated(annotations, node, [part for part, _ in found.parts])
            if said is None and says(annotations):
                self.ledger.contradiction(
                    "an annotation says cards that the node does not have, or in no known form",
                    "others are assumed",
                    entry.item.where,
                )
        elif (card := self._reserved(entry.item.value, node)) is not None:
            said = [(card, None)]
        elif claims and claims[0].node == node.name:
            here = [claim for claim in claims if claim.node == node.name]
            said, covered = allocated(here), len(here)
        if said is None:
            return 0
        wanted = sum(part.gpus for part, _ in found.parts[:covered])
        if len(said) != wanted:
            # containers that run one after the other may have the same cards
            said = list(dict.fromkeys(said))
        if len(said) > wanted and GPUS not in annotations and covered == len(found.parts):
            what = "a pod is said to have more cards than its containers have at a time"
            self.ledger.contradiction(what, "those of the last containers", entry.item.where)
            said = said[-wanted:]
        if len(said) != wanted:
            self.ledger.contradiction(
                "a pod is said to have more or fewer cards than it asks for", "others are assumed", entry.item.where
            )
            return 0
        held: list[Held] = []
        gpus = self.cards.of(node)
        for part, offer in found.parts[:covered]:
            mine, said = said[: part.gpus], said[part.gpus :]
            starts = tuple(start for _, start in mine if start is not None)
            if part.profile and not starts:
                free = (first for card, first in zip(offer.cards, offer.starts, strict=False) if card == mine[0][0])
                taken = next(
                    (
                        one
                        for first in free
                        if (one := self.holdings.known(node, gpus, part, Held((mine[0][0],), (first,))))
                    ),
                    None,
                )
            else:
                given = Held(tuple(card for card, _ in mine), starts if part.profile else ())
                taken = self.holdings.known(node, gpus, part, given)
            if taken is None:
                self.ledger.contradiction(
                    "a pod is said to have cards or instances that it cannot have",
                    "others are assumed",
                    entry.item.where,
                )
                break
            held.append(taken)
        entry.held = (*held, *entry.held[len(held) :])
        return len(held)

    def _assumed(self, entry: Entry, found: OnNode, first: int) -> None:
        """Give a pod cards that it may have, from one of its parts on."""
        node = self.labels.nodes[self.labels.index[entry.node]]
        gpus = self.cards.of(node)
        held, tasks = list(entry.held), list(found.tasks)
        for number, (part, offer) in enumerate(found.parts):
            if number < first:
                continue
            if not offer.cards:
                offer = self._any(part, node)
            groups = _names(entry)
            taken = None
            if part.profile or len({card for card in offer.cards if not gpus[card].mig_enabled}) >= part.gpus:
                bound = tasks[number].numa != "none"
                taken = self.holdings.assumed(node, gpus, part, offer, entry.item.where, groups, bound)
            if taken is None:
                self.ledger.contradiction(
                    "a pod runs with cards or instances of which its node has none left",
                    "it holds none, and the node takes no new work",
                    entry.item.where,
                )
                self.labels.cordoned.add(self.labels.index[entry.node])
                tasks[number] = self.asks.without(tasks[number])
            else:
                held[number] = taken
        entry.held, entry.tasks = tuple(held), self.asks.kept(tuple(tasks))

    def _any(self, part: Part, node: Node) -> Offer:
        """Return an offer of all that could be the cards of a claim of which no allocation is known."""
        gpus = self.cards.of(node)
        if part.profile:
            return instances(part.profile, gpus)
        return Offer(tuple(card for card, gpu in enumerate(gpus) if not gpu.mig_enabled and not gpu.mig_instance))


def of_daemon(pod: Pod) -> bool:
    """Return whether a pod is one of a DaemonSet, each of which is on its own node for good."""
    return any(owner.kind == "DaemonSet" for owner in pod.metadata.owner_references or ())


def _reserves(pod: Pod) -> bool:
    """Return whether a pod holds a card for pods that share it."""
    return pod.metadata.namespace in RESERVATION


def _names(entry: Entry) -> tuple[str, ...]:
    """Return the names of the cards that a pod shares."""
    label = (entry.item.value.metadata.labels or {}).get(GROUP, "")
    return entry.shared or ((label,) if label else ())
