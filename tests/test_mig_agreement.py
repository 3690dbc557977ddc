"""The MIG engine against brute force, and the tables it works on against what layouts a card can have."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import mig_brute
import pytest
from brute import TooLarge, Value
from hypothesis import given, settings
from hypothesis import strategies as st
from mig_tiny import random_mig

from placement import solve
from placement.compile import compile as compile_snapshot
from placement.evaluate import scores
from placement.exact import run
from placement.hardware.layouts import candidates, feasible
from placement.hardware.mig import Geometry, Profile, geometries
from placement.heuristics import HEURISTICS, PORTFOLIO
from placement.instance import Instance
from placement.mig.runs import arranged, contents, dealt, runs_of
from placement.mig.slots import STARTS, Board, Card, Slots, card, most, room
from placement.plan import Phase
from placement.snapshot import Snapshot
from placement.snapshot.read import verified
from placement.solver import Bound, Limits, Stop

LEAST = -1
"""Sense of objectives of which less is better."""

# --- whole plans -----------------------------------------------------------------------------------------------


def sense(objective: str) -> int:
    return LEAST if objective == "nodes" else 1


def best_of(snapshot: Snapshot, objectives: Sequence[str]) -> list[Value] | None:
    try:
        return mig_brute.optimum(snapshot, objectives)
    except TooLarge:
        return None


def close(one: float, other: Fraction) -> bool:
    return abs(one - float(other)) <= 1e-9 * max(1.0, abs(one))


def judge(phases: Sequence[Phase], best: Sequence[Value], proven: bool) -> None:
    """No phase may beat the optimum while those before equal it, no bound may be beaten by it, and proof is proof."""
    kept = True
    for phase, (objective, _, value) in zip(phases, best, strict=True):
        sign = sense(objective)
        if phase.bound is not None and (kept or not phase.conditional):
            assert sign * (phase.bound - float(value)) >= -1e-6, phase
        if kept:
            assert sign * (float(value) - phase.value) >= -1e-6, phase
        kept = kept and close(phase.value, value)
    assert kept or not proven


def agrees(seed: int, *, scarce: bool, mixed: bool) -> bool | None:
    """Return whether the plan of a random snapshot is the best there is; None where that is too much to find out."""
    snapshot = verified(random_mig(seed, scarce=scarce, mixed=mixed))
    objectives = snapshot.policy.objectives
    best = best_of(snapshot, objectives)
    if best is None:
        return None
    plan = solve(snapshot, objectives=objectives)
    assert plan.checked
    assert not [note for note in plan.notes if "refused" in note or "contradicts" in note]
    judge(plan.phases, best, plan.status == "proven")
    return all(close(phase.value, value) for phase, (_, _, value) in zip(plan.phases, best, strict=True))


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_plans_are_best_where_nothing_else_is_short(first: int) -> None:
    """Instances alone: what counts say can be placed, so all there is to find is found."""
    found = Counter(agrees(seed, scarce=False, mixed=False) for seed in range(first, first + 20))
    assert found[False] == 0
    assert found[True] >= 10


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_plans_with_other_work(first: int) -> None:
    """Other cards and jobs of both sorts: bounds hold; jobs of both sorts run where a greedy rule started them."""
    found = Counter(agrees(seed, scarce=False, mixed=True) for seed in range(first, first + 20))
    assert found[True] >= 10


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_plans_where_hosts_are_short(first: int) -> None:
    found = Counter(agrees(seed, scarce=True, mixed=True) for seed in range(first, first + 20))
    assert found[True] >= 10


@pytest.mark.parametrize("seed", range(40))
def test_the_exact_method_by_itself(seed: int) -> None:
    """It starts from nothing or from any greedy plan; it is never worse, and its bounds hold for all of them."""
    snapshot = verified(random_mig(seed, scarce=seed % 2 > 0, mixed=seed % 3 > 0))
    instance = compile_snapshot(snapshot)
    objectives = snapshot.policy.objectives
    best = best_of(snapshot, objectives)
    alone = run(instance, objectives=objectives, limits=Limits())
    for bound in alone.bounds:
        holds(instance, bound, objectives, best)
    if best is not None and alone.stop is Stop.OPTIMAL:
        reached = scores(instance, alone.assignment, objectives)
        assert [score.value for score in reached] == [value for _, _, value in best]
    for name, rule in HEURISTICS.items():
        if rule.supports(instance) is None:
            start = rule.solve(instance, objectives=objectives, limits=Limits()).assignment
            before = [score.rank for score in scores(instance, start, objectives)]
            if name in PORTFOLIO:
                later = run(instance, objectives=objectives, limits=Limits(), start=start)
                assert [score.rank for score in scores(instance, later.assignment, objectives)] >= before, name
            if best is not None:
                assert before <= [sense(one.objective) * one.value for one in best], name


def holds(instance: Instance, bound: Bound, objectives: Sequence[str], best: Sequence[Value] | None) -> None:
    """Expect a bound to hold for the best plan, where that keeps what the bound takes as given."""
    if bound.value is None or best is None:
        return
    keys = [(objective, priority) for objective, priority, _ in best]
    number = keys.index((bound.objective, bound.priority))
    given = [value for _, _, value in best[:number]]
    if all(
        sense(key[0]) * (float(have) - held) >= -1e-9 for key, have, held in zip(keys, given, bound.held, strict=False)
    ):
        assert sense(bound.objective) * (bound.value - float(best[number].value)) >= -1e-6, bound


# --- tables ----------------------------------------------------------------------------------------------------


def cards_of(geometry: Geometry, rng: random.Random) -> Card:
    """Return a card with some instances, as a whole or to stay as it is."""
    layouts = [(), *some_layouts(geometry, rng)]
    existing = rng.choice(layouts) if rng.random() < 0.3 else None
    held = rng.choice(layouts) if existing is None else [one for one in existing if rng.random() < 0.4]
    stay = None if existing is None else tuple(sorted((profile.name, start) for profile, start in existing))
    return card(Board(geometry, stay, rng.random() < 0.5), held)


def some_layouts(geometry: Geometry, rng: random.Random) -> list[tuple[tuple[Profile, int], ...]]:
    """Return a few layouts that can exist, made one instance at a time."""
    found = []
    for _ in range(6):
        layout: list[tuple[Profile, int]] = []
        for one in rng.sample(list(candidates(geometry)), 3):
            if possible(geometry, [*layout, one]):
                layout.append(one)
        found.append(tuple(layout))
    return found


def possible(geometry: Geometry, layout: Sequence[tuple[Profile, int]]) -> bool:
    """Return whether instances can exist together, slot by slot and engine by engine."""
    slots = [slot for profile, start in layout for slot in range(start, start + profile.size)]
    engines = [sum(profile.engines[e] for profile, _ in layout) for e in range(len(geometry.engines))]
    legal = all(start in profile.starts for profile, start in layout)
    return (
        legal and len(set(slots)) == len(slots) and all(a <= b for a, b in zip(engines, geometry.engines, strict=True))
    )


def allowed(one: Card, profile: Profile, start: int) -> bool:
    """Return whether an instance can be made on a card, or is there and free where nothing is made."""
    there = one.board.existing is None or (profile.name, start) in one.board.existing
    engines = [a + b for a, b in zip(one.engines, profile.engines, strict=False)]
    room_for = all(a <= b for a, b in zip(engines, one.board.geometry.engines, strict=False))
    return there and start in profile.starts and not one.bits & profile.bits(start) and room_for


cases = st.tuples(st.sampled_from(geometries()), st.integers(0, 10**6))


def drawn(geometry: Geometry, seed: int) -> Slots:
    rng = random.Random(seed)
    names = sorted({profile.name for profile in rng.sample(geometry.profiles, min(3, len(geometry.profiles)))})
    return Slots(names, dict.fromkeys(cards_of(geometry, rng) for _ in range(2)))


@settings(max_examples=60)
@given(cases)
def test_tables_say_what_fits_and_what_becomes_of_it(case: tuple[Geometry, int]) -> None:
    slots = drawn(*case)
    assert not slots.takes[-1].any()
    for state, one in enumerate(slots.cards):
        assert slots.number(one) == state
        assert slots.left[state] == room(one.board.geometry, one.bits)
        for p in range(len(slots.profiles)):
            profile = slots.profile(one, p)
            assert profile is not None
            legal = [start for start in range(STARTS) if allowed(one, profile, start)]
            assert [start for start in range(STARTS) if slots.after[state, p, start] >= 0] == legal
            assert slots.takes[state, p] == bool(legal)
            left = {}
            for start in legal:
                after = slots.cards[slots.after[state, p, start]]
                assert after.board == one.board
                assert after.bits == one.bits | profile.bits(start)
                assert slots.before[slots.after[state, p, start], p, start] == state
                left[start] = room(one.board.geometry, after.bits)
            best = int(slots.best[state, p])
            assert (best in legal and left[best] == max(left.values())) if legal else best == -1


@settings(max_examples=60)
@given(cases)
def test_taking_back_is_the_inverse(case: tuple[Geometry, int]) -> None:
    slots = drawn(*case)
    for state, p, start in zip(*(slots.before >= 0).nonzero(), strict=True):
        assert slots.after[slots.before[state, p, start], p, start] == state


@pytest.mark.parametrize("geometry", geometries(), ids=lambda one: one.model)
def test_states_are_those_of_all_layouts(geometry: Geometry) -> None:
    """From an empty card every layout of the profiles is reached, and no more."""
    names = [profile.name for profile in geometry.profiles][:4]
    mine = [profile for profile in geometry.profiles if profile.name in names]
    slots = Slots(names, [card(Board(geometry, None, True), ())])
    expected = {(0, (0,) * len(geometry.engines))}
    for layout in feasible(geometry, mine):
        bits = sum(profile.bits(start) for profile, start in layout)
        engines = tuple(sum(profile.engines[e] for profile, _ in layout) for e in range(len(geometry.engines)))
        expected.add((bits, engines))
    assert {(one.bits, one.engines) for one in slots.cards} == expected


def multisets(slots: Slots, state: int) -> set[tuple[int, ...]]:
    """Return how many instances of each profile can be added to a card, by trying all orders and starts."""
    found = {state: {(0,) * len(slots.profiles)}}
    todo = [(state, (0,) * len(slots.profiles))]
    while todo:
        number, counts = todo.pop()
        for p, name in enumerate(slots.profiles):
            profile = slots.cards[number].board.geometry.profile(name)
            assert profile is not None
            for start in profile.starts:
                if allowed(slots.cards[number], profile, start):
                    after = slots.cards[number].plus(profile, start)
                    assert after is not None
                    more = tuple(count + (q == p) for q, count in enumerate(counts))
                    if more not in found.setdefault(slots.number(after), set()):
                        found[slots.number(after)].add(more)
                        todo.append((slots.number(after), more))
    return set().union(*found.values())


@settings(max_examples=50)
@given(cases)
def test_contents_are_the_largest_multisets(case: tuple[Geometry, int]) -> None:
    slots = drawn(*case)
    every = multisets(slots, 0)
    largest = {
        counts
        for counts in every
        if not any(tuple(c + (q == p) for q, c in enumerate(counts)) in every for p in range(len(slots.profiles)))
    }
    found = contents(slots, 0)
    assert len(set(found)) == len(found)
    # those from whose every arrangement something can be added are no use, others may be listed
    assert largest <= set(found) <= every
    for counts in found:
        layout = [(slots.profile(slots.cards[0], p), start) for p, start in arranged(slots, 0, counts)]
        state = slots.cards[0]
        for profile, start in layout:
            assert profile is not None
            assert allowed(state, profile, start)
            after = state.plus(profile, start)
            assert after is not None
            state = after
        names = Counter(profile.name for profile, _ in layout if profile is not None)
        assert [names[name] for name in slots.profiles] == list(counts)


@pytest.mark.parametrize("geometry", geometries(), ids=lambda one: one.model)
def test_the_most_instances_of_one_profile(geometry: Geometry) -> None:
    for profile in geometry.profiles:
        slots = Slots([profile.name], [card(Board(geometry, None, True), ())])
        assert max(multisets(slots, 0))[0] == most(Board(geometry, None, True), profile)


# --- runs ------------------------------------------------------------------------------------------------------


@settings(max_examples=100)
@given(cases)
def test_runs_hold_what_the_card_does(case: tuple[Geometry, int]) -> None:
    """Instances that lie in runs, no two on one slot, are just those that the card can take together."""
    slots = drawn(*case)
    one = slots.cards[0]
    runs = list(runs_of(slots, 0, b"x"))
    places = [(place.profile, place.start) for run in runs for place in run.places]
    assert len(set(places)) == len(places)
    legal = set()
    for p in range(len(slots.profiles)):
        profile = slots.profile(one, p)
        assert profile is not None
        legal |= {(p, start) for start in range(STARTS) if allowed(one, profile, start)}
        for one_run in runs:
            assert all(place.size == profile.size for place in one_run.places if place.profile == p)
    assert set(places) == legal
    if one.board.watched:
        assert [run.state for run in runs] == [0] * bool(legal)
        return
    spans = sorted((run.slots.start, run.slots.stop) for run in runs)
    assert all(run.state < 0 for run in runs)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))


@settings(max_examples=200)
@given(st.lists(st.lists(st.integers(1, 4), max_size=6), max_size=6), st.integers(0, 10**6))
def test_intervals_are_dealt_out(cards: list[list[int]], seed: int) -> None:
    """Intervals that lie on so many runs without overlap are dealt out to as many, whatever the order."""
    rng = random.Random(seed)
    intervals: list[tuple[int, int, int]] = []
    for sizes in cards:
        at = 0
        for size in sizes:
            at += rng.choice((0, 0, 1, 2))
            intervals.append((at, size, len(intervals)))
            at += size
    rng.shuffle(intervals)
    size_of = {what: size for _, size, what in intervals}
    found = dealt(intervals, len(cards))
    assert len(found) == len(cards)
    assert sorted((start, what) for run in found for start, what in run) == sorted((s, w) for s, _, w in intervals)
    for held in found:
        assert all(start + size_of[what] <= after for (start, what), (after, _) in pairwise(held))
    busiest = max((sum(start <= slot < start + size for start, size, _ in intervals) for slot in range(60)), default=0)
    if busiest:
        assert sum(bool(run) for run in dealt(intervals, len(cards))) >= busiest
        with pytest.raises(ValueError, match=f"more than {busiest - 1} times"):
            dealt(intervals, busiest - 1)
