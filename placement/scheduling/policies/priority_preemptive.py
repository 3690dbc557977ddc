"""Preemption by priority, as in kube-scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placement.instance import Ints
from placement.scheduling.desk import Desk
from placement.scheduling.orders import by_arrival
from placement.scheduling.policies import evicting
from placement.scheduling.room import Room

MOST_CANDIDATES, LEAST_PART = 100, 10
"""Nodes tried: at least so many, and at least one in so many."""

SHIFT = 1 << 31
"""Added to each priority in a sum, so that of two sets of negative ones the larger set is not the better."""


@dataclass(frozen=True, slots=True)
class PriorityPreemptive:
    """Jobs are tried by priority; one that does not fit stops such of lower priority, as few and as low as it can.

    A job of one task looks at each node by itself: all jobs of lower priority are taken off it, and put back where the
    task still fits, the more important first (the higher priority, then the earlier start). Of the nodes found it takes
    the one whose highest victim is lowest, then whose sum of priorities is least, then with the fewest victims, then
    whose highest victim started last, then the first. A gang does the same with the whole cluster as one node. A victim
    is stopped whole, with all its tasks.

    Source: the default preemption of kube-scheduler (kubernetes/kubernetes,
    ``pkg/scheduler/framework/plugins/defaultpreemption`` and ``framework/preemption``), gangs as pod groups there.
    Without disruption budgets, nominated nodes, grace periods and the random node to begin at.
    """

    name: str = "priority-preemptive"
    period: int = 0

    def decide(self, desk: Desk) -> None:
        """Start what fits, by stopping others if need be."""
        evicting.serve(desk, by_arrival, _choose)


def _choose(desk: Desk, job: int) -> tuple[list[int], Ints | None] | None:
    lower = evicting.stoppable_below(desk, job)
    room = evicting.room_without(desk, job, lower)
    if not lower or room is None:
        return None
    lower.sort(key=lambda other: _importance(desk, other))
    if desk.tasks(job) > 1:
        victims = evicting.spared(desk, job, lower)
        return None if victims is None else (victims, None)
    return _best_node(desk, job, lower, room)


def _importance(desk: Desk, job: int) -> tuple[int, int, int]:
    """Order the more important first."""
    return -int(desk.work.priority[job]), desk.live[job].since, job


def _best_node(desk: Desk, job: int, lower: Sequence[int], room: Room) -> tuple[list[int], Ints | None] | None:
    instance = desk.work.instance
    host = instance.hosts_of(np.arange(instance.nodes)).tolist()
    on: dict[int, list[int]] = {}
    for other in lower:
        for node in sorted({host[spot[0]] for _, _, spot in desk.live[other].tasks}):
            on.setdefault(node, []).append(other)
    found: list[tuple[tuple[int, int, int, int], list[int], Ints]] = []
    too_many = False
    for node in room.on(job, sorted(on)):
        within = np.flatnonzero(np.array(host) == node)
        victims = evicting.spared(desk, job, on[node], within)
        if victims:
            found.append((_cost(desk, victims), victims, within))
        too_many = too_many or victims == []
        if len(found) >= max(MOST_CANDIDATES, instance.hosts // LEAST_PART):
            break
    best = min(found, key=lambda one: one[0], default=None)
    if best is None:
        return ([], None) if too_many else None
    return best[1:]


def _cost(desk: Desk, victims: Sequence[int]) -> tuple[int, int, int, int]:
    """Return what is least on the best node."""
    priorities = [int(desk.work.priority[job]) for job in victims]
    highest = max(priorities, default=-SHIFT)
    since = [desk.live[job].since for job, priority in zip(victims, priorities, strict=True) if priority == highest]
    return highest, sum(priority + SHIFT for priority in priorities), len(victims), -min(since, default=0)
