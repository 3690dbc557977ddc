"""What counts of free cards say of whether a job fits when others are off their places, without trying it."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np

from placement.heuristics.load import Load, together
from placement.instance import Ints
from placement.scheduling.view import View


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
        units, healthy = view.filling.idle_units()
        self._nodes = len(units)
        self._free: Ints = np.where(healthy, units, 0).reshape(-1)

    def copy(self) -> Room:
        """Return one that changes by itself."""
        found = copy(self)
        found._free = self._free.copy()
        return found

    def take(self, load: Load) -> None:
        """Take what a job takes, whether or not it is free."""
        cards, units = load.cards
        self._free[cards] -= units

    def give(self, load: Load) -> None:
        """Give back what a job takes."""
        cards, units = load.cards
        self._free[cards] += units

    def exchange(self, loads: Sequence[Load], signs: Sequence[int]) -> None:
        """Take what some jobs take, and give back where the sign is -1."""
        if loads:
            np.subtract.at(self._free, *together(loads, signs))

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
        return [node for node, row in zip(nodes, self._view.filling.rows(nodes), strict=True) if holds[row]]

    def first_that_may_do(self, job: int, loads: Sequence[Load]) -> int | None:
        """Return how many of some loads, the first ones, are to be given back for a job to fit, at least.

        They are given back then. None, and all are given back, where it surely does not fit even so.
        """
        if self._view.least_tasks(job) is None:
            return 0
        cards, units = np.concatenate([one.cards for one in loads], axis=1)
        ends = np.cumsum([one.cards.shape[1] for one in loads])
        before = self._free
        low, high = 0, len(loads)  # the first low do not do, the first high may
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
        found: Ints = np.maximum(self._free, 0).reshape(self._nodes, -1).sum(axis=1)
        return found


def _given(free: Ints, cards: Ints, units: Ints) -> Ints:
    found = free.copy()
    np.add.at(found, cards, units)
    return found
