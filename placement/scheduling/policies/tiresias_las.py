"""Least attained service in discrete queues, as in Tiresias."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field

from placement.instance import Ints
from placement.scheduling.desk import NEVER, Desk
from placement.scheduling.policies import evicting

LIMITS = (3_250_000, 7_200_000)
"""Card milliseconds of service after which a job goes down from each queue to the next."""


@dataclass(frozen=True, slots=True)
class TiresiasLas:
    """The less a job has been served, cards times time, the sooner it is served; in queues, first come first served.

    A job goes down to the next queue when its service comes to a limit. Jobs of upper queues come first; within a
    queue those that started earlier, then those that never did, as they came. Each starts if it fits when jobs that
    come after it are stopped, those that come last first and no more than must be. Estimates of run times and
    priorities play no part.

    Source: 2D-LAS of Gu and others, Tiresias (NSDI 2019), with the queues and limits of its simulator
    (SymbioticLab/Tiresias), where jobs are not promoted for waiting long unless that is asked for.
    """

    name: str = "tiresias-las"
    period: int = 0
    limits: tuple[int, ...] = LIMITS

    def decide(self, desk: Desk) -> None:
        """Start what comes first, and stop for it what comes later."""
        service = desk.memory.setdefault(self.name, _Service())
        service.renew(desk)
        limits = tuple(limit * desk.work.instance.card_units for limit in self.limits)

        order = {
            job: (
                bisect_right(limits, service.of(desk, job)),
                service.first.get(job, NEVER),
                int(desk.work.submit[job]),
            )
            for job in [*desk.live, *desk.waiting]
        }

        def choose(desk: Desk, job: int) -> tuple[list[int], Ints | None] | None:
            mine = order[job], job
            later = [other for other in desk.live if (order[other], other) > mine and desk.may_stop(other)]
            later.sort(key=lambda other: (order[other], other), reverse=True)
            victims = evicting.fewest(desk, job, later)
            return None if victims is None else (victims, None)

        evicting.serve(desk, lambda _, job: order[job], choose)
        if desk.waiting:
            desk.again = min([desk.again, *(service.until(desk, job, limits) for job in desk.live)])


@dataclass(slots=True)
class _Service:
    """What jobs were served in stretches that are over, in card units times milliseconds, and when each began."""

    seen: int = -1
    past: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    first: dict[int, int] = field(default_factory=dict)

    def of(self, desk: Desk, job: int) -> int:
        """Return what a job was served until now."""
        live = desk.live.get(job)
        return self.past[job] + (0 if live is None else (desk.now - live.start) * live.units)

    def until(self, desk: Desk, job: int, limits: tuple[int, ...]) -> int:
        """Return when a job that runs goes down to the next queue; `NEVER` where it does not or that is the same."""
        live, place = desk.live[job], bisect_right(limits, self.of(desk, job))
        if not live.units or place == len(limits) or desk.stoppable_from(job) >= NEVER:
            return NEVER
        return live.start + -((self.past[job] - limits[place]) // live.units)

    def renew(self, desk: Desk) -> None:
        """Take into account what has happened since."""
        if self.seen < 0:
            self.seen = 0
            for job, ongoing in desk.work.ongoing.items():
                self.first[job] = ongoing.since
                self.past[job] = -ongoing.since * desk.units_of(job, ongoing.tasks)
        for stretch in desk.stretches[self.seen :]:
            self.first.setdefault(stretch.job, stretch.start)
            self.past[stretch.job] += (stretch.end - stretch.start) * desk.units_of(stretch.job, stretch.tasks)
        self.seen = len(desk.stretches)
        for job, live in desk.live.items():
            if live.start < desk.now:
                self.first.setdefault(job, live.start)
