"""Preemption by Kueue: candidates are taken away until the workload fits, and then put back where it still does."""

from __future__ import annotations

from dataclasses import dataclass

from placement.instance import Ints
from placement.scheduling.desk import Desk
from placement.scheduling.orders import by_arrival
from placement.scheduling.policies import evicting


@dataclass(frozen=True, slots=True)
class KueuePreemption:
    """Jobs are tried by priority; one that does not fit stops such of lower priority.

    Candidates are those of other queues first, then those of lower priority, then those that started last. They are
    taken away in this order until the job fits, and then put back, from the last but one to the first, where it still
    fits.

    Source: Kueue (kubernetes-sigs/kueue, ``pkg/scheduler/preemption``, and its documentation on preemption), with
    ``withinClusterQueue`` and ``reclaimWithinCohort`` both ``LowerPriority`` and all queues of one cohort. What a queue
    borrows makes no difference here to whom it may take from.
    """

    name: str = "kueue-preemption"
    period: int = 0

    def decide(self, desk: Desk) -> None:
        """Start what fits, by stopping others if need be."""
        evicting.serve(desk, by_arrival, _choose)


def _choose(desk: Desk, job: int) -> tuple[list[int], Ints | None] | None:
    work, below = desk.work, evicting.stoppable_below(desk, job)
    if not desk.may_fit(job, sum([desk.live[other].units for other in below])):
        return None

    def order(other: int) -> tuple[bool, int, int, int]:
        return work.queue[other] == work.queue[job], int(work.priority[other]), -desk.live[other].since, other

    victims = evicting.fewest(desk, job, sorted(below, key=order))
    return None if victims is None else (victims, None)
