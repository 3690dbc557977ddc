"""Which cards a running pod has.

Kubernetes does not say it. HAMi, claims and an annotation of ours do; for all other pods cards are assumed that fit
what is known: whole cards that nobody has, shares where least is taken, instances that are free. Nothing that a pod
has is ever counted as free: where more runs than there is, cards are over-full and the ledger says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from placement.formats.kubernetes.annotations import WHOLE, numbers
from placement.formats.kubernetes.cards import Part
from placement.formats.kubernetes.needs import MEBIBYTE
from placement.formats.kubernetes.parts import Offer
from placement.formats.ledger import Ledger
from placement.hardware import mig
from placement.snapshot import Gpu, Node
from placement.units import exact

GPUS, STARTS = "gpu-placement.io/gpus", "gpu-placement.io/mig-starts"
"""Annotations that say the cards of a pod by index, and the first slots of its instances on them."""
HAMI = ("hami.io/vgpu-devices-allocated", "volcano.sh/vgpu-ids-new")
"""Annotations of HAMi and Volcano: for each container ``uuid,vendor,MiB,percent:``, then a semicolon."""


@dataclass(frozen=True, slots=True)
class Held:
    """Cards of one part of a pod, and the slots of instances on them."""

    gpus: tuple[int, ...]
    starts: tuple[int, ...] = ()


@dataclass(slots=True)
class _Taken:
    """What is taken of the cards of a node."""

    gpus: tuple[Gpu, ...]
    whole: list[int] = field(default_factory=list)
    load: list[Fraction] = field(default_factory=list)
    slots: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        number = len(self.gpus)
        self.whole, self.load, self.slots = [0] * number, [Fraction(0)] * number, [0] * number


class Holdings:
    """Gives running pods their cards; those whose cards are known come first.

    Parameters
    ----------
    ledger : Ledger
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._taken: dict[str, _Taken] = {}
        self._groups: dict[str, dict[str, int]] = {}
        """Card of each group of pods that share one, by node."""

    def _of(self, node: Node, gpus: tuple[Gpu, ...]) -> _Taken:
        taken = self._taken.get(node.name)
        if taken is None:
            taken = self._taken[node.name] = _Taken(gpus)
        return taken

    def known(self, node: Node, gpus: tuple[Gpu, ...], part: Part, held: Held) -> Held | None:
        """Take cards that something says a part has; None where it cannot have them."""
        taken = self._of(node, gpus)
        right = (
            len(held.gpus) == part.gpus == len(set(held.gpus))
            and all(0 <= card < len(gpus) and gpus[card].mig_enabled == bool(part.profile) for card in held.gpus)
            and all(gpus[card].mig_instance == part.instance for card in held.gpus)
            and len(held.starts) == (part.gpus if part.profile else 0)
        )
        if not right or (part.profile and not self._free(taken, held.gpus[0], part.profile, held.starts[0])):
            return None
        self._take(taken, part, held)
        return held

    def assumed(
        self,
        node: Node,
        gpus: tuple[Gpu, ...],
        part: Part,
        offer: Offer,
        where: str,
        groups: tuple[str, ...] = (),
        bound: bool = False,
    ) -> Held | None:
        """Take cards for a part of which nothing says them; None for an instance where none is left.

        Parameters
        ----------
        node : Node
        gpus : tuple of Gpu
            Its cards by index.
        part : Part
            Of no more cards than the offer is about.
        offer : Offer
        where : str
            Place of the pod.
        groups : tuple of str
            Names of the shared cards, where something says them.
        bound : bool
            Whether the kubelet gives out cards of one NUMA zone where it can.
        """
        taken = self._of(node, gpus)
        self.ledger.assumed(
            "cards of running pods",
            "the lowest free ones that work; for a share those with least taken; for an instance the first free one",
            where,
        )
        if part.profile:
            for card, start in zip(offer.cards, offer.starts, strict=False):
                if card < len(gpus) and gpus[card].mig_enabled and self._free(taken, card, part.profile, start):
                    held = Held((card,), (start,))
                    self._take(taken, part, held)
                    return held
            return None
        able = {card for card in offer.cards if card < len(gpus) and not gpus[card].mig_enabled}
        # only working cards are given out: what of them a pod has must not look free
        cards = sorted(able, key=lambda card: (gpus[card].health != "healthy", card))
        if part.share is None:
            chosen = self._whole(node, taken, cards, part.gpus, bound, where)
        elif len(groups) == part.gpus:
            chosen = self._named(node, taken, cards, part, groups, where)
        else:
            chosen = self._shares(taken, cards, part, where)
        held = Held(tuple(sorted(chosen)))
        self._take(taken, part, held)
        return held

    def name_group(self, node: Node, group: str, card: int) -> None:
        """Note which card a group of pods shares."""
        self._groups.setdefault(node.name, {})[group] = card

    def names(self) -> dict[tuple[str, int], str]:
        """Return the name of the group of pods that shares a card, by node and index of the card."""
        return {(node, card): group for node, cards in self._groups.items() for group, card in cards.items()}

    def _whole(
        self, node: Node, taken: _Taken, cards: Sequence[int], number: int, bound: bool, where: str
    ) -> list[int]:
        shared = set(self._groups.get(node.name, {}).values())
        free = [card for card in cards if not taken.whole[card] and not taken.load[card] and card not in shared]
        if bound:
            for zone in node.zones:
                near = [card for card in free if card in zone.gpus]
                if len(near) >= number:
                    return near[:number]
        if len(free) >= number:
            return free[:number]
        self.ledger.contradiction(
            "running pods have more cards than are left on their node", "all of them run, on the lowest cards", where
        )
        rest = sorted(
            (card for card in cards if card not in set(free)),
            key=lambda card: (taken.whole[card], taken.load[card], card),
        )
        return [*free, *rest][:number]

    def _named(
        self, node: Node, taken: _Taken, cards: Sequence[int], part: Part, groups: tuple[str, ...], where: str
    ) -> list[int]:
        """Return the cards of groups of pods; a group that has none yet gets one that no other group has."""
        known = self._groups.setdefault(node.name, {})
        others = {card for group, card in known.items() if group not in groups}
        chosen: list[int] = []
        for group in groups:
            card = known.get(group)
            if card is None or card in chosen or card not in cards:
                left = [card for card in cards if card not in chosen]
                free = [card for card in left if card not in others]
                card = self._shares(taken, free or left, replace(part, gpus=1), where)[0]
                known[group] = card
            chosen.append(card)
        return chosen

    def _shares(self, taken: _Taken, cards: Sequence[int], part: Part, where: str) -> list[int]:
        share = exact(part.share or 0)

        def full(card: int) -> tuple[int, bool, bool, Fraction, int]:
            load, broken = taken.load[card], taken.gpus[card].health != "healthy"
            return taken.whole[card], load + share > 1, broken, load, card

        order = sorted(cards, key=full)[: part.gpus]
        if any(taken.whole[card] or taken.load[card] + share > 1 for card in order):
            self.ledger.contradiction(
                "running pods have larger shares than are left on their node", "all of them run", where
            )
        return order

    def _take(self, taken: _Taken, part: Part, held: Held) -> None:
        for number, card in enumerate(held.gpus):
            if part.profile:
                taken.slots[card] |= _bits(taken.gpus[card], part.profile, held.starts[number])
            elif part.share is None:
                taken.whole[card] += 1
            else:
                taken.load[card] += exact(part.share)

    def _free(self, taken: _Taken, card: int, profile: str, start: int) -> bool:
        """Return whether a card has room for an instance at a slot, and one of this kind where it says what it has."""
        gpu = taken.gpus[card]
        bits = _bits(gpu, profile, start)
        if not bits or bits & taken.slots[card]:
            return False
        geometry = mig.geometry(gpu.model)
        return not gpu.mig_layout or any(
            geometry is not None
            and instance.start == start
            and geometry.profile(instance.profile) == geometry.profile(profile)
            for instance in gpu.mig_layout
        )


