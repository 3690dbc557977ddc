"""The future of a cluster: which places running jobs and reservations take, and until when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from placement.gang import Group, Leaf
from placement.heuristics.gangs import Placed
from placement.scheduling.desk import NEVER, Desk


@dataclass(frozen=True, slots=True)
class Reserved:
    """Places that a job is to have for a time.

    Attributes
    ----------
    start, end : int
    tasks : tuple of Placed
    """

    start: int
    end: int
    tasks: tuple[Placed, ...]


class Profile:
    """What is taken from now on, by running jobs as they are expected to end and by reservations.

    How many card units are free says at once of most moments that a job does not fit then; of the others it is tried
    out with what is taken held on its places.

    Parameters
    ----------
    desk : Desk
    reserved : mapping of int to Reserved
        By job; none of them runs.
    """

    def __init__(self, desk: Desk, reserved: Mapping[int, Reserved]) -> None:
        self._desk = desk
        self._reserved: dict[int, Reserved] = {}
        self._least: dict[int, int] = {}
        self._counts = _counts_hold(desk)
        instance = desk.work.instance
        self._moments = np.array([desk.now], dtype=np.int64)
        self._free = np.array([sum(one.size * sum(card[1] for card in one.cards) for one in instance.classes)])
        self._cut(window.end for window in desk.work.windows if window.end > desk.now)
        for job, live in desk.live.items():
            self._take(job, desk.now, live.expected, live.tasks)
        for job, one in reserved.items():
            self.add(job, one)

    def add(self, job: int, reserved: Reserved) -> None:
        """Take a reservation into account."""
        self._reserved[job] = reserved
        self._take(job, reserved.start, reserved.end, reserved.tasks)

    def earliest(self, job: int) -> Reserved | None:
        """Return the first time in which a job fits beside all that is taken; None where that is never."""
        least, length = self._least_units(job), self._desk.length(job)
        for number, start in enumerate(self._moments.tolist()):
            last = int(np.searchsorted(self._moments, start + max(length, 1)))
            if self._counts and self._free[number:last].min() < least:
                continue
            found = self._fits_at(job, start, length)
            if found is not None:
                return found
        return None

    def _fits_at(self, job: int, start: int, length: int) -> Reserved | None:
        """Return a reservation from a moment on, for as long as the job runs where it then is."""
        desk = self._desk
        gone = [other for other, live in desk.live.items() if live.expected <= start]
        with desk.without(gone), desk.at(start):
            while True:
                end = start + length
                held = [
                    (other, one.tasks)
                    for other, one in self._reserved.items()
                    if one.start < max(end, start + 1) and one.end > start
                ]
                with desk.beside(held):
                    tasks = desk.fit(job)
                    if tasks is not None:
                        desk.withdraw(job, tasks)
                if tasks is None:
                    return None
                restart, work, _ = desk.spell(job, tasks)
                if restart + work <= length:
                    return Reserved(start, start + restart + work, tasks)
                length = restart + work  # it runs longer there, and may come to meet others

    # --- counting ------------------------------------------------------------------------------------------------

    def _take(self, job: int, start: int, end: int, tasks: Iterable[Placed]) -> None:
        self._cut(moment for moment in (start, end) if moment < NEVER)
        first, last = np.searchsorted(self._moments, (start, end))
        self._free[first:last] -= sum(units for _, units in self._desk.units(job, tasks))

    def _cut(self, moments: Iterable[int]) -> None:
        """Let spells of time begin at some moments."""
        for moment in moments:
            place = int(np.searchsorted(self._moments, moment))
            if place == len(self._moments) or self._moments[place] != moment:
                self._moments = np.insert(self._moments, place, moment)
                self._free = np.insert(self._free, place, self._free[place - 1])

    def _least_units(self, job: int) -> int:
        number = int(self._desk.work.instance.job_class[job])
        if number not in self._least:
            self._least[number] = self._least_of(self._desk.work.instance.job_classes[number].root)
        return self._least[number]

    def _least_of(self, group: Group) -> int:
        """Return the card units without which a copy of a group does not run."""
        if isinstance(group, Leaf):
            return group.minimum * self._desk.work.instance.shapes[group.shape].of_cards
        children = sorted(self._least_of(child) for child in group.children)
        return group.minimum * sum(children[: group.min_groups])


def _counts_hold(desk: Desk) -> bool:
    """Return whether free units say what does not fit: not where running work may overfill cards, or cards are MIG."""
    instance = desk.work.instance
    if instance.slots is not None or instance.crowded:
        return False
    used: dict[tuple[int, int], int] = {}
    for job, live in desk.live.items():
        leaves = instance.job_classes[int(instance.job_class[job])].leaves
        for leaf, _, (node, cards) in live.tasks:
            for card in cards:
                if card < instance.widest:
                    used[node, card] = used.get((node, card), 0) + instance.shapes[leaves[leaf].shape].units
    return all(units <= instance.card_units for units in used.values())
