"""Schedules on cards of several models: what jobs lose on which, starts near the best, moves from one to another."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest

from placement.exact.milp.highs import solve
from placement.scheduling.bounds.columns import chosen
from placement.scheduling.bounds.grid import FIRST, OPTIONS, bound_of, columns_of, grid, grid_bound, program
from placement.scheduling.bounds.modes import NO_END, Kind, Mode, Relaxation, relaxation
from placement.scheduling.bounds.near import near
from placement.scheduling.bounds.prices import Prices, losses, priced
from placement.scheduling.bounds.prove import Proof
from placement.scheduling.capacity import Profile
from placement.scheduling.compile import compile_work
from placement.scheduling.counts import Counted, counted
from placement.scheduling.desk import Desk
from placement.scheduling.moves.improve import Improver
from placement.scheduling.moves.switches import LATER, Switches
from placement.scheduling.orders import by_weighted_area
from placement.scheduling.passes import Pass, ordered, parallel, present
from placement.scheduling.work import Work
from placement.snapshot import Duration, Gpu, Job, Node, Snapshot, Task, TaskGroup


def load(gangs: int, seed: int, most: int = 3000) -> Work:
    """Return gangs on two nodes of each of three models, of which one is twice and one half as fast as the third."""
    rng = Random(seed)
    jobs = []
    for number in range(gangs):
        tasks, cards = rng.choice([(1, 1), (1, 2), (1, 4), (1, 8), (2, 8)])
        jobs.append(
            Job(
                name=f"j{number}",
                groups=(TaskGroup(name="w", count=tasks, task=Task(gpus=cards)),),
                duration=Duration(
                    seconds=float(rng.randint(60, most)), levels={"cluster": 1.0}, gpu_models={"F": 0.5, "S": 2.0}
                ),
                weight=rng.choice([1, 2, 4]),
                submit_time=float(rng.randint(0, most)),
            )
        )
    nodes = tuple(Node(name=model.lower(), count=2, gpus=(Gpu(model=model, count=8),)) for model in "FMS")
    return compile_work(Snapshot(time=0.0, nodes=nodes, jobs=tuple(jobs)))


def first(work: Work) -> tuple[Counted, Pass]:
    by_counts = counted(work)
    assert by_counts is not None
    order = ordered(range(work.jobs), by_weighted_area, Desk(work))
    return by_counts, parallel(by_counts, order, present(by_counts))


# --- prices --------------------------------------------------------------------------------------------------


def two_modes() -> Relaxation:
    """Return a job of weight 2 that takes 1 s of a card of the first model, or 3 s of one of the second."""
    modes = (Mode(1000, ((0, 1),)), Mode(3000, ((1, 1),)))
    kind = Kind(jobs=(7,), weight=2, release=0, start=0, due=NO_END, modes=modes, whole=True)
    always = Profile(np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64))
    return Relaxation((kind,), (always, always), 2)


def test_losses_without_prices_are_of_run_times() -> None:
    # 2 x 3,000 against 2 x 1,000
    prices = Prices(np.array([0, 10_000]), np.zeros((2, 1)))
    assert losses(two_modes(), prices) == {7: {1000: 0.0, 3000: 4000.0}}


def test_losses_on_dear_cards() -> None:
    # On the first model 2 x 1,000 + 5 x 1,000 at once, or 2 x 11,000 when it costs nothing; on the second 2 x 3,000.
    prices = Prices(np.array([0, 10_000]), np.array([[5.0], [0.0]]))
    assert losses(two_modes(), prices) == {7: {1000: 1000.0, 3000: 0.0}}


# --- starts near the best --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(2))
def test_starts_near_the_best_have_a_schedule(seed: int) -> None:
    relaxed = relaxation(load(20, seed))
    assert bound_of(relaxed, 0.0).prices is None  # no time for any grid
    fine = grid(relaxed, 1.1, FIRST)
    found = bound_of(relaxed, float("inf"))
    assert found.prices is not None
    assert priced(relaxed, found.prices).bound <= found.bound
    every = columns_of(relaxed, fine)
    which = near(relaxed, found.prices, 0.05, fine, every.kind, every.part, every.begin, every.end, every.cost)
    assert 0 < which.sum() < len(which)
    some = chosen(every, which)
    assert set(some.kind.tolist()) == set(range(len(relaxed.kinds)))
    all_, few = (solve(program(relaxed, fine, one), options=OPTIONS) for one in (every, some))
    assert all_.x is not None
    assert few.x is not None
    least = [float(one.x[: len(columns.cost)] @ columns.cost) for one, columns in ((all_, every), (few, some))]  # type: ignore[index]
    # fewer starts are never better; interior points leave about 1e-8
    assert least[1] >= least[0] * (1 - 1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_finer_grids_prove_more_and_no_more_than_there_is(seed: int) -> None:
    work = load(15, seed)
    relaxed = relaxation(work)
    by_counts, found = first(work)
    improver = Improver.of(by_counts, present(by_counts), found.starts, seed)
    assert improver is not None
    best = improver.run(lambda moves: moves / 300)
    bound = bound_of(relaxed, float("inf")).bound
    assert grid_bound(work, 1.2, FIRST).bound <= bound <= best.value


def test_many_jobs_of_several_modes_are_not_branched_on() -> None:
    few, many = (Proof(load(jobs, 0, 600), 0.0, (), 0) for jobs in (20, 90))
    assert few.branches
    assert not many.branches


# --- moves from one model to another ---------------------------------------------------------------------------


def test_jobs_are_drawn_by_what_they_lose() -> None:
    by_counts, _ = first(load(6, 1))
    jobs = [job for job in range(6) if len(by_counts.gangs[by_counts.job_class[job]].kinds) == 3]
    runs = {job: [kind.least for kind in by_counts.gangs[by_counts.job_class[job]].kinds] for job in jobs}
    # the second kind costs nothing more, and the third half of what is drawn often
    lost = {job: {each[0]: 0.0, each[1]: 0.0, each[2]: 1000.0} for job, each in runs.items()}
    switches = Switches(by_counts, jobs, lost, 1000.0)
    kinds = dict.fromkeys(jobs, 0)
    rng = Random(0)
    drawn = Counter(switches.draw(kinds, rng)[1] for _ in range(2000))
    # weights 1 and 1 / (1 + 20^2)
    assert drawn[0] == 0
    assert drawn[1] > 1950 > 50 > drawn[2]
    assert Counter(switches.partner([(jobs[0], 1), (jobs[1], 2)], rng)[1] for _ in range(500))[1] > 480


def test_starts_on_other_cards_are_after_the_release() -> None:
    work = load(6, 2)
    by_counts, _ = first(work)
    switches = Switches(by_counts, range(6), {}, 1.0)
    rng = Random(1)
    for job in range(6):
        release = by_counts.release[job]
        kinds = by_counts.gangs[by_counts.job_class[job]].kinds
        span = (release + 5000, release + 5000 + kinds[0].least)
        last = len(kinds) - 1
        same = max(release, span[1] - kinds[last].least)
        most = max(span[0], release + LATER * (same - release))
        starts = [switches.start(job, span, last, rng) for _ in range(200)]
        assert all(release <= start <= most for start in starts)
        assert {span[0], same} <= set(starts)


@pytest.mark.parametrize("seed", range(2))
def test_moves_keep_schedules_that_can_be_had(seed: int) -> None:
    work = load(30, seed)
    by_counts, found = first(work)
    lost = Proof(work, float("inf"), (), 0).losses()
    assert set(lost) == set(range(30))
    base = present(by_counts)
    twice = []
    for _ in range(2):
        improver = Improver.of(by_counts, base, found.starts, seed, lost)
        assert improver is not None
        twice.append(improver.run(lambda moves: moves / 1500))
    best = twice[0]
    assert best.starts == twice[1].starts
    assert best.value <= found.value
    assert {job for job, *_ in best.starts} == set(range(30))
    value = 0
    for job, start, end, nodes in best.starts:
        kind = by_counts.gangs[by_counts.job_class[job]].kinds[by_counts.kind_of(job, nodes)]
        assert start >= by_counts.release[job]
        assert end - start == kind.least
        value += by_counts.weight[job] * (end - by_counts.release[job])
    assert value == best.value
    for _, now, _, _ in best.starts:
        held: Counter[int] = Counter()
        for job, start, end, nodes in best.starts:
            if start <= now < end:
                gang = by_counts.gangs[by_counts.job_class[job]]
                for node, tasks in nodes:
                    held[node] += tasks * gang.cards
        assert max(held.values()) <= 8
