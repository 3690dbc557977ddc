"""NUMA zones of nodes: where their cards, CPU and memory are, as far as the files agree."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import msgspec

from placement.formats.kubernetes.found import Cards
from placement.formats.kubernetes.parts import Zones
from placement.formats.ledger import Ledger
from placement.snapshot import NumaZone
from placement.snapshot.fields import MOST_ZONES
from placement.units import Quantity, exact


def zoned(
    zones: Zones, found: Cards, cpu: Quantity | None, memory: Quantity | None, ledger: Ledger, where: str
) -> tuple[NumaZone, ...]:
    """Return the zones of a node with its cards in them; none where the files do not say where cards are.

    CPU and memory of zones that do not add up to those of the node are left out: then they come from the node as a
    whole.
    """
    held = _held(zones, found, ledger, where)
    if held is None:
        ledger.assumed("zones that do not say where the cards are", "the node has no zones", where)
        return ()
    made = [msgspec.structs.replace(zone, gpus=cards) for zone, cards in zip(zones.zones, held, strict=True)]
    if len(made) > MOST_ZONES:
        ledger.ignored("zones without CPUs and cards", f"a node has {MOST_ZONES} at most", where)
        made = [zone for zone in made if zone.gpus or zone.nics or (zone.cpu is not None and exact(zone.cpu) > 0)]
        if len(made) > MOST_ZONES:
            ledger.contradiction(f"more than {MOST_ZONES} zones with CPUs", "the node has no zones", where)
            return ()
    for name, of_node in (("cpu", cpu), ("memory", memory)):
        stated = [getattr(zone, name) for zone in made]
        if all(value is None for value in stated):
            continue
        if None in stated or of_node is None or sum(map(exact, stated), Fraction(0)) != exact(of_node):
            ledger.contradiction(f"{name} of the zones and of the node", "that of the node, in no zone", where)
            made = [msgspec.structs.replace(zone, **{name: None}) for zone in made]
    return tuple(made)


def _held(zones: Zones, found: Cards, ledger: Ledger, where: str) -> list[tuple[int, ...]] | None:
    """Return the cards of each zone; None where that is not known."""
    number, places = found.number, len(zones.zones)
    if number == 0 or places == 1:
        return [tuple(range(number))] * places
    ids = [zone.id for zone in zones.zones]
    if found.numa and len(found.numa) == number and all(zone in ids for zone in found.numa):
        return [tuple(card for card, zone in enumerate(found.numa) if zone == mine) for mine in ids]
    counts = _counts(zones.cards, found, number) if len(zones.cards) == places else None
    if counts is None:
        return None
    if sum(count > 0 for count in counts) > 1:
        ledger.assumed("which cards are in which zone", "the first in the first zone, as many as it has", where)
    first, held = 0, []
    for count in counts:
        held.append(tuple(range(first, first + count)))
        first += count
    return held


def _counts(stated: Sequence[int], found: Cards, number: int) -> list[int] | None:
    """Return cards by zone, from what may be units that several make a card, or without those that do not work."""
    total = sum(stated)
    if total == number:
        return list(stated)
    replicas = {offer.replicas for offer in found.offers.values()}
    for size in sorted(replicas):
        if size > 1 and total == number * size and not any(count % size for count in stated):
            return [count // size for count in stated]
    if total == sum(gpu.count for gpu in found.gpus if gpu.health == "healthy") and all(
        gpu.health == "unhealthy" for gpu in found.gpus[1:]
    ):
        # those that do not work have the last indices
        return [*stated[:-1], stated[-1] + number - total]
    return None