def _bits(gpu: Gpu, profile: str, start: int) -> int:
    """Return the slots of an instance as bits; none where it cannot start there."""
    geometry = mig.geometry(gpu.model)
    found = None if geometry is None else geometry.profile(profile)
    return 0 if found is None or start not in found.starts else found.bits(start)


def stated(annotations: dict[str, str], node: Node, parts: Sequence[Part] = ()) -> list[tuple[int, int | None]] | None:
    """Return cards and slots that annotations of a running pod say; None where they say none that the node has.

    Where they say the memory of each card too, cards are those of `parts` in their order, as far as memory tells.
    """
    if GPUS in annotations:
        cards = numbers(annotations[GPUS])
        starts = _slots(annotations[STARTS]) if STARTS in annotations else [None] * len(cards or ())
        if cards is None or starts is None or len(starts) != len(cards):
            return None
        return list(zip(cards, starts, strict=True))
    registered = _registered(annotations)
    if registered:
        by_name = {name: index for index, name in enumerate(node.devices)}
        devices = [
            [field.strip() for field in device.split(",")]
            for container in registered.split(";")
            for device in container.split(":")
            if "," in device
        ]
        if devices and all(device[0] in by_name for device in devices):
            said = [(by_name[device[0]], numbers(device[2]) if len(device) > 2 else None) for device in devices]
            return [(card, None) for card in _matched([(card, size[0] if size else -1) for card, size in said], parts)]
    return None


def _matched(said: list[tuple[int, int]], parts: Sequence[Part]) -> list[int]:
    """Return cards, each with MiB, in the order of the parts that have so much; all as they are where some do not.

    Systems list containers in orders of their own, and init containers that are over too. A single part may be as large
    as one of these, so that its memory tells nothing.
    """
    if len(parts) < 2:
        return [card for card, _ in said]
    left = list(said)
    found: dict[int, list[int]] = {}
    order = sorted(range(len(parts)), key=lambda number: parts[number].memory is None)
    for number in order:
        part = parts[number]
        size = None if part.memory is None else part.memory // MEBIBYTE
        mine: dict[int, tuple[int, int]] = {}
        for card, mebibytes in left:
            if len(mine) < part.gpus and (size is None or abs(mebibytes - size) <= 1):
                mine.setdefault(card, (card, mebibytes))
        if len(mine) < part.gpus:
            return [card for card, _ in said]
        for one in mine.values():
            left.remove(one)
        found[number] = list(mine)
    return [card for number in range(len(parts)) for card in found[number]]


def says(annotations: dict[str, str]) -> bool:
    """Return whether annotations of a pod say which cards it has."""
    return GPUS in annotations or bool(_registered(annotations))


def _registered(annotations: dict[str, str]) -> str:
    """Return what a system that shares cards says of those of a pod; empty where it says none."""
    return next((text for key in HAMI if "," in (text := annotations.get(key, ""))), "")


def _slots(text: str) -> list[int | None] | None:
    """Return slots of instances, None for a card that is whole."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part == WHOLE or re.fullmatch(r"[0-9]{1,6}", part, re.ASCII) for part in parts):
        return None
    return [None if part == WHOLE else int(part) for part in parts]
