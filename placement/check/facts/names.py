"""Looks up the names that entries with a ``count`` stand for; they are never written out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from placement.check.exact import Ints, starts
from placement.snapshot import Job, Node


class Names:
    """Names of nodes or of jobs.

    Attributes
    ----------
    first : int array
        Number of the first thing that each entry stands for, where all are numbered in order; and last their count.
    """

    def __init__(self, entries: Iterable[Node | Job]) -> None:
        entries = list(entries)
        counts = np.array([entry.count for entry in entries], dtype=np.int64)
        counted = np.flatnonzero(counts != 1).tolist()
        self._single = dict(zip([entry.name for entry in entries], range(len(entries)), strict=True))
        self._counted = {entries[spec].name: (spec, int(counts[spec])) for spec in counted}
        for name in self._counted:
            del self._single[name]
        self.first = starts(counts)

    def find(self, name: str) -> tuple[int, int] | None:
        """Return the entry and the number within it that a name stands for, or None."""
        if name in self._single:
            return self._single[name], 0
        base, _, tail = name.rpartition("-")
        spec, count = self._counted.get(base, (0, 0))
        # "01" and Arabic-Indic digits are no names of ours, although int() reads them
        plain = tail.isascii() and tail.isdigit() and len(tail) < 20 and (tail == "0" or tail[0] != "0")
        return (spec, int(tail)) if count and plain and int(tail) < count else None

    def find_all(self, names: Sequence[str]) -> tuple[Ints, Ints]:
        """Return the entry of each name and the number within it; the entry is -1 for what is no name."""
        single = self._single
        spec = np.array([single.get(name, -1) for name in names], dtype=np.int64)
        copy = np.zeros(len(spec), dtype=np.int64)
        known: dict[str, tuple[int, int] | None] = {}
        for row in np.flatnonzero(spec < 0).tolist():
            name = names[row]
            if name not in known:
                known[name] = self.find(name)
            found = known[name]
            if found is not None:
                spec[row], copy[row] = found
        return spec, copy


def name_of(entry: Node | Job, copy: int) -> str:
    """Return the name of one of the things that an entry stands for."""
    return entry.name if entry.count == 1 else f"{entry.name}-{copy}"
