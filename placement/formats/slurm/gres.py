"""Texts about generic resources (GRES) and trackable resources (TRES).

.. code-block:: text

    gpu:h100:4(S:0,2-3)        what a node has, and on which sockets
    gpu:h100:2(IDX:0,3-5)      what is in use, and which
    gres/gpu:h100=2, gres/gpu:2  what a job asks for or has
    cpu=8,mem=64G,node=1,gres/gpu=2   trackable resources

Formats: ``man gres.conf``, ``man sbatch`` (``--gres``, ``--tres-per-task``) and Slurm's JSON.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from placement.errors import InputError
from placement.snapshot.report import show
from placement.units import MAX_BASE

NOTHING_SAID = frozenset({"", "(null)", "n/a", "none"})
"""What Slurm writes for no resources at all, in lower case: ``(null)`` is not a type of card."""

MIG_TYPE = re.compile(r"(?:.*[_-])?\d+g\.\d+gb(?:[+.].*)?", re.ASCII | re.IGNORECASE)
"""Types that AutoDetect makes of MIG instances, such as ``1g.5gb`` and ``a100_3g.20gb``."""

MOST_INDEX = 4096
"""Devices of one kind in a node are numbered below this."""

_COUNT = re.compile(r"(\d{1,18})([kKmMgGtTpP]?)", re.ASCII)
_AMOUNT = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)([kKmMgGtTpP]?)[bB]?", re.ASCII)
_POWER = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}


@dataclass(frozen=True, slots=True)
class Gres:
    """Devices of one type.

    Attributes
    ----------
    name : str
        Such as ``"gpu"``.
    type : str
        Such as ``"h100"``; empty where it is not said.
    count : int
    indices : tuple of int, optional
        Which, by number among the node's devices of this name; None where it is not said.
    sockets : tuple of int, optional
        Sockets that they are near; None where it is not said.
    shares : tuple of int
        For ``mps`` and ``shard`` in use: how much of each device, by index.
    """

    name: str
    type: str
    count: int
    indices: tuple[int, ...] | None = None
    sockets: tuple[int, ...] | None = None
    shares: tuple[int, ...] = ()

    @property
    def label(self) -> str:
        """Name as a countable resource, such as ``gres/gpu:1g.5gb``."""
        return f"gres/{self.name}:{self.type}" if self.type else f"gres/{self.name}"

    @property
    def is_card(self) -> bool:
        """Whether these are whole cards."""
        return self.name == "gpu" and MIG_TYPE.fullmatch(self.type) is None


def parse(text: str | None, file: str = "", path: str = "") -> tuple[Gres, ...]:
    """Return the devices that a text lists; what is no GRES in it, such as ``cpu=2``, is left out.

    Raises
    ------
    InputError
        If it is not of the form.

    Examples
    --------
    >>> [(g.type, g.count, g.indices) for g in parse("gpu:h100:2(IDX:0,2),gpu:1g.5gb:7(S:0-1)")]
    [('h100', 2, (0, 2)), ('1g.5gb', 7, None)]
    """
    if not text:
        return ()
    return tuple(gres for gres, other in _items(text, file, path) if gres is not None and not other)


def others(text: str | None, file: str = "", path: str = "") -> dict[str, str]:
    """Return what a text lists beside GRES, such as ``{"cpu": "2"}`` of ``cpu=2,gres/gpu=1``."""
    found: dict[str, str] = {}
    for _, other in _items(text, file, path):
        name, mark, amount = other.partition("=" if "=" in other else ":")
        if mark:
            found[name] = amount
    return found


def _items(text: str | None, file: str, path: str) -> Iterator[tuple[Gres | None, str]]:
    if text is None or text.strip().lower() in NOTHING_SAID:
        return
    for item in _split(text, file, path):
        plain = re.sub(r"^gres[/:]", "", item)
        if plain == item and re.match(r"(cpu|mem|node|billing|energy|vmem|pages|bb/|fs/|ic/|license/)\b", item):
            yield None, item
        elif plain.strip().lower() not in NOTHING_SAID:
            yield _one(plain, text, file, path), ""


def _split(text: str, file: str, path: str) -> Iterator[str]:
    """Yield the items between commas outside of parentheses."""
    depth, start = 0, 0
    for at, letter in enumerate(f"{text},"):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            if not text[start:at].strip():
                raise _wrong(text, "an empty item", file, path)
            yield text[start:at].strip()
            start = at + 1
    if depth:
        raise _wrong(text, "a parenthesis without its other half", file, path)


def _one(item: str, text: str, file: str, path: str) -> Gres:
    body, *notes = re.split(r"\(([^()]*)\)", item)
    body = body.strip()
    if "=" in body:
        left, _, amount = body.partition("=")
        name, _, kind = left.partition(":")
    else:
        words = [word for word in body.split(":") if word != "no_consume"]
        amount = words.pop() if len(words) > 1 and _COUNT.fullmatch(words[-1]) else "1"
        name, kind = words[0] if words else "", ":".join(words[1:])
    number = _COUNT.fullmatch(amount)
    if not name or number is None or not f"{name}{kind}".isprintable() or any(c.isspace() for c in f"{name}{kind}"):
        raise _wrong(text, f"{show(item, 40)} is not of the form name:type:count", file, path)
    count = int(number[1]) * 1024 ** _POWER[number[2].lower()]
    if count > MAX_BASE:
        raise _wrong(text, f"{show(item, 40)} counts more than {MAX_BASE}", file, path)
    indices: tuple[int, ...] | None = None
    sockets: tuple[int, ...] | None = None
    shares: tuple[int, ...] = ()
    for note in notes:
        key, mark, said = note.partition(":")
        if mark and key == "IDX":
            indices = () if said == "N/A" else numbers(said, file, path)
        elif mark and key == "S":
            sockets = numbers(said, file, path)
        elif re.fullmatch(r"\d{1,9}/\d{1,9}(,\d{1,9}/\d{1,9})*", note, re.ASCII):
            shares = tuple(int(part.partition("/")[0]) for part in note.split(","))
    return Gres(name, kind, count, indices, sockets, shares)


def numbers(text: str, file: str = "", path: str = "") -> tuple[int, ...]:
    """Return the numbers of a list such as ``0,3-5``.

    Raises
    ------
    InputError
        If it is no such list, or has numbers of `MOST_INDEX` or more.
    """
    found: list[int] = []
    for item in text.split(","):
        match = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", item.strip(), re.ASCII)
        low, high = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if high < low or high >= MOST_INDEX:
            raise _wrong(text, f"{show(item, 20)} is no number or range below {MOST_INDEX}", file, path)
        found += range(low, high + 1)
    if len(set(found)) != len(found):
        raise _wrong(text, "a number is listed twice", file, path)
    return tuple(found)


def tres(text: str | None, file: str = "", path: str = "") -> dict[str, str]:
    """Return trackable resources by name, each with its amount as it is written.

    Raises
    ------
    InputError
        If an item has no amount: then the text was cut when it was printed.

    Examples
    --------
    >>> tres("cpu=4,mem=32G,gres/gpu=1")
    {'cpu': '4', 'mem': '32G', 'gres/gpu': '1'}
    """
    if text is None or text.strip().lower() in NOTHING_SAID:
        return {}
    found: dict[str, str] = {}
    for item in text.split(","):
        name, _, amount = item.strip().partition("=")
        if not name or not amount:
            raise _wrong(text, f"{show(item, 40)} has no amount", file, path, "print the column in full width")
        if name in found:
            raise _wrong(text, f"{show(name, 40)} is listed twice", file, path)
        found[name] = amount
    return found


def amount(text: str, file: str = "", path: str = "", unit: int = 1) -> int:
    """Return an amount such as ``4``, ``64G`` or ``1.50T``, rounded up.

    Parameters
    ----------
    text : str
    file, path : str
        Where it is, for messages.
    unit : int
        What a number without a suffix counts in; a suffix is a power of 1024 of 1.

    Raises
    ------
    InputError
        If it is none.
    """
    match = _AMOUNT.fullmatch(text.strip())
    if match is None:
        raise _wrong(text, f"{show(text, 40)} is no amount", file, path)
    scale = 1024 ** _POWER[match[2].lower()] if match[2] else unit
    found = math.ceil(Fraction(match[1]) * scale)
    if found > MAX_BASE:
        raise _wrong(text, f"{show(text, 40)} is more than {MAX_BASE}", file, path)
    return found


def allocated(text: str | None, file: str = "", path: str = "") -> tuple[Gres, ...]:
    """Return the GRES of a list of trackable resources, each counted once.

    ``gres/gpu=4,gres/gpu:h100=3`` says four cards, three of them h100: the sum and its parts stand side by side.
    """
    found = {name: amount(number, file, path) for name, number in tres(text, file, path).items() if "gres/" in name}
    split = [(*name.removeprefix("gres/").partition(":")[::2], count) for name, count in found.items()]
    typed = [Gres(name, kind, count) for name, kind, count in split if kind]
    for name, kind, count in split:
        rest = count - sum(gres.count for gres in typed if gres.name == name)
        if not kind and rest > 0:
            typed.append(Gres(name, "", rest))
    return tuple(typed)


def _wrong(text: str, what: str, file: str, path: str, remedy: str = "correct the field") -> InputError:
    return InputError.one(f"{what} in {show(text)}", remedy, path=path, source=file)
