"""Lists of hosts as Slurm writes them: ``n[1-3,007-010],login``, expanded and compressed.

The grammar is that of ``man scontrol`` (``show hostnames``): names separated by commas, each with any number of
brackets that hold numbers and ranges. A range keeps the width of its first number, so ``[08-10]`` is 08, 09, 10.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator

from placement.errors import InputError
from placement.snapshot.report import show

MOST = 10**6
"""Hosts that one expression may stand for."""

MOST_DIGITS = 18
"""Digits of a number that is counted with."""

NOBODY = frozenset({"", "(null)", "none", "n/a", "none assigned"})
"""What Slurm writes for no host at all, in lower case."""

_RANGE = re.compile(r"(\d+)(?:-(\d+))?", re.ASCII)
_ENDING = re.compile(rf"\d{{1,{MOST_DIGITS}}}\Z", re.ASCII)


class _Wrong(Exception):  # noqa: N818 - becomes an InputError where the place is known
    def __init__(self, what: str, at: int) -> None:
        super().__init__(f"{what} at character {at + 1}")


def expand(text: str, file: str = "", path: str = "") -> tuple[str, ...]:
    """Return the hosts that an expression stands for, in its order.

    Parameters
    ----------
    text : str
    file, path : str
        Where it is, for messages.

    Raises
    ------
    InputError
        If it is not an expression, or stands for more than `MOST` hosts.

    Examples
    --------
    >>> expand("n[1-2,09-10],r[1-2]x[0-1]")
    ('n1', 'n2', 'n09', 'n10', 'r1x0', 'r1x1', 'r2x0', 'r2x1')
    """
    if text.strip().lower() in NOBODY:
        return ()
    hosts: list[str] = []
    try:
        for start, word in _words(text):
            if word.lower() in NOBODY:
                raise _Wrong("a word for no host", start)
            parts = _parts(word, start)
            total = len(hosts)
            product = 1
            for part in parts:
                product *= len(part)
            if total + product > MOST:
                raise _Wrong(f"more than {MOST:,} hosts", start)
            hosts += map("".join, itertools.product(*parts))
    except _Wrong as why:
        raise InputError.one(
            f"{why} of {show(text)}", "write hosts as Slurm does, such as n[1-3,007-010]", path=path, source=file
        ) from None
    return tuple(hosts)


def _words(text: str) -> Iterator[tuple[int, str]]:
    """Yield the names between commas outside of brackets, each with where it begins."""
    start, inside = 0, False
    for at, letter in enumerate(f"{text},"):
        if letter == "[":
            if inside:
                raise _Wrong("a bracket in a bracket", at)
            inside = True
        elif letter == "]":
            if not inside:
                raise _Wrong("a bracket that is not open", at)
            inside = False
        elif letter == "," and (not inside or at == len(text)):
            if inside:
                raise _Wrong("a bracket that is not closed", text.rindex("["))
            word = text[start:at]
            first = start + len(word) - len(word.lstrip())
            if not word.strip():
                raise _Wrong("no name", start)
            yield first, word.strip()
            start = at + 1


def _parts(word: str, start: int) -> list[list[str]]:
    """Return what a name is made of: lists of texts of which each may stand there."""
    parts: list[list[str]] = []
    at = 0
    for piece in re.split(r"(\[[^\]]*\])", word):
        if piece.startswith("["):
            parts.append(_numbers(piece[1:-1], start + at + 1))
        elif piece:
            if any(letter.isspace() or not letter.isprintable() for letter in piece):
                raise _Wrong("a blank in a name", start + at)
            parts.append([piece])
        at += len(piece)
    return parts


def _numbers(text: str, start: int) -> list[str]:
    found: list[str] = []
    at = start
    for item in text.split(","):
        match = _RANGE.fullmatch(item)
        if match is None or len(item) > 2 * MOST_DIGITS + 1:
            raise _Wrong(f"{show(item, 20)} is no number and no range", at)
        low, high = match[1], match[2] or match[1]
        if max(len(low), len(high)) > MOST_DIGITS:
            raise _Wrong("a number with too many digits", at)
        if int(high) < int(low):
            raise _Wrong(f"{show(item, 20)} runs backwards", at)
        if len(found) + int(high) - int(low) + 1 > MOST:
            raise _Wrong(f"more than {MOST:,} hosts", at)
        found += [str(number).zfill(len(low)) for number in range(int(low), int(high) + 1)]
        at += len(item) + 1
    return found


def compress(hosts: Iterable[str]) -> str:
    """Return an expression for hosts, in their order: neighbours in the list that count on become a range.

    Raises
    ------
    ValueError
        If a name has letters that mean something else in an expression, or is one that means no host.

    Examples
    --------
    >>> compress(["n1", "n2", "n3", "n007", "n008", "login"])
    'n[1-3,007-008],login'
    """
    words: list[str] = []
    prefix, ranges = "", list[tuple[str, str]]()

    def close() -> None:
        if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
            words.append(prefix + ranges[0][0])
        elif ranges:
            words.append(f"{prefix}[{','.join(low if low == high else f'{low}-{high}' for low, high in ranges)}]")
        ranges.clear()

    for host in hosts:
        if host.lower() in NOBODY or any(c in "[]," or c.isspace() or not c.isprintable() for c in host):
            raise ValueError(f"{show(host)} is no name of a host")
        ending = _ENDING.search(host)
        if ending is None:
            close()
            words.append(host)
            continue
        digits = ending[0]
        if ranges and host[: -len(digits)] == prefix:
            low, high = ranges[-1]
            if digits == str(int(high) + 1).zfill(len(low)):
                ranges[-1] = low, digits
            else:
                ranges.append((digits, digits))
        else:
            close()
            prefix = host[: -len(digits)]
            ranges.append((digits, digits))
    close()
    return ",".join(words)
