"""The cards of a node: from the resources that it offers, its labels and annotations.

What pods ask for is a resource, and so the resources say how many cards there are; labels say what they are. A card
that is there and not allocatable is an unhealthy one.
"""

from __future__ import annotations

from placement.formats.kubernetes import hami
from placement.formats.kubernetes.found import KEPT, Cards, Source, append
from placement.formats.kubernetes.node_labels import UNKNOWN
from placement.formats.kubernetes.nvidia_cards import nvidia_cards
from placement.formats.kubernetes.vendors import FAMILIES, VENDORS, Family, memory_of, model_of
from placement.hardware import mig
from placement.snapshot import Gpu
from placement.snapshot.fields import MOST_CARDS
from placement.units import exact


def cards(source: Source) -> Cards:
    """Return the cards of a node that a resource offers."""
    found = Cards()
    names = source.amounts.names()
    if source.registered is not None:
        _registered(source, found)
    elif any(name.startswith("nvidia.com/") for name in names):
        nvidia_cards(source, found, names)
    if source.known.invalid:
        source.disagree("MIG instances that the single strategy does not offer (MIG-INVALID)", "no card is usable")
    if source.registered is None and any(name.startswith("volcano.sh/vgpu-") for name in names):
        source.assume("parts of cards of which nothing says how many are a card", KEPT)
    for family in FAMILIES:
        if any(name in family.counts or name in family.parts for name in names):
            _family(source, found, family)
    for name in names:
        if name in VENDORS and name not in found.taken:
            _vendor(source, found, name)
    return found


# --- shares that an annotation registers -----------------------------------------------------------------------


def _registered(source: Source, found: Cards) -> None:
    """Add the cards that HAMi registered, and what a unit of its resource is."""
    cards = source.registered or []
    if len(cards) > MOST_CARDS:
        source.disagree(f"more than {MOST_CARDS} cards in a node", KEPT)
        return
    resource = next((name for name in hami.RESOURCES if source.amounts.has(name)), hami.RESOURCES[0])
    working, there = source.units(resource)
    offered = sum(card.shares for card in cards)
    healthy = [card.healthy for card in cards]
    if working == 0 and any(healthy):
        source.disagree("registered cards of which no share is allocatable", "they are unhealthy")
        healthy = [False] * len(cards)
    elif there != offered:
        source.disagree("shares of the registered cards and of the resource", "the cards")
    if any(card.mode == "mig" for card in cards):
        source.assume("shares that are MIG instances made for pods", "shares of the card")
    for card, works in zip(cards, healthy, strict=True):
        model = card.model or source.known.model or UNKNOWN
        if source.known.model and mig.geometry(model) is not None:
            # of two names of one model that of the label, which pods select by
            same = mig.geometry(model) == mig.geometry(source.known.model)
            model = source.known.model if same else model
        gpu = Gpu(
            model=model,
            memory=f"{card.memory}Mi" if card.memory else source.known.memory,
            compute_capability=source.known.compute_capability,
            health="healthy" if works else "unhealthy",
            sharing="shared",
            replicas=card.shares,
        )
        append(found.gpus, gpu)
    if cards:
        shares = {card.shares for card in cards}
        if len(shares) > 1:
            source.disagree("cards of a node with different numbers of shares", "the fewest, as the size of a unit")
        found.offer(resource, range(len(cards)), min(shares))
        uuids = [card.uuid for card in cards]
        if all(uuids) and len(set(uuids)) == len(uuids):
            found.devices = uuids
        found.numa = [card.numa for card in cards]


# --- the same cards in several units, and other vendors --------------------------------------------------------


def _family(source: Source, found: Cards, family: Family) -> None:
    """Add cards that resources state in several units, or say that those of another resource are meant."""
    amounts = source.amounts
    stated: dict[str, tuple[int, int]] = {}
    for name in family.counts:
        if amounts.has(name):
            stated[name] = source.units(name)
    for name, size in family.parts.items():
        if not stated and size is not None and amounts.has(name):
            working, there = source.units(name)
            stated[name] = (working // size, -(-there // size))
    for key in family.labels:
        text = source.labels.get(key, "")
        if not stated and text.isascii() and text.isdigit() and len(text) < 6:
            stated[key] = (int(text), int(text))
    parts = [name for name in family.parts if amounts.has(name)]
    working, there = next(iter(stated.values()), (0, 0))
    if not 0 < there <= MOST_CARDS:
        if parts:
            source.assume("parts of cards of which nothing says how many are a card", KEPT)
        return
    if found.number and found.number != there:
        source.disagree("one resource states more cards than another", "the first; the other is a countable resource")
        return
    if found.number:
        indices = range(found.number)
    else:
        model = family.model or source.known.model
        if not model:
            source.assume("cards of which no label says the model", f"the model {UNKNOWN}")
        if there > working:
            source.disagree(
                "cards that are there and not allocatable", "they are unhealthy, those with the last indices"
            )
        indices = found.add(
            working,
            there - working,
            model=model or UNKNOWN,
            memory=source.known.memory or _each(source, family.memory, there),
            compute_capability=source.known.compute_capability,
        )
    for name in family.counts:
        if name in stated:
            found.offer(name, indices)
    for name in parts:
        total = source.units(name)[1]
        if total == 0 or total % there:
            source.disagree("parts of cards that are no multiple of the cards", KEPT)
            continue
        found.offer(name, indices, total // there)


def _each(source: Source, resource: str, cards: int) -> int | None:
    """Return the memory of each of some like cards that a resource adds up; None where the node does not state it."""
    amounts = source.amounts
    stated = [exact(field[resource]) for field in (amounts.allocatable, amounts.capacity) if resource in field]
    return int(max(stated) / cards) or None if stated else None


def _vendor(source: Source, found: Cards, name: str) -> None:
    vendor, (working, there) = VENDORS[name], source.units(name)
    listed = source.labels.get(vendor.numbers, "") if vendor.numbers else ""
    number = len(listed.split(".")) if listed else there
    replicas = 1
    if number != there:
        if there % number == 0:
            replicas = there // number
            source.assume("units that are a multiple of the cards in a label", "shares of a card")
        else:
            source.disagree("the cards that a label lists and the resource", "the resource")
            number = there
    if number > MOST_CARDS:
        source.disagree(f"more than {MOST_CARDS} cards in a node", KEPT)
        return
    broken = -(-(there - working) // replicas)
    if broken:
        source.disagree("cards that are there and not allocatable", "they are unhealthy, those with the last indices")
    model = model_of(vendor, source.labels, source.ledger, source.where)
    shares = {} if replicas == 1 else {"replicas": replicas}
    cards = found.add(number - broken, broken, model=model, memory=memory_of(vendor, source.labels), **shares)
    found.offer(name, cards, replicas)
