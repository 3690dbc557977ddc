"""Durations compiled: how long jobs run by their place, and what their data cost by the domain that they share."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil

ONE = Fraction(1)


@dataclass(frozen=True, slots=True)
class DataCopy:
    """A copy of a job's data; see `placement.snapshot.DataLocality`.

    Attributes
    ----------
    domains : tuple of int
        From the cluster to the copy's own level, the domain that holds it; -1 where none does.
    fetch : tuple of int
        What it costs at each of these levels, in milliseconds.
    """

    domains: tuple[int, ...]
    fetch: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RunTime:
    """How long jobs run, by their place; see `placement.snapshot.Duration`.

    Attributes
    ----------
    weight : int
        Of the job.
    seconds : Fraction
        0 where no duration is stated.
    models : tuple of (str, Fraction)
        Factor by card model, 1 for others.
    levels : tuple of Fraction
        Factor by each of `Instance.levels`.
    numa, nic : Fraction
        Factors for tasks whose cards lie in too many NUMA zones, or in zones with too few NICs.
    data : tuple of DataCopy
    shared : Fraction, optional
        Factor where cards are shared; absent where it is the usual one of the card.
    measured : tuple of (str, Fraction)
        By card model the usual one of its workload, where it is not stated and was measured; it goes before the card's.
    scaling : tuple of (int, Fraction)
        Placed tasks and the speed with so many, ascending, from (0, 0) to all of them; empty where it is always 1.
    """

    weight: int
    seconds: Fraction
    models: tuple[tuple[str, Fraction], ...]
    levels: tuple[Fraction, ...]
    numa: Fraction
    nic: Fraction
    data: tuple[DataCopy, ...]
    shared: Fraction | None = None
    measured: tuple[tuple[str, Fraction], ...] = ()
    scaling: tuple[tuple[int, Fraction], ...] = ()

    def milliseconds(
        self, level: int, model: Fraction, far: bool, few: bool, sharing: Fraction = ONE, speed: Fraction = ONE
    ) -> int:
        """Return the run time at a level, by factors of models and sharing, with too many zones or too few NICs."""
        exactly = 1000 * self.seconds * self.levels[level] * model * sharing / speed
        return ceil(exactly * (self.numa if far else 1) * (self.nic if few else 1))

    def speed(self, tasks: int) -> Fraction:
        """Return the speed with some tasks placed, relative to all; between two that are stated on a line."""
        for (below, slower), (above, faster) in pairwise(self.scaling):
            if below <= tasks <= above:
                return slower + (faster - slower) * Fraction(tasks - below, above - below)
        return ONE
