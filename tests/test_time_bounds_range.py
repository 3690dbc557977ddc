"""Bounds where decades stand beside milliseconds and weights of 10^9 beside 1: never above the optimum."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from policy_cases import job, node, running

import placement as pl
from placement.scheduling.baselines import BASELINES
from placement.scheduling.bounds.area import area_bound, trivial_bound
from placement.scheduling.bounds.grid import best_bound
from placement.scheduling.bounds.modes import relaxation
from placement.scheduling.compile import compile_work
from placement.scheduling.desk import Desk
from placement.scheduling.loop import Loop
from placement.scheduling.orders import ListPolicy, in_order
from placement.snapshot import Job, Snapshot

YEARS = 10 * 365 * 86400.0
LENGTHS = (YEARS, 0.001, 0.5, 3600.0, YEARS + 0.001)
WEIGHTS = (10**9, 1, 0, 10**9 - 1, 7)


def by_smith(jobs: list[Job]) -> list[int]:
    """Return the best order of whole jobs on one card without releases: by run time over weight (Smith, 1956)."""

    def ratio(number: int) -> Fraction:
        return Fraction(length(jobs[number]), jobs[number].weight) if jobs[number].weight else Fraction(10**30)

    return sorted(range(len(jobs)), key=ratio)


def length(one: Job) -> int:
    assert one.duration is not None
    return round(1000 * one.duration.seconds)


@pytest.mark.parametrize("seed", range(8))
def test_on_one_card_the_bound_by_areas_is_the_optimum(seed: int) -> None:
    draw = random.Random(seed)
    jobs = [job(f"j{n}", 1, draw.choice(LENGTHS), weight=draw.choice(WEIGHTS)) for n in range(draw.randint(2, 9))]
    work = compile_work(Snapshot(nodes=(node("a", 1),), jobs=tuple(jobs)))
    now = optimum = 0
    for one in by_smith(jobs):
        now += length(jobs[one])
        optimum += jobs[one].weight * now
    policy = ListPolicy("smith", in_order(by_smith(jobs)))
    assert Loop(Desk(work), policy).run().value(work) == optimum  # whole numbers, however large
    relaxed = relaxation(work)
    assert trivial_bound(relaxed) <= area_bound(relaxed) <= optimum
    assert area_bound(relaxed) >= optimum * (1 - Fraction(1, 10**12))
    assert area_bound(relaxed) <= best_bound(work).bound <= optimum


@pytest.mark.parametrize("seed", range(10))
def test_no_schedule_is_below_a_bound(seed: int) -> None:
    draw = random.Random(seed)
    jobs = [
        job(
            f"j{n}",
            draw.randint(1, 2),
            draw.choice(LENGTHS),
            draw.randint(1, 2),
            weight=draw.choice(WEIGHTS),
            submit_time=draw.choice((0.0, 0.001, YEARS)),
            preemptible=draw.random() < 0.5,
            checkpoint_interval=draw.choice((None, 0.001, YEARS / 2)),
        )
        for n in range(6)
    ]
    if draw.random() < 0.5:
        jobs.append(running(job("old", 1, YEARS, preemptible=True, weight=10**9), "a", (0,), since=-YEARS / 2))
    work = compile_work(Snapshot(nodes=(node("a", 2), node("b", 2)), jobs=tuple(jobs)))
    names = ("smith", "smith-area", "shortest-job-first", "fifo-list", "tiresias-las")
    value = min(Loop(Desk(work), BASELINES[name]).run().value(work) for name in names)
    relaxed = relaxation(work)
    assert trivial_bound(relaxed) <= area_bound(relaxed) <= best_bound(work).bound <= value


def test_a_schedule_of_decades_is_exact_to_the_millisecond() -> None:
    jobs = (job("long", 1, YEARS, weight=10**9), job("short", 1, 0.001, weight=1))
    schedule = pl.schedule(Snapshot(nodes=(node("a", 1),), jobs=jobs), solver="fifo")
    assert list(zip(schedule.stretches.job, schedule.stretches.end, strict=True)) == [
        ("long", YEARS),
        ("short", YEARS + 0.001),
    ]
    # 10^9 * 315,360,000 s + 315,360,000.001 s
    assert schedule.value == (10**9 * 315_360_000_000 + 315_360_000_001) / 1000
