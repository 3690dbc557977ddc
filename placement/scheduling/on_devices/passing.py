"""Passes over devices, for work of which counts of cards do not say all: each job of an order in turn gets its place.

It gets it for its whole run, beside what runs now and what those before it got (the serial schedule generation scheme
of project scheduling, Kolisch 1996). In a strict pass no job starts before one that stands before it, so that all that
others hold is held when it starts, and some order gives an optimal schedule if only the devices are chosen right. In
one that is not strict, jobs go back into the gaps that others leave. A gap is looked at with all held at once that is
held at any time of it, so that quotas and shares may look shorter there than they are, never longer.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial

import numpy as np

from placement.heuristics.fastest_fit import FastestFit
from placement.heuristics.gangs import Placed
from placement.heuristics.rule import Rule
from placement.instance import Ints
from placement.quota import Short
from placement.scheduling.counting import fewer, members
from placement.scheduling.desk import NEVER, Desk, Live
from placement.scheduling.hopeless import hopeless
from placement.scheduling.left_out import with_all_after
from placement.scheduling.on_devices.room import Room
from placement.scheduling.profile import Fit, Profile, Reserved
from placement.scheduling.timing import Stretch, Timetable
from placement.scheduling.work import Work


@dataclass(frozen=True, slots=True)
class Way:
    """How a job is to be placed.

    Attributes
    ----------
    least, most : int
        Number of its tasks that run, if it is a gang that may run with fewer than all.
    each : tuple of int
        Most tasks of each of its groups, if it is such a gang of several; none for all of them.
    within : int
        Number of the set of nodes that it keeps to, see `Bench.within`; -1 for any.
    """

    least: int = 0
    most: int = NEVER
    within: int = -1
    each: tuple[int, ...] = ()


ANY_WAY = Way()


@dataclass(frozen=True, slots=True)
class Choice:
    """What a pass is to do.

    Attributes
    ----------
    order : tuple of int
        All jobs that wait, those that are stopped among them.
    stopped : frozenset of int
        Jobs that run and are stopped at once.
    ways : mapping of int to Way
        By job; any way where it is absent.
    strict : bool
        Whether no job starts before one that stands before it.
    """

    order: tuple[int, ...]
    stopped: frozenset[int] = frozenset()
    ways: Mapping[int, Way] = field(default_factory=dict)
    strict: bool = False


class Bench:
    """A cluster on which passes are made, one after the other.

    Attributes
    ----------
    desk : Desk
        At the present moment.
    waiting : list of int
        Jobs that wait and may be started some time.
    never : set of int
        Those that never can.
    quota : dict of int to Short
        Those that a quota never admits.
    within : list of int array
        Sets of nodes to which jobs may keep.
    """

    def __init__(self, work: Work, rule: type[Rule] = FastestFit, seed: int = 0, deadline: float = math.inf) -> None:
        self._deadline = deadline
        self.work, self.desk = work, Desk(work, rule, seed)
        self.never: set[int] = set()
        self.quota: dict[int, Short] = {}
        self.waiting: list[int] = []
        self.within: list[Ints] = []
        self._stopped: dict[int, Live] = {}
        self._latest: _Pass | None = None
        self._kept: _Pass | None = None
        self._faster: dict[int, list[Ints | None]] = {}
        self._exactly: dict[int, list[Way]] = {}
        admission = self.desk.admission
        for job in range(work.jobs):
            if job in work.ongoing:
                continue
            if self.desk.length(job) == NEVER:
                self.never.add(job)
            elif admission is not None and (short := admission.never(job)) is not None:
                self.quota[job] = short
            else:
                self.waiting.append(job)
        never, quota = hopeless(work, [job for job in self.waiting if work.hard[job]])
        self.never |= never
        self.quota |= quota
        self._drop({job for job, live in self.desk.live.items() if live.end >= NEVER})

    def leave_out(self, never: Collection[int], quota: Mapping[int, Short]) -> None:
        """Count jobs as such as can never be started, also for a quota, and all that come after them."""
        self.never |= set(never)
        self.quota |= quota
        self._drop(())

    def _drop(self, endless: Collection[int]) -> None:
        """Let no jobs wait that can never be started; these come after some that never end."""
        gone = {*self.never, *self.quota}
        after = with_all_after(self.work, [*endless, *gone])
        self.never |= after & set(self.waiting) - gone
        self.waiting = [job for job in self.waiting if job not in after]

    # --- what is stopped -----------------------------------------------------------------------------------------

    def stoppable(self) -> list[int]:
        """Return the jobs that run and may be stopped now for one that waits, which is of higher priority."""
        highest = max((int(self.work.priority[job]) for job in self.waiting), default=None)
        running = [*self.desk.live, *self._stopped]
        if highest is None:
            return []
        return [
            job
            for job in sorted(running)
            if self.work.priority[job] < highest and (job in self._stopped or self.desk.may_stop(job))
        ]

    def stop(self, jobs: Collection[int]) -> None:
        """Let these jobs be stopped now, and no others."""
        desk = self.desk
        for job in [job for job in self._stopped if job not in jobs]:
            desk.take_up(job, self._stopped.pop(job))
        for job in sorted(set(jobs) - self._stopped.keys()):
            self._stopped[job] = desk.live[job]
            desk.stop(job)

    def for_nothing(self, starts: Mapping[int, Reserved]) -> bool:
        """Return whether some job is stopped for none of higher priority.

        One for which it is stopped starts before it would have ended and before it goes on, on one of its nodes; or
        anywhere, where it may have been for the sake of a quota.
        """
        priority, ongoing = self.work.priority, self.work.ongoing
        for job, live in self._stopped.items():
            until = min(live.end, starts[job].start + 1) if job in starts else 0
            nodes = self._hosts(live.tasks)
            served = any(
                one.start < until
                and priority[other] > priority[job]
                and (self.desk.admission is not None or nodes & self._hosts(one.tasks))
                for other, one in starts.items()
                if other not in ongoing
            )
            if not served:
                return True
        return False

    def _hosts(self, tasks: Sequence[Placed]) -> set[int]:
        hosts = self.work.instance.hosts_of(np.array([spot[0] for _, _, spot in tasks], dtype=np.int64))
        return set(hosts.tolist())

    # --- one job -------------------------------------------------------------------------------------------------

    def exactly(self, job: int) -> list[Way]:
        """Return with how many tasks a job may run that may run with fewer than all, fewest first; none for another."""
        number = int(self.work.instance.job_class[job])
        if number not in self._exactly:
            one = self.work.instance.job_classes[number]
            of_groups = [Way(sum(counts), each=counts) for counts in fewer(one)]
            self._exactly[number] = of_groups or [Way(count, count) for count in members(one)]
        return self._exactly[number]

    def earliest(
        self, profile: Profile, job: int, since: int, way: Way = ANY_WAY, room: Room | None = None
    ) -> Reserved | None:
        """Return the place of a job where it ends first, of those that start first on faster and slower nodes."""
        sets = self._sets(job) if way.within < 0 else [self.within[way.within]]
        found = []
        for within in sets:
            may_fit = None if room is None else partial(room.may_fit, job, way.least, within)
            found.append(profile.earliest(job, since, self.desk.shortest(job), self._fit(way, within), may_fit))
        return min((one for one in found if one is not None), key=lambda one: one.end, default=None)

    def _fit(self, way: Way, within: Ints | None) -> Fit:
        desk = self.desk

        def fit(job: int) -> tuple[Placed, ...] | None:
            tasks = desk.fit(job, within, way.each)
            if tasks is None or len(tasks) < way.least:
                if tasks is not None:
                    desk.withdraw(job, tasks)
                return None
            return desk.keep(job, tasks, tasks[: way.most])

        return fit

    def _sets(self, job: int) -> list[Ints | None]:
        """Return sets of nodes on which a job may end sooner though it starts later: on fast ones, on all."""
        instance = self.work.instance
        number = int(instance.job_class[job])
        if number not in self._faster:
            run = instance.job_classes[number].run
            factors = {} if run is None else dict(run.models)
            of_class = []
            for one in instance.classes:
                names = {instance.card_kinds[kind].model for kind, _, _ in one.cards}
                of_class.append(max((factors.get(name, Fraction(1)) for name in names), default=Fraction(0)))
            steps = sorted(set(of_class))
            slowest = np.array([steps.index(factor) for factor in of_class])[instance.node_class]
            self._faster[number] = [np.flatnonzero(slowest <= step) for step in range(len(steps) - 1)]
            self._faster[number].append(None)
        return self._faster[number]

    # --- passes --------------------------------------------------------------------------------------------------

    def run(self, choice: Choice) -> Timetable | None:
        """Return the timetable of a pass; None where it stops a job for nothing or there is no time."""
        self.stop(choice.stopped)
        found = _Pass(self, choice, self._kept)
        if not found.run(self._deadline):
            return None
        self._latest = found
        return None if self.for_nothing(found.starts) else found.table()

    def keep(self) -> None:
        """Keep what the last pass did: passes that begin in the same way begin there."""
        self._kept = self._latest

    def table(self, starts: Mapping[int, Reserved], late: Collection[int], never: Collection[int]) -> Timetable:
        """Return the timetable in which some jobs have such places and what is not stopped goes on."""
        stretches = [
            Stretch(job, 0, live.end, 0, 0, live.tasks) for job, live in self.desk.live.items() if live.end < NEVER
        ]
        for job, one in starts.items():
            stretches.append(Stretch(job, one.start, one.end, self.desk.spell(job, one.tasks)[0], 0, one.tasks))
        stretches.sort(key=lambda one: (one.start, one.job))
        return Timetable(stretches, self.never | set(never), set(late), dict(self.quota))


class _Pass:
    """One pass.

    Attributes
    ----------
    choice : Choice
    done : list of list of (int, Reserved or Short or None)
        Of each job of the order, who was placed in its turn, and where, or what quota is in the way.
    starts : dict of int to Reserved
    """

    def __init__(self, bench: Bench, choice: Choice, like: _Pass | None) -> None:
        self._bench, self.choice = bench, choice
        self.done: list[list[tuple[int, Reserved | Short | None]]] = [] if like is None else self._same(like)
        placed = [(job, one) for turn in self.done for job, one in turn]
        self.starts = {job: one for job, one in placed if isinstance(one, Reserved)}
        self._quota = {job: one for job, one in placed if isinstance(one, Short)}
        self._refused = {job for job, one in placed if one is None}
        self._ends = {job: live.end for job, live in bench.desk.live.items()}
        self._ends |= dict.fromkeys([*bench.never, *bench.quota, *self._quota, *self._refused], NEVER)
        self._ends |= {job: one.end for job, one in self.starts.items()}
        self._last = max((one.start for one in self.starts.values()), default=0)
        self._profile = Profile(bench.desk, self.starts)
        self._room = Room(bench.desk, self.starts.items()) if bench.desk.counts else None

    def _same(self, like: _Pass) -> list[list[tuple[int, Reserved | Short | None]]]:
        """Return what another pass did as long as it was to do the same."""
        mine, other = self.choice, like.choice
        if mine.stopped != other.stopped or mine.strict != other.strict:
            return []
        same = 0
        for job, also in zip(mine.order, other.order, strict=True):
            if job != also or mine.ways.get(job, ANY_WAY) != other.ways.get(job, ANY_WAY):
                break
            same += 1
        return like.done[:same]

    def run(self, deadline: float) -> bool:
        """Place all that are not placed, each after what it comes after; return whether there was time for it."""
        for job in self.choice.order[len(self.done) :]:
            if time.monotonic() > deadline:
                return False
            turn: list[tuple[int, Reserved | Short | None]] = []
            pending = [job]
            while pending:
                one = pending[-1]
                missing = [other for other in self._bench.work.after[one] if other not in self._ends]
                if missing:
                    pending += missing
                    continue
                pending.pop()
                if one not in self._ends:
                    turn.append((one, self._place(one, self.choice.ways.get(job, ANY_WAY) if one == job else ANY_WAY)))
            self.done.append(turn)
        return True

    def _place(self, job: int, way: Way) -> Reserved | Short | None:
        work, desk = self._bench.work, self._bench.desk
        before = max((self._ends[other] for other in work.after[job]), default=0)
        self._ends[job] = NEVER
        found = None
        desk.short.pop(job, None)
        if before < NEVER:
            since = max(int(work.release[job]), before, self._last if self.choice.strict else 0)
            found = self._bench.earliest(self._profile, job, since, way, self._room)
            if found is None and way != ANY_WAY:
                found = self._bench.earliest(self._profile, job, since, ANY_WAY, self._room)
        if found is None:
            short = None if work.hard[job] else desk.short.get(job)
            if short is None:
                self._refused.add(job)
            else:
                self._quota[job] = short
            return short
        self._profile.add(job, found)
        if self._room is not None:
            self._room.add(job, found)
        self.starts[job] = found
        self._ends[job] = found.end
        self._last = max(self._last, found.start)
        return found

    def table(self) -> Timetable:
        """Return the timetable."""
        late = {job for job in self._refused if self._bench.work.hard[job] and self._came(job)}
        table = self._bench.table(self.starts, late, self._refused - late)
        table.quota |= self._quota
        return table

    def _came(self, job: int) -> bool:
        return all(self._ends[other] < NEVER for other in self._bench.work.after[job])
