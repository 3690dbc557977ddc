"""How many card units of each model there are at each time for jobs that count, at most."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from placement.heuristics.gangs import Placed
from placement.instance import Instance, Ints
from placement.scheduling.work import Work
from placement.shared_cards import parted

NO_END = 1 << 60


@dataclass(frozen=True, slots=True)
class Profile:
    """What there is of a resource.

    Attributes
    ----------
    times : int array
        Ascending, from 0.
    units : int array
        From each of these times until the next; the last for ever.
    """

    times: Ints
    units: Ints

    def total(self, until: Ints) -> list[int]:
        """Return the unit milliseconds from 0 until some times, which are too large for 64 bits at times."""
        sums, units, times = [0], self.units.tolist(), self.times.tolist()
        for (begin, end), amount in zip(pairwise(times), units, strict=False):
            sums.append(sums[-1] + (end - begin) * amount)
        place = (np.searchsorted(self.times, until, side="right") - 1).tolist()
        return [sums[row] + (time - times[row]) * units[row] for row, time in zip(place, until.tolist(), strict=True)]


def models_of(instance: Instance) -> list[str]:
    """Return the card models of an instance, in the order of the resources."""
    return sorted({kind.model for kind in instance.card_kinds})


def held(work: Work, job: int) -> tuple[tuple[int, int], ...]:
    """Return the units of each resource that a running job holds, of cards that count.

    Cards of which running jobs hold more than there is do not count: what is there would be too little for them.
    """
    instance = work.instance
    number = {model: pool for pool, model in enumerate(models_of(instance))}
    mine = {(node, card) for node, card, _ in _on_cards(instance, job, work.ongoing[job].tasks)}
    load: dict[tuple[int, int], int] = defaultdict(int)
    for other, ongoing in work.ongoing.items():
        for node, card, units in _on_cards(instance, other, ongoing.tasks):
            if (node, card) in mine:
                load[node, card] += units
    found: dict[int, int] = defaultdict(int)
    for node, card, units in _on_cards(instance, job, work.ongoing[job].tasks):
        kind, free, _ = instance.classes[instance.node_class[node]].cards[card]
        if load[node, card] <= free and instance.card_kinds[kind].healthy:
            found[number[instance.card_kinds[kind].model]] += units
    return tuple(sorted(found.items()))


def profiles(work: Work) -> tuple[Profile, ...]:
    """Return what there is of each resource.

    That is all healthy cards, but for what is held by running jobs that do not end or may not be stopped, and on nodes
    that nobody may use for a while.
    """
    instance = work.instance
    models = models_of(instance)
    number = {model: pool for pool, model in enumerate(models)}
    change: list[dict[int, int]] = [defaultdict(int) for _ in models]
    for one in instance.classes:
        for kind, free, _ in one.cards if one.slots < 0 else ():
            if instance.card_kinds[kind].healthy:
                change[number[instance.card_kinds[kind].model]][0] += free * one.size
    for (node, card), spells in _taken(work).items():
        kind, free, _ = instance.classes[instance.node_class[node]].cards[card]
        if not free or not instance.card_kinds[kind].healthy:
            continue
        mine = change[number[instance.card_kinds[kind].model]]
        moments = sorted({moment for start, end, _ in spells for moment in (start, end) if moment < NO_END})
        before = 0
        for moment in moments:
            now = min(free, sum(units for start, end, units in spells if start <= moment < end))
            mine[moment] -= now - before
            before = now
    found = []
    for mine in change:
        mine[0] += 0
        times = np.array(sorted(mine), dtype=np.int64)
        found.append(Profile(times, np.cumsum([mine[time] for time in times.tolist()])))
    return tuple(found)


def _taken(work: Work) -> dict[tuple[int, int], list[tuple[int, int, int]]]:
    """Return of cards on nodes when how much of them is surely not there for jobs that count."""
    instance = work.instance
    found: dict[tuple[int, int], list[tuple[int, int, int]]] = defaultdict(list)
    busy: set[int] = set()
    for job, ongoing in work.ongoing.items():
        if work.counts(job):
            busy |= {node for node, _, _ in _on_cards(instance, job, ongoing.tasks)}
            continue
        end = NO_END if ongoing.left is None else ongoing.left
        for node, card, units in _on_cards(instance, job, ongoing.tasks):
            if end > 0:
                found[node, card].append((0, end, units))
    for window in work.windows:
        if window.jobs or window.end <= max(0, window.start):
            continue
        for node in set(window.nodes.tolist()) - busy:
            one = instance.classes[instance.node_class[node]]
            for card in range(len(one.cards) if one.slots < 0 else 0):
                found[node, card].append((max(0, window.start), window.end, instance.card_units))
    return found


def _on_cards(instance: Instance, job: int, tasks: Sequence[Placed]) -> Iterator[tuple[int, int, int]]:
    """Yield nodes and cards on which tasks of a job surely take units, and how many."""
    one = instance.job_classes[instance.job_class[job]]
    for leaf, _, (node, cards) in tasks:
        number = one.leaves[leaf].shape
        shape = instance.shapes[number]
        if shape.profile < 0 and (instance.exact or not parted(instance, number)):
            for card in cards:
                if card < instance.widest:
                    yield node, card, shape.units
