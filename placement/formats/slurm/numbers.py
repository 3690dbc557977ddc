"""Numbers as the versions of Slurm's JSON write them: plain, or with flags for "not set" and "no limit".

Plain ones use the largest values of their C type as flags: ``NO_VAL`` and ``INFINITE`` of ``slurm/slurm.h``.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from placement.errors import InputError
from placement.formats.kubernetes.objects import Item
from placement.snapshot.report import show


class Number(msgspec.Struct, gc=False):
    """A number with flags, as data_parser v0.0.39 and later write it."""

    set: bool = True
    infinite: bool = False
    number: int | float = 0


Field = int | float | str | Number | None
"""What a field that holds a number may be, in any version."""

NOT_SET = frozenset({2**32 - 2, 2**64 - 2})
NO_LIMIT = frozenset({2**32 - 1, 2**64 - 1})
SHORT_NOT_SET = frozenset({2**16 - 2, 2**16 - 1})
"""Both flags of a 16 bit field: no field of 16 bits is read of which "no limit" differs from "not set"."""

LARGEST = 2**40
"""Numbers up to this are taken for true: as seconds 35,000 years, as MiB an exbibyte."""

_WORDS = {"unlimited": math.inf, "infinite": math.inf, "": None, "n/a": None, "none": None, "(null)": None}


def value(field: Field, short: bool = False) -> float | int | None:
    """Return a number, infinity for "no limit", or None for "not set".

    Parameters
    ----------
    field : int, float, str, Number or None
    short : bool
        Whether Slurm keeps it in 16 bits.

    Raises
    ------
    ValueError
        If it is a text that is no number.

    Examples
    --------
    >>> value(Number(set=False)), value(Number(infinite=True)), value(4294967294), value("7")
    (None, inf, None, 7)
    """
    if isinstance(field, Number):
        if field.infinite:
            return math.inf
        return field.number if field.set else None
    if isinstance(field, str):
        if field.strip().lower() in _WORDS:
            return _WORDS[field.strip().lower()]
        if not (field.isascii() and field.isdigit() and len(field) <= 20):
            raise ValueError(f"found {show(field)}, expected a number")
        field = int(field)
    if field is None or field in NOT_SET or (short and field in SHORT_NOT_SET):
        return None
    return math.inf if field in NO_LIMIT else field


def whole(item: Item[Any], name: str, field: Field, short: bool = False) -> int | None:
    """Return a whole number of 0 or more; None where it is not set or has no limit.

    Raises
    ------
    InputError
        If it is something else, naming the field.
    """
    if field is None or (isinstance(field, Number) and not (field.set or field.infinite)):
        return None
    try:
        found = value(field, short)
        if found is None or found == math.inf:
            return None
        if not 0 <= found <= LARGEST or found != int(found):
            raise ValueError(f"found {show(found)}, expected a whole number of 0 or more")
    except ValueError as why:
        raise wrong(item, name, str(why)) from None
    return int(found)


def moment(item: Item[Any], name: str, field: Field) -> float | None:
    """Return a time in seconds since 1970; None where it is not set, which Slurm also writes as 0."""
    found = whole(item, name, field)
    return float(found) if found else None


def wrong(item: Item[Any], name: str, what: str, remedy: str = "correct the field") -> InputError:
    """Return an error about a field of a record."""
    return InputError.one(what, remedy, path=f"{item.path}.{name}".removeprefix("."), source=item.file)


def bounded(item: Item[Any], name: str, found: int, most: int = LARGEST) -> int:
    """Return a number that was computed from a field, once it is not too large.

    Raises
    ------
    InputError
        If it is, naming the field.
    """
    if found > most:
        raise wrong(item, name, f"found {show(found)} in all, expected at most {most:,}")
    return found
