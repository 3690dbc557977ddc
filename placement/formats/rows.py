"""Rows of a CSV file with a heading, each with its place for messages."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from placement.errors import InputError
from placement.formats.source import File

LARGEST = 1e11
"""Most units of time that a field of a trace says; of seconds that is 3,000 years."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a file.

    Attributes
    ----------
    source : str
        Name of the file.
    line : int
        Line on which the row ends, from 1.
    fields : dict of str to str
        By column.
    """

    source: str
    line: int
    fields: dict[str, str]

    @property
    def where(self) -> str:
        """Place for the ledger."""
        return f"{self.source}: line {self.line}"

    def number(self, column: str) -> int:
        """Return a whole number of 0 or more.

        Raises
        ------
        InputError
            If the field is something else.
        """
        text = self.fields[column]
        if not (text.isascii() and text.isdigit() and len(text) < 19):
            raise self.error(column, f"{text[:40]!r} is not a whole number of 0 or more", "correct the field")
        return int(text)

    def amount(self, column: str) -> float:
        """Return a number of 0 or more, at most `LARGEST`; see `number`."""
        text = self.fields[column]
        try:
            found = float(text)
        except ValueError:
            found = math.nan
        if not (0 <= found <= LARGEST and text.isascii()):
            raise self.error(column, f"{text[:40]!r} is not a number from 0 to {LARGEST:,.0f}", "correct the field")
        return found

    def error(self, column: str, what: str, remedy: str) -> InputError:
        """Return an error at a column of this row."""
        return InputError.one(what, remedy, path=f"line {self.line}, column {column}", source=self.source)


def heading(file: File) -> tuple[str, ...]:
    """Return the names of the columns of a file."""
    try:
        return tuple(next(csv.reader(io.StringIO(file.text(), newline=""), strict=True), ()))
    except csv.Error as error:
        raise file.error(f"cannot be read: {error}", "give a CSV file of the trace") from error


def rows(file: File, columns: Iterable[str]) -> Iterator[Row]:
    """Yield the rows of a file.

    Parameters
    ----------
    file : File
    columns : iterable of str
        Those that it has to have.

    Raises
    ------
    InputError
        If it is no CSV file, lacks a column, or has a row that is not as long as the heading.
    """
    try:
        reader = csv.DictReader(io.StringIO(file.text(), newline=""), strict=True)
        missing = [column for column in columns if column not in (reader.fieldnames or ())]
        if missing:
            raise file.error(f"column {missing[0]} is missing", f"the columns are {', '.join(columns)}", "line 1")
        for fields in reader:
            if None in fields or None in fields.values():
                line = f"line {reader.line_num}"
                raise file.error("the row is longer or shorter than the header", "correct the row", line)
            yield Row(file.name, reader.line_num, fields)
    except csv.Error as error:
        raise file.error(f"cannot be read: {error}", "give a CSV file of the trace") from error
