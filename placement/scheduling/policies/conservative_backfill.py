"""Conservative backfilling: later jobs go ahead where they delay nobody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from placement.scheduling.desk import NEVER, Desk
from placement.scheduling.orders import by_arrival
from placement.scheduling.profile import Profile, Reserved

MOST_RESERVED = 500
"""Most jobs that have a reservation at a time."""


@dataclass(frozen=True, slots=True)
class ConservativeBackfill:
    """Every job gets a reservation when it comes, at the earliest moment that moves no reservation made before.

    Reservations are of places, from the start of a job to its end by the estimates. They are made anew, in the same
    order, only when running jobs do not end as they were expected to, or places are no longer what they were. Of jobs
    that come together those of a higher priority are first. No more than `MOST_RESERVED` jobs have one at a time, and
    who comes later gets one when another has started.

    Source: Mu'alem and Feitelson (IEEE TPDS 12(6), 2001); the limit is that of Slurm on the jobs that its backfill
    scheduler tries, ``bf_max_job_test`` of ``SchedulerParameters`` (slurm.conf), which is 500 by default.
    """

    name: str = "conservative-backfill"
    period: int = 0

    def decide(self, desk: Desk) -> None:
        """Reserve for those who came, and start those whose time it is."""
        plan = desk.memory.setdefault(self.name, _Plan())
        if not plan.holds(desk):
            plan.reserved.clear()
        if len(plan.reserved) < min(MOST_RESERVED, len(desk.waiting)):
            plan.reserve(desk, [job for job in desk.line(_by_coming) if job not in plan.reserved])
        for job in [job for job, one in plan.reserved.items() if one.start <= desk.now]:
            desk.put(job, plan.reserved.pop(job).tasks)
        plan.changes = desk.changes
        plan.expected = {job: live.expected for job, live in desk.live.items()}
        desk.again = min((one.start for one in plan.reserved.values()), default=NEVER)


def _by_coming(desk: Desk, job: int) -> tuple[float, ...]:
    return desk.waiting[job], *by_arrival(desk, job)


@dataclass(slots=True)
class _Plan:
    """Reservations, when running jobs were expected to end as they were made, and how often nodes had changed."""

    reserved: dict[int, Reserved] = field(default_factory=dict)
    expected: dict[int, int] = field(default_factory=dict)
    changes: int = 0

    def holds(self, desk: Desk) -> bool:
        """Return whether all has come as expected."""
        gone = self.expected.keys() - desk.live.keys()
        return (
            self.changes == desk.changes
            and self.reserved.keys() <= desk.waiting.keys()
            and all(self.expected.get(job) == live.expected for job, live in desk.live.items())
            and all(self.expected[job] == desk.now for job in gone)
        )

    def reserve(self, desk: Desk, jobs: Sequence[int]) -> None:
        """Reserve for jobs in turn, beside what is reserved."""
        profile = Profile(desk, self.reserved)
        with profile.trials():
            for job in jobs:
                if len(self.reserved) == MOST_RESERVED:
                    break
                found = profile.earliest(job)
                if found is not None:
                    self.reserved[job] = found
                    profile.add(job, found)
