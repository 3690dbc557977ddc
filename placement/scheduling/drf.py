"""Dominant resource fairness: the next job is one of the queue that has least, each counted by what it has most of."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from placement import units
from placement.instance import Instance
from placement.quota import Cards
from placement.scheduling.desk import Desk
from placement.scheduling.orders import Held, aged, by_arrival, held_for, overdue, start_beside


@dataclass(frozen=True, slots=True)
class DominantResourceFairness:
    """Starts one job at a time, of the queue with the least weighted dominant share of which some job fits.

    Ghodsi, Zaharia, Hindman, Konwinski, Shenker and Stoica, NSDI 2011, with card models as the resources: the dominant
    share of a queue is the largest part of the healthy cards of one model that its jobs take, over `Queue.weight`. Jobs
    of a queue come by priority, then as they came; jobs in no queue are together one of weight 1; a queue of weight 0
    comes after all others. Queues above others have no share of their own.
    """

    name: str = "drf"
    period: int = 0

    def decide(self, desk: Desk) -> None:
        """Start jobs that are overdue, then queue by queue."""
        key = aged(by_arrival)
        order = sorted(desk.waiting, key=lambda one: (key(desk, one), one))
        held: Held | None = None
        waiting: dict[str, list[int]] = defaultdict(list)
        for job in order:
            if not overdue(desk, job):
                waiting[desk.work.queue[job]].append(job)
            elif not _start(desk, job, held) and held is None:
                held = held_for(desk, job)
        if waiting:
            self._share(desk, {queue: iter(jobs) for queue, jobs in waiting.items()}, held)

    def _share(self, desk: Desk, waiting: Mapping[str, Iterator[int]], held: Held | None) -> None:
        queue_of = desk.work.queue
        shares = _Shares(desk.work.instance)
        for job in desk.live:
            shares.add(queue_of[job], desk.taken(job))
        heap = [(shares.weighted(queue), queue) for queue in waiting]
        heapq.heapify(heap)
        while heap:
            _, queue = heapq.heappop(heap)
            # what did not fit does not fit later at this moment either, for what is free only shrinks
            started = next((job for job in waiting[queue] if _start(desk, job, held)), None)
            if started is not None:
                shares.add(queue, desk.taken(started))
                heapq.heappush(heap, (shares.weighted(queue), queue))


def _start(desk: Desk, job: int, held: Held | None) -> bool:
    return desk.start(job) if held is None else start_beside(desk, job, held)


class _Shares:
    """What queues take, and how that compares."""

    def __init__(self, instance: Instance) -> None:
        self._cards = cards_of(instance)
        self._weights = {queue.name: units.exact(queue.weight) for queue in instance.snapshot.queues}
        self._taken: dict[str, dict[str, Cards]] = defaultdict(lambda: defaultdict(int))

    def add(self, queue: str, amounts: Mapping[str, Cards]) -> None:
        """Add what a job of a queue takes."""
        for model, amount in amounts.items():
            self._taken[queue][model] += amount

    def weighted(self, queue: str) -> tuple[bool, Fraction]:
        """Return the dominant share of a queue over its weight, behind whether the weight is 0."""
        parts = [Fraction(amount) / self._cards[model] for model, amount in self._taken[queue].items() if amount]
        share, weight = max(parts, default=Fraction(0)), self._weights.get(queue, Fraction(1))
        return not weight, share / weight if weight else share


def cards_of(instance: Instance) -> dict[str, int]:
    """Return how many cards of each model a cluster has; of a model without a healthy card at least 1."""
    found: dict[str, int] = defaultdict(int)
    for node in instance.snapshot.nodes:
        for gpu in node.gpus:
            found[gpu.model] += node.count * gpu.count if gpu.health == "healthy" else 0
    return {model: max(count, 1) for model, count in found.items()}
