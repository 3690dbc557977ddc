"""Names as Kubernetes takes them: what of a snapshot can be one as it is, and what is made of the rest."""

from __future__ import annotations

import re
from collections.abc import Iterable

LONGEST = 253
"""Characters of a name of an object, which is a DNS subdomain."""

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_KEY = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


def is_name(text: str) -> bool:
    """Return whether an object can have this name."""
    return len(text) <= LONGEST and _NAME.fullmatch(text) is not None


def is_label(text: str) -> bool:
    """Return whether a label can have this value."""
    return _LABEL.fullmatch(text) is not None


def is_key(text: str) -> bool:
    """Return whether this can be the key of a label, of a taint, or the name of a resource."""
    prefix, slash, name = text.rpartition("/")
    return _KEY.fullmatch(name) is not None and (not slash or is_name(prefix))


class Names:
    """Gives each thing a name of its own.

    A name that Kubernetes takes stays where it can; in another one dashes stand for the characters that it does not
    take, and a number tells apart what then is alike.

    Parameters
    ----------
    kept : iterable of str
        Names that things come with, which are not given to others.
    """

    def __init__(self, kept: Iterable[str] = ()) -> None:
        self._taken = set(kept)

    def keep(self, text: str) -> None:
        """Give a name to nothing from now on: something has it."""
        self._taken.add(text)

    def new(self, text: str) -> str:
        """Return a name that nothing has, as like the text as can be."""
        if is_name(text) and text not in self._taken:
            self._taken.add(text)
            return text
        stem = re.sub(r"[^a-z0-9]+", "-", text.lower())[: LONGEST - 20].strip("-") or "unnamed"
        name, number = stem, 1
        while name in self._taken:
            number += 1
            name = f"{stem}-{number}"
        self._taken.add(name)
        return name


def named(wanted: Iterable[str]) -> dict[str, str]:
    """Return the name of an object for each text; those that are names already keep them."""
    texts = list(wanted)
    names = Names(text for text in texts if is_name(text))
    return {text: text if is_name(text) else names.new(text) for text in texts}
