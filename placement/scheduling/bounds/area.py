"""Bounds that take next to no time: least run times alone, and the areas of jobs on all cards together.

A job that does its work at a rate that is never above that of its least run time p ends at least half of p after the
mean time M of its work (Goemans, 1997; for parallel jobs, Schulz and Skutella, 2002). The least weighted sum of mean
times on cards that can be given to anybody in any amount has the jobs served by weight over area, each from its release
on (Goemans' preemptive rule, the best for mean times). Jobs that share no model of cards do not meet.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Sequence

from placement.scheduling.bounds.modes import Kind, Relaxation
from placement.scheduling.capacity import Profile

ROUNDING = 1e-15
"""Part of the sum that is taken off for each step in which it was made: some roundings of doubles, all of them of sums
and products of what is not negative."""


def soonest(kind: Kind) -> int:
    """Return the least completion time of a job of a kind, whatever others do."""
    end = kind.start + kind.least if kind.kept is None else min(kind.kept.run, kind.stopped)
    return end - kind.release


def trivial_bound(relaxation: Relaxation) -> int:
    """Return the weighted sum of least completion times."""
    return sum(kind.count * kind.weight * soonest(kind) for kind in relaxation.kinds)


def area_bound(relaxation: Relaxation) -> int:
    """Return the bound by areas, or the trivial one where that is better, for jobs of each part of the cluster."""
    found = 0
    for kinds, profiles in _parts(relaxation):
        trivial = sum(kind.count * kind.weight * soonest(kind) for kind in kinds)
        found += max(trivial, _by_area(kinds, profiles, relaxation.cards)) if profiles else trivial
    return found


def _parts(relaxation: Relaxation) -> list[tuple[list[Kind], list[Profile]]]:
    """Return kinds and profiles by parts of the cluster, of which jobs of one use no cards of another."""
    part = list(range(relaxation.cards))

    def root(resource: int) -> int:
        while part[resource] != resource:
            resource = part[resource]
        return resource

    used = [
        sorted({resource for mode in kind.parts for resource, _ in mode.uses if resource < relaxation.cards})
        for kind in relaxation.kinds
    ]
    for resources in used:
        for resource in resources[1:]:
            part[root(resource)] = root(resources[0])
    kinds: dict[int, list[Kind]] = defaultdict(list)
    for kind, resources in zip(relaxation.kinds, used, strict=True):
        kinds[root(resources[0]) if resources else -1].append(kind)
    profiles: dict[int, list[Profile]] = defaultdict(list)
    for resource, profile in enumerate(relaxation.profiles[: relaxation.cards]):
        profiles[root(resource)].append(profile)
    return [(mine, profiles[number] if number >= 0 else []) for number, mine in kinds.items()]


def _by_area(kinds: Sequence[Kind], profiles: Sequence[Profile], cards: int) -> int:
    moments = sorted({time for profile in profiles for time in profile.times.tolist()})
    change: dict[int, int] = defaultdict(int)
    for profile in profiles:
        before = 0
        for time, units in zip(profile.times.tolist(), profile.units.tolist(), strict=True):
            change[time] += units - before
            before = units
    arrivals = sorted(range(len(kinds)), key=lambda number: kinds[number].start)
    area = [kind.count * float(min(mode.area(cards) for mode in kind.parts)) for kind in kinds]
    whole = area.copy()
    waiting: list[tuple[float, int]] = []
    now, units, coming, turn = 0.0, 0, 0, 0
    total, subtract, steps = 0.0, 0, len(kinds)
    for kind, size in zip(kinds, area, strict=True):
        subtract += kind.count * kind.weight * kind.release
        total += kind.count * kind.weight * (kind.least / 2 if size else kind.start + kind.least)
    while True:
        while turn < len(moments) and moments[turn] <= now:
            units += change[moments[turn]]
            turn += 1
        while coming < len(arrivals) and kinds[arrivals[coming]].start <= now:
            number = arrivals[coming]
            if area[number]:
                heapq.heappush(waiting, (-kinds[number].count * kinds[number].weight / whole[number], number))
            coming += 1
        following = min(
            float(moments[turn]) if turn < len(moments) else math.inf,
            float(kinds[arrivals[coming]].start) if coming < len(arrivals) else math.inf,
        )
        if not waiting or not units:
            if following == math.inf:
                break
            now = following
            continue
        steps += 1
        number = waiting[0][1]
        end = now + area[number] / units
        stop = min(end, following)
        done = area[number] if stop == end else (stop - now) * units
        total += kinds[number].count * kinds[number].weight * (done / whole[number]) * (now + stop) / 2
        area[number] -= done
        if stop == end:
            heapq.heappop(waiting)
        now = stop
    for _, number in waiting:  # there will never be cards for them; they count until now
        total += kinds[number].count * kinds[number].weight * (area[number] / whole[number]) * now
    return math.ceil(total * (1 - ROUNDING * (10 + 10 * steps))) - subtract  # what it bounds is whole
