"""Collecting what is wrong: paths, messages, suggestions, and memory of what has been looked at."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Collection, Iterable, Set
from typing import Generic, TypeVar

from placement.errors import Problem

MOST_PROBLEMS = 50
"""Problems listed in one error; the rest is counted."""

Found = tuple[str, str, str]
"""A problem relative to the thing it was found in: end of the path, what, remedy."""

Key = TypeVar("Key")
Value = TypeVar("Value")

MOST_COUNTED = 100_000
"""Problems after which the search for more ends."""


class TooMany(Exception):  # noqa: N818 - ends the search for problems, and is caught where it began
    """There are so many problems that looking for more helps nobody."""


class Report:
    """The problems of one input, in the order of the file as far as they are looked for in that order.

    Attributes
    ----------
    problems : list of Problem
        The first `MOST_PROBLEMS`.
    total : int
        How many there are.
    """

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.total = 0

    def add(self, path: str, what: str, remedy: str = "") -> None:
        """Note one problem."""
        self.total += 1
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(Problem(path, what, remedy))
        elif self.total >= MOST_COUNTED:
            raise TooMany

    def extend(self, path: str, found: Iterable[Found]) -> None:
        """Note problems of the thing at a path."""
        for end, what, remedy in found:
            self.add(path + end, what, remedy)

    def unknown(self, path: str, kind: str, name: str, known: Collection[str]) -> None:
        """Note a reference to something that is not there; nothing similar is looked for when the list is full."""
        full = len(self.problems) >= MOST_PROBLEMS
        given = sorted(known) if not full and isinstance(known, Set) else known
        self.add(path, f"there is no {kind} {show(name)}", "" if full else suggestion(name, given))


class Memo(dict[Key, Value], Generic[Key, Value]):
    """What a function returned for each argument, forgotten when it grows large.

    A hit costs one dictionary look-up, which is why 100,000 nodes of a few kinds are looked at in a blink.
    """

    MOST = 1 << 16

    def __init__(self, function: Callable[[Key], Value]) -> None:
        super().__init__()
        self.function = function

    def __missing__(self, key: Key) -> Value:
        if len(self) >= self.MOST:
            self.clear()
        value = self[key] = self.function(key)
        return value


def show(value: object, most: int = 60) -> str:
    """Return a value as it looks in JSON, cut to one short line.

    Examples
    --------
    >>> show("a"), show(2.5), show("x" * 100, 5)
    ('"a"', '2.5', '"xxxx…')
    """
    if isinstance(value, str):
        text = json.dumps(value[:most], ensure_ascii=False)
        text = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
        return text if len(value) <= most else text[:-1][:most] + "…"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**most:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    text = str(value)
    return text if len(text) <= most else text[:most] + "…"


def excerpt(text: str, most: int = 40) -> str:
    """Return the start of a text as it is, for quoting a piece of a file.

    Examples
    --------
    >>> excerpt('{"a": 1}'), excerpt("ab", 1)
    ('`{"a": 1}`', '`a…`')
    """
    cut = text[:most] + ("…" if len(text) > most else "")
    return f"`{''.join(c if c.isprintable() else ' ' for c in cut)}`"


def many(number: int, noun: str) -> str:
    """Return a number of things.

    Examples
    --------
    >>> many(1, "card"), many(2, "card")
    ('1 card', '2 cards')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def names(known: Iterable[object], most: int = 20) -> str:
    """Return names as a list for a sentence, cut when there are many."""
    known = list(known)
    text = ", ".join(show(name, 40) for name in known[:most])
    return text if len(known) <= most else f"{text} and {len(known) - most} more"


def nearest(name: str, known: Collection[str]) -> str | None:
    """Return the most similar known name, if one is similar; None where there are too many to compare."""
    if len(known) > 2000 or len(name) > 100:
        return None
    folded = {other.casefold(): other for other in known}
    found = difflib.get_close_matches(name.casefold(), folded, n=1)
    return folded[found[0]] if found else None


def suggestion(name: str, known: Collection[str], most: int = 20) -> str:
    """Return the remedy for a name that is not known; of many known ones so many are listed."""
    if not known:
        return "none is defined"
    similar = nearest(name, known)
    if similar is not None:
        return f"did you mean {show(similar)}?"
    return f"the known ones are {names(known, most)}"


def step(part: str | int) -> str:
    """Return one step of a path: into a list, or to a key.

    Examples
    --------
    >>> step(3), step("count"), step("a/b")
    ('[3]', '.count', '["a/b"]')
    """
    if isinstance(part, int):
        return f"[{part}]"
    return f".{part}" if part.isidentifier() and part.isascii() and len(part) <= 60 else f"[{show(part)}]"


def path_of(parts: Iterable[str | int]) -> str:
    """Return the path of nested keys and list indices.

    Examples
    --------
    >>> path_of(["jobs", 3, "labels", "a/b"])
    'jobs[3].labels["a/b"]'
    """
    return "".join(map(step, parts)).removeprefix(".")
