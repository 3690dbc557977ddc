"""What becomes of jobs: stretches of time in which they hold devices, and the parts of their completion time."""

from __future__ import annotations

from dataclasses import dataclass, field

from placement.heuristics.gangs import Placed
from placement.quota import Short
from placement.scheduling.work import Work


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time in which a job holds devices.

    Attributes
    ----------
    job : int
    start, end : int
        A job that runs now starts at 0.
    restart : int
        Time at the beginning in which it is restored.
    lost : int
        Time at the end whose work is lost, since it is stopped.
    tasks : tuple of Placed
    """

    job: int
    start: int
    end: int
    restart: int
    lost: int
    tasks: tuple[Placed, ...]


@dataclass(slots=True)
class Timetable:
    """All stretches of all jobs.

    Attributes
    ----------
    stretches : list of Stretch
    never : set of int
        Jobs that get no start since not even an empty cluster holds them, or a job that they come after has no end.
    late : set of int
        Jobs that get no start since they would end after a hard deadline.
    quota : dict of int to Short
        Jobs that get no start since their queue may not use so much, not even with nothing else in use, or since work
        without an end uses it.
    held_back : dict of int to Short
        Some jobs that a quota kept waiting when they came though devices were free.
    """

    stretches: list[Stretch] = field(default_factory=list)
    never: set[int] = field(default_factory=set)
    late: set[int] = field(default_factory=set)
    quota: dict[int, Short] = field(default_factory=dict)
    held_back: dict[int, Short] = field(default_factory=dict)

    def ends(self) -> dict[int, int]:
        """Return when each job ends that has a stretch."""
        found: dict[int, int] = {}
        for stretch in self.stretches:
            found[stretch.job] = max(stretch.end, found.get(stretch.job, 0))
        return found

    def value(self, work: Work) -> int:
        """Return the weighted completion time of the jobs that count, in milliseconds times weight."""
        return sum(
            int(work.weight[job]) * (end - int(work.release[job]))
            for job, end in self.ends().items()
            if work.counts(job)
        )

    def left_out(self, work: Work) -> int:
        """Return the weight of the jobs that are not started for their deadline."""
        return sum(int(work.weight[job]) for job in self.late)
