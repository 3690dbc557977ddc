"""Rules for the NUMA zones of a node: where its cards and NICs are, and how its CPU and memory are split.

A node lists all of its zones or none. With a card in no zone, or with CPU of which nobody knows where it is, every
answer to "does this fit one zone?" would be a guess.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from decimal import Decimal
from fractions import Fraction

from placement import units
from placement.snapshot.cluster import Gpu, NumaZone
from placement.snapshot.fields import (
    MOST_CARDS,
    MOST_CPUS,
    MOST_ZONES,
    distinct,
    name,
    quantity,
    whole,
    wrong_name,
)
from placement.snapshot.report import Found, names, show
from placement.units import Quantity

_CPUS = re.compile(r"[0-9]{1,6}(-[0-9]{1,6})?(,[0-9]{1,6}(-[0-9]{1,6})?)*", re.ASCII)

Range = tuple[int, int, int]
"""First and last CPU, and the zone that lists them."""


def judge_zones(
    zones: tuple[NumaZone, ...], cpu: Quantity | None, memory: Quantity | None, cards: int | None
) -> Iterator[Found]:
    """Yield what is wrong with the zones of a node that has so much CPU and memory, and so many cards.

    None stands for a number of cards that is wrong itself, which is all there is to say of it.
    """
    if not zones:
        return
    if len(zones) > MOST_ZONES:
        yield ".zones", f"there are {len(zones):,} zones, expected at most {MOST_ZONES}", "keep those with CPUs"
    yield from distinct(".zones", [zone.id for zone in zones], "zone")
    for index, zone in enumerate(zones):
        end = f".zones[{index}]"
        yield from whole(f"{end}.id", zone.id)
        yield from quantity(f"{end}.cpu", zone.cpu)
        yield from quantity(f"{end}.memory", zone.memory)
    yield from _cpus(zones)
    yield from _sum(zones, "cpu", cpu)
    yield from _sum(zones, "memory", memory)
    yield from _cards(zones, cards)
    yield from _nics(zones)
    switches: dict[str, int] = {}
    for index, zone in enumerate(zones):
        yield from _switches(index, zone, switches, cards)


def _cpus(zones: tuple[NumaZone, ...]) -> Iterator[Found]:
    """Yield lists of CPUs that cannot be read, and CPUs that are listed twice."""
    ranges: list[Range] = []
    for index, zone in enumerate(zones):
        if not zone.cpus:
            continue
        end = f".zones[{index}].cpus"
        if not _CPUS.fullmatch(zone.cpus):
            yield end, f"found {show(zone.cpus)}, expected a list such as 0-31,64-95", "write the CPU list"
            continue
        for part in zone.cpus.split(","):
            first, _, last = part.partition("-")
            low, high = int(first), int(last or first)
            if low > high:
                yield end, f"the range {part} runs backwards", f"write {high}-{low}, if that is meant"
            elif high >= MOST_CPUS:
                yield end, f"there is CPU {high}, expected at most {MOST_CPUS - 1:,}", "correct the CPU list"
            else:
                ranges.append((low, high, index))
    reach: Range = (-1, -1, 0)
    for low, high, index in sorted(ranges):
        if low <= reach[1]:
            first_zone, second = sorted((reach[2], index))
            where = f"zones[{first_zone}] too" if first_zone != second else "this list twice"
            yield f".zones[{second}].cpus", f"CPU {low} is in {where}", "keep it once"
        if high > reach[1]:
            reach = (low, high, index)


def _sum(zones: tuple[NumaZone, ...], key: str, of_node: Quantity | None) -> Iterator[Found]:
    """Yield whether zones state an amount and it is not that of the node."""
    amounts: list[Quantity | None] = [getattr(zone, key) for zone in zones]
    stated = [amount for amount in amounts if amount is not None]
    if not stated:
        return
    if len(stated) < len(zones):
        missing = amounts.index(None)
        other = next(index for index, amount in enumerate(amounts) if amount is not None)
        what = f"the zone states no `{key}`, but zones[{other}] does"
        yield f".zones[{missing}].{key}", what, "state it for every zone of the node, or for none"
        return
    if any(_wrong(amount) for amount in (*stated, of_node)):
        return  # that has been said
    total = sum(map(units.exact, stated), Fraction(0))
    unit = "cores" if key == "cpu" else "bytes"
    in_all = f"its zones state {_plain(total)} {unit} in all"
    if of_node is None:
        yield f".{key}", f"the node states no `{key}`, but {in_all}", "give the node the sum, or its zones none"
    elif units.exact(of_node) != total:
        what = f"the node states {show(of_node)}, which is {_plain(units.exact(of_node))} {unit}, but {in_all}"
        yield f".{key}", what, "make them equal: both are what tasks may use, without what the system keeps"


def _wrong(amount: Quantity | None) -> bool:
    return next(quantity("", amount), None) is not None


def _plain(amount: Fraction) -> str:
    return f"{Decimal(amount.numerator) / Decimal(amount.denominator)}"


def _cards(zones: tuple[NumaZone, ...], cards: int | None) -> Iterator[Found]:
    """Yield cards that are in no zone or in two, or are not there."""
    owner: dict[int, int] = {}
    for index, zone in enumerate(zones):
        end = f".zones[{index}].gpus"
        for number, card in enumerate(zone.gpus):
            if outside(card, cards):
                remedy = "cards are counted from 0 through the entries of `gpus`"
                yield f"{end}[{number}]", no_card(card, cards), remedy
            elif owner.setdefault(card, index) != index:
                yield f"{end}[{number}]", f"card {card} is in zones[{owner[card]}] already", "keep it in one zone"
        yield from distinct(end, zone.gpus, "card")
    if cards is None or any(outside(card, cards) for zone in zones for card in zone.gpus):
        return  # that has been said, and what is left may be what was meant
    left = [card for card in range(cards) if card not in owner]
    if left:
        what = f"card {left[0]} is in no zone" if len(left) == 1 else f"cards {names(left)} are in no zone"
        yield ".zones", what, "list every card of the node in the `gpus` of one zone"


def cards_of(gpus: tuple[Gpu, ...]) -> int | None:
    """Return how many cards a node has; None where their number is wrong, however large it is."""
    total = sum(gpu.count for gpu in gpus)
    return total if total <= MOST_CARDS and all(gpu.count >= 1 for gpu in gpus) else None


def outside(card: int, cards: int | None) -> bool:
    """Return whether a node with so many cards cannot have this one."""
    return card < 0 or (cards is not None and card >= cards)


def no_card(card: int, cards: int | None, node: str = "the node") -> str:
    """Return that a node has no such card."""
    if cards is None:
        return f"there is no card {show(card)}: cards are counted from 0"
    has = f"has cards 0 to {cards - 1}" if cards > 1 else "has card 0 alone" if cards == 1 else "has no cards"
    return f"there is no card {show(card)}: {node} {has}"


def _nics(zones: tuple[NumaZone, ...]) -> Iterator[Found]:
    """Yield NICs whose names cannot be read, or are those of others."""
    owner: dict[str, int] = {}
    for index, zone in enumerate(zones):
        end = f".zones[{index}].nics"
        for number, nic in enumerate(zone.nics):
            yield from name(f"{end}[{number}].name", nic.name)
            if nic.rail:
                yield from name(f"{end}[{number}].rail", nic.rail)
            if owner.setdefault(nic.name, index) != index:
                what = f"{show(nic.name)} is in zones[{owner[nic.name]}] already"
                yield f"{end}[{number}].name", what, "keep it in one zone"
        yield from distinct(end, [nic.name for nic in zone.nics], "NIC")


def _switches(index: int, zone: NumaZone, before: dict[str, int], cards: int | None) -> Iterator[Found]:
    """Yield switches with the names of others, and what is below them and not in their zone, or below two."""
    below: set[int | str] = set()
    # where the list of the zone is wrong itself, that has been said
    misread = any(outside(card, cards) for card in zone.gpus), any(wrong_name(nic.name) for nic in zone.nics)
    of_zone: list[tuple[str, str, Collection[int | str], bool]] = [
        ("card", "gpus", frozenset(zone.gpus), misread[0]),
        ("NIC", "nics", frozenset(nic.name for nic in zone.nics), misread[1]),
    ]
    for number, switch in enumerate(zone.switches):
        where = f".zones[{index}].switches[{number}]"
        yield from name(f"{where}.name", switch.name)
        if switch.name in before:
            what = f"zones[{before[switch.name]}] has a switch {show(switch.name)} already"
            yield f"{where}.name", what, "give each switch of the node its own name"
        before.setdefault(switch.name, index)
        for kind, key, known, unsure in of_zone:
            for position, device in enumerate(getattr(switch, key)):
                if device not in known and not unsure:
                    what = f"{kind} {show(device)} is not in this zone"
                    yield f"{where}.{key}[{position}]", what, "list it there too"
                elif device in below:
                    yield f"{where}.{key}[{position}]", f"{kind} {show(device)} is listed twice", "keep it once"
                below.add(device)
