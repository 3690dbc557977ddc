"""How many members of a balanced group to place in how many domains."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from placement.heuristics.domain_order import MOST_TRIES
from placement.instance import Ints


def even_splits(room: Ints, count: int, least: int, size: int, fewest: int) -> Iterator[tuple[int, int]]:
    """Yield numbers of members and of domains that could hold them evenly, most members and fewest domains first.

    Parameters
    ----------
    room : int array
        Units that each domain has room for, most first.
    count, least : int
        Most members and fewest members; the fewest are tried in any case, after no more than `MOST_TRIES` of the rest.
    size : int
        Members of a unit.
    fewest : int
        Fewest domains.
    """
    last = room[fewest - 1 :]
    # as many units in each domain as in the last one, and one more in those that have the room
    held = np.arange(fewest, len(room) + 1) * last + np.searchsorted(-room, -last)
    most = min(count, size * int(held.max(initial=0)))
    totals = range(most, least, -size)
    more = ((members, some) for members in totals for some in _fitting(room, -(-members // size), fewest))
    yield from islice(more, MOST_TRIES)
    yield from ((least, some) for some in _fitting(room, -(-least // size), fewest)[:MOST_TRIES])


def ends(members: int, domains: int, size: int) -> list[int]:
    """Return up to which member each domain is filled; the last ones take a unit more, or what is left of one."""
    share, more = divmod(-(-members // size), domains)
    units = np.cumsum([share] * (domains - more) + [share + 1] * more)
    found: list[int] = np.minimum(units * size, members).tolist()
    return found


def _fitting(room: Ints, units: int, fewest: int) -> list[int]:
    """Return the numbers of domains that hold some units evenly, those with most room taken first."""
    if not len(room):
        return []
    domains = np.arange(max(fewest, -(-units // int(room[0]))), min(units, len(room)) + 1)
    share, more = np.divmod(units, domains)
    found: list[int] = domains[(room[domains - 1] >= share) & ((more == 0) | (room[more - 1] > share))].tolist()
    return found
