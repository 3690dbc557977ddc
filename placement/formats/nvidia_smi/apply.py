"""What nvidia-smi says of a node, on the node of a snapshot: what is new is taken over, what differs is noted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from placement.formats.ledger import Ledger
from placement.formats.nvidia_smi.facts import Card, Facts
from placement.formats.nvidia_smi.layout import layout
from placement.formats.nvidia_smi.zones import links, zones
from placement.hardware import mig
from placement.snapshot import Gpu, Node, NumaZone

Held = Mapping[int, frozenset[tuple[str, int]]]
"""Cards of a node that running tasks hold, and on each the profile and first slot of their MIG instances."""


def applied(node: Node, facts: Facts, held: Held, of_one: bool, ledger: Ledger) -> Node:
    """Return a node with what is said of it.

    Parameters
    ----------
    node : Node
        Without cards where nothing is known of it.
    facts : Facts
    held : mapping
    of_one : bool
        Whether the facts are of this very node; else of one like it, and its names, instances and health are not taken.
    ledger : Ledger
    """
    where = facts.file.name
    if not of_one:
        if any(card.uuid for card in facts.cards.values()):
            ledger.ignored("UUIDs of cards", "the file is given for several nodes", where)
        if any(card.mig or card.healthy is False for card in facts.cards.values()):
            ledger.unsupported("MIG mode and health of cards", "the file is given for several nodes", where)
    total = sum(gpu.count for gpu in node.gpus)
    count = facts.matrix.cards if facts.matrix is not None else facts.total
    if count is None and facts.cards:
        count = total or max(facts.cards) + 1
    if facts.matrix is not None and facts.total is not None and facts.total != facts.matrix.cards:
        what = f"the matrix has {facts.matrix.cards} cards, and another output lists {facts.total}"
        raise facts.file.error(what, "give outputs of one node")
    outside = count is not None and max(facts.cards, default=0) >= max(count, 1)
    if (total and count is not None and count != total) or outside:
        ledger.contradiction("number of cards of a node", "the snapshot; what nvidia-smi says is not taken", where)
        return node
    if count is not None:
        cards: list[Gpu | None] = [gpu for gpu in node.gpus for _ in range(gpu.count)] or [None] * count
        node = msgspec.structs.replace(
            node,
            gpus=_runs(
                _card(gpu, facts.cards.get(index, Card(where=where)), index, facts, held, of_one, ledger)
                for index, gpu in enumerate(cards)
            ),
            driver=_version(node.driver, facts.driver, "driver version of a node", where, ledger),
            cuda=_version(node.cuda, facts.cuda, "CUDA version of a node", where, ledger),
        )
        if of_one and node.count == 1:
            node = _named(node, facts, count, ledger)
    if facts.matrix is not None:
        found = links(facts.matrix, where, ledger)
        if node.links and found and _sorted(node) != [(one.a, one.b, one.kind, one.width) for one in found]:
            ledger.contradiction("links of the cards", "nvidia-smi", where)
        node = msgspec.structs.replace(
            node,
            links=found or node.links,
            zones=_zones(node.zones, zones(facts.matrix, where, ledger), where, ledger),
        )
    return node


def _sorted(node: Node) -> list[tuple[int, int, str, int]]:
    return sorted((min(one.a, one.b), max(one.a, one.b), one.kind, one.width) for one in node.links)


def _version(mine: str, said: str, what: str, where: str, ledger: Ledger) -> str:
    if said and not all(part.isascii() and part.isdigit() for part in said.split(".")):
        ledger.ignored(what, "it is no version such as 550.54.14", where)
        return mine
    if mine and said and mine != said:
        ledger.contradiction(what, "the snapshot", where)
    return mine or said


def _named(node: Node, facts: Facts, count: int, ledger: Ledger) -> Node:
    """Return the node with the names of its cards, where all are known and it has none."""
    uuids = tuple(facts.cards[index].uuid if index in facts.cards else "" for index in range(count))
    if not all(uuids):
        return node
    if not node.devices:
        if len(set(uuids)) < count:
            ledger.ignored("UUIDs of cards", "several cards have the same", facts.file.name)
            return node
        return msgspec.structs.replace(node, devices=uuids)
    # other names than UUIDs are those of another system
    if node.devices != uuids and all(name.startswith("GPU-") for name in node.devices):
        ledger.contradiction("UUIDs of the cards of a node", "the snapshot", facts.file.name)
    return node


# --- cards -------------------------------------------------------------------------------------------------------


def _runs(cards: Iterator[Gpu]) -> tuple[Gpu, ...]:
    """Return cards with equal neighbours in one entry."""
    runs: list[Gpu] = []
    for card in cards:
        if runs and msgspec.structs.replace(runs[-1], count=1) == card:
            runs[-1] = msgspec.structs.replace(runs[-1], count=runs[-1].count + 1)
        else:
            runs.append(card)
    return tuple(runs)


def _card(gpu: Gpu | None, card: Card, index: int, facts: Facts, held: Held, of_one: bool, ledger: Ledger) -> Gpu:
    if gpu is None:
        if not card.model:
            ledger.assumed("model of a card", '"unknown": no output names it', card.where)
        gpu = Gpu(model=card.model or "unknown")
    elif card.model and not _same(gpu.model, card.model):
        ledger.contradiction("model of a card", "the snapshot", card.where)
    memory, capability = gpu.memory, gpu.compute_capability
    if memory is None and card.memory is not None:
        memory = f"{card.memory}Mi"
    health = "unhealthy" if card.healthy is False and of_one else gpu.health
    gpu = msgspec.structs.replace(
        gpu,
        count=1,
        memory=memory,
        health=health,
        compute_capability=capability or card.compute_capability,
    )
    return _with_mig(gpu, card, facts, held, index, ledger) if of_one and card.mig is not None else gpu


def _same(mine: str, said: str) -> bool:
    """Return whether two names are of one model.

    Labels are cut to 63 characters, cards go by several names, and a scheduler's may be a part of the product's, such
    as ``a100``, or say nothing.
    """
    first, second = (name.lower().removeprefix("nvidia-") for name in (mine, said))
    words = set(re.split(r"[-_ ]", first))
    if words == {"gpu"} or words <= set(re.split(r"[-_ ]", second)):
        return True
    one, other = mig.geometry(mine), mig.geometry(said)
    if one is not None and other is not None:
        return one is other
    return len(mine) >= 50 and second.startswith(first)


def _with_mig(gpu: Gpu, card: Card, facts: Facts, held: Held, index: int, ledger: Ledger) -> Gpu:
    """Return a card with its MIG mode and the instances that exist."""
    if not card.mig:
        if gpu.mig_enabled:
            ledger.contradiction("MIG mode of a card", "the snapshot", card.where)
        return gpu
    tasks = held.get(index)
    if not gpu.mig_enabled and tasks is not None:
        ledger.contradiction("MIG mode of a card on which a task holds the whole", "the snapshot", card.where)
        return gpu
    geometry = mig.geometry(gpu.model) or mig.geometry(card.model)
    if geometry is None:
        what = "MIG instances of a card model that the catalogue lacks"
        ledger.unsupported(what, "the card takes no work, as if unhealthy", card.where)
        return msgspec.structs.replace(gpu, health="unhealthy")
    if mig.geometry(gpu.model) is None:
        gpu = msgspec.structs.replace(gpu, model=card.model)
    if card.instances is None:
        ledger.assumed("MIG instances of a card", "none: the output does not list them", card.where)
    found = layout(card, geometry, facts.file, ledger)
    there = {(one.profile, one.start) for one in found}
    known = {(profile.name, start) for name, start in tasks or () if (profile := geometry.profile(name)) is not None}
    if not known <= there:
        ledger.contradiction("MIG instances of a card", "what runs on it; other instances are left out", card.where)
        return gpu
    if gpu.mig_layout and {(one.profile, one.start) for one in gpu.mig_layout} != there:
        ledger.contradiction("MIG instances of a card", "nvidia-smi", card.where)
    return msgspec.structs.replace(gpu, mig_enabled=True, mig_layout=found)


# --- zones -------------------------------------------------------------------------------------------------------


def _zones(mine: Sequence[NumaZone], said: tuple[NumaZone, ...], where: str, ledger: Ledger) -> tuple[NumaZone, ...]:
    """Return the zones of a node with cards and NICs; CPU and memory that are known stay."""
    if not said or not mine:
        return said or tuple(mine)
    by_id = {zone.id: zone for zone in said}
    if not by_id.keys() <= {zone.id for zone in mine}:
        ledger.contradiction("numbers of NUMA zones of a node", "the snapshot", where)
        return tuple(mine)
    if any(zone.nics for zone in mine):
        if {nic.name for zone in mine for nic in zone.nics} != {nic.name for zone in said for nic in zone.nics}:
            ledger.contradiction("NICs of a node", "the snapshot", where)
            return tuple(mine)
        rails = {nic.name: nic for zone in mine for nic in zone.nics}
    else:
        rails = {}
    if any(zone.gpus and set(zone.gpus) != set(by_id[zone.id].gpus if zone.id in by_id else ()) for zone in mine):
        ledger.contradiction("cards of NUMA zones", "nvidia-smi", where)
    cpus = {zone.id: zone.cpus for zone in mine if zone.cpus}
    merged = []
    for zone in mine:
        other = by_id.get(zone.id, NumaZone(id=zone.id))
        merged.append(
            msgspec.structs.replace(
                zone,
                # lists of two systems may overlap
                cpus=zone.cpus if cpus else other.cpus,
                gpus=other.gpus,
                nics=tuple(rails.get(nic.name, nic) for nic in other.nics),
                switches=other.switches,
            )
        )
    return tuple(merged)
