"""The last steps of every large run: search in neighbourhoods for a target, and polish what nodes are left like."""

from __future__ import annotations

import time

from placement.exact.ledger import Ledger
from placement.exact.milp.arrays import Floats
from placement.exact.moves.polish import Polish
from placement.exact.neighbourhoods.search import Search
from placement.exact.timing import Timing

PATIENCE = 120
"""Neighbourhoods without an improvement after which the search goes on to the next objective."""
ROUNDS = 600
"""Most neighbourhoods for one objective."""


def improve(ledger: Ledger, focus: int, price: Floats | None, timing: Timing, share: float) -> None:
    """Improve a target by large neighbourhoods.

    Parameters
    ----------
    ledger : Ledger
    focus : int
        Number of the target; the earlier ones are held.
    price : float array (K,), optional
        What an idle card of each node class may be worth.
    timing : Timing
    share : float
        Of the time left.
    """
    limits = ledger.share(share)
    search = Search(ledger.standing, focus, limits, ledger.seed + focus, timing, price)
    idle = 0
    for _ in range(ROUNDS):
        if idle >= PATIENCE or ledger.done(focus):
            break
        if limits.left <= 0:
            ledger.note(False)
            break
        idle = 0 if search.round() else idle + 1
        if not idle:
            ledger.tell("search")
        if search.bound is not None:
            ledger.prove(focus, search.bound)
        if search.exhausted:
            break
    ledger.tell("search", at_once=True)


def polish(ledger: Ledger, rest: tuple[str, ...], timing: Timing) -> None:
    """Improve what the nodes are left like; nothing is proven about it."""
    began = time.perf_counter()
    ledger.note(Polish(ledger.standing.layout, rest, ledger.limits, ledger.seed).run())
    timing.add("place", time.perf_counter() - began)
