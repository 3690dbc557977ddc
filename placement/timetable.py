"""The schedule: when each job starts, on which devices, how long it takes, and how far from the best that can be.

All times are seconds after the snapshot's own time, whole milliseconds.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from placement.plan import Provenance

FORMAT = "placement-schedule/1"


class _Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    pass


class JobTimes(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What becomes of each job that has an end, in columns of equal length, in the order of the snapshot.

    Attributes
    ----------
    job : list of str
        Name, after expansion of ``count``.
    queue : list of str
    priority, weight : list of int
    release : list of float
        When the job may first start: its submit time, or 0 where that is past.
    start, end : list of float
        First start (0 for a job that runs now) and last end.
    queued, run, restart : list of float
        The three parts of ``end - release``: seconds in which it holds no device; in which it does work that is kept;
        in which it is restored or does work that is lost.
    waited : list of float
        Seconds from its submit time to the snapshot's time, which are in none of these.
    """

    job: list[str] = []
    queue: list[str] = []
    priority: list[int] = []
    weight: list[int] = []
    release: list[float] = []
    start: list[float] = []
    end: list[float] = []
    queued: list[float] = []
    run: list[float] = []
    restart: list[float] = []
    waited: list[float] = []

    def __len__(self) -> int:
        return len(self.job)


class Stretches(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Times in which jobs hold devices, in columns of equal length, by start, and jobs in the order of the snapshot.

    Attributes
    ----------
    job : list of str
    start, end : list of float
        A job that runs now starts at 0.
    restart : list of float
        Seconds at the beginning in which the job is restored.
    lost : list of float
        Seconds at the end in which it does work that is lost when it is stopped.
    """

    job: list[str] = []
    start: list[float] = []
    end: list[float] = []
    restart: list[float] = []
    lost: list[float] = []

    def __len__(self) -> int:
        return len(self.job)


class StretchTasks(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Where the tasks of each stretch are, in columns of equal length, by stretch, in the order of the snapshot.

    Attributes
    ----------
    stretch : list of int
        Number of the stretch, from 0.
    group : list of str
    index : list of int
    node : list of str
    gpus : list of list of int
    zones : list of list of int, optional
        NUMA zones of tasks that are bound to some, empty for others; `msgspec.UNSET` where that is every task.
    mig_starts : list of list of int, optional
        As in `placement.plan.Tasks`.
    """

    stretch: list[int] = []
    group: list[str] = []
    index: list[int] = []
    node: list[str] = []
    gpus: list[list[int]] = []
    zones: list[list[int]] | msgspec.UnsetType = msgspec.UNSET
    mig_starts: list[list[int]] | msgspec.UnsetType = msgspec.UNSET

    def __len__(self) -> int:
        return len(self.stretch)


class Spread(_Record, frozen=True, kw_only=True):
    """Of some jobs, what T = queued + run + restart comes to, in seconds.

    Attributes
    ----------
    jobs : int
    mean, weighted : float
        Mean of T, and by weight.
    p50, p95, p99 : float
        Nearest-rank percentiles of T.
    queued, run, restart : float
        Means of its parts.
    slowdown : float
        Mean of T over run, of the jobs that run for some time; 1 where there are none.
    """

    jobs: int
    mean: float
    weighted: float
    p50: float
    p95: float
    p99: float
    queued: float
    run: float
    restart: float
    slowdown: float


class Figures(_Record, frozen=True, kw_only=True):
    """A schedule in numbers.

    Attributes
    ----------
    all : Spread
    queues, priorities : dict of str to Spread
        The same of the jobs of each.
    makespan : float
        When the last job ends that has an end.
    utilisation : float, optional
        Card seconds that are held, by running work without an end too, over those there are of healthy cards, until
        the makespan. None where there are no cards, or where nothing takes time.
    preemptions : int
        How often jobs that count are stopped.
    """

    all: Spread
    queues: dict[str, Spread]
    priorities: dict[str, Spread]
    makespan: float
    utilisation: float | None
    preemptions: int


class LeftOut(_Record, frozen=True, kw_only=True):
    """A job that gets no start.

    Attributes
    ----------
    job : str
    reason : str
        ``"never"`` when a cluster without any work could not take it, or what it comes after never ends; ``"late"``
        when it would end after its hard deadline; ``"quota"`` when its queue may never use so much.
    detail : str
        One sentence.
    """

    job: str
    reason: Literal["never", "late", "quota"]
    detail: str


class Schedule(
    msgspec.Struct,
    forbid_unknown_fields=True,
    omit_defaults=True,
    kw_only=True,
    tag_field="format",
    tag=FORMAT,
    dict=True,
):
    """A schedule; in a file it carries ``"format": "placement-schedule/1"`` beside these fields.

    Attributes
    ----------
    snapshot : str
        SHA-256 of the snapshot's canonical form.
    status : str
        ``"proven"`` (the bound equals the value, and nothing is left out for a deadline), ``"bounded"`` or
        ``"feasible"`` (no bound).
    stop : str
        Why the search stopped; see `placement.solver.Stop`.
    reproducible : bool
        Whether the same call gives the same schedule.
    value : float
        Weighted completion time: the sum over `jobs` of weight times T, in seconds.
    bound : float, optional
        No schedule that leaves out no more jobs has a smaller value.
    gap : float, optional
        ``(value - bound) / value``; None without a bound.
    jobs : JobTimes
        Those that count: pending jobs that get a start, and preemptible ones that run now and have an end.
    stretches : Stretches
        Of all jobs that have an end. A running job without one, which states no duration, stays where it is.
    tasks : StretchTasks
    left_out : list of LeftOut
    figures : Figures
    notes : list of str
    provenance : Provenance
    checked : bool
    """

    snapshot: str
    status: Literal["proven", "bounded", "feasible"]
    stop: Literal["optimal", "gap", "complete", "work", "time", "failed"]
    reproducible: bool
    value: float
    bound: float | None
    gap: float | None
    jobs: JobTimes
    stretches: Stretches
    tasks: StretchTasks
    left_out: list[LeftOut]
    figures: Figures
    notes: list[str]
    provenance: Provenance
    checked: bool

    @property
    def seconds(self) -> dict[str, float]:
        """Wall time by activity; not part of the record, since it differs from run to run."""
        return dict(self.__dict__.get("_seconds", {}))

    @seconds.setter
    def seconds(self, seconds: dict[str, float]) -> None:
        self.__dict__["_seconds"] = seconds
