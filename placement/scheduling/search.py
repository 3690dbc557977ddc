"""The search for the best schedule: passes by simple orders, the bound and its orders, moves of jobs, branching."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial

from placement.heuristics.filling import OutOfTimeError
from placement.scheduling import orders
from placement.scheduling.admission import Admission
from placement.scheduling.baselines import baseline
from placement.scheduling.bounds.grid import GridBound
from placement.scheduling.bounds.prove import Proof
from placement.scheduling.counts import NO_DEADLINE, Counted, Profile, counted
from placement.scheduling.desk import Desk
from placement.scheduling.devices import stretches_of
from placement.scheduling.few import labels
from placement.scheduling.found import Found
from placement.scheduling.left_out import perhaps_left_out, with_all_after
from placement.scheduling.moves.movers import SCATTERED, Known, Movers
from placement.scheduling.on_devices.search import search_devices
from placement.scheduling.passes import FIRST, Pass, ordered, parallel, present, serial
from placement.scheduling.progress import Report, silent
from placement.scheduling.timing import Timetable
from placement.scheduling.work import Work
from placement.solver import Limits, Stop

ALPHAS = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Parts of a job in the linear program, by when so much has started jobs are ordered."""
BOUND_SHARE = 0.2
"""Part of the time that the bound gets."""
ALPHA_SHARE = 0.25
"""Part of the time left in which passes over its orders begin."""
ROOT_SHARE = 0.3
"""Part of the time left that lifting the bound gets before branching."""
BRANCHING, BRANCHING_COMING, LEAST_BRANCHING, MOST_BRANCHING = 5.0, 3.0, 0.1, 0.6
"""Part of the time left then that branching gets, times the part by which that brought value and bound nearer, where
all jobs are there from the start, and where they come; least part for which there is branching at all, and most."""
MOST_BY_RULES, RULES_SHARE = 300, 0.1
"""Jobs up to which other rules are tried beside, and the part of the time that they get."""
PASS_SHARE = 0.25
"""Part of the time left that the first pass of a kind may take; the first of all takes what it takes."""

Make = Callable[[Counted, Sequence[int], Profile, float], Pass]
"""A kind of pass."""


def search(work: Work, limits: Limits, seed: int, report: Report = silent, earlier: Sequence[int] = ()) -> Found:
    """Return the best schedule found within the limits.

    Parameters
    ----------
    work : Work
    limits : Limits
    seed : int
    report : callable
    earlier : sequence of int, optional
        All jobs in the order in which they start in an earlier schedule, which is what is tried first.
    """
    by_counts = counted(work) if _by_counts(work) else None
    if by_counts is None:
        return search_devices(work, limits, seed, report, earlier)
    rules = _by_rules(work, limits)
    found = _Search(work, by_counts, limits, seed, report).run(earlier)
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
        known = Known(self._so_far, self._over, self._enough, partial(self._offer, "moves"))
        self._movers = Movers(by_counts, self._base, limits, seed, known)

    def run(self, earlier: Sequence[int]) -> Found:
        """Search, from the order of an earlier schedule if there is one."""
        try:
            return self._run(earlier)
        finally:
            self._movers.close()

    def _run(self, earlier: Sequence[int]) -> Found:
        desk = Desk(self._work)
        if earlier:
            waiting = set(self._jobs)
            self._try("earlier", self._ordered([job for job in earlier if job in waiting]), (serial,))
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
        by_runs, limits = partial(serial, runs=said.runs), self._limits.share(ALPHA_SHARE)
        for alpha in ALPHAS:
            if limits.left and not self._over():
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

    def _so_far(self) -> Pass:
        assert self._best is not None
        return self._best.found

    def _enough(self) -> int:
        """Return the value of a pass that is good enough by what is proven so far; none is that leaves jobs out."""
        assert self._best is not None
        if self._best.found.late or self._limits.gap == 1:
            return -1
        return math.floor(self._bound / (1 - Fraction(self._limits.gap))) - self._carried

    def _over(self) -> bool:
        """Return whether the time is up, or what was found is good enough."""
        assert self._best is not None
        value, late = self._best.found.value + self._carried, self._best.found.late
        return not self._limits.left or (not late and value - self._bound <= self._limits.gap * value)

    def _prove(self, found: Pass) -> Proof:
        out = perhaps_left_out(self._work, self._never, found.rank(self._counted)[0])
        self._movers.meanwhile(self._limits.share(BOUND_SHARE))
        proof = Proof(self._work, time.monotonic() + BOUND_SHARE * self._limits.left, out, self._seed)
        self._bound = max(0, proof.bound)
        self._movers.learn(proof.losses())
        self._tell("bound")
        return proof

    def _improve(self, proof: Proof) -> Stop:
        """Settle few jobs for good; else move jobs, and then branch on ends."""
        assert self._best is not None
        started = self._best.found
        if self._over() or len(started.starts) < 2:
            self._movers.join()
            return self._stop()
        few = labels.Few.of(self._counted, started)
        self._settle(few, started, False)
        apart, before = self._apart(), self._bound
        rooted = False
        if proof.branches and not self._best.found.late and not self._over():
            self._movers.meanwhile(self._limits.share(ROOT_SHARE))
            rooted = proof.root(self._limits.share(ROOT_SHARE).deadline)
            self._bound = max(self._bound, proof.bound)
            if rooted:
                self._by_alpha("branching", proof.grid)
                self._arrange(few, proof)
        self._settle(few, started, True, proof if rooted else None)
        branching = (BRANCHING_COMING if proof.coming else BRANCHING) if proof.open else 0.0
        share = min(MOST_BRANCHING, branching * (self._bound - before) / max(1, apart))
        if share < LEAST_BRANCHING:
            self._movers.run(self._limits)
            return self._stop()
        self._movers.run(self._limits.share(1 - share))
        if not self._over():
            self._movers.meanwhile(self._limits)
            self._branch(proof, self._limits)
        if self._limits.deadline < math.inf:
            self._movers.run(self._limits)
        return self._stop()

    def _branch(self, proof: Proof, limits: Limits) -> None:
        """Branch on ends; each node gives an order to try."""
        assert self._best is not None

        def offer(means: Mapping[int, float]) -> int:
            assert self._best is not None
            self._try("branching", self._ordered(self._started(means)), (serial,))
            self._bound = max(self._bound, proof.bound)
            self._tell("branching")
            self._movers.renew(limits)
            return self._best.found.value + self._carried

        proof.branch(self._best.found.value + self._carried, offer, limits.deadline)
        self._bound = max(self._bound, proof.bound)
        self._tell("branching")

    def _apart(self) -> int:
        """Return how far value and bound are apart."""
        assert self._best is not None
        return self._best.found.value + self._carried - self._bound

    def _settle(self, few: labels.Few | None, started: Pass, apart: bool, proof: Proof | None = None) -> None:
        """Settle few jobs for good: with nodes taken together, or told apart, at last with what is proven of starts."""
        if few is None or self._over():
            return
        if proof is None:
            self._movers.scatter(started, SCATTERED * apart)
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
