"""CP-SAT on gangs over time: an interval for each, cumulative over all cards, least weighted completion time.

Nodes are not in the model: any cards that are free will do, so it is a relaxation. Its bound holds for every schedule;
its value is that of a schedule that may not be placeable where a task needs several cards of one node. So its gangs are
also started on nodes, in the order of its starts, which gives a value that can be had (see `in_its_order`).

Of several card models, a gang has an optional interval for each that may be its slowest. One whose slowest model is m
uses cards that are as fast as m or faster, whence one cumulative for each model, over the cards as fast as it or faster
and over the gangs that use no slower ones. A gang that mixes models is in it too, so the bound holds for those as well.
It is a relaxation in one thing more: a gang may change its cards among those as fast as its slowest one while it runs.

With `one_each` every gang is kept to cards of one model: an optional interval for each, and one cumulative for each
model alone. That is a restriction, in which CP-SAT finds better schedules sooner; what it proves there says nothing of
gangs that mix models, so there is no bound then.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import placement as pl

from . import cpsat, in_its_order
from .common import Trace, Unsupported, improving

Point = tuple[float, float]
"""Seconds since the beginning, and what there was then; or a start and an end."""


@dataclass(frozen=True, slots=True)
class Demand:
    """A gang: cards, milliseconds on each model from the fastest on, weight, and milliseconds until it comes."""

    cards: int
    lengths: tuple[int, ...]
    weight: int
    release: int


@dataclass(frozen=True, slots=True)
class Solved:
    """What CP-SAT had over time.

    Attributes
    ----------
    values, bounds : list of Point
        Sums of weight times seconds, only improvements. No bounds where every gang is kept to one model.
    placed : float, optional
        Value where gangs are started on nodes in the order of its last starts; None if it found none.
    seconds : float
    about : dict
    """

    values: list[Point]
    bounds: list[Point]
    placed: float | None
    seconds: float
    about: dict[str, object]

    @property
    def value(self) -> float | None:
        """The last value."""
        return self.values[-1][1] if self.values else None

    @property
    def bound(self) -> float | None:
        """The last bound."""
        return self.bounds[-1][1] if self.bounds else None


def run(
    snapshot: pl.Snapshot,
    limit: float,
    seed: int,
    workers: int = 1,
    started: Sequence[Point] | None = None,
    one_each: bool = False,
) -> Solved:
    """Solve a snapshot of gangs that all wait, each of one group of like tasks.

    Parameters
    ----------
    snapshot : Snapshot
    limit : float
        Seconds.
    seed, workers : int
    started : sequence of (start, end), optional
        Seconds at which each gang starts and ends in some schedule, given as a hint.
    one_each : bool
        Whether every gang is kept to cards of one model.

    Raises
    ------
    NotInstalled
        If OR-tools is missing.
    Unsupported
        If the snapshot asks for what the model has not.
    """
    cp = cpsat.library()
    trace = Trace()
    models, capacities, demands = read(snapshot)
    if one_each and any(one.cards > max(capacities) for one in demands):
        raise Unsupported("a gang of more cards than there are of any one model")
    # the largest unit of which all times are multiples
    unit = math.gcd(*(time for one in demands for time in (*one.lengths, one.release))) or 1
    # waiting for all others on the slowest model is never needed after the last has come
    horizon = (max(one.release for one in demands) + sum(max(one.lengths) for one in demands)) // unit
    model = cp.CpModel()
    # what the cumulative of each model is over, and what a gang of each slowest model is in
    there = capacities if one_each else list(accumulate(capacities))
    ins = [range(slowest, slowest + 1 if one_each else len(there)) for slowest in range(len(there))]
    intervals: list[list[object]] = [[] for _ in there]
    asked: list[list[int]] = [[] for _ in there]
    starts, ends, uses = [], [], []
    for number, one in enumerate(demands):
        start = model.new_int_var(one.release // unit, horizon, f"start{number}")
        end = model.new_int_var(one.release // unit, horizon, f"end{number}")
        chosen: dict[int, Any] = {}
        for slowest, length in enumerate(one.lengths):
            # among fewer cards than it needs it cannot run
            if one.cards > there[slowest]:
                continue
            chosen[slowest] = use = model.new_bool_var(f"use{number}/{slowest}")
            if started is not None:
                began, ended = started[number]
                model.add_hint(use, round(1000 * (ended - began)) == length)
            span = model.new_optional_interval_var(start, length // unit, end, use, f"span{number}/{slowest}")
            for place in ins[slowest]:
                intervals[place].append(span)
                asked[place].append(one.cards)
        model.add_exactly_one(chosen.values())
        starts.append(start)
        ends.append(end)
        uses.append(chosen)
    for place, cards in enumerate(there):
        model.add_cumulative(intervals[place], asked[place], cards)
    begun = sum(one.weight * (one.release // unit) for one in demands)
    model.minimize(sum(one.weight * end for one, end in zip(demands, ends, strict=True)) - begun)
    for number, times in enumerate(started or ()):
        for variable, at in zip((starts[number], ends[number]), times, strict=True):
            model.add_hint(variable, round(1000 * at) // unit)
    values: list[Point] = []
    last: list[tuple[int, int]] = []

    def incumbent(found: list[int]) -> None:
        mine = [found[end.index] for end in ends]
        value = sum(one.weight * end for one, end in zip(demands, mine, strict=True)) - begun
        values.append((trace.now, value * unit / 1000))
        on = [next(slowest for slowest, use in chosen.items() if found[use.index]) for chosen in uses]
        last[:] = zip((unit * found[start.index] for start in starts), on, strict=True)

    cpsat.solve(model, trace, limit=limit, seed=seed, workers=workers, unit=unit / 1000, incumbent=incumbent)
    placed = in_its_order.worth(snapshot, last, models, one_each) if last else None
    bounds = [] if one_each else improving(trace.bounds, 1)
    return Solved(improving(values, -1), bounds, placed, trace.seconds, trace.about)


def read(snapshot: pl.Snapshot) -> tuple[list[str], list[int], list[Demand]]:
    """Return the models from the fastest on, the cards of each, and what each gang asks for."""
    first = snapshot.jobs[0].duration
    if first is None:
        raise Unsupported("a job without a duration")
    factors = dict(first.gpu_models)
    cards: dict[str, int] = {}
    for node in snapshot.nodes:
        for gpu in node.gpus:
            cards[gpu.model] = cards.get(gpu.model, 0) + node.count * gpu.count
    models = sorted(cards, key=lambda model: factors.get(model, 1.0))
    demands = []
    for job in snapshot.jobs:
        run_time, task = job.duration, job.groups[0].task
        if run_time is None or task is None or len(job.groups) > 1 or job.running is not None:
            raise Unsupported("a job that is no gang of like tasks that waits")
        if dict(run_time.gpu_models) != factors:
            raise Unsupported("gangs to which models are of different speeds")
        lengths = tuple(round(1000 * run_time.seconds * factors.get(model, 1.0)) for model in models)
        release = round(1000 * (job.submit_time or 0.0))
        demands.append(Demand(job.groups[0].count * task.gpus, lengths, job.weight, release))
    return models, [cards[model] for model in models], demands
