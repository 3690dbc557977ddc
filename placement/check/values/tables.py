"""Tables of a plan that only say what its tasks make: every row is compared with what it has to be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from placement.check.violation import Violation, many


def differing(rule: str, name: str, found: Any, due: Any, text: Callable[[Any], str]) -> Iterator[Violation]:
    """Yield every row that is not what the tasks make.

    Parameters
    ----------
    rule : str
    name : str
        Of the table in the plan.
    found, due : Struct
        The table that the plan has, and the one it should have, in columns.
    text : callable
        Returns a row as text.
    """
    if found == due:
        return
    lengths = {column: len(getattr(found, column)) for column in found.__struct_fields__}
    if set(lengths.values()) != {len(due.job)}:
        listed = ", ".join(f"{column} {length}" for column, length in lengths.items())
        what = f"its columns have lengths {listed}, the tasks make {many(len(due.job), 'row')}"
        yield Violation(rule, name, what)
        return
    for number, (one, other) in enumerate(zip(_rows(found), _rows(due), strict=True)):
        if one != other:
            yield Violation(rule, f"{name}[{number}]", f"the row is {text(one)}, the tasks make {text(other)}")


def _rows(table: Any) -> Iterator[tuple[Any, ...]]:
    return zip(*(getattr(table, column) for column in table.__struct_fields__), strict=True)
