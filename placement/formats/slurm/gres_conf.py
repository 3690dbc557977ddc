"""The devices that ``gres.conf`` lists by node.

Lines of MPS and of shards are a second resource over the devices of the lines of cards, so that cards are counted by
the lines named ``gpu`` alone (gres.conf(5)). What AutoDetect finds is not in the file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from placement.formats.ledger import Ledger
from placement.formats.slurm.conf import Line, Names, lines
from placement.formats.slurm.gres import numbers
from placement.formats.source import File
from placement.snapshot.report import show

CARDS = "gpu"
"""Name of the resource that is cards."""

SHARES = frozenset({"mps", "shard"})
"""Names of resources that are shares of cards."""

ALL_NODES = ""
"""Key of the lines that name no node."""

_SIGN = re.compile(
    rb"(?im)^[ \t]*(?:NodeName=\S+[ \t](?:[^\n]*[ \t])?)?"
    rb"(?:Name=\S+|AutoDetect=(?:nvml|nvidia|rsmi|rocm|oneapi|nrt|off))"
)
_OTHER = re.compile(
    rb"(?im)^[ \t]*(?:SwitchName|BlockName|PartitionName|ReservationName|JobId|SlurmctldHost|ClusterName)="
)
_START = 65536
_COUNT = re.compile(r"([0-9]{1,18})([KMGTP]?)", re.IGNORECASE)
_POWERS: dict[str, int] = {suffix: 1024**power for power, suffix in enumerate(("", "k", "m", "g", "t", "p"))}
_KEYS = {"nodename", "name", "type", "count", "file", "multiplefiles", "cores", "cpus", "links", "flags", "autodetect"}


@dataclass(frozen=True, slots=True)
class GresLine:
    """Devices of one line.

    Attributes
    ----------
    name : str
        Of the resource, such as ``"gpu"``; empty for a line of AutoDetect alone.
    type : str
        Such as ``"h100"``; empty where the line says none.
    count : int, optional
        How many, on each node; None where the line does not say.
    files : tuple of str
        Device files.
    together : bool
        Whether these are one device, such as a MIG instance, whose first file other instances of the card have too.
    indices : tuple of int
        Numbers at the end of the names of these, where each has one.
    cores : str
        Cores that are near, as the line lists them: abstract numbers of cores, not of threads.
    links : str
    flags : tuple of str
    autodetect : str
        In lower case; empty where the line says none.
    where : str
        Place in the file.
    """

    name: str
    type: str = ""
    count: int | None = None
    files: tuple[str, ...] = ()
    together: bool = False
    indices: tuple[int, ...] = ()
    cores: str = ""
    links: str = ""
    flags: tuple[str, ...] = ()
    autodetect: str = ""
    where: str = ""


def looks_like(data: bytes) -> bool:
    """Return whether a file is ``gres.conf``."""
    start = data[:_START].removeprefix(b"\xef\xbb\xbf")
    return _SIGN.search(start) is not None and _OTHER.search(start) is None


def read(file: File, ledger: Ledger) -> dict[str, tuple[GresLine, ...]]:
    """Return the lines of each node, those without a node's name under `ALL_NODES`.

    Raises
    ------
    InputError
        If a line is damaged, or two lines give a node one device.
    """
    names = Names(file)
    found: dict[str, list[GresLine]] = {}
    for line in lines(file):
        one = _line(file, line, names, ledger)
        for node in names.of(line.values.get("nodename"), line.where) or [ALL_NODES]:
            found.setdefault(node, []).append(one)
    for there in found.values():
        _check(file, there, found.get(ALL_NODES, []), ledger)
    ledger.read("lines of devices", file.name, len({one.where for there in found.values() for one in there}))
    return {node: tuple(there) for node, there in found.items()}


def cards(there: tuple[GresLine, ...]) -> int | None:
    """Return how many cards, and MIG instances, the lines of a node list; None where AutoDetect has to find them.

    Examples
    --------
    >>> cards((GresLine("gpu", count=2), GresLine("mps", count=100)))
    2
    """
    found = [one.count for one in there if one.name == CARDS]
    if not found:
        return None if any(one.autodetect not in ("", "off") for one in there) else 0
    return None if None in found else sum(one for one in found if one is not None)


def beyond(line: GresLine, cores: int) -> int | None:
    """Return the highest core of a line that a node with so many cores does not have; None where it has all of them.

    Cores are numbered without their threads, from 0; who copies the CPUs that nvidia-smi shows, numbers threads.

    Examples
    --------
    >>> beyond(GresLine("gpu", cores="48-63,176-191"), 128), beyond(GresLine("gpu", cores="48-63"), 128)
    (191, None)
    """
    highest = max(numbers(line.cores), default=0) if line.cores else 0
    return highest if highest >= max(cores, 1) else None


def near(there: Sequence[GresLine], models: Sequence[str]) -> tuple[frozenset[int], ...]:
    """Return the cores near each card of a node, by its index; empty where the lines do not say it of each.

    Parameters
    ----------
    there : sequence of GresLine
    models : sequence of str
        Type of each card, as the node has them.

    Examples
    --------
    >>> near((GresLine("gpu", indices=(0, 1), cores="0-1"), GresLine("gpu", indices=(2,), cores="2")), "aaa")
    (frozenset({0, 1}), frozenset({0, 1}), frozenset({2}))
    """
    found: dict[int, frozenset[int]] = {}
    for one in there:
        if one.name == CARDS and one.cores:
            cores = frozenset(numbers(one.cores))
            found |= {card: cores for card in one.indices if card < len(models) and one.type in ("", models[card])}
    return tuple(found[card] for card in range(len(models))) if len(found) == len(models) else ()


def _line(file: File, line: Line, names: Names, ledger: Ledger) -> GresLine:
    values = line.values
    for key in values:
        if key not in _KEYS:
            ledger.ignored(show(key), "the key is not known", f"{file.name}: {line.where}")
    autodetect = values.get("autodetect", "").lower()
    name = values.get("name", "")
    if not name and not autodetect:
        raise file.error("the line has neither Name nor AutoDetect", "name the resource", line.where)
    if not name:
        ledger.assumed(
            "AutoDetect", "there are as many cards as the nodes themselves say", f"{file.name}: {line.where}"
        )
    if "file" in values and "multiplefiles" in values:
        raise file.error("the line has File and MultipleFiles", "keep one of them", line.where)
    files = tuple(names.of(values.get("file") or values.get("multiplefiles"), line.where))
    if len(set(files)) < len(files):
        raise file.error("a device is there twice in one list", "list it once", line.where)
    endings = [re.search(r"[0-9]{1,9}\Z", path) for path in files]
    indices = tuple(int(one[0]) for one in endings if one is not None)
    cores = values.get("cores", values.get("cpus", ""))
    if cores:
        numbers(cores, file.name, line.where)
    return GresLine(
        name=name.lower(),
        type=values.get("type", ""),
        count=_count(file, line, name.lower(), files),
        files=files,
        together="multiplefiles" in values,
        indices=indices if len(indices) == len(files) and "multiplefiles" not in values else (),
        cores=cores,
        links=values.get("links", ""),
        flags=tuple(flag for flag in values.get("flags", "").split(",") if flag),
        autodetect=autodetect,
        where=line.where,
    )


def _count(file: File, line: Line, name: str, files: tuple[str, ...]) -> int | None:
    """Return how many there are: what Count says, or one for each file; suffixes are powers of 1024."""
    text = line.values.get("count")
    one_device = "multiplefiles" in line.values
    if text is None:
        return (1 if one_device else len(files)) if files else None if not name or name in SHARES else 1
    found = _COUNT.fullmatch(text)
    if found is None:
        raise file.error(f"found {show(text)}, expected a number such as 4 or 4G", "correct Count", line.where)
    count = int(found[1]) * _POWERS[found[2].lower()]
    if name == CARDS and files and not one_device and count != len(files):
        raise file.error(
            f"Count is {count}, and File lists {len(files)} devices", "correct the one that is wrong", line.where
        )
    return count


def _check(file: File, there: list[GresLine], everywhere: list[GresLine], ledger: Ledger) -> None:
    """Refuse a device that a node has twice; note shares of devices that are no cards of it."""
    first: dict[str, str] = {}
    for one in there:
        if one.name != CARDS:
            continue
        for path in one.files:
            if path in first and first[path] != one.where and not one.together:
                raise file.error(
                    f"the device {show(path)} is there twice, first at {first[path]}",
                    "list it once for each node",
                    one.where,
                )
            first[path] = one.where
    known = first.keys() | {path for one in everywhere if one.name == CARDS for path in one.files}
    detected = any(one.autodetect not in ("", "off") for one in (*there, *everywhere))
    for one in there:
        if one.name in SHARES and not detected and not known.issuperset(one.files):
            ledger.contradiction(
                "shares of devices that no line of cards lists", "they are no cards", f"{file.name}: {one.where}"
            )
