"""Who owns what while tasks are placed, where tasks of different tenants may not be together.

What belongs to a tenant is a domain of the level at which tenants are kept apart, or a card. It is the tenant's from
the first task on until the last is taken back. What running work of a tenant is in is that tenant's to begin with, and
nobody's where running work of several is in it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from placement.assignment import Ints

FREE, SHUT = -1, -2
"""Owners of a domain or card that are no tenants: nobody yet, and nobody while work of several is in it."""


@dataclass(frozen=True, slots=True, eq=False)
class Apart:
    """Within what tasks of different tenants may not be together.

    Nodes of one class are owned alike at the start, card by card.

    Attributes
    ----------
    tenants : tuple of str
    domain : int array (N,)
        Row of `owner` for each node.
    owner : int array (D,) or (D, C)
        Tenant whose running work is in each domain, `FREE` where there is none, `SHUT` where it is of several tenants.
        Where tenants are kept apart by card, each node is a domain of its own, with a column for each card in canonical
        order; cards with nothing left are `FREE`.
    """

    tenants: tuple[str, ...]
    domain: Ints
    owner: Ints


class Owners:
    """The owner of each domain, or of each card, and how many new tasks of whom are in it.

    Work of several tenants may come to be together where it already was when all was taken as placed anew.

    Parameters
    ----------
    apart : Apart

    Attributes
    ----------
    by_card : bool
        Whether tenants are kept apart by card.
    """

    def __init__(self, apart: Apart) -> None:
        self.by_card = apart.owner.ndim == 2
        self._domain = apart.domain
        self._first = apart.owner
        self._owner = apart.owner.copy()
        self._tasks: dict[tuple[int, ...], dict[int, int]] = {}
        """By place the number of tasks of each tenant that has some there."""

    def lets_in(self, tenant: int, nodes: Ints) -> npt.NDArray[np.bool_]:
        """Return which of some nodes, or of their cards as a (nodes, C) mask, others leave to a tenant."""
        owner = self._owner[self._domain[nodes]]
        return np.asarray((owner == tenant) | (owner == FREE))

    def of(self, node: int) -> int:
        """Return who owns the domain of a node; -1 where tenants are kept apart by card."""
        return FREE if self.by_card else int(self._owner[self._domain[node]])

    def change(self, tenant: int, node: int, cards: tuple[int, ...], sign: int) -> None:
        """Take a task of a tenant into account that comes to a node, or with ``sign=-1`` leaves it.

        Parameters
        ----------
        tenant : int
        node : int
        cards : tuple of int
            What the task takes; positions that are no cards do not count.
        sign : int
        """
        row = self._domain[node]
        if not self.by_card:
            self._turn((row,), tenant, sign)
            return
        for card in cards:
            if card < self._owner.shape[1]:
                self._turn((row, card), tenant, sign)

    def _turn(self, where: tuple[int, ...], tenant: int, sign: int) -> None:
        there = self._tasks.setdefault(where, {})
        count = there.get(tenant, 0) + sign
        if count:
            there[tenant] = count
        else:
            del there[tenant]
        first = int(self._first[where])
        owners = there.keys() if first == FREE else there.keys() | {first}
        self._owner[where] = FREE if not owners else SHUT if len(owners) > 1 else next(iter(owners))

    def copy(self) -> Owners:
        """Return an independent copy."""
        twin = Owners.__new__(Owners)
        twin.by_card, twin._domain, twin._first = self.by_card, self._domain, self._first
        twin._owner, twin._tasks = self._owner.copy(), {where: dict(there) for where, there in self._tasks.items()}
        return twin
