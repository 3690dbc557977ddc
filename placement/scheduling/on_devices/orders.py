"""Few jobs over devices: all orders of starts, all sets of jobs to stop, and all numbers of tasks and sets of nodes.

Sorted by start, each job of some best schedule starts as soon as it can, and no sooner than the one before. What a
greedy rule chooses on the nodes that a job keeps to is not looked into, so what is found may not be best.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations, product

from placement.scheduling.on_devices.passing import ANY_WAY, Bench
from placement.scheduling.profile import Profile, Reserved
from placement.scheduling.timing import Timetable
from placement.solver import Limits

MOST_WAITING, MOST_STOPPED = 6, 3
"""Jobs that wait, and such as may be stopped, up to which all orders are gone through."""
MOST_SETS = 31
"""Sets of nodes up to which jobs are kept to each of them in turn."""
MOST_TRIES = 2000
"""Places looked for, after which it is given up; as many for each set of jobs to stop."""

Score = tuple[int, int]
"""Weight of jobs left out for their deadlines, and weighted completion time; the least is best."""


_Placed = Mapping[int, Reserved]


class Orders:
    """All orders, in search of something better than what is known.

    Attributes
    ----------
    known : (int, int)
        Score of the best that is known.
    best : Timetable, optional
        Better than what was known at first.
    tries : int
        Places that may still be looked for.
    """

    def __init__(self, bench: Bench, known: Score, most_stopped: int, limits: Limits) -> None:
        self._bench, self._work, self._limits = bench, bench.work, limits
        self._most_stopped = most_stopped
        self.known = known
        self.best: Timetable | None = None
        self.tries = 0
        self._seen: set[tuple[frozenset[tuple[int, Reserved]], frozenset[int]]] = set()

    def run(self, sets: bool) -> bool:
        """Go through all orders, with jobs kept to sets of nodes or not; return whether that came to its end."""
        stoppable = self._bench.stoppable()
        most = min(len(stoppable), self._most_stopped)
        some = [stopped for count in range(most + 1) for stopped in combinations(stoppable, count)]
        done = True
        for stopped in some:
            self._bench.stop(stopped)
            self._seen.clear()  # what is left is what is not placed
            self.tries = MOST_TRIES // len(some)
            going_on = [(job, live.end) for job, live in self._bench.desk.live.items() if self._work.counts(job)]
            value = sum(self._added(job, end) for job, end in going_on)
            left = frozenset((*self._bench.waiting, *stopped))
            if self._is_hopeful(left, 0, (0, value)):
                self._follow(left, {}, frozenset(), (0, value), sets)
            done = done and self.tries > 0
        return done

    def _follow(self, left: frozenset[int], placed: _Placed, late: frozenset[int], score: Score, sets: bool) -> None:
        """Go through all that may start next."""
        if not left:
            self._keep(placed, late, score)
            return
        state = frozenset(placed.items()), late
        if state in self._seen:
            return
        self._seen.add(state)
        profile = Profile(self._bench.desk, placed)
        moment = max((one.start for one in placed.values()), default=0)
        found: list[tuple[int, int, int, Reserved]] = []
        for job in sorted(left):
            if any(other in left for other in self._work.after[job]):
                continue
            places = self._places(profile, job, placed, moment, sets)
            if not places and self.tries > 0:
                # nor will it fit when more has started
                if self._work.hard[job]:
                    out = self._followers(job, left)
                    lost = sum(int(self._work.weight[one]) for one in out if one == job)
                    self._follow(left - out, placed, late | {job}, (score[0] + lost, score[1]), sets)
                return
            found += [(self._added(job, one.end), one.start, job, one) for one in places]
        for added, start, job, one in sorted(found, key=lambda entry: entry[:3]):
            after = score[0], score[1] + added
            if self._is_hopeful(left - {job}, start, after):
                self._follow(left - {job}, {**placed, job: one}, late, after, sets)

    def _followers(self, job: int, left: frozenset[int]) -> frozenset[int]:
        """Return a job and all that come after it."""
        found = {job}
        while more := {one for one in left - found if found & set(self._work.after[one])}:
            found |= more
        return frozenset(found)

    def _places(self, profile: Profile, job: int, placed: _Placed, moment: int, sets: bool) -> list[Reserved]:
        """Return the different first places of a job, for each way in which it may run."""
        live = self._bench.desk.live
        ends = [placed[other].end if other in placed else live[other].end for other in self._work.after[job]]
        since = max([int(self._work.release[job]), moment, *ends])
        ways = [*reversed(self._bench.exactly(job))] or [ANY_WAY]
        within = range(-1, len(self._bench.within) if sets else 0)
        found: list[Reserved] = []
        for way, number in product(ways, within):
            if self.tries <= 0 or not self._limits.left:
                self.tries = 0
                break
            self.tries -= 1
            one = self._bench.earliest(profile, job, since, replace(way, within=number))
            if one is not None and one not in found:
                found.append(one)
        return found

    def _added(self, job: int, end: int) -> int:
        return int(self._work.weight[job]) * (end - int(self._work.release[job]))

    def _is_hopeful(self, left: frozenset[int], moment: int, score: Score) -> bool:
        """Return whether what is left could still make something better than is known."""
        rest = 0
        for job in left:
            if not self._work.hard[job]:
                start = max(moment, int(self._work.release[job]))
                rest += self._added(job, start + self._bench.desk.shortest(job))
        return (score[0], score[1] + rest) < self.known

    def _keep(self, placed: _Placed, late: frozenset[int], score: Score) -> None:
        if score < self.known and not self._bench.for_nothing(placed):
            self.known = score
            never = [job for job in self._bench.waiting if job not in placed and job not in late]
            self.best = self._bench.table(placed, late, never)
