"""Repartitions disturb least: everything is tried on small cards and clusters."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from mig_simulator import SimulatedCard, Simulator, can_be, states
from repartition_cases import MODELS, drawn_layout, drawn_pair, known
from scipy.optimize import linear_sum_assignment

import placement as pl
from placement.hardware.mig import Geometry, Profile
from placement.repartition import reach
from placement.repartition.budget import within
from placement.repartition.match import match


@pytest.mark.parametrize("seed", range(60))
def test_reach_disturbs_least(seed: int) -> None:
    """Every choice of starts is tried: as many instances are kept as in the best of them that keeps those in use."""
    draw = random.Random(seed)
    one = known(draw.choice(MODELS))
    present = drawn_layout(draw, one, {})
    busy = {start: name for start, name in present.items() if draw.random() < 0.25}
    wanted = [name for name in busy.values() if draw.random() < 0.95]
    wanted += [p.name for p in draw.choices(one.profiles, [1 / p.size for p in one.profiles], k=draw.randint(0, 3))]
    profiles = [profile_of(one, name) for name in wanted]
    found = reach(one, placed(one, present), placed(one, busy), profiles)
    assert len(wanted) < 6, "too many instances to try everything"
    best = -1
    for starts in product(*(p.starts for p in profiles)):
        layout = dict(zip(starts, wanted, strict=True))
        if len(layout) == len(wanted) and can_be(one, layout) and busy.items() <= layout.items():
            best = max(best, len(layout.items() & present.items()))
    if best < 0:
        assert found is None
        return
    assert found is not None
    assert len(found.kept) == best
    assert len(found.destroyed) == len(present) - best
    assert len(found.created) == len(wanted) - best
    layout = {start: profile.name for profile, start in (*found.kept, *found.created)}
    assert Counter(layout.values()) == Counter(wanted)
    assert can_be(one, layout)
    assert busy.items() <= layout.items()


def profile_of(one: Geometry, name: str) -> Profile:
    found = one.profile(name)
    assert found is not None
    return found


def placed(one: Geometry, layout: dict[int, str]) -> list[tuple[Profile, int]]:
    return [(profile_of(one, name), start) for start, name in layout.items()]


@pytest.mark.parametrize("seed", range(40))
def test_layouts_are_exchanged_with_least_disturbance(seed: int) -> None:
    """All permutations of the cards of a model within a node: fewest blocked, destroyed, created, then least time."""
    before, after = drawn_pair(1000 + seed, ("A30", "B200"))
    found = pl.repartition(before, after, permute=True)
    changed = [card for card in found.cards if card.outcome == "changed"]
    blocked = {(one.node, one.card) for one in found.blocked}
    got = (len(blocked), found.destroyed, found.created, sum(card.seconds for card in changed))
    least = [0.0, 0.0, 0.0, 0.0]
    now, wanted = Simulator(before).cards, states(after)
    groups: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for place, card in now.items():
        groups.setdefault((place[0], card.model), []).append(place)
    for places in groups.values():
        costs = [
            [sum(part) for part in zip(*map(cost, (now[a] for a in places), (wanted[b] for b in order)), strict=True)]
            for order in permutations(places)
        ]
        least = [have + more for have, more in zip(least, min(costs), strict=True)]
    assert got == pytest.approx(least)


def cost(card: SimulatedCard, target: SimulatedCard) -> tuple[int, int, int, float]:
    """Count what a change takes, from the sets alone; 1 and nothing else where it is blocked."""
    now, then = {*card.instances.items()}, {*target.instances.items()}
    resets = card.model == "A30"
    if card.on != target.on:
        seconds = 0.15 * len(now) + 0.12 * len(then) + (30 if resets else 1)
        return (1, 0, 0, 0) if card.busy or card.whole else (0, len(now), len(then), seconds)
    if any(start in card.busy for start, _ in now - then):
        return 1, 0, 0, 0
    return 0, len(now - then), len(then - now), 0.15 * len(now - then) + 0.12 * len(then - now)


@pytest.mark.parametrize("seed", range(60))
def test_a_budget_is_spent_best(seed: int) -> None:
    draw = random.Random(seed)
    size = draw.randint(0, 8)
    weights = [draw.choice((0, 1, 2, 2, 3, 7)) for _ in range(size)]
    gains = [Fraction(draw.randint(0, 8), draw.choice((4, 7))) for _ in range(size)]
    budget = draw.randint(0, 16)
    taken = within(budget, weights, gains)
    rank = (sum(gains[k] for k in taken), len(taken), -sum(weights[k] for k in taken))
    assert -rank[2] <= budget
    for bits in range(1 << size):
        some = [k for k in range(size) if bits >> k & 1]
        weight = sum(weights[k] for k in some)
        assert weight > budget or (sum(gains[k] for k in some), len(some), -weight) <= rank


def test_a_large_budget_is_spent_quickly() -> None:
    """8,000 cards: each of the best 1,000 sevens brings more for what it takes than any other thing."""
    weights = [7] * 4000 + [3] * 4000
    gains = [Fraction(1)] * 1000 + [Fraction(3, 7)] * 3000 + [Fraction(1, 7)] * 4000
    taken = within(7000, weights, gains)
    assert taken == set(range(1000))


@pytest.mark.parametrize("seed", range(30))
def test_matching_is_least(seed: int) -> None:
    draw = np.random.default_rng(seed)
    size = int(draw.integers(1, 12))
    costs = draw.integers(0, draw.integers(2, 1000), (size, size))
    columns = match(costs.tolist())
    assert sorted(columns) == list(range(size))
    rows, other = linear_sum_assignment(costs)
    assert sum(costs[k, columns[k]] for k in range(size)) == costs[rows, other].sum()
    # numbers beyond what floating point tells apart
    large = [[10**30 * a + b for a, b in zip(row, row[::-1], strict=True)] for row in costs[:6, :6].tolist()]
    columns = match(large)
    orders = permutations(range(len(large)))
    assert sum(map(lambda row, k: row[k], large, columns)) == min(
        sum(row[k] for row, k in zip(large, order, strict=True)) for order in orders
    )


def test_matching_nothing() -> None:
    assert match([]) == []
