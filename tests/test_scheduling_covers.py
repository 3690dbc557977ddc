"""Cover inequalities, over time, what they cost, and the program that grows: by hand, and never above the optimum."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest
from brute_relaxed import kind, of, random_relaxed, schedules, soonest, there
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.exact.milp.growing import BASIC, Basis, Growing
from placement.scheduling.bounds.covers import covers, lifted, overfull
from placement.scheduling.bounds.modes import NO_END, Kind, Mode, Relaxation, in_windows
from placement.scheduling.bounds.prices import Prices, priced
from placement.scheduling.bounds.spans import NOBODY, Span, counted_by, shares
from placement.scheduling.bounds.tolls import Tolled, Windows, tolled, whole_windows

# --- covers, by hand -----------------------------------------------------------------------------------------


def column(*parts: float) -> np.ndarray:
    return np.array(parts)[:, None]


def test_two_gangs_that_each_need_all_cards() -> None:
    # 3/4 and 1/2 of them run at a moment at which one of them may: 1/4 too much.
    (found,) = covers(column(0.75, 0.5), (4, 4), 4)
    assert (found.column, found.coefficient.tolist(), found.most, found.broken) == (0, [1, 1], 1, 0.25)


def test_units_do_not_say_what_a_cover_says() -> None:
    # Two of 3 cards on 5: 3/4 of each are 4.5 of 5 cards, but 1.5 where 1 may run.
    (found,) = covers(column(0.75, 0.75), (3, 3), 5)
    assert (found.coefficient.tolist(), found.most, found.broken) == ([1, 1], 1, 0.5)
    assert overfull(column(0.75, 0.75), (3, 3), 5) == []


def test_a_cover_of_three() -> None:
    # Two of three jobs of 2 cards fit on 5: 2.7 of them are 0.7 too much.
    (found,) = covers(column(0.9, 0.9, 0.9), (2, 2, 2), 5)
    assert (found.coefficient.tolist(), found.most) == ([1, 1, 1], 2)
    assert found.broken == pytest.approx(0.7, abs=1e-12)


def test_coefficients_of_jobs_outside_the_cover() -> None:
    # Beside one of 4 of 5 cards none of the cover fits: 2. Beside one of 3, one of it does: 1. Beside one of 1 both of
    # two do, or the one of 4 with its 2: nothing is left.
    part = np.array([0.9, 0.9, 0.9, 0.0, 0.0, 0.0])
    coefficient, most = lifted(np.array([0, 1, 2]), part, (2, 2, 2, 4, 3, 1), 5)
    assert (coefficient.tolist(), most) == ([1, 1, 1, 2, 1, 0], 2)


def test_who_runs_most_gets_a_coefficient_first() -> None:
    # 3, 3 and 3 cards of 6. Beside one of 2 one of the cover fits: 1; then beside one of 4 only that of 2: 1. The other
    # way round, beside one of 4 nothing of the cover does: 2; then beside one of 2 that of 4: nothing.
    for parts, coefficients in (((0.7, 0.5), [1, 1, 1, 1, 1]), ((0.5, 0.7), [1, 1, 1, 0, 2])):
        part = np.array([0.9, 0.9, 0.9, *parts])
        coefficient, most = lifted(np.array([0, 1, 2]), part, (3, 3, 3, 2, 4), 6)
        assert (coefficient.tolist(), most) == (coefficients, 2)


def test_a_cover_is_made_minimal() -> None:
    # 3 + 3 + 1 are 2 more than 5; without the 1 they still are too many, so at most one of the 3s runs.
    coefficient, most = lifted(np.array([0, 1, 2]), np.array([1.0, 1.0, 0.5]), (3, 3, 1), 5)
    assert (coefficient.tolist(), most) == ([1, 1, 0], 1)


def test_a_job_that_never_fits_is_a_cover() -> None:
    (found,) = covers(column(0.5, 0.5), (7, 1), 5)
    assert (found.coefficient.tolist(), found.most, found.broken) == ([1, 0], 0, 0.5)


def test_nothing_is_found_where_nothing_is_broken() -> None:
    assert covers(column(0.5, 0.5), (4, 4), 4) == []
    assert covers(column(1.0, 1.0), (2, 0), 2) == []
    assert covers(np.zeros((2, 0)), (4, 4), 4) == []


def test_more_is_held_than_there_is() -> None:
    # 0.9 * 3 + 0.5 = 3.2 of 3, in units of the widest job; the second moment is not too full.
    (found,) = overfull(np.array([[0.9, 0.9], [0.5, 0.0]]), (3, 1), 3)
    assert (found.column, found.coefficient.tolist(), found.most) == (0, [3, 1], 3)
    assert found.broken == pytest.approx(0.2 / 3, abs=1e-12)


def test_columns_side_by_side_are_as_each_alone() -> None:
    running = np.array([[0.9, 0.1, 0.6], [0.9, 0.9, 0.6], [0.9, 0.9, 0.6]])
    together = covers(running, (3, 2, 2), 4)
    assert [one.column for one in together] == [0, 2]
    for one in together:
        (alone,) = covers(running[:, [one.column]], (3, 2, 2), 4)
        assert (alone.coefficient.tolist(), alone.most) == (one.coefficient.tolist(), one.most)


# --- covers, for every set of jobs ---------------------------------------------------------------------------

rooms = st.integers(1, 12)
held = st.lists(st.integers(0, 13), min_size=1, max_size=6)


def fitting(units: list[int], room: int) -> list[np.ndarray]:
    """Return every set of jobs that run at one moment."""
    sets = (np.array(one, dtype=np.int64) for one in itertools.product((0, 1), repeat=len(units)))
    return [one for one in sets if one @ units <= room]


@settings(max_examples=120, deadline=None)
@given(held, rooms, st.randoms(use_true_random=False))
def test_every_inequality_holds_and_no_coefficient_can_be_larger(
    units: list[int], room: int, draw: random.Random
) -> None:
    running = np.array([[draw.choice((0.0, draw.random(), 1.0)) for _ in range(3)] for _ in units])
    sets = fitting(units, room)
    for one in covers(running, units, room):
        assert all(one.coefficient @ some <= one.most for some in sets)
        assert one.broken == pytest.approx(one.coefficient @ running[:, one.column] - one.most)
        for job, amount in enumerate(units):
            if 0 < amount <= room:
                more = one.coefficient + (np.arange(len(units)) == job)
                assert any(more @ some > one.most for some in sets)
    for one in overfull(running, units, room):
        assert all(one.coefficient @ some <= one.most for some in sets)


@settings(max_examples=80, deadline=None)
@given(held, rooms, st.randoms(use_true_random=False))
def test_the_cover_that_is_broken_most_is_found(units: list[int], room: int, draw: random.Random) -> None:
    running = np.array([draw.choice((0.25, 0.5, 0.75, 1.0)) if amount else 0.0 for amount in units])
    best = 0.0
    for one in itertools.product((0, 1), repeat=len(units)):
        some = np.array(one, dtype=np.int64)
        if some @ units > room:
            best = max(best, float(running @ some) - some.sum() + 1)
    found = covers(running[:, None], units, room)
    assert bool(found) == (best > 0)
    assert all(one.broken >= best - 1e-9 for one in found)  # lifting only adds to it


# --- over time -----------------------------------------------------------------------------------------------


def test_a_span_with_a_length_and_a_job_that_counts_at_any_moment() -> None:
    # In [10, 20), length 4. Job 1 runs in [8, 18) and counts until 14: 4 of 10. Job 0 runs in [18, 30) and counts from
    # 14 on: 6 of 10. Together the 1 that is allowed, though job 1 runs 8 of 10 and job 0 only 2.
    span = Span(0, 10, 20, 4, 0, np.array([1, 1]), 1)
    plain = Span(0, 10, 20, 0, NOBODY, np.array([1, 2]), 1)
    found = counted_by([span, plain], np.array([1, 0]), np.array([8, 18]), np.array([18, 30]))
    assert found.tolist() == [[0.4, 0.6], [1.6, 0.2]]


def test_what_does_not_run_on_for_the_length_does_not_count() -> None:
    span = Span(0, 10, 20, 4, NOBODY, np.array([3]), 1)
    kinds, begin = np.zeros(3, dtype=np.int64), np.array([12, 12, 18])
    assert counted_by([span], kinds, begin, np.array([16, 18, 40])).tolist() == [[0.0, 0.6, 0.6]]
    assert counted_by([], kinds, begin, begin).shape == (0, 3)


def test_parts_of_slots() -> None:
    found = shares(np.array([0, 5]), np.array([15, 25]), np.array([0, 10, 20]))
    assert found.tolist() == [[1.0, 0.5], [0.5, 1.0]]


@settings(max_examples=80, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=2, max_size=5), st.randoms(use_true_random=False))
def test_spans_hold_of_random_schedules(units: list[int], draw: random.Random) -> None:
    room = max(units)
    relaxed = of([kind(job, draw.randint(1, 9), amount) for job, amount in enumerate(units)], there((0, room)))
    placed: dict[int, tuple[int, int, Mode]] = {}
    for job in draw.sample(range(len(units)), len(units)):
        (mode,) = relaxed.kinds[job].modes
        start = soonest(relaxed, job, mode, list(placed.values()), draw.choice((0, draw.randint(0, 20))))
        placed[job] = start, start + mode.run, mode
    begin, end = (np.array([placed[job][side] for job in range(len(units))]) for side in (0, 1))
    spans = []
    for one in covers(np.array([[draw.random() for _ in range(6)] for _ in units]), units, room):
        first, length = draw.randint(0, 15), draw.choice((0, draw.randint(1, 6)))
        anytime = draw.randrange(len(units)) if length else NOBODY
        spans.append(Span(0, first, first + draw.randint(1, 9), length, anytime, one.coefficient, one.most))
    for span, counted in zip(spans, counted_by(spans, np.arange(len(units)), begin, end), strict=True):
        assert counted.sum() <= span.most + 1e-9


# --- tolls, by hand ------------------------------------------------------------------------------------------


def free(relaxed: Relaxation, *moments: int) -> Prices:
    """Return prices of nothing between some moments."""
    return Prices(np.array(moments), np.zeros((len(relaxed.profiles), len(moments) - 1)))


def toll(relaxed: Relaxation, moments: tuple[int, ...], span: Span, each: float, value: int = -1) -> Tolled:
    return tolled(relaxed, free(relaxed, *moments), [span], np.array([each]), whole_windows(relaxed), value)


def test_tolls_prove_what_prices_do_not() -> None:
    # Two jobs of 2 of 3 cards for 4 ms end at 4 and 8: 12. A card for 1/2 a ms in [0, 4): each costs 4 + 4 at 0, or 8
    # at 4, and what there is 6: 16 - 6. The one that may run costs 1 a ms: each 4 + 4, or 8, and 16 - 4 is all of it.
    relaxed = of([kind(0, 4, 2), kind(1, 4, 2)], there((0, 3)))
    assert priced(relaxed, Prices(np.array([0, 4, 8]), np.array([[0.5, 0.0]]))).bound == 10
    found = toll(relaxed, (0, 4, 8), Span(0, 0, 4, 0, NOBODY, np.array([1, 1]), 1), 4.0)
    assert (found.bound, found.start.tolist(), found.mode.tolist()) == (12, [0, 0], [0, 0])
    # What is negative counts as nothing: 4 + 4.
    assert toll(relaxed, (0, 4, 8), Span(0, 0, 4, 0, NOBODY, np.array([1, 1]), 1), -4.0).bound == 8


def test_tolls_of_a_span_with_a_length() -> None:
    # In [0, 4), length 2, at 1 a ms. Job 0 pays for [s, s + 2): 4 + 2 at 0, and more later. Job 1, which counts at any
    # moment, for [s - 2, s + 4): 4 + 4 at 0, 10 + 0 at 6. Together 14, less 4 for the one that may run.
    relaxed = of([kind(0, 4, 2), kind(1, 4, 2)], there((0, 3)))
    found = toll(relaxed, (0, 4, 8), Span(0, 0, 4, 2, 1, np.array([1, 1]), 1), 4.0)
    assert (found.bound, found.start.tolist()) == (10, [0, 0])


def test_windows_are_narrowed_by_cost() -> None:
    # Weights 3 and 1, and 2 a ms in [0, 4). Job 0 costs 12 + 8 at 0 and 24 at 4; job 1 4 + 8 at 0, 8 at 4 and 12 at 8.
    # Together 28 - 8 = 20, which a schedule reaches. With 20 known, job 0 starts at 0, or before 4 for all that is
    # looked at, and job 1 after 0 and before 8; they end 4 later.
    relaxed = of([kind(0, 4, 2, weight=3), kind(1, 4, 2)], there((0, 3)))
    span = Span(0, 0, 4, 0, NOBODY, np.array([1, 1]), 1)
    found = toll(relaxed, (0, 4, 8), span, 8.0, value=20)
    assert (found.bound, found.start.tolist()) == (20, [0, 4])
    assert (found.windows.first.tolist(), found.windows.last.tolist()) == ([4, 5], [7, 11])
    # With 24 known, 4 more may be spent: job 0 may start at 4, and nothing is said of job 1 but that it ends by then.
    wider = toll(relaxed, (0, 4, 8), span, 8.0, value=24).windows
    assert (wider.first.tolist(), wider.last.tolist()) == ([4, 4], [11, NO_END])
    # Nothing is as good as 19, and nothing is said where nothing is known, even if the bound is below 0.
    for value, each in ((19, 8.0), (-1, 8.0), (-1, 1000.0)):
        same = toll(relaxed, (0, 4, 8), span, each, value).windows
        assert (same.first.tolist(), same.last.tolist()) == ([4, 4], [NO_END, NO_END])


def test_windows_are_those_of_ends_in_all_modes() -> None:
    # 2 ms on 2 cards or 4 ms on 1, at 3 a ms for a card in [0, 3). To end by 5, it starts by 3 or by 1: it costs 5 + 0
    # at 3 on 2 cards, and 4 + 3 * 3 at 0 or 5 + 2 * 3 at 1 on one.
    modes = Mode(2, ((0, 2),)), Mode(4, ((0, 1),))
    relaxed = of([Kind((0,), 1, 0, 0, NO_END, modes, True)], there((0, 2)))
    prices = Prices(np.array([0, 3, 9]), np.array([[3.0, 0.0]]))
    until = Windows(np.array([2]), np.array([5]))
    found = tolled(relaxed, prices, [], np.zeros(0), until)
    assert (found.start.tolist(), found.mode.tolist()) == ([3], [0])
    # 5 less 18, what the cards cost: no bound is below 0.
    assert found.bound == 0
    # To end by 3, 4 ms are too long: 2 + 2 * 6 at 0, or 3 + 2 * 6 at 1.
    early = tolled(relaxed, prices, [], np.zeros(0), Windows(np.array([2]), np.array([3])))
    assert (early.start.tolist(), early.mode.tolist()) == ([0], [0])


def test_numbers_beyond_64_bits_say_nothing() -> None:
    relaxed = of([kind(0, 4, 2), kind(1, 4, 2)], there((0, 3)))
    windows = whole_windows(relaxed)
    huge = tolled(relaxed, Prices(np.array([0, 10**15]), np.array([[1e9]])), [], np.zeros(0), windows, 12)
    assert (huge.bound, huge.windows) == (-1, windows)


# --- tolls, never above the optimum --------------------------------------------------------------------------


def random_spans(draw: random.Random, relaxed: Relaxation, moments: list[int]) -> list[Span]:
    """Return inequalities that hold of every schedule: of what there is at most at any time."""
    found = []
    for resource, profile in enumerate(relaxed.profiles):
        units = [
            dict(one.modes[0].uses).get(resource, 0) if len(one.modes) == 1 and one.modes[0].run else 0
            for one in relaxed.kinds
        ]
        running = np.array([[draw.random() for _ in range(4)] for _ in units])
        for one in covers(running, units, int(profile.units.max())):
            first, last = sorted(draw.sample(range(len(moments)), 2))
            length = draw.choice((0, 0, draw.choice((1, 999, 3000))))
            anytime = draw.randrange(len(units)) if length else NOBODY
            span = moments[first], moments[last], length, anytime
            found.append(Span(resource, *span, one.coefficient, one.most))
    return found


@settings(max_examples=70, deadline=None)
@given(st.randoms(use_true_random=False))
def test_tolls_are_never_above_a_schedule_and_windows_keep_those_that_are_no_worse(draw: random.Random) -> None:
    relaxed = random_relaxed(draw, 3)
    found = schedules(relaxed)
    optimum = min(value for value, _ in found)
    moments = [0, *sorted(draw.sample(range(1, 30_000), 5))]
    price = np.array([[draw.choice((0.0, draw.random(), 3.0)) for _ in moments[1:]] for _ in relaxed.profiles])
    spans = random_spans(draw, relaxed, moments)
    multipliers = np.array([draw.choice((0.0, 1e4 * draw.random(), draw.random())) for _ in spans])
    value = draw.choice((optimum, optimum, math.ceil(1.2 * optimum)))
    prices = Prices(np.array(moments), price)
    said = tolled(relaxed, prices, spans, multipliers, whole_windows(relaxed), value)
    assert said.bound <= optimum
    for each, runs in found:
        if each <= value:
            ends = np.array([end for _, end, _ in runs])
            assert (said.windows.first <= ends).all()
            assert (ends <= said.windows.last).all()


def test_prices_alone_are_the_tolls_of_no_spans() -> None:
    for seed in range(20):
        draw = random.Random(seed)
        relaxed = random_relaxed(draw)
        assert all(in_windows(one) for one in relaxed.kinds)
        moments = [0, *sorted(draw.sample(range(1, 30_000), 5))]
        price = np.array([[draw.random() for _ in moments[1:]] for _ in relaxed.profiles])
        prices = Prices(np.array(moments), price)
        said = tolled(relaxed, prices, [], np.zeros(0), whole_windows(relaxed))
        assert said.bound == max(0, priced(relaxed, prices).bound)


# --- a program that grows ------------------------------------------------------------------------------------


def entries(*pairs: tuple[int, float]) -> np.ndarray:
    return np.array(pairs, dtype=np.float64).reshape(-1, 2)


def test_a_program_grows_and_goes_back() -> None:
    program = Growing(np.array([2.0]), np.array([1.0]))
    # x + y = 2, x <= 1, x + 3 y: 1 + 3.
    program.add_columns(np.array([1.0, 3.0]), np.array([0, 0, 1]), entries((0, 1), (1, 1), (0, 1)))
    first = program.solve(math.inf)
    assert first is not None
    assert (first.value, first.x.tolist(), first.duals.tolist()) == (4.0, [1.0, 1.0], [3.0, -2.0])
    basis = program.basis()
    # z of cost 2 in y's place: 1 + 2.
    program.add_columns(np.array([2.0]), np.array([0]), entries((0, 1)))
    second = program.solve(math.inf)
    assert second is not None
    assert (second.value, second.x.tolist()) == (3.0, [1.0, 0.0, 1.0])
    # 2 z <= 1: 1 + 2 / 2 + 3 / 2.
    program.add_rows(np.array([1.0]), np.array([0]), entries((2, 2)))
    third = program.solve(math.inf)
    assert third is not None
    assert (third.value, third.x.tolist()) == (3.5, [1.0, 0.5, 0.5])
    # Without x: 2 / 2 + 3 * 3 / 2; and from the first basis, of a smaller program, all of it again.
    program.allow(np.array([False, True, True]))
    fourth = program.solve(math.inf)
    assert fourth is not None
    assert (fourth.value, fourth.x.tolist()) == (5.5, [0.0, 1.5, 0.5])
    program.allow(np.array([True, True, True]))
    program.restart(basis)
    last = program.solve(math.inf)
    assert last is not None
    assert (last.value, last.x.tolist()) == (3.5, [1.0, 0.5, 0.5])


def test_rows_are_dropped_and_those_after_them_move_up() -> None:
    program = Growing(np.array([2.0]), np.array([1.0]))
    # x + 3 y, x + y = 2, x <= 1, and then x <= 1/2 and y <= 7/4: 1/2 + 9/2.
    program.add_columns(np.array([1.0, 3.0]), np.array([0, 0, 1]), entries((0, 1), (1, 1), (0, 1)))
    program.add_rows(np.array([0.5, 1.75]), np.array([0, 1]), entries((0, 1), (1, 1)))
    first = program.solve(math.inf)
    assert first is not None
    assert (first.value, first.x.tolist()) == (5.0, [0.5, 1.5])
    basis = program.basis()
    assert [row == BASIC for row in basis.rows] == [False, True, False, True]
    # Without x <= 1/2 it is x <= 1 that is tight again: 1 + 3.
    program.drop_rows(np.array([2]))
    assert program.rows == 3
    program.restart(Basis(basis.columns, [row for number, row in enumerate(basis.rows) if number != 2]))
    second = program.solve(math.inf)
    assert second is not None
    assert (second.value, second.duals.tolist()) == (4.0, [3.0, -2.0, 0.0])
    # Without y <= 7/4 too there is nothing else to tell.
    program.drop_rows(np.array([1, 2]))
    third = program.solve(math.inf)
    assert third is not None
    assert (third.value, third.x.tolist()) == (2.0, [2.0, 0.0])


def test_what_has_no_solution_or_no_number_is_told() -> None:
    program = Growing(np.array([2.0]), np.array([1.0]))
    program.add_columns(np.array([1.0]), np.array([0, 0]), entries((0, 1), (1, 1)))
    assert program.solve(math.inf) is None
    with pytest.raises(ValueError, match="not finite"):
        program.add_columns(np.array([1.0]), np.array([0]), entries((0, math.inf)))
