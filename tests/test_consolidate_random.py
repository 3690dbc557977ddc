"""Moving MIG instances on tiny clusters, beside every way to move and start; and what holds of every answer."""

from __future__ import annotations

import random
from fractions import Fraction

import msgspec
import pytest
from consolidate_brute import Moves, tiny
from consolidate_cases import sound
from hypothesis import given, settings
from hypothesis import strategies as st

from placement import Consolidation, consolidate
from placement.planning import dump_plan
from placement.snapshot.read import dumps

COSTS = (0.01, 0.1, 0.05, 0.5)
MOST = (None, 0, 1, 2, None)


@pytest.mark.parametrize("tens", range(12))
def test_the_best_there_is(tens: int) -> None:
    for seed in range(10 * tens, 10 * tens + 10):
        snapshot, cost, most = tiny(seed), COSTS[seed % len(COSTS)], MOST[seed % len(MOST)]
        found = consolidate(snapshot, move_cost=cost, max_moves=most)
        sound(snapshot, found, most)
        best = float(Moves(snapshot, Fraction(str(cost)), most).best())
        assert found.worth - found.cost == pytest.approx(best), seed
        assert found.bound == pytest.approx(best), seed


@pytest.mark.parametrize("tens", range(6))
def test_the_best_there_is_where_hosts_are_short(tens: int) -> None:
    """Three cores a host. What cards hold whose media engines can run out is not counted by what tasks ask for."""
    for seed in range(10 * tens, 10 * tens + 10):
        snapshot, cost, most = tiny(seed, cores=3), COSTS[seed % len(COSTS)], MOST[seed % len(MOST)]
        found = consolidate(snapshot, move_cost=cost, max_moves=most)
        sound(snapshot, found, most)
        best = float(Moves(snapshot, Fraction(str(cost)), most).best())
        assert found.worth - found.cost <= best + 1e-6, seed
        assert found.bound is not None
        assert found.bound >= best - 1e-6, seed
        profiles = {group.task.mig_profile for job in snapshot.jobs for group in job.groups if group.task}
        if all(profile.endswith("gb") for profile in profiles):
            assert found.worth - found.cost == pytest.approx(best), seed
            assert found.bound == pytest.approx(best), seed


@pytest.mark.parametrize("cores", range(3))
def test_the_best_there_is_where_running_work_overfills_hosts(cores: int) -> None:
    """Instances that ask for 0 to 2 cores run on hosts with fewer, and most of them may move."""
    for seed in range(20):
        snapshot, cost, most = tiny(seed, cores), COSTS[seed % len(COSTS)], MOST[seed % len(MOST)]
        found = consolidate(snapshot, move_cost=cost, max_moves=most)
        sound(snapshot, found, most)
        best = float(Moves(snapshot, Fraction(str(cost)), most).best())
        assert found.worth - found.cost <= best + 1e-6, seed
        assert found.bound is not None
        assert found.bound >= best - 1e-6, seed
        profiles = {group.task.mig_profile for job in snapshot.jobs for group in job.groups if group.task}
        if all(profile.endswith("gb") for profile in profiles):
            assert found.worth - found.cost == pytest.approx(best), seed
            assert found.bound == pytest.approx(best), seed


@settings(max_examples=25, deadline=None)
@given(
    draw=st.randoms(use_true_random=False),
    cores=st.none() | st.integers(0, 6),
    cost=st.sampled_from((0.0, 0.03, 0.1, 1.0)),
    most=st.none() | st.integers(0, 3),
    gap=st.sampled_from((0.0, 0.2)),
)
def test_every_answer_is_sound(
    draw: random.Random, cores: int | None, cost: float, most: int | None, gap: float
) -> None:
    snapshot = tiny(draw, cores)
    found = consolidate(snapshot, move_cost=cost, max_moves=most, gap=gap)
    sound(snapshot, found, most)
    again = consolidate(snapshot, move_cost=cost, max_moves=most, gap=gap)
    assert _bytes(found) == _bytes(again)


def _bytes(found: Consolidation) -> tuple[bytes, ...]:
    return msgspec.json.encode(found.moves), dumps(found.after), dump_plan(found.plan), repr(found.bound).encode()
