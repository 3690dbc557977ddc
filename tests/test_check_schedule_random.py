"""Schedules of random snapshots: what policies make is accepted, what is tampered with is refused."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st
from schedule_cases import Fickle, random_timed_work, scheduled

import placement as pl
from placement.scheduling.baselines import BASELINES
from placement.timetable import JobTimes

Part = tuple[str, float, float, float, float, list[tuple[str, int, str, list[int]]]]
"""Job, start, end, restart, lost, and group, index, node and cards of each task."""


@settings(max_examples=10, deadline=None, derandomize=True)
@given(st.integers(0, 10**6))
def test_what_policies_make_is_accepted(seed: int) -> None:
    snapshot = random_timed_work(seed)
    for policy in (*BASELINES.values(), Fickle(seed)):
        assert pl.check(snapshot, scheduled(snapshot, policy)) == []


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(0, 10**6))
def test_what_is_tampered_with_is_refused(seed: int) -> None:
    snapshot, rng = random_timed_work(seed), random.Random(seed)
    if not snapshot.nodes:
        return
    schedule = scheduled(snapshot, BASELINES["fifo-list"])
    times = [getattr(schedule.stretches, name) for name in ("start", "end", "restart", "lost")]
    times += [getattr(schedule.jobs, name) for name in JobTimes.__struct_fields__[3:]]
    column = rng.choice([column for column in [*times, schedule.left_out] if column] or [None])
    if column is None:
        return
    place = rng.randrange(len(column))
    if column is schedule.left_out:
        del column[place]
    else:
        column[place] += rng.choice((1, 2, 7))
    assert pl.check(snapshot, schedule) != []
