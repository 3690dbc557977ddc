"""What is to be said in the ledger of every pod of a kind, though only one of them is looked at."""

from __future__ import annotations

from collections.abc import Callable

from placement.formats.ledger import Ledger

Say = Callable[[Ledger, str, str], None]


class Notes:
    """Entries for the ledger that are made anew for each pod, with its place."""

    def __init__(self) -> None:
        self._said: dict[tuple[str, str, str], Say] = {}

    def assumed(self, what: str, default: str) -> None:
        """See `Ledger.assumed`."""
        self._said["assumed", what, default] = lambda ledger, where, _: ledger.assumed(what, default, where)

    def ignored(self, what: str, why: str) -> None:
        """See `Ledger.ignored`."""
        self._said["ignored", what, why] = lambda ledger, where, _: ledger.ignored(what, why, where)

    def unsupported(self, what: str, why: str) -> None:
        """See `Ledger.unsupported`."""
        self._said["unsupported", what, why] = lambda ledger, where, file: ledger.unsupported(what, why, where, file)

    def contradiction(self, what: str, believed: str) -> None:
        """See `Ledger.contradiction`."""
        self._said["contradiction", what, believed] = lambda ledger, where, _: ledger.contradiction(
            what, believed, where
        )

    def say(self, ledger: Ledger, where: str, file: str) -> None:
        """Make the entries for a pod."""
        for say in self._said.values():
            say(ledger, where, file)
