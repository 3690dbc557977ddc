"""What a reader of an outside format made of its files; carried along with the snapshot for people to judge it by."""

from __future__ import annotations

from typing import Literal

import msgspec


class LedgerEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, gc=False):
    """One thing that was done with what the files say, alike in `count` places.

    Attributes
    ----------
    kind : str
        ``"read"``: taken over. ``"assumed"``: the files do not say it, and a default was used. ``"ignored"``: the files
        say it and the snapshot does not. ``"contradiction"``: the files disagree, and one side was believed.
    what : str
        What was read, assumed or ignored, or what disagrees.
    why : str
        The default and its reason; why it is ignored; which side was believed.
    where : tuple of str
        The first places, as file and path in it.
    count : int
        How many places there are.
    """

    kind: Literal["read", "assumed", "ignored", "contradiction"]
    what: str
    why: str = ""
    where: tuple[str, ...] = ()
    count: int = 1
