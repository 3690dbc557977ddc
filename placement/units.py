"""Quantities: numbers and Kubernetes strings to exact rationals and integers.

A quantity in a snapshot is a number or a Kubernetes quantity string: decimal digits with an optional suffix
(``n u m k M G T P E`` are powers of 1000, ``Ki Mi Gi Ti Pi Ei`` powers of 1024) or a decimal exponent
(``1e3``). A JSON number is read as the decimal it is written as, so ``0.1`` is one tenth. Values stay exact;
models round a request up and a capacity down.

The grammar is that of ``k8s.io/apimachinery/pkg/api/resource.Quantity``.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import lru_cache

Quantity = int | float | str
"""A number, or a Kubernetes quantity string such as ``"500m"`` or ``"80Gi"``."""

MAX_BASE = 2**63 - 1
"""Largest quantity accepted, in base units (cores, bytes, items)."""

_SUFFIX: dict[str, Fraction] = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}
_NUMBER = re.compile(
    r"(?P<digits>[+-]?(?:[0-9]{1,40}\.?[0-9]{0,40}|\.[0-9]{1,40}))(?:(?P<suffix>[KMGTPE]i|[numkMGTPE]?)|[eE](?P<exp>[+-]?[0-9]{1,3}))",
    re.ASCII,
)


@lru_cache(maxsize=65536, typed=True)
def exact(quantity: Quantity) -> Fraction:
    """Return the exact value of a quantity in base units.

    Parameters
    ----------
    quantity : int, float or str
        A number, or a Kubernetes quantity string.

    Returns
    -------
    Fraction
        The value, at least 0 and at most `MAX_BASE`.

    Raises
    ------
    ValueError
        If the text is no quantity, or the value is negative, not finite or larger than `MAX_BASE`.

    Examples
    --------
    >>> exact("500m"), exact("80Gi") == 80 * 2**30, exact(0.1)
    (Fraction(1, 2), True, Fraction(1, 10))
    """
    if isinstance(quantity, bool):
        raise ValueError(f"{quantity} is not a quantity")
    if isinstance(quantity, int):
        value = Fraction(quantity)
    elif isinstance(quantity, float):
        if not math.isfinite(quantity):
            raise ValueError(f"{quantity} is not a finite number")
        value = Fraction(repr(quantity))
    else:
        value = _parse(quantity)
    if value < 0:
        raise ValueError(f"{quantity!r} is negative")
    if value > MAX_BASE:
        raise ValueError(f"{quantity!r} is larger than {MAX_BASE}")
    return value


def _parse(text: str) -> Fraction:
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:60]!r} is not a quantity")
    value = Fraction(match["digits"])
    if match["exp"] is not None:
        return value * Fraction(10) ** int(match["exp"])
    return value * _SUFFIX[match["suffix"]]


def milli_up(quantity: Quantity) -> int:
    """Return a requested amount in thousandths, rounded up."""
    return math.ceil(exact(quantity) * 1000)


def mebibytes_up(quantity: Quantity) -> int:
    """Return a requested amount of bytes in MiB, rounded up."""
    return math.ceil(exact(quantity) / 2**20)


def mebibytes_down(quantity: Quantity) -> int:
    """Return a capacity of bytes in MiB, rounded down."""
    return math.floor(exact(quantity) / 2**20)


def version(text: str) -> tuple[int, ...]:
    """Return a dotted version as integers without trailing zeros, so that ``12.0`` equals ``12``.

    Raises
    ------
    ValueError
        If the text is not digits separated by dots.

    Examples
    --------
    >>> version("550.54.14") < version("550.90"), version("12.0") == version("12")
    (True, True)
    """
    parts = text.split(".")
    if len(text) > 60 or not all(part.isascii() and part.isdigit() for part in parts):
        raise ValueError(f"{text[:60]!r} is not a version such as 550.54.14")
    numbers = [int(part) for part in parts]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
