"""What counts of free cards say of whether a job fits when others are off their places, without trying it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placement.instance import Ints
from placement.scheduling.view import Spots, View


class Room:
    """What is free of each card as things are, and what would be if places were taken or given back.

    A task takes what it needs from cards of one node, so a node holds no more tasks than what is free of its cards
    comes to. A job of which all nodes together hold too few does not fit. Where they hold enough it may or may not.

    Parameters
    ----------
    view : View
    """

    def __init__(self, view: View) -> None:
        self._view = view
        self._free = view.idle_units()

    def take(self, spots: Spots) -> None:
        """Take places, each card of which is listed once, whether or not it is free."""
        self._free[spots[0]] -= spots[1]

    def give(self, spots: Spots) -> None:
        """Give back places, each card of which is listed once."""
        self._free[spots[0]] += spots[1]

    def may_hold(self, job: int) -> bool:
        """Return False if a job surely does not fit."""
        needs = self._view.least_tasks(job)
        return needs is None or int((self._on_nodes() // needs[1]).sum()) >= needs[0]

    def on(self, job: int, nodes: Sequence[int]) -> list[int]:
        """Return those of some nodes that may hold a task of a job."""
        needs = self._view.least_tasks(job)
        if needs is None:
            return list(nodes)
        holds = self._on_nodes() >= needs[1]
        return [node for node in nodes if holds[node]]

    def first_that_may_do(self, job: int, spots: Sequence[Spots]) -> int | None:
        """Return how many of some places, the first ones, are to be given back for a job to fit, at least.

        They are given back then. None, and all are given back, where it surely does not fit even so.
        """
        if self._view.least_tasks(job) is None:
            return 0
        cards, units = (np.concatenate([one[part] for one in spots]) for part in (0, 1))
        ends = np.cumsum([len(one[0]) for one in spots])
        before = self._free
        low, high = 0, len(spots)  # so many may do only if some of low + 1 .. high do
        self._free = _given(before, cards, units)
        if not self.may_hold(job):
            return None
        while high - low > 1:
            middle = (low + high) // 2
            self._free = _given(before, cards[: ends[middle - 1]], units[: ends[middle - 1]])
            low, high = (low, middle) if self.may_hold(job) else (middle, high)
        self._free = _given(before, cards[: ends[high - 1]], units[: ends[high - 1]])
        return high

    def _on_nodes(self) -> Ints:
        """Return the card units that are free on each node."""
        found: Ints = np.maximum(self._free, 0).reshape(self._view.work.instance.nodes, -1).sum(axis=1)
        return found


def _given(free: Ints, cards: Ints, units: Ints) -> Ints:
    found = free.copy()
    np.add.at(found, cards, units)
    return found
