"""The cards of a node while they are found, and what the node says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from placement.formats.kubernetes import hami
from placement.formats.kubernetes.amounts import Amounts
from placement.formats.kubernetes.node_labels import CardLabels
from placement.formats.kubernetes.parts import Offer
from placement.formats.ledger import Ledger
from placement.snapshot import Gpu

KEPT = "kept as a countable resource"


@dataclass(slots=True)
class Cards:
    """Cards of a node while they are found.

    Attributes
    ----------
    gpus : list of Gpu
    offers : dict of str to Offer
    taken : set of str
        Resources that stand for cards.
    devices : list of str
        Names of all cards, or none.
    numa : list of (int or None)
        NUMA zones of all cards, or none.
    """

    gpus: list[Gpu] = field(default_factory=list)
    offers: dict[str, Offer] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    devices: list[str] = field(default_factory=list)
    numa: list[int | None] = field(default_factory=list)

    @property
    def number(self) -> int:
        """How many cards there are."""
        return sum(gpu.count for gpu in self.gpus)

    def add(self, healthy: int, unhealthy: int, **what: object) -> range:
        """Add cards that are alike, those that do not work last, and return their indices."""
        first = self.number
        for count, health in ((healthy, "healthy"), (unhealthy, "unhealthy")):
            if count:
                self.gpus.append(Gpu(count=count, health=health, **what))  # type: ignore[arg-type]
        return range(first, self.number)

    def offer(self, resource: str, cards: Sequence[int], replicas: int = 1, instance: str = "") -> None:
        """Say what a resource stands for."""
        self.taken.add(resource)
        self.offers[resource] = Offer(tuple(cards), replicas, instance=instance)


@dataclass(frozen=True, slots=True)
class Source:
    """What a node says of its cards, where it is, and which MIG instances its pods are said to have.

    Attributes
    ----------
    pins : tuple of (str, int, int)
        Resource, card and first slot.
    """

    amounts: Amounts
    labels: Mapping[str, str]
    known: CardLabels
    registered: list[hami.SharedCard] | None
    ledger: Ledger
    pins: tuple[tuple[str, int, int], ...] = ()

    @property
    def where(self) -> str:
        """Place for the ledger."""
        return self.amounts.item.where

    def units(self, resource: str) -> tuple[int, int]:
        """Return how many units of a resource work, and how many there are."""
        return self.amounts.units(resource, self.ledger)

    def disagree(self, what: str, believed: str) -> None:
        """Note a contradiction."""
        self.ledger.contradiction(what, believed, self.where)

    def assume(self, what: str, default: str) -> None:
        """Note a default."""
        self.ledger.assumed(what, default, self.where)


def append(gpus: list[Gpu], gpu: Gpu) -> None:
    """Append a card, or count up the last entry if it is such."""
    last = gpus[-1] if gpus else None
    if last is not None and msgspec.structs.replace(last, count=1) == gpu:
        gpus[-1] = msgspec.structs.replace(last, count=last.count + 1)
    else:
        gpus.append(gpu)
