"""The search for the best schedule: passes by simple orders, the bound and its orders, moves of jobs, branching."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from placement.heuristics.filling import OutOfTimeError
from placement.scheduling import labels, orders
from placement.scheduling.admission import Admission
from placement.scheduling.baselines import baseline
from placement.scheduling.counts import NO_DEADLINE, Counted, Profile, counted
from placement.scheduling.desk import Desk
from placement.scheduling.device_search import search_devices
from placement.scheduling.devices import stretches_of
from placement.scheduling.found import Found
from placement.scheduling.grid import GridBound
from placement.scheduling.improve import Improver
from placement.scheduling.left_out import perhaps_left_out, with_all_after
from placement.scheduling.passes import FIRST, Pass, ordered, parallel, present, serial
from placement.scheduling.progress import Report, silent
from placement.scheduling.prove import Proof
from placement.scheduling.switches import Losses
from placement.scheduling.timing import Timetable
from placement.scheduling.work import Work
from placement.solver import Limits, Stop

ALPHAS = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Parts of a job in the linear program, by when so much has started jobs are ordered."""
BOUND_SHARE = 0.2
"""Part of the time that the bound gets."""
SCATTERED, FIRST_MOVES, MOVES = 5, 2000, 1_200_000
"""How often few jobs are moved anew before they are settled, and moves of each; and jobs times moves after which the
search ends where there is no clock."""
MOVED = 700.0
"""Jobs, by their square, that are moved for a second before they are moved anew from the best schedule; by trial: what
comes out differs more from one time to the next than by how long it takes."""
SCOUTS, SCOUTING, SCOUT_HEAT = 3, 0.5, 2.0
"""How often jobs that may run on several models are moved anew from one schedule before they are from the best of what
that gives, part of the time in which they are, and heat of these moves. What differs is mostly who gets which cards."""

ROOT_SHARE = 0.3
"""Part of the time left that lifting the bound gets before branching."""
BRANCHING, LEAST_BRANCHING, MOST_BRANCHING = 3.0, 0.1, 0.6
"""Part of the time left then that branching gets, times the part by which that brought value and bound nearer; least
part for which there is branching at all, and most."""
MOST_BY_RULES, RULES_SHARE = 300, 0.1
"""Jobs up to which other rules are tried beside, and the part of the time that they get."""
ROUND = 200
"""Moves after which is told how far it is."""

PASS_SHARE = 0.25
"""Part of the time left that the first pass of a kind may take; the first of all takes what it takes."""

Make = Callable[[Counted, Sequence[int], Profile, float], Pass]
"""A kind of pass."""


def search(work: Work, limits: Limits, seed: int, report: Report = silent) -> Found:
    """Return the best schedule found within the limits.

    Parameters
    ----------
    work : Work
    limits : Limits
    seed : int
    report : callable
    """
    by_counts = counted(work) if _by_counts(work) else None
    if by_counts is None:
        return search_devices(work, limits, seed, report)
    rules = _by_rules(work, limits)
    found = _Search(work, by_counts, limits, seed, report).run()
    best = min([found, *rules], key=lambda one: _rank(work, one.table))
    if best is not found:
        found = replace(found, method=best.method, table=best.table)
    return found


def _rank(work: Work, table: Timetable) -> tuple[int, int, int]:
    """Return how bad a timetable is; jobs without a start must not look cheap."""
    return table.left_out(work), -len(table.ends()), table.value(work)


def _by_counts(work: Work) -> bool:
    """Return whether nothing is to be decided but when jobs start, and where."""
    most = max((int(work.priority[job]) for job in range(work.jobs) if job not in work.ongoing), default=0)
    stoppable = any(work.counts(job) and int(work.priority[job]) < most for job in work.ongoing)
    return not stoppable and work.max_wait is None and Admission.of(work) is None


