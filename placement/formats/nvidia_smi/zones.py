"""What a matrix of ``nvidia-smi topo -m`` means for a node: links, NUMA zones and PCIe switches."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import cast

import msgspec

from placement.formats.ledger import Ledger
from placement.formats.nvidia_smi.topology import NEAR, Matrix
from placement.snapshot import Link, Nic, NumaZone, PcieSwitch
from placement.snapshot.fields import MOST_ZONES

_RANGES = re.compile(r"\d{1,6}-\d{1,6}(,\d{1,6}-\d{1,6})*", re.ASCII)


def links(matrix: Matrix, where: str, ledger: Ledger) -> tuple[Link, ...]:
    """Return the links between cards; none where NVLink is hidden, for what is printed then is not the best path."""
    if matrix.hides_nvlink:
        ledger.unsupported("links of the cards", "`topo -mp` does not show NVLink: print `topo -m`", where)
        return ()
    found = []
    for a in range(matrix.cards):
        for b in range(a + 1, matrix.cards):
            kind, width = matrix.kinds[f"GPU{a}", f"GPU{b}"]
            # a cell is one of the kinds, which the reader of the matrix has seen to
            found.append(msgspec.convert({"a": a, "b": b, "kind": kind, "width": width}, Link))
    if found and not any(link.kind == "NVLINK" for link in found):
        if matrix.old:
            ledger.assumed("links without NVLink", "the driver is from before it, and there is none", where)
        elif not matrix.legend:
            ledger.assumed("links without NVLink and without a legend", "`topo -m` was asked, and there is none", where)
    return tuple(found)


def zones(matrix: Matrix, where: str, ledger: Ledger) -> tuple[NumaZone, ...]:
    """Return the NUMA zones that have cards, in the order of their numbers; none where they cannot be told.

    `GPU NUMA ID` is not looked at: it numbers the memory of the card, where there are no CPUs.
    """
    of_card = _zone_of_cards(matrix, where, ledger)
    if of_card is None:
        return ()
    ids = sorted(set(of_card))
    if len(ids) > MOST_ZONES:
        ledger.unsupported("NUMA zones", f"there are more than {MOST_ZONES}", where)
        return ()
    _note_near_across(matrix, of_card, where, ledger)
    of_nic = _zone_of_nics(matrix, of_card, where, ledger)
    below = _switches(matrix, of_card, of_nic, where, ledger)
    cpus = _cpus(matrix, of_card, where, ledger)
    return tuple(
        NumaZone(
            id=number,
            cpus=cpus.get(number, ""),
            gpus=tuple(card for card, zone in enumerate(of_card) if zone == number),
            nics=tuple(Nic(name=name) for column, name in matrix.nics.items() if of_nic.get(column) == number),
            switches=tuple(switch for zone, switch in below if zone == number),
        )
        for number in ids
    )


# --- cards -------------------------------------------------------------------------------------------------------


def _zone_of_cards(matrix: Matrix, where: str, ledger: Ledger) -> list[int] | None:
    """Return the zone of each card: by its number, else by its CPUs, else by what is near what."""
    if matrix.numa and all(re.fullmatch(r"\d{1,4}", text) for text in matrix.numa):
        return [int(text) for text in matrix.numa]
    if any(re.search(r"\d", text) for text in matrix.numa):
        ledger.unsupported("NUMA zones", "some card is in none, or in several", where)
        return None
    said = [text if re.search(r"\d", text) else "" for text in matrix.cpus]
    groups = list(dict.fromkeys(text for text in said if text))
    if len(groups) > 1 and all(said):
        ledger.assumed("numbers of NUMA zones", "counted from 0 by the CPUs that are near cards", where)
        return [groups.index(text) for text in said]
    cards = [f"GPU{number}" for number in range(matrix.cards)]
    far = any(matrix.kinds.get((one, other), ("", 0))[0] == "SYS" for one in cards for other in cards)
    if not far and len(groups) < 2:
        ledger.assumed("NUMA zones", "one: no card is said to be in another, or far from the others", where)
        return [0] * matrix.cards
    roots = _joined(matrix, NEAR)
    parts = list(dict.fromkeys(roots[card] for card in cards))
    apart = {(roots[one], roots[other]) for (one, other), (kind, _) in matrix.kinds.items() if kind == "SYS"}
    if all((one, other) in apart for one in parts for other in parts if one != other):
        ledger.assumed("numbers of NUMA zones", "counted from 0 by what is near what", where)
        return [parts.index(roots[card]) for card in cards]
    ledger.unsupported("NUMA zones", "which cards share one is not said", where)
    return None


def _note_near_across(matrix: Matrix, of_card: list[int], where: str, ledger: Ledger) -> None:
    for a, zone in enumerate(of_card):
        for b in range(a + 1, matrix.cards):
            if of_card[b] != zone and matrix.kinds[f"GPU{a}", f"GPU{b}"][0] in NEAR:
                ledger.contradiction(
                    "cards of two NUMA zones with a path within one", "the numbers of the zones", where
                )
                return


def _joined(matrix: Matrix, kinds: Iterable[str]) -> dict[str, str]:
    """Return for each device the first one that paths of some kinds lead to."""
    wanted = frozenset(kinds)
    root = {name: name for name in [*(f"GPU{number}" for number in range(matrix.cards)), *matrix.nics]}

    def top(name: str) -> str:
        while root[name] != name:
            name = root[name]
        return name

    order = {name: index for index, name in enumerate(root)}
    for (one, other), (kind, _) in matrix.kinds.items():
        if kind in wanted and top(one) != top(other):
            first, second = sorted((top(one), top(other)), key=order.__getitem__)
            root[second] = first
    return {name: top(name) for name in root}


# --- NICs --------------------------------------------------------------------------------------------------------


def _zone_of_nics(matrix: Matrix, of_card: list[int], where: str, ledger: Ledger) -> dict[str, int]:
    """Return the zone of each NIC by its column: that of the cards that it is nearest to, else what its row says."""
    found: dict[str, int] = {}
    for column in matrix.nics:
        near: dict[str, set[int]] = {}
        for card, zone in enumerate(of_card):
            near.setdefault(matrix.kinds[f"GPU{card}", column][0], set()).add(zone)
        best: set[int] = next((near[kind] for kind in NEAR if kind in near), set())
        said = matrix.nic_numa.get(column, "")
        if not best and said.isdigit() and int(said) in of_card:
            best = {int(said)}
        if len(best) == 1:
            found[column] = best.pop()
        elif best:
            ledger.contradiction("NIC that is equally near to cards of several NUMA zones", "it is left out", where)
        else:
            ledger.ignored("NIC near no card", "its NUMA zone is not said", where)
    if matrix.cut:
        ledger.assumed("rows of NICs that are cut off", "the rows of the cards say where NICs are", where)
    if matrix.unnamed:
        ledger.assumed("names of NICs", "the names of their columns, for the legend lacks them", where)
    return found


def _switches(
    matrix: Matrix, of_card: list[int], of_nic: dict[str, int], where: str, ledger: Ledger
) -> list[tuple[int, PcieSwitch]]:
    """Return zone and devices of each PCIe switch that has a card and something else below it."""
    roots = _joined(matrix, ("PIX", "PXB"))
    members: dict[str, list[str]] = {}
    for name, root in roots.items():
        members.setdefault(root, []).append(name)
    found: list[tuple[int, PcieSwitch]] = []
    for names in members.values():
        cards = [int(name[3:]) for name in names if name not in matrix.nics]
        nics = [name for name in names if name in matrix.nics and name in of_nic]
        if not cards or len(cards) + len(nics) < 2:
            continue
        zones_ = {of_card[card] for card in cards} | {of_nic[nic] for nic in nics}
        if len(zones_) > 1:
            ledger.contradiction("PCIe switch with devices of several NUMA zones", "the numbers of the zones", where)
            continue
        switch = PcieSwitch(name=f"pcie{len(found)}", gpus=tuple(cards), nics=tuple(matrix.nics[nic] for nic in nics))
        found.append((zones_.pop(), switch))
    return found


# --- CPUs --------------------------------------------------------------------------------------------------------


def _cpus(matrix: Matrix, of_card: list[int], where: str, ledger: Ledger) -> dict[int, str]:
    """Return the CPUs of zones, where they are all printed.

    A list of single CPUs is cut by nvidia-smi after a few of them, without a mark.
    """
    by_zone: dict[int, set[str]] = {}
    for zone, text in zip(of_card, matrix.cpus, strict=True):
        if text and text != "N/A":
            by_zone.setdefault(zone, set()).add(text)
    if any(not _RANGES.fullmatch(text) for texts in by_zone.values() for text in texts):
        ledger.ignored("CPU lists that may be cut", "nvidia-smi prints only the first of CPUs that alternate", where)
        return {}
    if any(len(texts) > 1 for texts in by_zone.values()) or _overlap([min(texts) for texts in by_zone.values()]):
        ledger.ignored("CPU lists of zones", "they are not of one zone each", where)
        return {}
    return {zone: texts.pop() for zone, texts in by_zone.items()}


def _overlap(lists: list[str]) -> bool:
    ranges = sorted(
        cast("tuple[int, int]", tuple(map(int, part.split("-")))) for text in lists for part in text.split(",")
    )
    backwards = any(first > last for first, last in ranges)
    return backwards or any(one[1] >= other[0] for one, other in pairwise(ranges))
