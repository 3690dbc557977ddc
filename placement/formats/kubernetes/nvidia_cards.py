"""What the resources of NVIDIA's device plugin stand for: whole cards, shares of cards, MIG instances.

The plugin: https://github.com/NVIDIA/k8s-device-plugin
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

from placement.formats.kubernetes.found import KEPT, Cards, Source, append
from placement.formats.kubernetes.mig_cards import Layout, distributed
from placement.formats.kubernetes.mig_pins import around
from placement.formats.kubernetes.node_labels import UNKNOWN, CardLabels, mig_labels
from placement.formats.kubernetes.parts import Offer
from placement.hardware import mig
from placement.snapshot import Gpu, MigInstance
from placement.snapshot.fields import MOST_CARDS


class _Card(TypedDict):
    model: str
    memory: str | None
    compute_capability: str


GPU, SHARED, MIG = "nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-"

Sharing = Literal["time_slicing", "mps"]

UNSETTLED = ("pending", "rebooting", "failed")
"""States of the MIG manager in which labels and resources may not be those that will be."""


def nvidia_cards(source: Source, found: Cards, names: Sequence[str]) -> None:
    """Add the cards that resources of a node stand for, given the names of all resources."""
    known = source.known
    if source.labels.get("nvidia.com/mig.config.state") in UNSETTLED:
        source.assume("MIG is being configured", "the resources are as the node states them now")
    for name in (GPU, SHARED):
        if name not in names:
            continue
        shared = name == SHARED or (known.sharing != "" and SHARED not in names)
        if known.profile:
            if shared:
                replicas = known.replicas if known.replicas > 1 else _quotient(source.units(name)[1], known.count)
                _turns(source, found, name, known.profile, replicas, known.sharing)
            else:
                _instances(source, found, {name: known.profile}, None)
        elif shared:
            _shared(source, found, name)
        else:
            _whole(source, found, name)
    whole = found.number
    profiles = _mixed(source, found, names)
    if profiles:
        physical = None if known.count is None else known.count - whole
        if physical is not None and physical <= 0:
            source.disagree("MIG instances beside as many whole cards as the labels count", "the resources")
            physical = None
        _instances(source, found, profiles, physical)
    elif known.count and not known.profile and not known.sharing and whole not in (0, known.count):
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
    # the label counts those that are whole too, which are found first
    count = known.count - found.number if known.count is not None and name == SHARED else known.count
    if not known.model:
        source.assume("shared units of which no label says what cards they are", KEPT)
        return
    if replicas == 1 and count and count > 0 and there % count == 0:
        replicas = there // count
        if replicas == 1:
            _whole(source, found, name)
            return
        source.assume("shared cards without a label of their replicas", "units divided by cards")
    elif replicas > 1 and there % replicas:
        if not count or count < 0 or there % count:
            source.disagree("units of a shared resource that are no multiple of the replicas", KEPT)
            return
        source.disagree(
            "units of a shared resource that are no multiple of the replicas", "the label nvidia.com/gpu.count"
        )
        replicas = there // count
    if replicas == 1 or there // replicas > MOST_CARDS:
        source.assume("shared units of which no label says how many a card is", KEPT)
        return
    number = there // replicas
    if count is not None and number != count:
        source.disagree("the label nvidia.com/gpu.count and the cards of the resource", "the resource")
    broken = -(-(there - working) // replicas)
    if broken:
        source.disagree("cards that are there and not allocatable", "they are unhealthy, those with the last indices")
    if not known.sharing:
        source.assume("how replicas share a card", "by time-slicing")
    sharing = known.sharing or "time_slicing"
    found.offer(name, found.add(number - broken, broken, sharing=sharing, replicas=replicas, **_what(source)), replicas)


# --- MIG -------------------------------------------------------------------------------------------------------


def _mixed(source: Source, found: Cards, names: Sequence[str]) -> dict[str, str]:
    """Add instances that are shared, and return the profile of each resource that stands for those that are not."""
    stated = mig_labels(source.labels)
    profiles = {}
    for name in names:
        if not name.startswith(MIG):
            continue
        label = name.removeprefix(MIG)
        plain = label.removesuffix(".shared")
        count, replicas = stated.get(plain, ("", "")) if plain != label else stated.pop(label, ("", ""))
        if plain != label or (_number(replicas) or 0) > 1:
            each = _number(replicas)
            if each is None or each <= 1:
                each = _quotient(source.units(name)[1], _number(count))
            sharing: Sharing = "mps" if source.labels.get(f"{MIG}{plain}.sharing-strategy") == "mps" else "time_slicing"
            _turns(source, found, name, mig.plain_profile(plain), each, sharing)
            continue
        if count and count != str(source.units(name)[1]):
            source.disagree("the number of MIG instances in labels and in the resource", "the resource")
        profiles[name] = mig.plain_profile(label)
    for label, (count, _) in stated.items():
        if count.strip("0") and not source.amounts.has(f"{MIG}{label}.shared"):
            source.disagree("a MIG profile in the labels that no resource is called by", "the resources")
    return profiles


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _quotient(units: int, count: int | None) -> int | None:
    """Return how many units each of some instances is; None where they are not alike."""
    return units // count if count and units % count == 0 else None


def _turns(
    source: Source, found: Cards, name: str, profile: str, replicas: int | None, sharing: Literal["", Sharing]
) -> None:
    """Add MIG instances of which each counts as several units, as cards of their own."""
    model, (working, there) = source.known.model, source.units(name)
    geometry = mig.geometry(model) if model else None
    kind = None if geometry is None else geometry.profile(profile)
    if kind is None or not replicas or replicas < 2 or there % replicas:
        source.assume("shared MIG instances of which the kind, or how many a unit is of, is not known", KEPT)
        return
    if found.number + there // replicas > MOST_CARDS:
        source.disagree(f"more than {MOST_CARDS} cards in a node", KEPT)
        return
    broken = -(-(there - working) // replicas)
    if broken:
        source.disagree("MIG instances that are there and not allocatable", "they are unhealthy, those that come last")
    source.assume("MIG instances that pods share", "each is a card of its own, of the memory that it has")
    cards = found.add(
        there // replicas - broken,
        broken,
        model=model,
        memory=None if kind.memory is None else f"{kind.memory}Mi",
        compute_capability=source.known.compute_capability,
        sharing=sharing or "time_slicing",
        replicas=replicas,
        mig_instance=kind.name,
    )
    found.offer(name, cards, replicas, kind.name)


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
    if layouts is None and physical is not None and _alternatives(geometry, wanted, physical):
        source.assume("as many MIG instances of each profile as cards could have", "cards in which pods get instances")
        found.add(physical, 0, mig_enabled=True, **_card(source.known))
        found.taken.update(named)
        return
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
    layouts = _around(source, found.number, named, layouts)
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


def _around(source: Source, first: int, named: Mapping[str, str], layouts: tuple[Layout, ...]) -> tuple[Layout, ...]:
    """Return layouts in which instances are where annotations of running pods say that they are."""
    pinned: dict[int, list[tuple[str, int]]] = {}
    for resource, card, start in source.pins:
        if resource in named:
            pinned.setdefault(card - first, []).append((named[resource], start))
    laid = around(source.known.model, layouts, pinned)
    if laid is None:
        source.disagree("MIG instances that annotations of running pods say, and those of the node", "the node")
    return layouts if laid is None else laid


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
            **_card(source.known),
            health="unhealthy" if broken else "healthy",
            mig_enabled=True,
            mig_static=True,
            mig_layout=tuple(MigInstance(profile=profile, start=start) for profile, start in kept),
        )
        append(found.gpus, gpu)
        for profile, start in kept:
            places.setdefault(profile, []).append((card, start))
    return places


def _alternatives(geometry: mig.Geometry, wanted: Sequence[tuple[str, int]], cards: int) -> bool:
    """Return whether each of several profiles is counted as if there were no other on the cards."""
    most = [(kind.alone(0) * cards, count) for name, count in wanted if (kind := geometry.profile(name)) is not None]
    return len(most) > 1 and all(count == all_of_it for all_of_it, count in most)


def _card(known: CardLabels) -> _Card:
    geometry = mig.geometry(known.model)
    stated = None if geometry is None or geometry.memory is None else f"{geometry.memory}Mi"
    return _Card(model=known.model, memory=known.memory or stated, compute_capability=known.compute_capability)
