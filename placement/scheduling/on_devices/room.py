"""How many card units of each node are free when: what says of most moments that a job does not fit then."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from placement.instance import Bools, Ints
from placement.scheduling.desk import NEVER, Desk
from placement.scheduling.profile import Reserved


class Room:
    """Free card units of nodes over time, beside what runs and what is reserved.

    Parameters
    ----------
    desk : Desk
        Of which `Desk.counts` holds.
    reserved : iterable of (int, Reserved)
        Jobs, none of which runs, and their places.
    """

    def __init__(self, desk: Desk, reserved: Iterable[tuple[int, Reserved]]) -> None:
        self._desk, self._instance = desk, desk.work.instance
        spells = [(desk.now, live.expected, desk.units(job, live.tasks)) for job, live in desk.live.items()]
        spells += [(one.start, one.end, desk.units(job, one.tasks)) for job, one in reserved]
        moments = {desk.now, *(moment for start, end, _ in spells for moment in (start, end) if moment < NEVER)}
        self._moments = np.array(sorted(moments), dtype=np.int64)
        units = np.array([sum(units for _, units, _ in one.cards) for one in self._instance.classes], dtype=np.int64)
        self._free = np.repeat(units[self._instance.node_class][None, :], len(self._moments), axis=0)
        self._admits: dict[int, Bools] = {}
        for start, end, held in spells:
            self._take(start, end, held)

    def add(self, job: int, reserved: Reserved) -> None:
        """Take a reservation into account."""
        for moment in (reserved.start, reserved.end):
            place = int(np.searchsorted(self._moments, moment))
            if place == len(self._moments) or self._moments[place] != moment:
                self._moments = np.insert(self._moments, place, moment)
                self._free = np.insert(self._free, place, self._free[place - 1], axis=0)
        self._take(reserved.start, reserved.end, self._desk.units(job, reserved.tasks))

    def _take(self, start: int, end: int, held: Sequence[tuple[int, int]]) -> None:
        first, last = np.searchsorted(self._moments, (start, end))
        for node, units in held:
            self._free[first:last, node] -= units

    def may_fit(self, job: int, tasks: int, within: Ints | None, start: int, end: int) -> bool:
        """Return False if a job surely finds no places for all of a time.

        Parameters
        ----------
        job : int
        tasks : int
            Fewest that are to run, if it is a gang of one group.
        within : int array, optional
            Nodes that it keeps to.
        start, end : int
        """
        one = self._instance.job_classes[int(self._instance.job_class[job])]
        leaf = one.leaves[0]
        each = self._instance.shapes[leaf.shape].of_cards
        if len(one.leaves) > 1 or not each:
            return True
        first = int(np.searchsorted(self._moments, start, side="right")) - 1
        last = max(int(np.searchsorted(self._moments, end)), first + 1)
        room = np.where(self._admitted(leaf.shape), self._free[first:last].min(axis=0), 0) // each
        if within is not None:
            kept = np.zeros(len(room), dtype=room.dtype)
            kept[within] = room[within]
            room = kept
        least = max(leaf.minimum, tasks)
        room = np.maximum(room, 0)
        if leaf.ties is None or leaf.ties.required < 0:
            return bool(room.sum() >= least)
        domain = self._instance.domains[leaf.ties.required]
        inside = domain >= 0
        return bool(np.bincount(domain[inside], room[inside]).max(initial=0) >= least)

    def _admitted(self, shape: int) -> Bools:
        if shape not in self._admits:
            self._admits[shape] = self._instance.admits_node[shape][self._instance.node_class]
        return self._admits[shape]
