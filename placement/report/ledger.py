"""The ledger of an import as lines for people."""

from __future__ import annotations

from collections.abc import Iterator

from placement.snapshot import Snapshot

TITLES = {
    "contradiction": "The files disagree",
    "ignored": "Ignored",
    "assumed": "Assumed",
    "read": "Read",
}


def ledger_lines(snapshot: Snapshot) -> Iterator[str]:
    """Yield a line for each entry of a ledger, under a title for each kind."""
    for kind, title in TITLES.items():
        entries = [entry for entry in snapshot.ledger if entry.kind == kind]
        if entries:
            yield f"{title}:"
        for entry in entries:
            why = f": {entry.why}" if entry.why else ""
            more = ", …" if entry.count > len(entry.where) else ""
            where = f" ({', '.join(entry.where)}{more})" if entry.where else ""
            yield f"  {entry.count:,} {entry.what}{why}{where}"
