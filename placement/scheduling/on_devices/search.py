"""The best of many schedules where counts of cards do not say all: topology, shares, MIG, quotas, jobs to be stopped.

The greedy policies are run first, then policies by the order in which a linear program starts the jobs (`grid`). From
the best of these on, passes over devices are made that differ a little from one another (`device_pass`,
`device_climb`). Few jobs are gone through in all orders (`device_orders`).

Nothing is stopped but for a job of higher priority, and only if that is for the better.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from placement.heuristics.filling import OutOfTimeError
from placement.heuristics.gangs import Placed
from placement.heuristics.worst_fit import WorstFit
from placement.instance import Ints
from placement.scheduling.baselines import baseline
from placement.scheduling.bounds.grid import FIRST, GridBound, best_bound, grid_bound
from placement.scheduling.desk import NEVER, Desk
from placement.scheduling.found import Found
from placement.scheduling.hopeless import hopeless, told_apart
from placement.scheduling.left_out import perhaps_left_out
from placement.scheduling.loop import Loop
from placement.scheduling.on_devices.climb import WORST, Climb, Climbing, Score
from placement.scheduling.on_devices.orders import MOST_SETS, MOST_STOPPED, MOST_WAITING, Orders
from placement.scheduling.on_devices.passing import Bench
from placement.scheduling.orders import ListPolicy, in_order
from placement.scheduling.progress import Report
from placement.scheduling.timing import Timetable
from placement.scheduling.work import Work
from placement.solver import Limits, Stop

GOING_ON = ("smith-area", "smith", "shortest-job-first", "fifo-list", "fifo", "easy-backfill", "conservative-backfill")
STOPPING = ("priority-preemptive", "volcano-gang-preempt")
BY_QUOTA = ("kueue-preemption", "drf")
"""Policies that are run; the last if there are queues. Those by rounds and by attained service take too long."""
SLOW, MANY = ("easy-backfill", "conservative-backfill"), 1000
"""Policies that are run only where there are no more jobs than that."""
POLICY_SHARE = 0.25
"""Part of the time left after which a policy is given up."""
RATIO = 1.1
"""Of the grid without a time limit."""
BOUND_PART = 0.4
"""Part of the time that the bound may take."""
ALPHAS = (0.5, 0.25, 0.75, 0.9)
"""Parts of a job, by whose starts in the linear program jobs are ordered (Phillips, Stein and Wein, 1998)."""
MOST_PASSES, MOST_WORK = 300, 400_000
"""Without a time limit: passes, and passes times jobs times jobs."""
MOST_HOSTS = 4
"""Nodes up to which jobs may be kept to any of them."""


def search_devices(work: Work, limits: Limits, seed: int, report: Report, earlier: Sequence[int] = ()) -> Found:
    """Return the best schedule that is found within the limits, no worse than any policy that was run.

    Parameters
    ----------
    work : Work
    limits : Limits
        Without a deadline the number of passes is limited, and the same call gives the same schedule.
    seed : int
    report : callable
    earlier : sequence of int, optional
        All jobs in the order in which they start in an earlier schedule, which is what is tried first.

    Returns
    -------
    Found
        With a bound, see `placement.scheduling.bounds.grid`.
    """
    return _Search(work, limits, seed, report).run(earlier)


class _Search:
    def __init__(self, work: Work, limits: Limits, seed: int, report: Report) -> None:
        self._work, self._limits, self._seed, self._report = work, limits, seed, report
        self._method, self._table, self._score = "", Timetable(), WORST
        self._bound = 0
        self._surely_late = _surely_late(work)
        self._longest = 0.0
        most = work.instance.snapshot.policy.max_preemptions
        self._most_stopped = work.jobs if most is None else most

    def run(self, earlier: Sequence[int]) -> Found:
        """Search, from the order of an earlier schedule if there is one."""
        self._tell("policies")
        if earlier:
            self._in_line("earlier", tuple(earlier), math.inf)
        self._policies()
        self._tell("bound")
        orders = self._lists(self._bounded())
        stop = self._settled()
        if stop is None:
            self._tell("passes")
            late = self._score[0]
            stop = self._passes(orders)
            if self._score[0] < late and self._limits.left > 0:
                self._bounded()  # fewer jobs may be left out now, so more count
                stop = self._settled() or stop
        return Found(self._method, self._table, self._bound, stop)

    def _tell(self, phase: str) -> None:
        value = self._score[1] / 1000 if self._method else None
        self._report(value, self._bound / 1000 or None, phase)

    def _take(self, method: str, table: Timetable) -> Score:
        """Keep a timetable if it is the best; return its score."""
        none = len(table.never | table.quota.keys())  # a strict policy waits for ever for what never fits
        score = table.left_out(self._work), none, table.value(self._work)
        if score < self._score:
            self._method, self._table, self._score = method, table, score
            self._tell(method)
        return score

    def _settled(self) -> Stop | None:
        """Return why there is nothing more to be done; None if there is: fewer late jobs go before a smaller value."""
        if self._score[0] <= self._surely_late:
            if self._score[2] <= self._bound:
                return Stop.OPTIMAL
            if self._score[2] - self._bound <= self._limits.gap * self._score[2]:
                return Stop.GAP
        return None if self._limits.left > 0 else Stop.TIME

    # --- policies and bound --------------------------------------------------------------------------------------

    def _policies(self) -> None:
        names = [name for name in GOING_ON if self._work.jobs <= MANY or name not in SLOW]
        if self._work.ongoing:
            names += STOPPING
        if self._work.instance.snapshot.queues:
            names += BY_QUOTA
        for name in names:
            if self._method and self._limits.left <= self._longest:
                return
            began = time.monotonic()
            deadline = self._limits.share(POLICY_SHARE).deadline if self._method else math.inf  # one comes to an end
            try:
                self._take(name, baseline(self._work, name, deadline).table)
            except OutOfTimeError:
                continue
            self._longest = max(self._longest, time.monotonic() - began)

    def _bounded(self) -> GridBound:
        never = self._table.never | self._table.quota.keys()
        out = perhaps_left_out(self._work, never, self._score[0])
        if self._limits.deadline == math.inf:
            lengths = [one.end - one.start for one in self._table.stretches if one.end > one.start]
            found = grid_bound(self._work, RATIO, min(FIRST, max(1, min(lengths, default=FIRST) // 2)), out=out)
        else:
            found = best_bound(self._work, time.monotonic() + BOUND_PART * self._limits.left, out)
        self._bound = max(self._bound, found.bound)
        return found

    def _lists(self, found: GridBound) -> list[tuple[int, ...]]:
        """Run policies in orders by the linear program; return these orders, and that of the best schedule."""
        starts = [found.mean, *(found.at(part) for part in ALPHAS)] if found.masses else []
        orders = []
        for at in starts:
            if self._settled() is not None or self._limits.left <= self._longest:
                break
            order = sorted(range(self._work.jobs), key=lambda job: (at.get(job, float(self._work.release[job])), job))
            orders.append(tuple(order))
            if not self._in_line("search", tuple(order), self._limits.deadline):
                break
        return [self._by_start(self._table), *orders]

    def _in_line(self, method: str, order: tuple[int, ...], deadline: float) -> bool:
        """Start jobs in an order, and keep what comes of it if it is the best; return whether there was time for it."""
        desk = Desk(self._work, deadline=deadline)
        try:
            self._take(method, told_apart(self._work, Loop(desk, ListPolicy("", in_order(order))).run()))
        except OutOfTimeError:
            return False
        return True

    def _by_start(self, table: Timetable) -> tuple[int, ...]:
        """Return all jobs in the order in which they start, the last time; those that do not at the end."""
        start = {one.job: one.start for one in table.stretches}
        return tuple(sorted(range(self._work.jobs), key=lambda job: (start.get(job, NEVER), job)))

    # --- passes --------------------------------------------------------------------------------------------------

    def _passes(self, orders: Sequence[tuple[int, ...]]) -> Stop:
        bench = Bench(self._work, seed=self._seed, deadline=self._limits.deadline)
        if not any(self._work.hard):
            bench.leave_out(self._table.never, self._table.quota)
        bench.within = sets_of_nodes(self._work)
        most = min(MOST_PASSES, MOST_WORK // (self._work.jobs + 1) ** 2)
        ends = Ends(self._limits, most, time.monotonic())
        climb = Climb(
            bench, Climbing(self._climbed, lambda made: self._gone(ends, made)), self._most_stopped, self._seed
        )
        climb.begin(orders, list(dict.fromkeys([frozenset[int](), self._stopped_by(self._table)])))
        few = len(bench.waiting) <= MOST_WAITING and len(bench.stoppable()) <= MOST_STOPPED
        if few and self._settled() is None and self._all_orders(bench):
            return self._settled() or Stop.COMPLETE
        climb.run()
        return self._settled() or Stop.WORK

    def _climbed(self, table: Timetable) -> Score:
        return self._take("search", table)

    def _gone(self, ends: Ends, made: int) -> float:
        return 1.0 if self._settled() is not None else ends.part(made)

    def _stopped_by(self, table: Timetable) -> frozenset[int]:
        """Return which jobs a timetable stops at once."""
        on = {one.job for one in table.stretches if not one.start and one.tasks == self._tasks(one.job)}
        return frozenset(job for job in self._work.ongoing if self._work.counts(job) and job not in on)

    def _tasks(self, job: int) -> tuple[Placed, ...]:
        return self._work.ongoing[job].tasks if job in self._work.ongoing else ()

    def _all_orders(self, bench: Bench) -> bool:
        """Go through all orders of few jobs; return whether that was done, with all sets of nodes and two rules."""
        done = self._orders(bench, False)
        if not 1 < len(bench.within) <= MOST_SETS:
            return done
        other = Bench(self._work, WorstFit, self._seed, self._limits.deadline)
        other.leave_out(bench.never, bench.quota)
        other.within = bench.within
        settled = [self._orders(one, True) for one in (bench, other)]
        return done and all(settled)

    def _orders(self, bench: Bench, sets: bool) -> bool:
        if self._settled() is not None:
            return True
        orders = Orders(bench, (self._score[0], self._score[2]), self._most_stopped, self._limits)
        done = orders.run(sets)
        if orders.best is not None:
            self._take("search", orders.best)
        return done


def _surely_late(work: Work) -> int:
    """Return the weight of the jobs that are left out for their deadlines even if nothing is in their way."""
    if not any(work.hard):
        return 0
    desk = Desk(work)
    late = [
        job
        for job in range(work.jobs)
        if work.hard[job]
        and job not in work.ongoing
        and int(work.release[job]) + desk.shortest(job) > int(work.deadline[job])
        and desk.length(job) < NEVER
    ]
    never, quota = hopeless(work, late)
    return sum(int(work.weight[job]) for job in late if job not in never and job not in quota)


@dataclass(frozen=True, slots=True)
class Ends:
    """When passes end: at a deadline, or without one after so many.

    Attributes
    ----------
    limits : Limits
    most : int
        Passes.
    began : float
        On the clock of `time.monotonic`.
    """

    limits: Limits
    most: int
    began: float

    def part(self, made: int) -> float:
        """Return which part is over when so many were made."""
        if self.limits.deadline == math.inf:
            return made / self.most if made < self.most else 1.0
        return (time.monotonic() - self.began) / max(self.limits.deadline - self.began, 1e-9)


def sets_of_nodes(work: Work) -> list[Ints]:
    """Return sets of nodes to which jobs may be kept: all there are of few nodes, else those of one domain each."""
    instance = work.instance
    hosts = instance.hosts_of(np.arange(instance.nodes))
    if instance.hosts <= MOST_HOSTS:
        some = [set(few) for count in range(1, instance.hosts) for few in combinations(range(instance.hosts), count)]
        return [np.flatnonzero([host in few for host in hosts.tolist()]) for few in some]
    found: dict[tuple[int, ...], Ints] = {}
    for row in instance.domains:
        for domain in np.unique(row[row >= 0]).tolist():
            nodes = np.flatnonzero(row == domain)
            if len(nodes) < instance.nodes:
                found.setdefault(tuple(nodes.tolist()), nodes)
    return list(found.values())
