"""Rules for single values: quantities, whole numbers, times, versions, names, and who has which name."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property, lru_cache

from placement import units
from placement.snapshot.report import Found, Report, names, show, step
from placement.units import Quantity

MOST_NODES = 10**6
MOST_TASKS = 10**7
MOST_CARDS = 256
"""Cards in one node."""
MOST_ZONES = 8
"""NUMA zones of one node: every set of them is looked at, and two sockets of four zones each are what is built."""
MOST_CPUS = 2**16
"""CPUs are numbered below this."""
MOST_NAME = 1000
"""Characters of a name."""
MOST_LEVELS = 16
"""Levels of domains that a snapshot names."""
MOST_WORTH = 10**12
"""Weight of a task or value of a job."""
MOST_PRIORITY = 2**31 - 1
MOST_SECONDS = 10**10
"""Seconds that a job runs or its data take; three hundred years."""
MOST_MOMENT = 10**12
"""Seconds from zero of the clock to any moment: in a double, milliseconds of it are still exact."""
MOST_FACTOR = 10**6
"""Factor on a run time."""


@lru_cache(maxsize=65536, typed=True)
def _wrong_quantity(quantity: Quantity) -> str | None:
    if isinstance(quantity, int) and quantity < 0:
        return f"found {show(quantity)}, expected 0 or more"
    try:
        value = units.exact(quantity)
    except (ValueError, OverflowError, ZeroDivisionError) as why:
        if isinstance(quantity, int) or "larger" in str(why):
            return f"found {show(quantity)}, expected at most 2**63 - 1 cores, bytes or items"
        if "negative" in str(why):
            return f"found {show(quantity)}, expected 0 or more"
        return f'found {show(quantity)}, expected a number or a Kubernetes quantity such as "500m" or "80Gi"'
    return None if value >= 0 else "found less than nothing"


def quantity(end: str, value: Quantity | None) -> Iterator[Found]:
    """Yield what is wrong with a quantity."""
    if value is not None:
        what = _wrong_quantity(value)
        if what is not None:
            yield end, what, "correct the quantity"


def share(end: str, value: Quantity) -> Iterator[Found]:
    """Yield what is wrong with a fraction of a card."""
    what = _wrong_quantity(value)
    if what is not None:
        yield end, what, "write the fraction of a card, such as 0.5"
    elif not 0 < units.exact(value) <= 1:
        yield end, f"found {show(value)}, expected above 0 and at most 1", "write the fraction of each card"


def quantities(end: str, values: dict[str, Quantity], kind: str) -> Iterator[Found]:
    """Yield what is wrong with quantities by name."""
    for key, value in values.items():
        if not key:
            yield end, f"a {kind} has an empty name", f"name the {kind}"
        yield from quantity(f"{end}{step(key)}", value)


def whole(
    end: str, value: int | None, least: int = 0, most: int = 2**53, remedy: str = "correct the number"
) -> Iterator[Found]:
    """Yield what is wrong with a whole number."""
    if value is None:
        return
    if value < least:
        yield end, f"found {show(value)}, expected {least} or more", remedy
    elif value > most:
        yield end, f"found {show(value)}, expected at most {most:,}", remedy


def number(
    end: str, value: float | None, least: float = -math.inf, most: float = math.inf, *, above: bool = False
) -> Iterator[Found]:
    """Yield what is wrong with a number that must be finite, at least or above a least value, and at most another."""
    if value is None:
        return
    if not math.isfinite(value):
        yield end, f"found {value}, expected a finite number", "correct the number"
    elif value < least or (above and value <= least):
        yield (
            end,
            f"found {show(value)}, expected {'above' if above else 'at least'} {show(float(least))}",
            "correct the number",
        )
    elif value > most:
        yield end, f"found {show(value)}, expected at most {most:,.0f}", "correct the number"


def moment(end: str, value: float | None) -> Iterator[Found]:
    """Yield what is wrong with a time on the snapshot's clock."""
    return number(end, value, -MOST_MOMENT, MOST_MOMENT)


def version(end: str, text: str) -> Iterator[Found]:
    """Yield what is wrong with a version; empty means unknown."""
    if text:
        try:
            units.version(text)
        except ValueError:
            yield end, f"found {show(text)}, expected digits and dots such as 550.54.14", "write the version"


