"""Preemption by Volcano: a gang clears node after node of its own queue until all of it can start, or takes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placement.instance import Ints
from placement.scheduling.desk import Desk
from placement.scheduling.orders import by_arrival
from placement.scheduling.policies import evicting


@dataclass(frozen=True, slots=True)
class VolcanoGangPreempt:
    """Jobs are tried by priority; a gang that does not fit stops such of lower priority in its own queue.

    It goes from node to node, those first of which running work has taken least. On each it stops victims, the lowest
    priority first and of these the last that started, and passes over nodes on which that would let in none of its
    tasks. It ends as soon as its minimum fits. If it never does, nothing is stopped: the statement is discarded.
    Nobody is put back, so more may be stopped than must.

    Source: the actions ``allocate`` and ``preempt`` of Volcano (volcano-sh/volcano,
    ``pkg/scheduler/actions/preempt``), with the plugin ``priority``, and ``gang`` without its veto on breaking gangs
    (``enablePreemptable: false``). A victim is stopped whole, with all its tasks.
    """

    name: str = "volcano-gang-preempt"
    period: int = 0

    def decide(self, desk: Desk) -> None:
        """Start what fits, by stopping others if need be."""
        evicting.serve(desk, by_arrival, _choose, _queue)


def _queue(desk: Desk, job: int) -> str:
    return desk.work.queue[job]


def _choose(desk: Desk, job: int) -> tuple[list[int], Ints | None] | None:
    queue = desk.work.queue
    lower = [other for other in evicting.stoppable_below(desk, job) if queue[other] == queue[job]]
    if not lower or evicting.room_without(desk, job, lower) is None:
        return None
    lower.sort(key=lambda other: (int(desk.work.priority[other]), -desk.live[other].since, other))
    return _cleared(desk, job, lower), None


def _cleared(desk: Desk, job: int, lower: Sequence[int]) -> list[int]:
    """Return jobs to stop, of some in the order in which they go; none where the other does not fit even so."""
    gone: list[int] = []
    try:
        for nodes, on in _by_node(desk, lower):
            left = [other for other in on if other not in gone]
            with desk.without(left):
                useful = desk.has_room(job, nodes)
            for other in left if useful else ():
                desk.lift(other)
                gone.append(other)
                if not desk.may_stop_together(gone):
                    return []
                if evicting.fits(desk, job):
                    return list(gone)
        return []
    finally:
        for other in gone:
            desk.put_back(other)


def _by_node(desk: Desk, lower: Sequence[int]) -> list[tuple[Ints, list[int]]]:
    """Return the nodes that some jobs are on, MIG cards among them, and these jobs; those with the least work first."""
    host = desk.work.instance.hosts_of(np.arange(desk.work.instance.nodes))
    load = np.zeros(len(host), dtype=np.int64)
    on: dict[int, list[int]] = {}
    for other, live in desk.live.items():
        for node, units in desk.units(other, live.tasks):
            load[host[node]] += units
    for other in lower:
        for node in sorted({int(host[spot[0]]) for _, _, spot in desk.live[other].tasks}):
            on.setdefault(node, []).append(other)
    order = sorted(on, key=lambda node: (int(load[node]), node))
    return [(np.flatnonzero(host == node), on[node]) for node in order]
