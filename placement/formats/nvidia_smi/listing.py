"""``nvidia-smi -L``: cards and MIG devices, one a line."""

from __future__ import annotations

import re

from placement.formats.nvidia_smi.facts import MOST_INDEX, Card, Facts, Instance, model
from placement.formats.source import File

SIGN = re.compile(r"(?m)^GPU \d+: ")
_CARD = re.compile(r"GPU ([0-9]{1,6}): (.+?) \(UUID: (\S+?)\)\s*")
_DEVICE = re.compile(r"\s+MIG (?:([0-9]{1,4})c\.)?([0-9]{1,4})(g\.\S+)\s+Device\s+[0-9]+: \(UUID: \S+\)\s*")
_LOST = re.compile(r"Unable to determine the device handle|GPU is lost|Unknown Error", re.IGNORECASE)


def read(file: File) -> Facts:
    """Return what the list says.

    Raises
    ------
    InputError
        If a line is neither a card nor a MIG device, or the list skips a card.
    """
    facts = Facts(file)
    compute: dict[int, list[tuple[int, int, str]]] = {}
    for number, line in enumerate(file.text().splitlines(), 1):
        where = f"line {number}"
        card, device = _CARD.fullmatch(line), _DEVICE.fullmatch(line)
        if card is not None:
            index = int(card[1])
            if index in facts.cards or index > MOST_INDEX:
                raise file.error(f"card {index} is listed twice, or is too many", "print it again", where)
            facts.cards[index] = Card(model=model(card[2]), uuid=card[3], where=f"{file.name}: {where}")
            last = index
        elif device is not None and facts.cards:
            whole = int(device[2])
            compute.setdefault(last, []).append((int(device[1] or whole), whole, f"{whole}{device[3]}"))
        elif line.strip() and not line.lstrip().startswith(("WARNING", "Warning")):
            if _LOST.search(line):
                what, remedy = "a card does not answer, so that the others are not numbered right", "reset it first"
            else:
                what, remedy = "it is neither a card nor a MIG device", "print it again: nvidia-smi -L"
            raise file.error(what, remedy, where)
    missing = [index for index in range(max(facts.cards, default=-1) + 1) if index not in facts.cards]
    if missing:
        raise file.error(f"card {missing[0]} is not listed, and later ones are", "print it again, whole")
    facts.total = len(facts.cards)
    for index, devices in compute.items():
        facts.cards[index].instances = _instances(devices)
        facts.cards[index].mig = True
    return facts


def _instances(devices: list[tuple[int, int, str]]) -> list[Instance]:
    """Return the GPU instances of some compute instances.

    Compute instances of one GPU instance follow one another, and their slices are not more than it has.
    """
    found: list[Instance] = []
    left = 0
    for slices, whole, profile in devices:
        if slices < whole and found and found[-1].profile == profile and slices <= left:
            left -= slices
            continue
        found.append(Instance(profile=profile))
        left = whole - slices
    return found
