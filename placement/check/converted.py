"""Records as if they had been read from a file: structures of msgspec check their types where they are read alone."""

from __future__ import annotations

import numbers
from typing import TypeVar

import msgspec

from placement.errors import PlanError, Problem
from placement.snapshot.structure import explain

Record = TypeVar("Record", bound=msgspec.Struct)


def converted(record: Record, kind: type[Record]) -> Record:
    """Return a record with the right types.

    Raises
    ------
    PlanError
        If reading it from a file would raise one.
    """
    try:
        plain = msgspec.to_builtins(record, enc_hook=plain_number)
        return msgspec.convert(plain, kind)
    except msgspec.ValidationError as why:
        raise PlanError([Problem(*explain(msgspec.json.encode(plain).decode(), str(why), kind))]) from None
    except (TypeError, ValueError, AttributeError, RecursionError) as why:
        # a field that is not there, a list that holds itself
        raise PlanError([Problem("", f"it cannot be written as JSON: {why}", "correct it there")]) from None


def plain_number(value: object) -> int | float | dict[str, None]:
    """Return a number of another library as Python's own, and for anything else what no field accepts."""
    if isinstance(value, numbers.Integral):
        return int(value)
    return float(value) if isinstance(value, numbers.Real) else {type(value).__name__: None}
