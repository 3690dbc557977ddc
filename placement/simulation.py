"""What a simulation says: what became of the jobs under a policy, and how the cluster looked meanwhile.

All times are seconds after the snapshot's own time.
"""

from __future__ import annotations

import msgspec

from placement.timetable import Figures, JobTimes

FORMAT = "placement-simulation/1"


class Samples(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The cluster at some moments, in columns of equal length.

    Attributes
    ----------
    time : list of float
    used : list of float
        Cards that jobs hold, shares by their fraction.
    idle : list of float
        Healthy cards that nobody holds, on nodes that are up.
    scattered : list of float
        Of these, on nodes on which some card is held.
    largest : list of int
        Cards of the largest gang of whole nodes that would fit.
    running, waiting : list of int
        Jobs.
    """

    time: list[float] = []
    used: list[float] = []
    idle: list[float] = []
    scattered: list[float] = []
    largest: list[int] = []
    running: list[int] = []
    waiting: list[int] = []

    def __len__(self) -> int:
        return len(self.time)


class Simulation(
    msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True, tag_field="format", tag=FORMAT
):
    """One run of a policy; in a file it carries ``"format": "placement-simulation/1"`` beside these fields.

    Attributes
    ----------
    snapshot : str
        SHA-256 of the canonical form of the snapshot with the jobs that arrive.
    policy : str
    jobs : JobTimes
        Those that count, see `placement.timetable.Schedule.jobs`, and have ended.
    figures : Figures
    unfinished : list of str
        Jobs that have not ended when nothing more can happen, were cancelled before they ran, would be late, or may
        never start by the quota of their queue.
    failures : int
        Nodes that failed.
    samples : Samples
    seconds : float
        Wall time of the simulation.
    """

    snapshot: str
    policy: str
    jobs: JobTimes
    figures: Figures
    unfinished: list[str]
    failures: int
    samples: Samples
    seconds: float
