"""The cards of a node: from the resources that it offers, its labels and annotations, and the slices of its devices.

What pods ask for is a resource, and so the resources say how many cards there are; labels say what they are. A card
that is there and not allocatable is an unhealthy one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from placement.formats.kubernetes import hami
from placement.formats.kubernetes.amounts import Amounts
from placement.formats.kubernetes.labels import UNKNOWN, CardLabels, mig_labels
from placement.formats.kubernetes.mig_cards import Layout, distributed
from placement.formats.kubernetes.parts import Offer
from placement.formats.kubernetes.vendors import FAMILIES, VENDORS, Family, memory_of, model_of
from placement.formats.ledger import Ledger
from placement.hardware import mig
from placement.snapshot import Gpu, MigInstance
from placement.snapshot.fields import MOST_CARDS

GPU, SHARED, MIG = "nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-"

UNSETTLED = ("pending", "rebooting", "failed")
"""States of the MIG manager in which labels and resources may not be those that will be."""

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

    def offer(self, resource: str, cards: Sequence[int], replicas: int = 1) -> None:
        """Say what a resource stands for."""
        self.taken.add(resource)
        self.offers[resource] = Offer(tuple(cards), replicas)


@dataclass(frozen=True, slots=True)
class Source:
    """What a node says of its cards, and where it is."""

    amounts: Amounts
    labels: Mapping[str, str]
    known: CardLabels
    registered: list[hami.SharedCard] | None
    ledger: Ledger

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


def cards(source: Source) -> Cards:
    """Return the cards of a node that a resource offers."""
    found = Cards()
    names = source.amounts.names()
    if source.registered is not None:
        _registered(source, found)
    elif any(name.startswith("nvidia.com/") for name in names):
        _nvidia(source, found, names)
    if source.known.invalid:
        source.disagree("MIG instances that the single strategy does not offer (MIG-INVALID)", "no card is usable")
    for family in FAMILIES:
        if any(name in family.counts or name in family.parts for name in names):
            _family(source, found, family)
    for name in names:
        if name in VENDORS and name not in found.taken:
            _vendor(source, found, name)
    return found


# --- NVIDIA's device plugin ------------------------------------------------------------------------------------


def _nvidia(source: Source, found: Cards, names: Sequence[str]) -> None:
    known = source.known
    if source.labels.get("nvidia.com/mig.config.state") in UNSETTLED:
        source.assume("MIG is being configured", "the resources are as the node states them now")
    for name in (GPU, SHARED):
        if name not in names:
            continue
        shared = name == SHARED or (known.sharing != "" and SHARED not in names)
        if known.profile:
            if shared and (known.sharing or name == SHARED):
                source.assume("MIG instances that are shared in turn", KEPT)
            else:
                _instances(source, found, {name: known.profile}, None)
        elif shared:
            _shared(source, found, name)
        else:
            _whole(source, found, name)
    profiles = _mixed(source, names)
    if profiles:
        whole = found.number
        physical = None if known.count is None else known.count - whole
        if physical is not None and physical <= 0:
            source.disagree("MIG instances beside as many whole cards as the labels count", "the resources")
            physical = None
        _instances(source, found, profiles, physical)
    elif known.count and not known.profile and not known.sharing and found.number not in (0, known.count):
        source.disagree("the label nvidia.com/gpu.count and the cards of the resource", "the resource")


def _whole(source: Source, found: Cards, name: str) -> None:
    working, there = source.units(name)
    if there > MOST_CARDS:
        source.disagree(f"more than {MOST_CARDS} cards in a node", KEPT)
        return
    if there > working:
        source.disagree("cards that are there and not allocatable", "they are unhealthy, those with the last indices")
    found.offer(name, found.add(working, there - working, **_what(source)))


def _what(source: Source) -> dict[str, object]:
    known = source.known
    if not known.model:
        source.assume("cards of which no label says the model", f"the model {UNKNOWN}")
    if source.labels.get("nvidia.com/vgpu.present") == "true":
        source.assume("a virtual GPU as the device of a node", "a card of its own, of the memory that it has")
    return {
        "model": known.model or UNKNOWN,
        "memory": known.memory,
        "compute_capability": known.compute_capability,
    }


def _shared(source: Source, found: Cards, name: str) -> None:
    """Add cards of which each counts as several units."""
    known, (working, there) = source.known, source.units(name)
    replicas = known.replicas
    if not known.model:
        source.assume("shared units of which no label says what cards they are", KEPT)
        return
    if replicas == 1 and known.count and there % known.count == 0:
        replicas = there // known.count
        if replicas == 1:
            _whole(source, found, name)
            return
        source.assume("shared cards without a label of their replicas", "units divided by cards")
    elif replicas > 1 and there % replicas:
        if not known.count or there % known.count:
            source.disagree("units of a shared resource that are no multiple of the replicas", KEPT)
            return
        source.disagree(
            "units of a shared resource that are no multiple of the replicas", "the label nvidia.com/gpu.count"
        )
        replicas = there // known.count
    if replicas == 1 or there // replicas > MOST_CARDS:
        source.assume("shared units of which no label says how many a card is", KEPT)
        return
    number = there // replicas
    if known.count is not None and number != known.count:
        source.disagree("the label nvidia.com/gpu.count and the cards of the resource", "the resource")
    broken = -(-(there - working) // replicas)
    if broken:
        source.disagree("cards that are there and not allocatable", "they are unhealthy, those with the last indices")
    if not known.sharing:
        source.assume("how replicas share a card", "by time-slicing")
    sharing = known.sharing or "time_slicing"
    found.offer(name, found.add(number - broken, broken, sharing=sharing, replicas=replicas, **_what(source)), replicas)


# --- MIG -------------------------------------------------------------------------------------------------------


def _mixed(source: Source, names: Sequence[str]) -> dict[str, str]:
    """Return the profile of each resource that stands for MIG instances that are not shared."""
    stated = mig_labels(source.labels)
    profiles = {}
    for name in names:
        if not name.startswith(MIG):
            continue
        label = name.removeprefix(MIG)
        count, replicas = stated.pop(label, ("", ""))
        if label.endswith(".shared") or (replicas.isdigit() and int(replicas[:9]) > 1):
            source.assume("MIG instances that are shared in turn", KEPT)
            continue
        if count and count != str(source.units(name)[1]):
            source.disagree("the number of MIG instances in labels and in the resource", "the resource")
        profiles[name] = mig.plain_profile(label)
    for label, (count, _) in stated.items():
        if count.strip("0") and not source.amounts.has(f"{MIG}{label}.shared"):
            source.disagree("a MIG profile in the labels that no resource is called by", "the resources")
    return profiles


def _instances(source: Source, found: Cards, profiles: Mapping[str, str], physical: int | None) -> None:
    """Add the cards that hold MIG instances, given the profile of each resource."""
    units = {name: source.units(name) for name in profiles}
    model = source.known.model
    geometry = mig.geometry(model) if model else None
    if geometry is None:
        source.assume("MIG instances on cards of which no MIG geometry is known", KEPT)
        return
    kinds = {name: geometry.profile(profile) for name, profile in profiles.items()}
    if None in kinds.values():
        source.disagree("a MIG profile that the card model does not have", KEPT)
    named = {name: kind.name for name, kind in kinds.items() if kind is not None}
    if not named:
        return
    wanted = tuple((profile, units[name][1]) for name, profile in named.items())
    layouts = distributed(model, wanted, physical if len(named) == len(kinds) else None)
    if layouts is None and physical is not None:
        layouts = distributed(model, wanted, None)
        if layouts is not None:
            source.disagree("MIG instances that do not fit the cards that the labels count", "the instances")
    if layouts is None or found.number + len(layouts) > MOST_CARDS:
        source.disagree("MIG instances that no legal layouts hold", KEPT)
        return
    if physical is None:
        source.assume("how many cards hold the MIG instances", "the fewest that can")
    source.assume("where MIG instances are", "a legal layout of each card, the same on all where that is possible")
    working: dict[str, int] = {}
    for name, profile in named.items():
        working[profile] = working.get(profile, 0) + units[name][0]
    if any(working[profile] < count for profile, count in _summed(wanted).items()):
        source.disagree("MIG instances that are there and not allocatable", "those on the last cards do not work")
    places = _add_layouts(source, found, layouts, working)
    for name, profile in named.items():
        mine = places.get(profile, [])
        number = units[name][1]
        found.taken.add(name)
        found.offers[name] = Offer(
            tuple(card for card, _ in mine[:number]), 1, profile, tuple(start for _, start in mine[:number])
        )
        places[profile] = mine[number:]


def _summed(wanted: Sequence[tuple[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for profile, count in wanted:
        total[profile] = total.get(profile, 0) + count
    return total


def _add_layouts(
    source: Source, found: Cards, layouts: Sequence[Layout], working: dict[str, int]
) -> dict[str, list[tuple[int, int]]]:
    """Add a card for each layout; return card and first slot of the instances of each profile.

    Of each profile so many instances work: the first. A card of which none works is unhealthy; on others those that do
    not work are left out.
    """
    left = dict(working)
    places: dict[str, list[tuple[int, int]]] = {}
    for layout in layouts:
        works = []
        for profile, start in layout:
            if left[profile] > 0:
                left[profile] -= 1
                works.append((profile, start))
        broken = bool(layout) and not works
        kept = layout if broken else tuple(works)
        card = found.number
        gpu = Gpu(
            model=source.known.model,
            memory=_card_memory(source.known),
            compute_capability=source.known.compute_capability,
            health="unhealthy" if broken else "healthy",
            mig_enabled=True,
            mig_static=True,
            mig_layout=tuple(MigInstance(profile=profile, start=start) for profile, start in kept),
        )
        append(found.gpus, gpu)
        for profile, start in kept:
            places.setdefault(profile, []).append((card, start))
    return places


def append(gpus: list[Gpu], gpu: Gpu) -> None:
    """Append a card, or count up the last entry if it is such."""
    last = gpus[-1] if gpus else None
    if last is not None and _like(last) == _like(gpu):
        gpus[-1] = Gpu(**{**_like(gpu), "count": last.count + 1})
    else:
        gpus.append(gpu)


def _like(gpu: Gpu) -> dict[str, object]:
    return {key: getattr(gpu, key) for key in gpu.__struct_fields__ if key != "count"}


def _card_memory(known: CardLabels) -> str | None:
    geometry = mig.geometry(known.model)
    stated = None if geometry is None or geometry.memory is None else f"{geometry.memory}Mi"
    return known.memory or stated


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
        if source.known.model and mig.geometry(source.known.model) == mig.geometry(card.model) is not None:
            model = source.known.model
        else:
            model = card.model or source.known.model or UNKNOWN
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
        models = (source.labels[key] for key in family.models if source.labels.get(key))
        model = source.known.model or next(models, family.model)
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
            memory=source.known.memory,
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
