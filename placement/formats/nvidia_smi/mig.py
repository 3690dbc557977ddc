"""``nvidia-smi mig``: the instances that exist (-lgi, -lci), and the profiles that a card offers (-lgip)."""

from __future__ import annotations

import re

from placement.formats.ledger import Ledger
from placement.formats.nvidia_smi.facts import MOST_INDEX, Card, Facts, Instance
from placement.formats.source import File
from placement.hardware import mig

INSTANCES = re.compile(r"(?m)^\|\s*GPU instances:")
COMPUTE = re.compile(r"(?m)^\|\s*Compute instances:")
PROFILES = re.compile(r"(?m)^\|\s*GPU instance profiles:")
_WHOLE = r"([0-9]{1,9})"
_PROFILE = r"([0-9]{1,4}g\.[0-9]{1,4}gb(?:[+-](?:me\.all|me|gfx))?)"
_INSTANCE = re.compile(rf"\|\s*{_WHOLE}\s+MIG {_PROFILE}\s*{_WHOLE}\s+{_WHOLE}\s+{_WHOLE}:{_WHOLE}\s*\|\s*")
_OFFER = re.compile(
    rf"\|\s*{_WHOLE}\s+MIG {_PROFILE}\s*{_WHOLE}\s+{_WHOLE}/{_WHOLE}\s+"
    rf"([0-9]{{1,9}}(?:\.[0-9]{{0,9}})?)\s+(?:Yes|No)\s+{_WHOLE}\s.*\|\s*"
)
_FAR = 0.03
"""How far memory may be from the catalogue's, as a fraction: drivers differ by less."""

_NOMINAL = 0.5
"""GiB by which the memory may differ from the number in the name without a word: what rounding does."""


def instances(file: File) -> Facts:
    """Return the GPU instances with their first slots.

    Raises
    ------
    InputError
        If a row is damaged.
    """
    facts = Facts(file)
    for number, line in enumerate(file.text().splitlines(), 1):
        found = _INSTANCE.fullmatch(line)
        if found is None:
            _refuse_damaged(file, line, number)
            continue
        index, start, size = int(found[1]), int(found[5]), int(found[6])
        if index > MOST_INDEX or start > MOST_INDEX or not 0 < size <= MOST_INDEX:
            raise file.error("the row names a card or slots that cannot be", "print it again", f"line {number}")
        card = facts.cards.setdefault(index, Card(where=f"{file.name}: line {number}", mig=True, instances=[]))
        assert card.instances is not None
        card.instances.append(Instance(profile=found[2], start=start, id=int(found[4])))
    if not facts.cards:
        raise file.error("there is no row of an instance", "print it again: nvidia-smi mig -lgi")
    return facts


def profiles(file: File, models: dict[int, str], ledger: Ledger) -> None:
    """Compare the table of profiles with the catalogue of hardware.

    Parameters
    ----------
    file : File
    models : dict of int to str
        Model of each card, where it is known.
    ledger : Ledger

    Raises
    ------
    InputError
        If a row is damaged, or there is none.
    """
    rows = 0
    for number, line in enumerate(file.text().splitlines(), 1):
        found = _OFFER.fullmatch(line)
        if found is None:
            _refuse_damaged(file, line, number)
            continue
        rows += 1
        where = f"{file.name}: line {number}"
        name, gibibytes = found[2], float(found[6])
        nominal = re.search(r"\.(\d+)gb", name)
        if nominal is not None and abs(float(nominal[1]) - gibibytes) > _NOMINAL:
            ledger.contradiction(
                "gigabytes in the name of a MIG profile are not those of its memory",
                "the name says which profile it is, and the catalogue what it has",
                where,
            )
        geometry = mig.geometry(models.get(int(found[1]), ""))
        if geometry is None:
            continue
        profile = geometry.profile(name)
        if profile is None:
            ledger.contradiction("MIG profile that the catalogue lacks for the card", "the catalogue", where)
        elif profile.memory is not None and abs(gibibytes * 1024 - profile.memory) > _FAR * profile.memory:
            ledger.contradiction("memory of a MIG profile", "the catalogue", where)
        elif profile.sm is not None and profile.sm != int(found[7]):
            ledger.contradiction("multiprocessors of a MIG profile", "the catalogue", where)
    if not rows:
        raise file.error("there is no row of a profile", "print it again: nvidia-smi mig -lgip")
    ledger.read("MIG profiles that were compared with the catalogue", file.name, rows)


def _refuse_damaged(file: File, line: str, number: int) -> None:
    """Refuse a row that names a profile and is not read."""
    if re.search(r"\bMIG \d", line):
        raise file.error("the row is damaged", "print it again, whole, and straight into a file", f"line {number}")