def _by_rules(work: Work, limits: Limits) -> list[Found]:
    """Return what rules make of few jobs that passes do not: with reservations, and with jobs stopped later on."""
    names = ["easy-backfill", "conservative-backfill"]
    if any(work.preemptible):
        names += ["priority-preemptive", "volcano-gang-preempt", "kueue-preemption"]
    found = []
    for name in names:
        some = limits.share(RULES_SHARE)
        if work.jobs > MOST_BY_RULES or not some.left:
            break
        try:
            found.append(baseline(work, name, some.deadline))
        except OutOfTimeError:
            continue
    return found


@dataclass(slots=True)
class _Best:
    """The best pass so far, and who made it."""

    name: str
    found: Pass


class _Search:
    """One search over work by counts."""

    def __init__(self, work: Work, by_counts: Counted, limits: Limits, seed: int, report: Report) -> None:
        self._work, self._counted, self._seed, self._report = work, by_counts, seed, report
        self._limits = limits
        self._base = present(by_counts)
        self._never = _never(by_counts, self._base)
        self._jobs = [job for job in range(work.jobs) if job not in work.ongoing and job not in self._never]
        self._best: _Best | None = None
        self._bound = 0
        # by whether it is a parallel one
        self._longest: dict[bool, float] = {}
        self._losses: Losses = {}

    def run(self) -> Found:
        """Search."""
        desk = Desk(self._work)
        for key in FIRST:
            self._try(key.__name__.replace("_", "-"), self._ordered(ordered(self._jobs, key, desk)), (parallel,))
        if self._best is not None and any(end < NO_DEADLINE for end in self._counted.deadline):
            self._by_deadline(desk)
        assert self._best is not None
        proof = self._prove(self._best.found)
        self._by_alpha("grid", proof.grid)
        stop = self._improve(proof)
        found = self._best.found
        # what comes after jobs that are left out never starts
        without = set(self._jobs) - {job for job, *_ in found.starts} - set(found.late)
        table = Timetable(stretches_of(self._counted, found.starts), self._never | without, set(found.late))
        return Found(self._best.name, table, self._bound, stop)

    def _by_alpha(self, name: str, said: GridBound) -> None:
        """Try the orders of a linear program."""
        by_runs = partial(serial, runs=said.runs)
        for alpha in ALPHAS:
            if not self._over():
                self._try(name, self._ordered(self._started(said.at(alpha))), (parallel, serial, by_runs))

    def _started(self, at: Mapping[int, float]) -> list[int]:
        """Return the jobs by when each has started so far, given that."""
        return sorted(self._jobs, key=lambda job: (at.get(job, 0.0), job))

    def _by_deadline(self, desk: Desk) -> None:
        """Try jobs with hard deadlines first, the earliest due first, by when they must have started too."""
        due = self._counted.deadline
        for slack in (0, 1):
            rank = {
                job: (
                    due[job] == NO_DEADLINE,
                    due[job] - slack * desk.length(job),
                    orders.by_weighted_area(desk, job),
                    job,
                )
                for job in self._jobs
            }
            self._try("deadlines", self._ordered(sorted(self._jobs, key=rank.__getitem__)), (parallel, serial))

    def _try(self, name: str, order: Sequence[int], passes: Sequence[Make]) -> None:
        """Make passes over an order, each if there is time for one as long as the longest of its kind so far."""
        for make in passes:
            kind = make is parallel
            limits = self._limits if kind in self._longest else self._limits.share(PASS_SHARE)
            if self._best is not None and limits.left <= self._longest.get(kind, 0.0):
                continue
            began = time.monotonic()
            try:
                found = make(self._counted, order, self._base, math.inf if self._best is None else limits.deadline)
            except OutOfTimeError:
                self._longest[kind] = math.inf
                continue
            self._longest[kind] = max(self._longest.get(kind, 0.0), time.monotonic() - began)
            self._offer(name, found)

    def _offer(self, name: str, found: Pass) -> None:
        if self._best is None or found.rank(self._counted) < self._best.found.rank(self._counted):
            self._best = _Best(name, found)
            self._tell(name)

    def _tell(self, phase: str) -> None:
        assert self._best is not None
        self._report((self._best.found.value + self._carried) / 1000, self._bound / 1000 or None, phase)

    def _over(self) -> bool:
        """Return whether the time is up, or what was found is good enough."""
        assert self._best is not None
        value, late = self._best.found.value + self._carried, self._best.found.late
        return not self._limits.left or (not late and value - self._bound <= self._limits.gap * value)

    def _prove(self, found: Pass) -> Proof:
        out = perhaps_left_out(self._work, self._never, found.rank(self._counted)[0])
        proof = Proof(self._work, time.monotonic() + BOUND_SHARE * self._limits.left, out, self._seed)
        self._bound = max(0, proof.bound)
        self._losses = proof.losses()
        self._tell("bound")
        return proof

    def _improve(self, proof: Proof) -> Stop:
        """Settle few jobs for good; else move jobs, and then branch on ends."""
        assert self._best is not None
        started = self._best.found
        if self._over() or len(started.starts) < 2:
            return self._stop()
        few = labels.Few.of(self._counted, started)
        self._settle(few, started, False)
        apart, before = self._apart(), self._bound
        rooted = False
        if proof.branches and not self._best.found.late and not self._over():
            rooted = proof.root(self._limits.share(ROOT_SHARE).deadline)
            self._bound = max(self._bound, proof.bound)
            if rooted:
                self._by_alpha("branching", proof.grid)
                self._arrange(few, proof)
        self._settle(few, started, True, proof if rooted else None)
        share = min(MOST_BRANCHING, BRANCHING * (self._bound - before) / max(1, apart)) if proof.open else 0.0
        if share < LEAST_BRANCHING:
            self._moves(self._limits)
            return self._stop()
        self._moves(self._limits.share(1 - share))
        if not self._over():
            self._branch(proof, self._limits)
        if self._limits.deadline < math.inf:
            self._moves(self._limits)
        return self._stop()

    def _branch(self, proof: Proof, limits: Limits) -> None:
        """Branch on ends; each node gives an order to try."""
        assert self._best is not None

        def offer(means: Mapping[int, float]) -> int:
            assert self._best is not None
            self._try("branching", self._ordered(self._started(means)), (serial,))
            self._bound = max(self._bound, proof.bound)
            self._tell("branching")
            return self._best.found.value + self._carried

        proof.branch(self._best.found.value + self._carried, offer, limits.deadline)
        self._bound = max(self._bound, proof.bound)
        self._tell("branching")

    def _apart(self) -> int:
        """Return how far value and bound are apart."""
        assert self._best is not None
        return self._best.found.value + self._carried - self._bound

    def _moves(self, limits: Limits) -> None:
        """Move jobs, from the best schedule; of few jobs several times, each from the best until then."""
        assert self._best is not None
        jobs = len(self._best.found.starts)
        times = 1 if limits.deadline == math.inf else max(1, int(limits.left * MOVED / jobs**2))
        most = max(FIRST_MOVES, MOVES // jobs) if limits.deadline == math.inf else math.inf
        if times == 1 and self._losses and limits.deadline < math.inf and not self._over():
            self._scout(limits.share(SCOUTING))
        for number in range(times):
            if self._over() or not limits.left:
                return
            if not self._anew(self._best.found, number, most, limits.share(1 / (times - number))):
                return

    def _scout(self, limits: Limits) -> None:
        """Move jobs from the best schedule in several ways."""
        assert self._best is not None
        started = self._best.found
        for number in range(SCOUTS):
            some = limits.share(1 / (SCOUTS - number))
            # seeds beyond those of later moves
            if self._over() or not self._anew(started, 100 + number, math.inf, some, SCOUT_HEAT):
                return

    def _anew(self, started: Pass, seed: int, most: float, limits: Limits, heat: float = 1.0) -> bool:
        """Move jobs from a schedule; return whether that can be done."""
        improver = Improver.of(self._counted, self._base, started.starts, self._seed + seed, self._losses)
        if improver is not None:
            self._move(improver, most, started.late, limits, heat)
        return improver is not None

    def _move(self, improver: Improver, most: float, late: list[int], limits: Limits, heat: float = 1.0) -> None:
        """Make so many moves, or until the time is up; they leave out what was left out."""
        whole = limits.left

        def offer() -> None:
            self._offer("moves", Pass(improver.best.starts, improver.best.value, late))

        def done(moves: int) -> float:
            if moves % ROUND == 0:
                offer()
            if self._over() or not limits.left:
                return 1.0
            return max(moves / most, 0.0 if whole == math.inf else 1 - limits.left / whole)

        improver.run(done, heat)
        offer()

    def _settle(self, few: labels.Few | None, started: Pass, apart: bool, proof: Proof | None = None) -> None:
        """Settle few jobs for good: with nodes taken together, or told apart, at last with what is proven of starts."""
        if few is None or self._over():
            return
        if proof is None:
            self._scatter(started, SCATTERED * apart)
        if self._over():
            return
        assert self._best is not None
        value = self._best.found.value
        proven = None if proof is None else proof.ends(value + self._carried)
        settled = few.settle(value, apart, self._limits.deadline, proven)
        if settled is not None:
            self._bound = max(self._bound, settled.bound + self._carried)
            if settled.order:
                self._try("labels", settled.order, (serial,))
            self._tell("labels")

    def _arrange(self, few: labels.Few | None, proof: Proof) -> None:
        """Settle few jobs by their starts, with nodes afterwards."""
        if few is None or self._over():
            return
        assert self._best is not None
        value = self._best.found.value
        proven = proof.ends(value + self._carried)
        found = None if proven is None else few.arrange(value, proven, self._limits.deadline)
        if found is not None:
            if found.starts:
                self._offer("labels", found)
            self._bound = max(self._bound, found.value + self._carried)
            self._tell("labels")

    def _scatter(self, started: Pass, first: int) -> None:
        """Move jobs from one schedule in several ways, since what is found for few jobs is to be the best."""
        for seed in range(first, first + SCATTERED):
            if self._over() or not self._anew(started, seed, FIRST_MOVES, self._limits):
                return

    def _stop(self) -> Stop:
        assert self._best is not None
        if not self._best.found.late and self._best.found.value + self._carried <= self._bound:
            return Stop.OPTIMAL
        if not self._limits.left:
            return Stop.TIME
        return Stop.GAP if self._over() else Stop.WORK

    def _ordered(self, order: Sequence[int]) -> list[int]:
        """Return an order in which jobs stand behind those that they come after, as near to one that is given."""
        after, place = self._work.after, {job: number for number, job in enumerate(order)}
        if not any(after):
            return list(order)
        found: dict[int, None] = {}
        for job in order:
            pending = [job]
            while pending:
                last = pending[-1]
                before = [other for other in after[last] if other in place and other not in found]
                if before:
                    pending += before
                else:
                    found.setdefault(pending.pop())
        return list(found)

    @cached_property
    def _carried(self) -> int:
        """Return what running jobs that count add to the value, come what may."""
        work = self._work
        return sum(
            int(work.weight[job]) * ongoing.left
            for job, ongoing in work.ongoing.items()
            if work.counts(job) and ongoing.left is not None
        )


def _never(work: Counted, base: Profile) -> set[int]:
    """Return the jobs that never find what they need free, or that come after such or after what has no end."""
    instance = work.work.instance
    hopeless = {
        number
        for number, one in enumerate(instance.job_classes)
        if not work.gangs[number].kinds or base.earliest(int(one.jobs[0]), 0) is None
    }
    ongoing = work.work.ongoing
    never = [job for job, number in enumerate(work.job_class) if number in hopeless and job not in ongoing]
    endless = [job for job, one in ongoing.items() if one.left is None]
    return with_all_after(work.work, [*never, *endless]) - ongoing.keys()
