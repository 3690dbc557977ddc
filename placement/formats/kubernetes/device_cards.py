"""Cards that ResourceSlices list: alone, or beside a resource that offers the same ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import msgspec

from placement.formats.dra.slices import DRIVER_LABEL, NVIDIA, POOL_LABEL
from placement.formats.kubernetes.found import Cards, Source, append
from placement.formats.kubernetes.node_labels import UNKNOWN
from placement.formats.kubernetes.parts import Claim, Device
from placement.formats.kubernetes.vendors import vendor_of
from placement.hardware import mig
from placement.hardware.layouts import Instance, clash, in_order
from placement.snapshot import Gpu, MigInstance
from placement.snapshot.fields import MOST_CARDS, wrong_name


def cut_cards(claims: Iterable[Claim]) -> dict[str, set[int]]:
    """Return by node the cards of which a claim has a MIG instance."""
    found: dict[str, set[int]] = {}
    for claim in claims:
        for part in (claim, *claim.more):
            if part.node and part.profile:
                found.setdefault(part.node, set()).update(part.cards)
    return found


def add_devices(source: Source, found: Cards, devices: Sequence[Device], driver: str, cut: Collection[int]) -> None:
    """Add the cards that slices list for a node; where a resource of their vendor offers cards too, they are the same.

    Cards of other vendors come after them.

    Parameters
    ----------
    source : Source
    found : Cards
        Those of the resources.
    devices : sequence of Device
    driver : str
        Of the devices.
    cut : collection of int
        Cards of which some claim has a MIG instance.
    """
    if not devices:
        return
    if len(devices) > MOST_CARDS:
        source.disagree(f"more than {MOST_CARDS} cards in the slices of a node", "they are left out")
        return
    others = _others(found, driver)
    if not others:
        _add(source, found, devices, cut)
        return
    if found.number + len(devices) > MOST_CARDS:
        source.disagree(f"more than {MOST_CARDS} cards in a node", "those of the slices are left out")
        return
    after = _apart(found, others)
    before = found.number
    _add(source, found, devices, cut)
    shift = found.number - before
    found.gpus += after
    for name in others:
        offer = found.offers[name]
        found.offers[name] = replace(offer, cards=tuple(card + shift for card in offer.cards))
    # names and zones are of all cards or of none
    found.devices, found.numa = [], []


def _add(source: Source, found: Cards, devices: Sequence[Device], cut: Collection[int]) -> None:
    """Add the cards of slices, where those of resources are the same ones."""
    if found.number not in (0, len(devices)):
        source.disagree("the cards of a resource and of the slices of a node", "the larger number")
        if found.number > len(devices) or not _plain(found.gpus):
            return
    if _plain(found.gpus):
        found.gpus.clear()
        for index, device in enumerate(devices):
            append(found.gpus, _card(source, device, index in cut))
    names = [device.name for device in devices]
    if not found.devices and all(names) and len(set(names)) == len(names):
        found.devices = names


def _others(found: Cards, driver: str) -> list[str]:
    """Return the resources whose cards are not of a driver's vendor."""
    vendor = driver.removeprefix("gpu.").removesuffix(".com")
    return [name for name in found.offers if vendor_of(name) != vendor]


def _apart(found: Cards, others: Sequence[str]) -> list[Gpu]:
    """Put the cards of some resources behind all others, and take them away."""
    cards = [msgspec.structs.replace(gpu, count=1) for gpu in found.gpus for _ in range(gpu.count)]
    theirs = {card for name in others for card in found.offers[name].cards}
    order = sorted(range(len(cards)), key=lambda card: (card in theirs, card))
    index = {card: number for number, card in enumerate(order)}
    for name, offer in found.offers.items():
        found.offers[name] = replace(offer, cards=tuple(index[card] for card in offer.cards))
    found.gpus = []
    rest: list[Gpu] = []
    for card in order:
        append(rest if card in theirs else found.gpus, cards[card])
    return rest


def _plain(gpus: Sequence[Gpu]) -> bool:
    """Return whether cards are whole and working, so that slices say more of them."""
    return all(gpu.health == "healthy" and gpu.replicas is None and not gpu.mig_enabled for gpu in gpus)


def _card(source: Source, device: Device, cut: bool) -> Gpu:
    model = device.model or source.known.model or UNKNOWN
    geometry = mig.geometry(model)
    instances: list[Instance] = []
    if device.profiles and geometry is not None:
        for name, starts in device.profiles.items():
            profile = geometry.profile(name)
            if profile is None:
                source.disagree("a MIG profile that the card model does not have", "it is left out")
            else:
                instances += [(profile, start) for start in starts]
    elif device.profiles:
        source.assume("MIG devices of a card of which no MIG geometry is known", "a whole card")
    # the driver lists a card whole and in all instances that it could have, or in those that it has
    static = bool(instances) and not device.whole and geometry is not None and clash(geometry, instances) is None
    enabled = bool(instances) and (cut or not device.whole)
    if instances and not enabled:
        source.assume("a card that slices list whole and in MIG instances", "whole, for no claim has an instance of it")
    return Gpu(
        model=model,
        memory=device.memory if device.memory is not None else source.known.memory,
        compute_capability=device.compute_capability or source.known.compute_capability,
        health="healthy" if device.healthy else "unhealthy",
        mig_enabled=enabled,
        mig_static=static,
        mig_switchable=bool(instances) and device.whole,
        mig_layout=tuple(MigInstance(profile=one.name, start=start) for one, start in in_order(instances))
        if static
        else (),
    )


def pool_labels(node: str, driver: str, pool: str) -> dict[str, str]:
    """Return the labels that say driver and pool of a node's cards, where these are not what a writer assumes."""
    labels = {DRIVER_LABEL: driver} if driver != NVIDIA else {}
    return labels if pool == node or wrong_name(pool) else {**labels, POOL_LABEL: pool}
