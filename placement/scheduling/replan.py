"""Plans for what waits at a moment of a run, by the passes and moves of the search.

What is known is what every policy knows: jobs that wait, running ones with their expected ends, nodes that are shut,
and windows. Where counts of cards do not say all, or a quota or a longest wait decides, all that waits is listed in
Smith's order for parallel jobs; see `placement.scheduling.orders`.

A plan begins with the parallel pass in that order. Passes in other orders, and moves, take its place only where they
gain so much that jobs which come meanwhile are not likely to undo it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from placement.scheduling import orders
from placement.scheduling.counts import NO_DEADLINE, Counted, Gang, Kind, Nodes, Profile, counted
from placement.scheduling.desk import NEVER, Desk
from placement.scheduling.moves.improve import Improver
from placement.scheduling.passes import FIRST, Pass, free_from, ordered, parallel
from placement.scheduling.work import Work

MOST = 300
"""Jobs that are planned, the first by weighted area; what else fits beside these is started too."""
MARGIN = 0.02
"""Part of the weighted time of all that is planned that another plan than that in Smith's order has to gain."""
PLACED = 3_000
"""Jobs times moves where there is no clock."""

Planned = tuple[int, int]
"""A job that waits, and when it is to start."""


class Present(Counted):
    """What waits at a moment, by counts; times are milliseconds after it.

    Parameters
    ----------
    of : Counted
        All of the work, from its beginning.
    desk : Desk
    """

    def __init__(self, of: Counted, desk: Desk) -> None:
        free = of.free.copy()
        free[desk.filling.closed()] = 0
        jobs = of.work.jobs
        super().__init__(replace(of.work, after=((),) * jobs, ongoing={}), of.gangs.copy(), free, of.pools)
        self._todo = {job: todo for job, todo in desk.todo.items() if job in desk.waiting}
        self.release = [0] * jobs
        self.deadline = [end if end == NO_DEADLINE else end - desk.now for end in self.deadline]
        for job in self._todo:
            gang = of.gangs[of.job_class[job]]
            kinds = (replace(kind, least=self._rest(job, kind.least)) for kind in gang.kinds)
            self.job_class[job] = len(self.gangs)
            self.gangs.append(Gang(gang.tasks, gang.cards, tuple(kinds)))

    def _rest(self, job: int, full: int) -> int:
        return int(self.work.restart[job]) + math.ceil(full * self._todo[job])

    def run(self, job: int, kind: Kind, nodes: Nodes) -> int:
        """Return how long a job runs on some nodes of a kind, of its work what is still to be done."""
        if job not in self._todo or not self.by_level:
            return super().run(job, kind, nodes)
        return self._rest(job, self.full(job, nodes))


def base(present: Present, desk: Desk) -> Profile:
    """Return what is free as jobs that run end as expected and windows pass; nodes that are shut stay so."""
    shut = set(desk.filling.closed())
    running = [
        (
            NEVER if live.expected >= NEVER else max(1, live.expected - desk.now),
            [one for one in live.tasks if one[2][0] not in shut],
        )
        for live in desk.live.values()
    ]
    return free_from(present, running, desk.now)


@dataclass(slots=True)
class Replanner:
    """Plans what waits. One object is for one run.

    Attributes
    ----------
    seed : int
    """

    seed: int = 0
    _of: tuple[Work, Counted | None] | None = field(default=None, repr=False)

    def __call__(self, desk: Desk, time_limit: float | None) -> list[Planned]:
        """Return the jobs that wait and when each is to start, first ones first.

        Parameters
        ----------
        desk : Desk
        time_limit : float, optional
            Seconds; if absent, a number of moves is made that goes by the number of jobs.
        """
        began = time.monotonic()
        line = desk.line(orders.by_weighted_area)
        if self._of is None or self._of[0] is not desk.work:
            self._of = desk.work, self._counted(desk)
        of = self._of[1]
        if of is None or len(line) < 2:
            return [(job, desk.now) for job in line]
        present = Present(of, desk)
        profile = base(present, desk)
        jobs = _possible(present, profile, line)[:MOST]
        if not jobs:
            return []
        first, *others = (parallel(present, ordered(jobs, key, desk), profile) for key in FIRST)

        def rank(found: Pass) -> tuple[int, int]:
            return found.rank(present)

        found = min([first, *others], key=rank)
        improver = None
        if len(found.starts) > 1 and not found.late:
            improver = Improver.of(present, profile, found.starts, self.seed)
        if improver is not None:
            moves = max(1, PLACED // len(found.starts))
            improver.run(
                lambda made: made / moves if time_limit is None else (time.monotonic() - began) / max(time_limit, 1e-9)
            )
            found = min(found, improver.best, key=rank)
        if rank(found)[0] == rank(first)[0] and found.value > (1 - MARGIN) * first.value:
            found = first
        rest = _beside(present, profile, found, line)
        listed = sorted(found.starts, key=lambda one: one[1])
        return [(job, desk.now + start) for job, start, _, _ in listed] + [(job, desk.now) for job in rest]

    @staticmethod
    def _counted(desk: Desk) -> Counted | None:
        plain = desk.work.max_wait is None and desk.admission is None
        return counted(desk.work) if plain else None


def _possible(present: Present, profile: Profile, jobs: Sequence[int]) -> list[int]:
    """Return the jobs that fit at some time, beside what has no end."""
    known: dict[int, bool] = {}
    for job in jobs:
        number = present.job_class[job]
        if number not in known:
            found = profile.earliest(job, 0)
            known[number] = found is not None and found[0] < NEVER
    return [job for job in jobs if known[present.job_class[job]]]


def _beside(present: Present, profile: Profile, found: Pass, line: Sequence[int]) -> list[int]:
    """Return the jobs that are not planned and can start now all the same, without a change to what is planned."""
    planned = {job for job, *_ in found.starts}
    if len(planned) == len(line):
        return []
    taken = profile.copy()
    for job, start, end, nodes in found.starts:
        taken.take(nodes, present.gangs[present.job_class[job]].cards, start, end)
    refused: set[int] = set()
    fit = []
    for job in line:
        number = present.job_class[job]
        if job in planned or number in refused:
            continue
        now = taken.now(job, 0)
        if now is None:
            refused.add(number)
        elif now[0] <= present.deadline[job]:
            taken.take(now[1], present.gangs[number].cards, 0, now[0])
            fit.append(job)
    return fit
