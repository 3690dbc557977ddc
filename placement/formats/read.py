"""Several files, of one format or more, to one snapshot of one cluster."""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from placement.errors import InputError, UsageError
from placement.formats import openb, philly
from placement.formats.guess import FORMATS, OBJECTS, guessed
from placement.formats.kubernetes import read as kubernetes
from placement.formats.ledger import Ledger
from placement.formats.nvidia_smi import read as nvidia_smi
from placement.formats.options import Options
from placement.formats.slurm import read as slurm
from placement.formats.source import File
from placement.formats.stated import held
from placement.snapshot import Snapshot
from placement.snapshot.read import verified

READERS = {"kubernetes": kubernetes.read, "slurm": slurm.read, "openb": openb.of, "philly": philly.of}
"""What makes a snapshot of a whole cluster, by system."""


def named(words: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return format, node and path of every file that words name.

    The name of a format is that of the files behind it; ``NODE=FILE`` is a file of nvidia-smi.

    Raises
    ------
    UsageError
        If they name no file.
    """
    found, current = [], ""
    for word in filter(None, words):
        node, sign, path = word.partition("=")
        if word in FORMATS:
            current = word
        elif sign and not os.path.lexists(word) and current in ("", "nvidia-smi"):
            found.append(("nvidia-smi", node, path))
        else:
            found.append((current, "", word))
    if not found:
        raise UsageError.one("there is no file", f"name one{' behind the format' if words else ''}")
    return found


def read(files: Sequence[File], options: Options | None = None, strict: bool = False) -> Snapshot:
    """Return the snapshot of a cluster, with the ledger of how it was read.

    Parameters
    ----------
    files : sequence of File
        Of one system (Kubernetes with Kueue, Volcano and KAI; Slurm; a trace), and beside them what
        nvidia-smi printed on its nodes.
    options : Options, optional
    strict : bool
        Whether what the files ask for and a snapshot cannot say is an error.

    Raises
    ------
    InputError
        If a file cannot be read, or they are of clusters of two systems.
    """
    if not files:
        raise UsageError.one("there is no file", "name one")
    ledger, wanted = Ledger(strict), Options() if options is None else options
    systems: dict[str, list[File]] = {}
    for file in files:
        name = guessed(file)
        systems.setdefault("kubernetes" if name in OBJECTS else name, []).append(file)
    cards = systems.pop("nvidia-smi", [])
    if len(systems) > 1:
        (one, first), (other, second) = list(systems.items())[:2]
        raise InputError.one(
            f"{first[0].name} is of {one} and {second[0].name} of {other}", "import one cluster at a time"
        )
    snapshot = None
    for system, found in systems.items():
        snapshot = READERS[system](found, wanted, ledger)
    if cards or snapshot is None:
        snapshot = nvidia_smi.read(cards, snapshot, ledger)
    snapshot = held(snapshot, ledger)
    return verified(msgspec.structs.replace(snapshot, ledger=(*snapshot.ledger, *ledger.entries())))
