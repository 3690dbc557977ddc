"""Bounds by inequalities over time and by branching on ends: never above the optimum, and equal where it is settled."""

from __future__ import annotations

import math
import random
import time
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from brute_relaxed import kind, of, random_relaxed, schedules, there
from brute_schedules import optimum, random_schedule_case
from policy_cases import job, node, running
from schedule_cases import Fickle, random_timed_work

import placement as pl
from placement.honoured import refuse_unhonoured_in_time
from placement.scheduling.bounds.branching import Tree
from placement.scheduling.bounds.grid import best_bound, grid
from placement.scheduling.bounds.modes import NO_END, Kind, Mode, Relaxation, relaxation
from placement.scheduling.bounds.multiples import Multiples
from placement.scheduling.bounds.prove import NODES, Proof
from placement.scheduling.bounds.spans import counted_by
from placement.scheduling.bounds.starts import Starts
from placement.scheduling.bounds.tolls import Windows, whole_windows
from placement.scheduling.compile import compile_work
from placement.scheduling.desk import Desk
from placement.scheduling.left_out import perhaps_left_out
from placement.scheduling.loop import Loop
from placement.snapshot import Job, Reservation, Snapshot


def tree_of(relaxed: Relaxation, slots: int = 20) -> Tree:
    """Return the tree over a coarse grid."""
    horizon = int(grid(relaxed, 2.0, 1)[-1])
    return Tree(Starts(relaxed, grid(relaxed, 1.3, max(1, horizon // slots))))


def counts(relaxed: Relaxation) -> bool:
    return any(one.weight and mode.uses for one in relaxed.kinds for mode in one.parts)


def settled(tree: Tree, value: int, nodes: int = 40) -> int:
    """Branch with the value of a schedule known, and return the bound."""
    tree.run(value, lambda _: value, math.inf, nodes)
    return tree.bound


# --- by hand -------------------------------------------------------------------------------------------------


def test_two_gangs_one_after_the_other() -> None:
    # 2 of 3 cards each, for 4 s: they end at 4 and 8. The cards alone would let them run at 3/4 of their speed beside
    # each other.
    relaxed = of([kind(0, 4000, 2), kind(1, 4000, 2)], there((0, 3)))
    tree = tree_of(relaxed)
    assert tree.root()
    assert 11_900 <= tree.bound <= 12_000
    assert settled(tree, 12_000) == 12_000


def test_more_comes_free_while_a_job_runs() -> None:
    # One of 2 cards from 0 for 10 s, one from 5 s on for 10 s; from 6 s on there are 4 cards. The second waits for 1 s:
    # 10 + 11. That both do not fit at 5 says nothing of a moment a little later.
    relaxed = of([kind(0, 10_000, 2), kind(1, 10_000, 2, start=5000)], there((0, 2), (6000, 4)))
    tree = tree_of(relaxed)
    tree.root()
    assert tree.bound <= 21_000
    assert settled(tree, 21_000) == 21_000


def test_a_job_of_no_length_gets_in_nobodys_way() -> None:
    # It is done at 3 s, on all cards, while the other runs: 3 - 3 + 5.
    relaxed = of([kind(0, 5000, 2), kind(1, 0, 2, start=3000)], there((0, 2)))
    tree = tree_of(relaxed)
    tree.root()
    assert tree.bound == 5000


def test_a_deadline_that_turns_the_order_round() -> None:
    # Three jobs of all cards for 2 s. The heaviest would be first, but the lightest must end by 2: 2 + 3 * 4 + 2 * 6.
    jobs = [kind(0, 2000, 2, weight=1, due=2000), kind(1, 2000, 2, weight=3), kind(2, 2000, 2, weight=2)]
    tree = tree_of(of(jobs, there((0, 2))))
    tree.root()
    assert settled(tree, 26_000) == 26_000


def test_bounds_are_rounded_up_to_what_can_be_the_best() -> None:
    # Run times of 4 and 6 ms, from 0 and 2 on, and less at 10: all ends are even. With weights 3 and 6 and a release at
    # 1, the value and 6 are multiples of 6. Jobs that may be stopped end at any time.
    profile = there((0, 4), (10, 3))
    whole = [kind(0, 4, 3, weight=3), Kind((1,), 6, 1, 2, NO_END, (Mode(6, ((0, 3),)),), True)]
    found = Multiples.of(of(whole, profile))
    assert found == Multiples(2, 6, 6)
    assert [found.up(bound) for bound in (-7, -1, 0, 1, 6, 7)] == [-6, 0, 0, 6, 6, 12]
    parted = Kind((2,), 1, 0, 0, NO_END, (Mode(4, ((0, 1),)),), False)
    assert Multiples.of(of([*whole, parted], profile)) == Multiples(1, 1, 6)
    assert Multiples.of(of([kind(0, 0, 1, weight=0)], there((0, 1)))) == Multiples(1, 1, 0)
    # 3 jobs of 3 of 4 cards for 1 s: their areas prove 4.875 s.
    jobs = tuple(job(f"j{n}", 3, 1) for n in range(3))
    work = compile_work(Snapshot(nodes=(node("a", 4),), jobs=jobs))
    assert best_bound(work, deadline=0.0).bound == 5000


def test_a_job_that_ends_after_a_window() -> None:
    # 3 cards, but 1 in [2, 6): a job of 2 for 3 s starts at 6, one of 1 card at 0: 9 + 4.
    relaxed = of([kind(0, 3000, 2), kind(1, 4000, 1)], there((0, 3), (2000, 1), (6000, 3)))
    tree = tree_of(relaxed)
    tree.root()
    assert settled(tree, 13_000) == 13_000


def test_a_value_that_is_not_the_best_is_no_bound() -> None:
    # 12 is the best; with 15 known and no schedule offered that is better, the bound comes to 12 and not beyond.
    tree = tree_of(of([kind(0, 4000, 2), kind(1, 4000, 2)], there((0, 3))))
    tree.root()
    assert settled(tree, 15_000, 200) == 12_000


def test_starts_are_added_once_and_only_where_they_may_be() -> None:
    parted = Kind((1,), 1, 0, 0, NO_END, (Mode(3000, ((0, 1),)),), False)
    relaxed = of([kind(0, 4000, 2), parted], there((0, 3)))
    starts = Starts(relaxed, np.array([0, 2000, 4000, 8000, 16_000]))
    before = len(starts.columns.kind)
    new = np.array([0, 0, 1]), np.zeros(3, dtype=np.int64), np.array([1234, 1234, 777])
    assert starts.add(*new) == 1
    assert starts.add(*new) == 0
    last = {name: getattr(starts.columns, name)[before:].tolist() for name in ("kind", "begin", "end", "cost")}
    assert last == {"kind": [0], "begin": [1234], "end": [5234], "cost": [5234.0]}


def test_windows_shut_starts_out() -> None:
    relaxed = of([kind(0, 4000, 2), kind(1, 4000, 2)], there((0, 3)))
    starts = Starts(relaxed, np.array([0, 2000, 4000, 8000, 16_000]))
    assert whole_windows(relaxed).first.tolist() == [4000, 4000]
    starts.windows = Windows(np.array([4000, 6000]), np.array([4000, 9000]))
    starts.add(np.array([0, 1]), np.zeros(2, dtype=np.int64), np.array([0, 4000]))
    assert starts.solve(math.inf)
    runs = starts.mass > 1e-9
    assert starts.columns.end[runs & (starts.columns.kind == 0)].tolist() == [4000]
    ends = starts.columns.end[runs & (starts.columns.kind == 1)]
    assert ((ends >= 6000) & (ends <= 9000)).all()


@pytest.mark.parametrize("seed", range(12))
def test_a_program_goes_back_to_where_it_was_with_what_was_tight(seed: int) -> None:
    draw = random.Random(seed)
    relaxed = of([kind(job, 1000 * draw.randrange(1, 9), draw.randrange(1, 6)) for job in range(7)], there((0, 6)))
    starts = Starts(relaxed, grid(relaxed, 1.1, 2000))
    assert starts.solve(math.inf)
    while starts.cut((0, 1000), 80):
        assert starts.solve(math.inf)
    value, windows, there_before = starts.value, starts.windows, starts.spans
    spot = starts.spot()
    tight = {span.key for span, _ in spot.tight}
    assert tight < {span.key for span in there_before}
    # elsewhere the first job ends late, and other inequalities are broken
    starts.windows = Windows(windows.first + np.where(np.arange(7) == 0, 9000, 0), windows.last)
    starts.restart(spot)
    assert {span.key for span in starts.spans} == tight
    assert starts.solve(math.inf)
    while starts.cut((0, 1000), 80):
        assert starts.solve(math.inf)
    # back with them, which can only lift the value, and without
    elsewhere = {span.key for span in starts.spans}
    starts.windows = windows
    starts.restart(spot, beside=True)
    assert {span.key for span in starts.spans} == tight | elsewhere
    assert starts.solve(math.inf)
    assert starts.value >= value * (1 - 1e-9)
    starts.restart(spot)
    assert {span.key for span in starts.spans} == tight
    assert starts.solve(math.inf)
    assert starts.value == pytest.approx(value, rel=1e-9)
    # starts that are new since then can only be better, and no bound is above one job after another
    while starts.add(np.arange(7), (said := starts.tolled()).mode, said.start):
        starts.restart(spot)
        assert starts.solve(math.inf)
    assert starts.value <= value * (1 + 1e-9)
    runs = sorted(one.modes[0].run for one in relaxed.kinds)
    assert 0 < starts.tolled().bound <= sum(run * (7 - place) for place, run in enumerate(runs))


# --- against all schedules -----------------------------------------------------------------------------------


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_no_bound_is_above_the_best_schedule(first: int) -> None:
    closed = tried = 0
    for seed in range(first, first + 10):
        draw = random.Random(seed)
        relaxed = random_relaxed(draw)
        if not counts(relaxed):
            continue
        tried += 1
        found = schedules(relaxed)
        best, runs = min(found, key=lambda one: one[0])
        if draw.random() < 0.4:  # the schedule meets these deadlines
            kinds = zip(relaxed.kinds, runs, strict=True)
            late = [
                Kind(one.jobs, one.weight, one.release, one.start, end + draw.choice((0, 1)), one.modes, True)
                for one, (_, end, _) in kinds
            ]
            relaxed = Relaxation(tuple(late), relaxed.profiles, relaxed.cards)
            best = min(value for value, _ in schedules(relaxed))
        tree = tree_of(relaxed)
        assert tree.root()
        assert tree.bound <= best
        # each inequality holds of each schedule
        starts = tree._starts
        for _, some in found:
            begin, end = (np.array([one[side] for one in some]) for side in (0, 1))
            uses = [[bool(dict(one.uses).get(span.resource)) for _, _, one in some] for span in starts.spans]
            counted = counted_by(starts.spans, np.arange(len(some)), begin, end)
            assert ((counted * np.array(uses).reshape(counted.shape)).sum(axis=1) <= mosts(starts) + 1e-9).all()
        value = draw.choice((best, math.ceil(1.2 * best)))
        assert settled(tree, value) <= best
        closed += tree.bound == best
    assert closed >= tried // 3


def mosts(starts: Starts) -> np.ndarray:
    return np.array([span.most for span in starts.spans], dtype=np.float64)


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_no_bound_is_above_the_best_schedule_on_nodes(first: int) -> None:
    # two models, elastic gangs, queues, running jobs that may be stopped
    for seed in range(first, first + 10):
        snapshot = random_schedule_case(seed)
        found = optimum(snapshot)
        assert found is not None
        best, never = found
        work = compile_work(snapshot)
        relaxed = relaxation(work, {number for number, one in enumerate(snapshot.jobs) if one.name in never})
        if not counts(relaxed):
            continue
        alone = tuple(one_job(one, number) for one in relaxed.kinds for number in one.jobs)
        tree = tree_of(Relaxation(alone, relaxed.profiles, relaxed.cards))
        tree.root()
        assert tree.bound <= best
        assert settled(tree, best, 20) <= best


def one_job(one: Kind, number: int) -> Kind:
    return Kind((number,), one.weight, one.release, one.start, one.due, one.modes, one.whole, one.kept, one.stopped)


def test_without_a_clock_nodes_go_by_jobs_also_where_these_are_alike() -> None:
    # 30 jobs that are one kind; of a value that nothing reaches no node is closed
    jobs = tuple(job(f"j{number}", 2, 7) for number in range(30))
    work = compile_work(Snapshot(nodes=(node("n", 3),), jobs=jobs))
    proof = Proof(work, math.inf, (), 0)
    assert proof.root(math.inf)
    seen: list[int] = []

    def offer(means: dict[int, float]) -> int:
        seen.append(len(means))
        return 1 << 50

    proof.branch(1 << 50, offer, math.inf)
    assert (len(seen), set(seen)) == (NODES // 30, {30})


def _known(value: int, _: dict[int, float]) -> int:
    return value


@pytest.mark.parametrize("seed", range(12))
def test_no_schedule_of_whatever_policy_is_below_a_proof(seed: int) -> None:
    # MIG and fractions, topology, jobs that come after others, hard deadlines, nodes set aside, stops
    snapshot = random_timed_work(seed)
    work = compile_work(refuse_unhonoured_in_time(snapshot))
    tables = [Loop(Desk(work), Fickle(trial)).run() for trial in range(2)]
    for table in tables:
        never = table.never | set(table.quota)
        proof = Proof(work, time.monotonic(), perhaps_left_out(work, never, table.left_out(work)), 0)
        value = table.value(work)
        if proof.branches and proof.root(math.inf):
            proof.branch(value, partial(_known, value), time.monotonic() + 0.1)
        assert proof.bound <= value


# --- all of it -----------------------------------------------------------------------------------------------


def lab(seed: int) -> Snapshot:
    """Return wide and narrow jobs that come over time, on two nodes, one of them shut for a while."""
    draw = random.Random(seed)
    cards, weights = (1, 3, 4), (0, 1, 2, 3)
    jobs = [
        job(
            f"j{n}",
            draw.choice(cards),
            draw.randint(1, 40),
            weight=draw.choice(weights),
            submit_time=draw.randint(0, 20),
        )
        for n in range(9)
    ]
    jobs.append(running(job("old", 2, 12, weight=2), "a", (0, 1), since=-3.0))
    aside = Reservation(name="w", nodes=("b",), start=30.0, end=45.0)
    return Snapshot(nodes=(node("a", 4), node("b", 4)), jobs=tuple(jobs), reservations=(aside,))


def one_by_one(jobs: list[Job]) -> int:
    """Return the least value of jobs of which no two run at once: by run time over weight (Smith, 1956)."""
    now = value = 0
    for one in sorted(jobs, key=lambda one: Fraction(length(one), one.weight)):
        now += length(one)
        value += one.weight * now
    return value


def length(one: Job) -> int:
    assert one.duration is not None
    return round(1000 * one.duration.seconds)


def gangs(seed: int, count: int) -> list[Job]:
    """Return jobs that each take 3 cards."""
    draw = random.Random(seed)
    return [job(f"j{n}", 3, draw.randint(1, 9), weight=draw.randint(1, 3)) for n in range(count)]


def test_branching_proves_what_a_grid_does_not() -> None:
    # Gangs of 3 of 4 cards, and one job of 200 s that fits beside all of them.
    jobs = gangs(0, 11)
    snapshot = Snapshot(nodes=(node("a", 4),), jobs=(*jobs, job("thin", 1, 200)))
    proof = Proof(compile_work(snapshot), math.inf, (), 0)
    value = one_by_one(jobs) + 200_000
    assert proof.bound < value
    assert proof.branches
    assert proof.root(math.inf)
    proof.branch(value, lambda _: value, math.inf)
    assert proof.bound == value


def test_the_same_call_gives_the_same_schedule_and_bound() -> None:
    # 17 gangs are too many for all orders to be tried.
    jobs = gangs(3, 17)
    found = [pl.schedule(Snapshot(nodes=(node("a", 4),), jobs=tuple(jobs))) for _ in range(2)]
    first, second = ((one.value, one.bound, one.status, one.stretches, one.tasks) for one in found)
    assert first == second
    assert first[:3] == (one_by_one(jobs) / 1000, one_by_one(jobs) / 1000, "proven")


def test_the_same_branching_gives_the_same_bound_and_starts() -> None:
    relaxed = relaxation(compile_work(lab(3)))
    told: list[list[dict[int, float]]] = [[], []]
    bounds = []
    for means in told:
        tree = tree_of(relaxed)
        assert tree.root()

        def offer(starts: dict[int, float], means: list[dict[int, float]] = means) -> int:
            means.append(starts)
            return 10**9

        tree.run(10**9, offer, math.inf, 8)
        bounds.append(tree.bound)
    assert bounds[0] == bounds[1]
    assert told[0] == told[1]
    assert len(told[0]) == 8


@pytest.mark.parametrize("limit", [0.01, 0.05, 0.3])
def test_a_short_time_is_enough_for_some_schedule_and_bound(limit: float) -> None:
    found = pl.schedule(lab(1), time_limit=limit)
    assert found.bound is not None
    assert 0 < found.bound <= found.value
    assert pl.check(lab(1), found) == []


def test_a_proof_that_has_no_time_says_what_it_has() -> None:
    proof = Proof(compile_work(lab(1)), 0.0, (), 0)
    before = proof.bound
    assert before > 0
    assert not proof.root(0.0)
    assert not proof.open
    proof.branch(10**9, lambda _: 10**9, 0.0)
    assert proof.bound == before


def test_weights_and_times_of_all_sizes_stay_in_64_bits() -> None:
    years = 315_360_000.0
    jobs = [job(f"j{n}", 3, (0.001, years)[n % 2], weight=(10**6, 1, 10**9)[n % 3]) for n in range(6)]
    value = one_by_one(jobs)
    proof = Proof(compile_work(Snapshot(nodes=(node("a", 4),), jobs=tuple(jobs))), time.monotonic(), (), 0)
    assert proof.root(math.inf)
    assert Fraction(9, 10) * value <= proof.bound <= value
    proof.branch(value, lambda _: value, time.monotonic() + 0.3)
    assert proof.bound <= value
