"""Lines of ``Key=value`` pairs, as Slurm's configuration files have them.

Keys are of any case, ``#`` begins a comment unless a backslash is before it, a backslash at the end of a line joins the
next one to it, and a value may stand in double quotes (slurm.conf(5), topology.conf(5), gres.conf(5)).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from placement.formats.slurm.hostlist import expand
from placement.formats.source import File
from placement.snapshot.report import show

_PAIR = re.compile(r"""\s*([^\s="]+)\s*=\s*("[^"]*"|[^\s"=]*)(?=\s|\Z)""")
_COMMENT = re.compile(r"(?<!\\)#.*", re.DOTALL)

MOST_NAMES = 1_000_000
"""Most names that the lists of one file expand to, together."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a configuration file.

    Attributes
    ----------
    number : int
        Of the line where it begins, from 1.
    values : dict of str to str
        By key in lower case.
    """

    number: int
    values: dict[str, str]

    @property
    def where(self) -> str:
        """Place in its file."""
        return f"line {self.number}"


def lines(file: File) -> Iterator[Line]:
    """Yield the lines of a configuration file that say something.

    Raises
    ------
    InputError
        If a line is not made of ``Key=value`` pairs, gives a key twice, or includes another file.
    """
    for number, text in _joined(file.text()):
        where = f"line {number}"
        if text.split(maxsplit=1)[0].lower() == "include":
            raise file.error("the line includes another file", "put the lines of that file in its place", where)
        values: dict[str, str] = {}
        at = 0
        while at < len(text):
            found = _PAIR.match(text, at)
            if found is None:
                raise file.error(f"{show(text[at:].strip())} is not Key=value", "correct the line", where)
            key = found[1].lower()
            if key in values:
                raise file.error(f"{found[1]} is given twice", "keep one of them", where)
            values[key] = found[2].strip('"')
            at = found.end()
        yield Line(number, values)


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines without comments, with those that continue them, and the numbers of the first."""
    parts: list[str] = []
    first = 0
    for number, raw in enumerate(text.split("\n"), 1):
        plain = _COMMENT.sub("", raw).replace("\\#", "#").rstrip()
        first = first if parts else number
        parts.append(plain.removesuffix("\\"))
        if not plain.endswith("\\"):
            whole = " ".join(parts).strip()
            parts = []
            if whole:
                yield first, whole
    whole = " ".join(parts).strip()
    if whole:
        yield first, whole


class Names:
    """Expands the lists of names in one file, at most `MOST_NAMES` of them together."""

    def __init__(self, file: File) -> None:
        self.file = file
        self.left = MOST_NAMES

    def of(self, text: str | None, where: str) -> list[str]:
        """Return the names that a list such as ``n[1-3],m`` stands for; none for no text.

        Raises
        ------
        InputError
            If it is no such list, or there are too many names.
        """
        if not text:
            return []
        found = list(expand(text, self.file.name, where))
        self.left -= len(found)
        if self.left < 0:
            raise self.file.error(f"lists of more than {MOST_NAMES:,} names", "give a smaller file", where)
        return found
