"""Which job goes to cards of another model next, and where it stands among those there.

At prices of cards over time that prove a bound, most jobs lose so much on most models that no good schedule has them
there: of 300 gangs on three models a third of all choices are within reach. Jobs are drawn for the others by what they
lose, so that moves are made where they may pay.

A job on slower cards has to start sooner to end when it did; so it stands there where it starts or ends at the same
time, or anywhere from its release until a little after that.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate

from placement.scheduling.counts import Counted

Losses = Mapping[int, Mapping[int, float]]
"""By job and by run time, how much more than in its best mode it costs at some prices, in milliseconds times weight."""
SCALE = 0.05
"""What a job may lose, as a part of what jobs cost on average, by which it is drawn half as often; by trial."""
SAME_START, SAME_END = 0.3, 0.35
"""Parts of the switches to where the job starts, or ends, when it did."""
LATER = 1.2
"""How far the others go, in times from its release to that start."""


class Switches:
    """What may be switched.

    Parameters
    ----------
    work : Counted
    jobs : sequence of int
        Those that may run on nodes of several kinds.
    losses : mapping of int to mapping of int to float
        Of jobs, as far as they are known; others are drawn for all of their kinds alike.
    cost : float
        What a job costs on average, in milliseconds times weight.
    """

    def __init__(self, work: Counted, jobs: Sequence[int], losses: Losses, cost: float) -> None:
        self._work = work
        self._pairs: list[tuple[int, int]] = []
        weights: list[float] = []
        for job in jobs:
            lost = losses.get(job, {})
            for number, kind in enumerate(work.gangs[work.job_class[job]].kinds):
                self._pairs.append((job, number))
                weights.append(1 / (1 + (lost.get(kind.least, 0.0) / max(1.0, SCALE * cost)) ** 2))
        self._sums = list(accumulate(weights))
        self._weight = dict(zip(self._pairs, weights, strict=True))

    def draw(self, kinds: Mapping[int, int], rng: random.Random) -> tuple[int, int]:
        """Return a job and the number of another kind than that on which it runs now, given these."""
        while True:
            job, kind = self._pairs[bisect_left(self._sums, rng.random() * self._sums[-1])]
            if kind != kinds[job]:
                return job, kind

    def partner(self, pairs: Sequence[tuple[int, int]], rng: random.Random) -> tuple[int, int]:
        """Draw one of some jobs to switch, each with the number of the kind that it would run on then."""
        return rng.choices(pairs, [self._weight[pair] for pair in pairs])[0]

    def start(self, job: int, span: tuple[int, int], kind: int, rng: random.Random) -> int:
        """Return about when to start a job on nodes of a kind, given its start and end on others."""
        which = rng.random()
        if which < SAME_START:
            return span[0]
        release = self._work.release[job]
        same = max(release, span[1] - self._work.gangs[self._work.job_class[job]].kinds[kind].least)
        if which < SAME_START + SAME_END:
            return same
        return release + int((same - release) * LATER * rng.random())
