"""The ledger of an import: what was read, assumed and ignored, and where the files contradict themselves.

What is alike is one entry with a count, so that 100,000 pods make a page that people can read: `what` and `why` speak
of the kind of thing, `where` of the one at hand.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from placement.errors import InputError
from placement.snapshot import LedgerEntry

Kind = Literal["read", "assumed", "ignored", "contradiction"]
KINDS: tuple[Kind, ...] = ("contradiction", "ignored", "assumed", "read")
"""In the order in which people want to see them."""

MOST_PLACES = 3
"""Places that an entry lists; the rest is counted."""


@dataclass(slots=True)
class _Entry:
    where: list[str] = field(default_factory=list)
    count: int = 0


class Ledger:
    """Collects entries while files are read.

    Parameters
    ----------
    strict : bool
        Whether what the files ask for and a snapshot cannot say is an error; else it is ignored and noted.
    """

    def __init__(self, strict: bool = False) -> None:
        self.strict = strict
        self._entries: dict[tuple[Kind, str, str], _Entry] = {}

    def read(self, what: str, where: str = "", count: int = 1) -> None:
        """Note what was taken over, such as ``"nodes"``."""
        self._add("read", what, "", where, count)

    def assumed(self, what: str, default: str, where: str = "") -> None:
        """Note what the files do not say, and the default that was used instead."""
        self._add("assumed", what, default, where)

    def ignored(self, what: str, why: str, where: str = "") -> None:
        """Note what the files say and the snapshot does not, where that changes nothing about what fits where."""
        self._add("ignored", what, why, where)

    def unsupported(self, what: str, why: str, where: str, source: str = "") -> None:
        """Note what the files ask for and a snapshot cannot say, though it limits what may be placed where.

        Raises
        ------
        InputError
            In a strict import.
        """
        if self.strict:
            remedy = "remove it, or import without --strict, which ignores it"
            place = where.removeprefix(f"{source}: ") if source else where
            raise InputError.one(f"{what}: {why}", remedy, path=place, source=source)
        self._add("ignored", what, why, where)

    def contradiction(self, what: str, believed: str, where: str = "") -> None:
        """Note that the files disagree, and which side was believed."""
        self._add("contradiction", what, believed, where)

    def _add(self, kind: Kind, what: str, why: str, where: str, count: int = 1) -> None:
        entry = self._entries.setdefault((kind, what, why), _Entry())
        entry.count += count
        if where and len(entry.where) < MOST_PLACES:
            entry.where.append(where)

    def entries(self) -> tuple[LedgerEntry, ...]:
        """Return what was noted, contradictions first, and within a kind in the order of the files."""
        return tuple(
            LedgerEntry(kind=kind, what=what, why=why, where=tuple(entry.where), count=entry.count)
            for wanted in KINDS
            for (kind, what, why), entry in self._entries.items()
            if kind == wanted and entry.count
        )
