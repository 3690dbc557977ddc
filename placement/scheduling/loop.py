"""The passing of time: jobs come, end and go on, and after each change a policy decides what starts and what stops.

A schedule is what comes of a policy when all jobs run as long as estimated. The same loop with true run times and with
nodes that fail is a simulation.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable
from typing import Protocol

from placement.quota import Short
from placement.scheduling.compile import expected
from placement.scheduling.desk import NEVER, Desk, Live
from placement.scheduling.timing import Timetable

PATIENCE = 1000
"""Periods without anything after which a policy is asked less often: a job may run for longer than a century."""


class Policy(Protocol):
    """What decides."""

    @property
    def name(self) -> str:
        """Name by which users choose it."""
        ...

    @property
    def period(self) -> int:
        """Milliseconds after which it wants to be asked again though nothing has changed; 0 for never.

        That is while jobs wait, and others run that will end or something else will happen. After `PATIENCE` periods in
        which nothing did, the times between get longer. A policy that knows when says so in `Desk.again` instead.
        """
        ...

    def decide(self, desk: Desk) -> None:
        """Start jobs that wait and stop jobs that run, at the time of the desk."""
        ...


class Loop:
    """One run of a policy over the work of a desk.

    Attributes
    ----------
    desk : Desk
    """

    def __init__(self, desk: Desk, policy: Policy, happenings: Iterable[tuple[int, int, int]] = ()) -> None:
        """Make ready for a run.

        Parameters
        ----------
        desk : Desk
        policy : Policy
        happenings : iterable of (int, int, int)
            What happens that nobody planned: the moment, `FAILS`, `DRAINS`, `RETURNS` or `CANCELLED`, and the node or
            the job.
        """
        self.desk, self._policy = desk, policy
        self._work = desk.work
        self._any_hard = any(desk.work.hard)
        self._events: list[tuple[int, int, int]] = sorted(happenings)
        """Moment, what happens (see below) and to which job or node."""
        self._ends: dict[int, Live] = {}
        self._expected: list[tuple[int, int]] = []
        """When jobs that run are expected to end."""
        self._before: dict[int, int] = {}
        self._then: dict[int, list[int]] = defaultdict(list)
        self._never: set[int] = set()
        self._ended: set[int] = set()
        self._cancelled: set[int] = set()
        """Jobs that were taken away while they waited, or before they came."""
        self._late: set[int] = set()
        self._quota: dict[int, Short] = {}
        self._changed = 0
        """When a job came or ended last, or something happened that nobody planned."""

    def run(self) -> Timetable:
        """Let time pass until nothing is left to happen."""
        self._begin()
        while self._events:
            now = self._events[0][0]
            self.desk.now = now
            for what, job in self._due(now):
                self._happen(what, job)
            self._renew()
            self._drop_late()
            self.desk.again = NEVER
            self._policy.decide(self.desk)
            self._follow()
        # a job with a hard deadline that nothing was said of since its time went by
        self._late |= {job for job in self.desk.waiting if self._work.hard[job]}
        self._never |= set(self.desk.waiting) - self._late
        self._quota |= {job: short for job, short in self.desk.short.items() if job in self.desk.waiting}
        stretches = sorted(self.desk.stretches, key=lambda one: (one.start, one.job))
        started = {one.job for one in stretches}
        held_up = {job for job, left in self._before.items() if left and job not in self._work.ongoing}
        quota = {job: short for job, short in self._quota.items() if job not in started and job not in self._late}
        never = (self._never | held_up) - self._late - started - quota.keys() | self._cancelled
        return Timetable(stretches, never, self._late, quota, dict(self.desk.held_back))

    # --- what happens --------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        work, desk = self._work, self.desk
        for job in range(work.jobs):
            for other in work.after[job]:
                self._then[other].append(job)
            self._before[job] = len(work.after[job])
            if job not in work.ongoing:
                if desk.length(job) == NEVER:
                    self._never.add(job)
                elif desk.admission is not None and (short := desk.admission.never(job)) is not None:
                    self._quota[job] = short
                elif not work.after[job]:
                    heapq.heappush(self._events, (int(work.release[job]), _COMES, job))
                if work.hard[job]:
                    # from then on it is in nobody's way
                    late = int(work.deadline[job]) - desk.shortest(job) + 1
                    heapq.heappush(self._events, (max(late, 0), _LOOK, -1))
        for window in work.windows:
            for moment in (window.start, window.end):
                if moment > 0:
                    heapq.heappush(self._events, (moment, _LOOK, -1))
        heapq.heappush(self._events, (0, _LOOK, -1))
        self._follow()

    def _due(self, now: int) -> Iterable[tuple[int, int]]:
        while self._events and self._events[0][0] <= now:
            _, what, job = heapq.heappop(self._events)
            yield what, job

    def _happen(self, what: int, job: int) -> None:
        desk = self.desk
        if what != _LOOK:
            self._changed = desk.now
        if what == _ENDS:
            live = desk.live.get(job)
            if live is not None and live is self._ends.get(job) and live.end <= desk.now:
                desk.finish(job)
                self._let_go(job)
        elif what == _COMES:
            if job not in self._never:
                desk.waiting[job] = desk.now
        elif what == FAILS:
            desk.fail(job)
        elif what == DRAINS:
            desk.drain(job)
        elif what == RETURNS:
            desk.restore(job)
        elif what == CANCELLED:
            self._cancel(job)

    def _cancel(self, job: int) -> None:
        """End a job now, whether it runs, waits or has yet to come."""
        desk = self.desk
        live = desk.live.get(job)
        if live is not None:
            live.end = desk.now
            desk.finish(job)
            self._let_go(job)
        elif job not in self._ended:
            desk.waiting.pop(job, None)
            self._cancelled.add(job)
            self._never.add(job)
            self._let_go(job)

    def _let_go(self, job: int) -> None:
        """Let jobs come that came after one."""
        self._ended.add(job)
        for then in self._then[job]:
            self._before[then] -= 1
            if not self._before[then] and then not in self._never and then not in self._quota:
                moment = max(self.desk.now, int(self._work.release[then]))
                if moment == self.desk.now:
                    self.desk.waiting[then] = moment
                else:
                    heapq.heappush(self._events, (moment, _COMES, then))

    def _renew(self) -> None:
        """Expect jobs later that have not ended as expected."""
        now = self.desk.now
        while self._expected and self._expected[0][0] <= now:
            _, job = heapq.heappop(self._expected)
            live = self.desk.live.get(job)
            if live is not None and live.expected <= now:
                live.expected = live.estimate + expected(now - live.estimate)
                heapq.heappush(self._expected, (live.expected, job))

    def _drop_late(self) -> None:
        desk, work = self.desk, self._work
        if not self._any_hard:
            return
        for job in [job for job in desk.waiting if work.hard[job]]:
            if desk.now + desk.shortest(job) > int(work.deadline[job]):
                del desk.waiting[job]
                self._late.add(job)

    def _follow(self) -> None:
        """Note when jobs end that were started, and when the policy wants to be asked again."""
        desk = self.desk
        for job in reversed(desk.live):
            live = desk.live[job]
            if self._ends.get(job) is live:
                break  # those that were started last come last
            self._ends[job] = live
            if live.end < NEVER:
                heapq.heappush(self._events, (max(live.end, desk.now), _ENDS, job))
            if live.expected < NEVER:
                heapq.heappush(self._expected, (live.expected, job))
        if desk.again < NEVER:
            heapq.heappush(self._events, (max(desk.again, desk.now + 1), _LOOK, -1))
        more = self._events or any(live.end < NEVER for live in desk.live.values())
        if self._policy.period and desk.waiting and more:
            period = self._policy.period
            skipped = (desk.now - self._changed) // (PATIENCE * period)
            following = desk.now - desk.now % period + (1 + skipped) * period
            if not self._events or self._events[0][0] > following:
                heapq.heappush(self._events, (following, _LOOK, -1))


_ENDS, _COMES, _LOOK = 0, 1, 2
"""What happens: a job ends, a job comes, nothing but that it is time to look. Those that end at a moment come first."""
CANCELLED, RETURNS, DRAINS, FAILS = 3, 4, 5, 6
"""What nobody planned: a job is taken away, a node is back, takes no new work, or is lost with all that is on it."""
