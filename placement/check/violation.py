"""What the judge says: a rule, a place in the plan or the snapshot, and what was found against what is allowed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

LONGEST = 80
"""Characters of a name that a message shows; names in an edited plan can be anything."""

_BINARY = (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))


@dataclass(frozen=True, slots=True)
class Violation:
    """One way in which a plan breaks a rule.

    Attributes
    ----------
    rule : str
        Name of the rule, such as ``"capacity"``; see `placement.check.RULES`.
    path : str
        Where, in the plan (``tasks[17]``, ``phases[0].bound``, ``pending[2]``, ``usage.nodes``) or in the snapshot
        (``nodes[3]``, ``jobs[5].groups[0]``, ``limits[1].cpu``).
    what : str
        What was found and what is allowed.

    Examples
    --------
    >>> print(Violation("shares", "nodes[0].gpus[0]", "n-3 gpu 1: shares add up to 1.25, at most 1"))
    shares: nodes[0].gpus[0]: n-3 gpu 1: shares add up to 1.25, at most 1
    """

    rule: str
    path: str
    what: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.path}: {self.what}"


def show(text: str) -> str:
    r"""Return a name fit for one line of text.

    Examples
    --------
    >>> show("n-3"), show(""), show("a\nb")
    ('n-3', "''", "'a\\nb'")
    """
    cut = text[:LONGEST]
    if not cut or not cut.isprintable():
        cut = repr(cut)
    return f"{cut}..." if len(text) > LONGEST else cut


def integer(number: int) -> str:
    """Return a whole number as text, however large it is.

    Examples
    --------
    >>> integer(-3), integer(10**5000)
    ('-3', 'a number of 16610 bits')
    """
    return str(number) if abs(number) < 10**30 else f"a number of {number.bit_length()} bits"


def many(number: int, noun: str) -> str:
    """Return a number of things.

    Examples
    --------
    >>> many(1, "task"), many(2, "copy"), many(0, "card")
    ('1 task', '2 copies', '0 cards')
    """
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{integer(number)} {noun if number == 1 else plural}"


def listed(names: Sequence[str], most: int = 5) -> str:
    """Return names fit for one line of text, the first few of them where there are many.

    Examples
    --------
    >>> listed(["a", "b"]), listed(["a", "b", "c"], 1)
    ('a, b', 'a and 2 more')
    """
    shown = ", ".join(show(name) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def of_jobs(names: Sequence[str]) -> str:
    """Return which jobs something is about.

    Examples
    --------
    >>> of_jobs(["a"]), of_jobs(["a", "b"])
    ('job a', 'jobs a, b')
    """
    return f"job{'' if len(names) == 1 else 's'} {listed(names)}"


def decimal(value: Fraction) -> str:
    """Return an exact decimal where twelve places are enough for one, else a rounded one that says so.

    Examples
    --------
    >>> decimal(Fraction(5, 4)), decimal(Fraction(3)), decimal(Fraction(1, 3))
    ('1.25', '3', '0.333333333333 (rounded)')
    """
    if value.denominator == 1:
        return integer(value.numerator)
    scaled = abs(value) * 10**12
    if scaled.denominator > 1:
        return f"{as_float(value):.12g} (rounded)"
    whole, places = divmod(scaled.numerator, 10**12)
    return f"{'-' if value < 0 else ''}{integer(whole)}.{places:012d}".rstrip("0")


def size(value: Fraction) -> str:
    """Return an amount of bytes in the largest binary unit that keeps it whole.

    Examples
    --------
    >>> size(Fraction(80 * 2**30)), size(Fraction(1000))
    ('80Gi', '1000')
    """
    for suffix, unit in _BINARY:
        if value and not value % unit:
            return f"{integer(int(value / unit))}{suffix}"
    return decimal(value)


def as_float(value: Fraction) -> float:
    """Return the nearest float; infinity for what no float can hold."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
