r"""What the NUMA zones of a node have left of one resource while tasks get it from one zone after the other.

Let $c_z$ be what zone $z$ has, and let each load $i$, of $d_i$, lie within a set of zones $W_i$. All loads find room if
and only if $\sum_{i : W_i \subseteq W} d_i \le \sum_{z \in W} c_z$ for every set $W$ (Hall's condition). What is left
on the right is the slack of $W$. To have zone $z \in W_i$ give $a$ of a load makes that a load within $\{z\}$, which
takes $a$ of the slack of the sets that hold $z$ and not all of $W_i$. As long as none of them falls below 0 the others
still find room, and because slack is submodular, zone after zone as much as is possible, in any order, gives each load
all of its amount. A node has at most 8 zones, so there are at most 256 sets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

Load = tuple[int, int]
"""A set of zones as bits, and the amount that lies within it."""


class Room:
    """The slack of every set of zones, in whole numbers.

    Parameters
    ----------
    capacity : sequence of int
        What each zone has.
    running : iterable of Load
        What runs. Where it takes more than there is, no more of it counts than fits: the excess takes nothing from
        anybody.
    waiting : iterable of Load
        What is still to be given zones.
    """

    def __init__(self, capacity: Sequence[int], running: Iterable[Load], waiting: Iterable[Load]) -> None:
        self._count = len(capacity)
        self.slack = [
            sum(amount for zone, amount in enumerate(capacity) if bits >> zone & 1) for bits in range(1 << self._count)
        ]
        for within, amount in sorted(running, key=lambda load: load[0].bit_count()):
            sets = _sets(self._count, 0, within)
            self._take(sets, max(0, min(amount, min(self.slack[bits] for bits in sets))))
        for within, amount in waiting:
            self._take(_sets(self._count, 0, within), amount)

    def limit(self, zone: int, within: int, amount: int) -> int:
        """Return how much of an amount within some zones one of them can give."""
        sets = _sets(self._count, within, 1 << zone)
        return max(0, min([amount, *[self.slack[bits] for bits in sets]]))

    def give(self, zone: int, within: int, amount: int) -> None:
        """Have a zone give an amount of what lies within some zones."""
        self._take(_sets(self._count, within, 1 << zone), amount)

    def _take(self, sets: Iterable[int], amount: int) -> None:
        for bits in sets:
            self.slack[bits] -= amount


@cache
def _sets(count: int, not_over: int, over: int) -> tuple[int, ...]:
    """Return the sets of zones that hold all of `over`, and do not hold all of `not_over` unless it is empty."""
    return tuple(bits for bits in range(1 << count) if not over & ~bits and not (not_over and not not_over & ~bits))