@lru_cache(maxsize=4096)
def wrong_name(text: str) -> str | None:
    """Return what is wrong with a name, or None."""
    if not text:
        return "the name is empty"
    if len(text) > MOST_NAME:
        return f"the name {show(text, 20)} has {len(text):,} characters, expected at most {MOST_NAME:,}"
    if text.isspace() and text.isprintable():
        return "the name holds nothing but blanks"
    return None if text.isprintable() else f"the name {show(text)} has a character that cannot be printed"


def name(end: str, text: str) -> Iterator[Found]:
    """Yield what is wrong with a name."""
    what = wrong_name(text)
    if what is not None:
        yield end, what, "write a name that people can read"


def distinct(end: str, values: Sequence[object], kind: str) -> Iterator[Found]:
    """Yield the values of a list that were there before."""
    if len(set(values)) != len(values):
        seen: set[object] = set()
        for index, value in enumerate(values):
            if value in seen:
                yield f"{end}[{index}]", f"the {kind} {show(value)} is listed twice", "keep it once"
            seen.add(value)


def level(end: str, text: str, known: Collection[str] | None, *, optional: bool = False) -> Iterator[Found]:
    """Yield whether a level of domains is not known; an empty one is right where it is optional.

    Where `known` is None, the levels are in another file, and any name may be right.
    """
    if not text and optional:
        return
    if known is None:
        yield from name(end, text)
    elif text not in known:
        yield end, f"there is no level {show(text)}", f"the levels here are {names(known)}"


class Names:
    """The names that entries with a count stand for, without writing them all out.

    An entry ``n`` of count 3 is ``n-0``, ``n-1``, ``n-2``. Two entries clash when they have the same name, or when one
    is called as a copy of the other is; which is found from the digits behind the last dash.

    Parameters
    ----------
    kind : str
        ``"node"`` or ``"job"``; entries are at ``nodes[i]`` or ``jobs[i]``.
    entries : sequence of str
        Name of each entry.
    counts : sequence of int
    """

    def __init__(self, kind: str, entries: Sequence[str], counts: Sequence[int]) -> None:
        self.kind = kind
        self.entries = entries
        self.counts = counts
        self.counted = max(counts, default=0) > 1

    @cached_property
    def first(self) -> dict[str, int]:
        """The first entry of each name; what is all right and never referred to does not need it."""
        return dict(zip(reversed(self.entries), range(len(self.entries) - 1, -1, -1), strict=True))

    def find(self, text: str) -> int | None:
        """Return the entry that a name belongs to, or None; copies are called by their own names."""
        index = self.first.get(text)
        if index is not None and self.counts[index] == 1:
            return index
        return self._family(text) if self.counted else None

    def _family(self, text: str) -> int | None:
        base, dash, digits = text.rpartition("-")
        if not dash or not digits.isdigit() or not digits.isascii() or (digits[0] == "0" and digits != "0"):
            return None
        index = self.first.get(base)
        if index is None or self.counts[index] <= 1 or len(digits) > 18 or int(digits) >= self.counts[index]:
            return None
        return index

    def judge(self, report: Report) -> None:
        """Report names that are empty, unreadable, or taken."""
        different = set(self.entries)
        readable = (
            all(map(str.strip, different))
            and len(max(different, key=len, default="")) <= MOST_NAME
            and "".join(self.entries).isprintable()
        )
        if readable and len(different) == len(self.entries) and not self.counted:
            return
        unreadable = set() if readable else {text for text in different if wrong_name(text) is not None}
        for index, text in enumerate(self.entries):
            where = f"{self.kind}s[{index}].name"
            if text in unreadable:
                report.extend(where, name("", text))
            elif self.first[text] != index:
                other = f"{self.kind}s[{self.first[text]}]"
                report.add(where, f"{show(text)} is the name of {other} already", "give each entry its own name")
            elif self.counted and self.counts[index] == 1 and (family := self._family(text)) is not None:
                other = f"{self.kind}s[{family}], {show(self.entries[family])} with count {self.counts[family]}"
                report.add(where, f"{show(text)} is also the name of a copy of {other}", "rename one of them")

    @cached_property
    def known(self) -> Collection[str]:
        """Names to suggest from: single entries, and first and last copies."""
        single = [text for text, count in zip(self.entries, self.counts, strict=True) if count == 1]
        copies = [(text, count) for text, count in zip(self.entries, self.counts, strict=True) if count > 1]
        return single + [f"{text}-{copy}" for text, count in copies for copy in (0, count - 1)]
