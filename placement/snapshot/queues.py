"""Who may use how much: the tree of queues and their quotas."""

from __future__ import annotations

import msgspec

from placement.snapshot.nothing import NOTHING
from placement.units import Quantity


class Queue(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, gc=False):
    """A queue of jobs, or of other queues; see `placement.quota`.

    Attributes
    ----------
    name : str
    parent : str
        Name of the parent queue; empty at the top.
    quota : dict of str to quantity of cards
        Guaranteed cards by model; ``"*"`` for any model.
    borrowing_limit, lending_limit : dict of str to quantity of cards
        Most cards taken from, or given to, other queues of the same parent; a model not listed has no limit.
    weight : float
        Share of what is left over, relative to its siblings.
    """

    name: str
    parent: str = ""
    quota: dict[str, Quantity] = NOTHING
    borrowing_limit: dict[str, Quantity] = NOTHING
    lending_limit: dict[str, Quantity] = NOTHING
    weight: float = 1.0
