"""Lower bounds on weighted completion time: by hand, never above what exhaustive search finds, model against arrays."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from placement.exact.milp import arrays, highs
from placement.models import time as time_model
from placement.scheduling.bounds.area import area_bound, trivial_bound
from placement.scheduling.bounds.grid import best_bound, columns_of, grid, grid_bound, prices_of, program
from placement.scheduling.bounds.modes import Kind, Mode, Relaxation, relaxation
from placement.scheduling.bounds.prices import Prices, priced
from placement.scheduling.compile import compile_work
from placement.scheduling.desk import Desk
from placement.scheduling.left_out import perhaps_left_out
from placement.scheduling.loop import Loop
from placement.scheduling.work import Work
from placement.snapshot import (
    Duration,
    Gpu,
    Job,
    Node,
    Reservation,
    Running,
    RunningTask,
    Snapshot,
    Task,
    TaskGroup,
)


def job(name: str, cards: int, seconds: float, weight: int = 1, **more: Any) -> Job:
    group = TaskGroup(name="g", count=cards, task=Task(gpus=1))
    return Job(name=name, groups=(group,), duration=Duration(seconds=seconds), weight=weight, **more)


def on(cards: int, *jobs: Job) -> Work:
    """Return the work of some jobs on one node."""
    node = Node(name="n", gpus=(Gpu(model="A", count=cards),))
    return compile_work(Snapshot(time=0.0, nodes=(node,), jobs=jobs))


# --- by hand -------------------------------------------------------------------------------------------------


def test_area_bound_is_exact_on_one_card() -> None:
    # Smith's rule: a (1 s) ends at 1, b (2 s) at 3: 1 + 3 = 4 s; the trivial bound is 1 + 2.
    relaxed = relaxation(on(1, job("b", 1, 2), job("a", 1, 1)))
    assert trivial_bound(relaxed) == 3000
    assert area_bound(relaxed) == 4000


def test_area_bound_with_releases_is_served_by_weight_over_area() -> None:
    # One card; a: 4 s from 0, weight 1; b: 2 s from 1, weight 3. b is served in [1, 3): M_b = 2; a in [0, 1) and
    # [3, 6): M_a = (1 * 0.5 + 3 * 4.5) / 4 = 3.5. 1 * (3.5 + 2) + 3 * (2 + 1) - 3 * 1 = 11.5.
    work = on(1, job("a", 1, 4), job("b", 1, 2, 3, submit_time=1.0))
    assert area_bound(relaxation(work)) == 11500


def test_prices_prove_the_optimum_of_two_jobs_on_one_card() -> None:
    # a: 1 s, b: 2 s, weight 1. At a price of 1/2 in [0, 2) and nothing later: a costs min(1 + 1/2, 2 + 1/2, 3) = 1.5,
    # b min(2 + 1, 3 + 1/2, 4) = 3, and what there is costs 1: 3.5 of 4.
    relaxed = relaxation(on(1, job("a", 1, 1), job("b", 1, 2)))
    assert priced(relaxed, Prices(np.array([0, 2000]), np.array([[0.5]]))).bound == 3500
    assert priced(relaxed, Prices(np.array([0, 2000]), np.array([[-7.0]]))).bound == 3000


def test_parts_of_a_job_that_may_be_stopped_are_priced_where_they_are_done() -> None:
    # 2 s on one card, weight 1, that is stopped and goes on: half of 2 s, and at a price of 3/4 in [0, 1) the cheapest
    # moment is 1: 1 + 0 against 0 + 1.5. What there is costs 0.75: 1 + 1 - 0.75 = 1.25.
    relaxed = relaxation(on(1, job("a", 1, 2, preemptible=True, checkpoint_interval=1.0)))
    assert not relaxed.kinds[0].whole
    assert priced(relaxed, Prices(np.array([0, 1000]), np.array([[0.75]]))).bound == 1250
    # Nothing is kept of less than a checkpoint; far from its NICs at the widest level it would take 5.88 s.
    assert relaxation(on(1, job("a", 1, 2, preemptible=True, checkpoint_interval=6.0))).kinds[0].whole


def test_prices_that_would_not_fit_64_bits_prove_the_trivial_bound() -> None:
    relaxed = relaxation(on(1, job("a", 1, 1), job("b", 1, 2)))
    assert priced(relaxed, Prices(np.array([0, 10**15]), np.array([[1e9]]))).bound == 3000


def test_what_running_jobs_hold_is_not_there() -> None:
    def runs(name: str, cards: tuple[int, ...], seconds: float | None, preemptible: bool = False) -> Job:
        tasks = tuple(RunningTask(group="g", index=i, node="n", gpus=(card,)) for i, card in enumerate(cards))
        duration = None if seconds is None else Duration(seconds=seconds)
        group = TaskGroup(name="g", count=len(cards), task=Task(gpus=1))
        running = Running(tasks=tasks, since=-1.0)
        return Job(name=name, groups=(group,), duration=duration, running=running, preemptible=preemptible)

    work = on(6, runs("ever", (0,), None), runs("ends", (1, 2), 4), runs("may", (3,), 3, True), job("a", 6, 2))
    relaxed = relaxation(work, out={3})
    assert relaxed.profiles[0].times.tolist() == [0, 3000]
    assert relaxed.profiles[0].units.tolist() == [3, 5]
    (kind,) = relaxed.kinds
    # 1 of 3 s is done; nothing of it is kept, but for the bound all of it.
    assert (kind.kept, kind.modes, kind.stopped) == (Mode(2000, ((0, 1),)), (Mode(2000, ((0, 1),)),), 2000)
    assert relaxed.profiles[0].total(np.array([0, 1000, 4000])) == [0, 3000, 14000]


def test_a_window_for_nobody_takes_cards() -> None:
    nodes = tuple(Node(name=name, gpus=(Gpu(model="A", count=2),)) for name in "nm")
    window = Reservation(name="w", nodes=("n",), start=5.0, end=9.0)
    work = compile_work(Snapshot(time=0.0, nodes=nodes, jobs=(job("a", 1, 1),), reservations=(window,)))
    (profile,) = relaxation(work).profiles
    assert (profile.times.tolist(), profile.units.tolist()) == ([0, 5000, 9000], [4, 2, 4])


def test_modes_of_an_elastic_gang_are_those_that_pay() -> None:
    # 2 to 4 tasks of 12 s at full speed; with 2 at half of it, with 3 at 0.4: 24 s on 2 cards, 30 s on 3, 12 s on 4.
    group = TaskGroup(name="g", count=4, min_count=2, task=Task(gpus=1))
    duration = Duration(seconds=12, scaling=((2, 0.5), (3, 0.4)), gpu_models={"B": 0.5})
    nodes = (Node(name="n", gpus=(Gpu(model="A", count=4),)), Node(name="m", gpus=(Gpu(model="B", count=4),)))
    work = compile_work(Snapshot(time=0.0, nodes=nodes, jobs=(Job(name="a", groups=(group,), duration=duration),)))
    found = relaxation(work).kinds[0].modes
    on_a = (Mode(12000, ((0, 4),)), Mode(24000, ((0, 2),)))
    assert found == (*on_a, Mode(6000, ((1, 4),)), Mode(12000, ((1, 2),)))


def test_a_job_too_wide_for_a_node_does_not_run_as_fast_as_in_one() -> None:
    nodes = tuple(Node(name=name, gpus=(Gpu(model="A", count=2),)) for name in "nm")
    jobs = (job("wide", 3, 2), job("not", 2, 2))
    kinds = relaxation(compile_work(Snapshot(time=0.0, nodes=nodes, jobs=jobs))).kinds
    assert [kind.modes[0].run for kind in kinds] == [3000, 2000]


def test_tasks_of_more_than_half_a_node_count_for_all_of_it() -> None:
    # Nodes of 4 cards: 3 cards are both halves, 2 cards one. Where no task leaves some of a node it is all the same.
    def work(*sizes: int) -> Work:
        groups = [TaskGroup(name="g", count=2, task=Task(gpus=size)) for size in sizes]
        jobs = tuple(Job(name=f"j{i}", groups=(group,), duration=Duration(seconds=1)) for i, group in enumerate(groups))
        node = Node(name="n", count=3, gpus=(Gpu(model="A", count=4),))
        return compile_work(Snapshot(time=0.0, nodes=(node,), jobs=jobs))

    relaxed = relaxation(work(1, 2, 3, 4))
    assert [profile.units.tolist() for profile in relaxed.profiles] == [[12], [6]]
    assert [dict(kind.modes[0].uses).get(1, 0) for kind in relaxed.kinds] == [0, 2, 4, 4]
    assert len(relaxation(work(1, 2, 4)).profiles) == 1


def test_halves_of_nodes_prove_that_jobs_run_one_after_another() -> None:
    # Three jobs of 3 cards for 1 s on a node of 4 end at 1, 2 and 3. Their cards are served at 4 a second in [0, 2.25):
    # sum of M = 4 / 3 * 2.25^2 / 2 = 3.375, and 3 / 2 on top.
    group = TaskGroup(name="g", task=Task(gpus=3))
    jobs = (Job(name=f"j{i}", groups=(group,), duration=Duration(seconds=1)) for i in range(3))
    work = on(4, *jobs)
    assert area_bound(relaxation(work)) == 4875
    assert 5950 <= grid_bound(work, 1.0, 100).bound <= 6000


def test_a_job_waits_for_those_it_comes_after() -> None:
    work = on(2, job("a", 1, 2), job("b", 1, 3, after=("a",), submit_time=1.0))
    kinds = relaxation(work).kinds
    assert [(kind.release, kind.start) for kind in kinds] == [(0, 0), (1000, 2000)]
    assert trivial_bound(relaxation(work)) == 2000 + 4000


def test_starts_on_the_grid() -> None:
    # Two jobs alike and a short heavy one on one card: the heavy one starts first, then one of the others, then both.
    work = on(1, job("a", 1, 2, count=2), job("b", 1, 1, 5))
    found = grid_bound(work, 1.1, 250)
    assert found.bound <= 5000 + 3000 + 5000
    assert found.bound >= 12900
    mean, half = found.mean, found.at(0.5)
    assert mean[2] < mean[0] < mean[1]
    assert half[2] <= half[0] <= half[1]
    assert best_bound(work, deadline=0.0).bound == area_bound(relaxation(work)) == 13000


def test_nothing_to_do() -> None:
    work = on(1, Job(name="a", groups=(TaskGroup(name="g", task=Task()),), duration=Duration(seconds=2)))
    assert best_bound(work).bound == 2000
    assert best_bound(work, out={0}).bound == 0
    assert best_bound(on(1, job("a", 1, 0))).bound == 0


def test_jobs_that_may_be_left_out() -> None:
    # a has a hard deadline and weight 2, b comes after a and c after b; d never starts; e has a deadline and weight 0.
    hard = {"deadline": 9.0, "hard_deadline": True}
    jobs = (job("a", 1, 1, 2, **hard), job("b", 1, 1, 5, after=("a",)), job("c", 1, 1, after=("b",)), job("d", 9, 1))
    work = on(1, *jobs, job("e", 1, 1, 0, **hard))
    assert perhaps_left_out(work, {3}, 0) == {3, 4}
    assert perhaps_left_out(work, {3}, 1) == {3, 4}
    assert perhaps_left_out(work, {3}, 2) == {0, 1, 2, 3, 4}


def test_a_hard_deadline_is_the_latest_start() -> None:
    # a, of weight 1, has to end by 2 s. At a price of 2 in [0, 2) it cannot wait until it is cheaper: 1 + 2, less 4.
    work = on(1, job("a", 1, 1, deadline=2.0, hard_deadline=True), job("b", 1, 2))
    (kind, _) = relaxation(work).kinds
    assert kind.due == 2000
    prices = Prices(np.array([0, 2000]), np.array([[2.0]]))
    # b waits until 2 s and costs 4: 3 + 4 - 4.
    assert priced(relaxation(work), prices).bound == 3000


# --- model and arrays ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_the_model_and_the_arrays_agree(seed: int) -> None:
    draw = random.Random(seed)
    jobs = [
        job(f"j{i}", draw.randint(1, 4), draw.randint(1, 9), draw.randint(1, 3), submit_time=float(draw.randint(0, 5)))
        for i in range(4)
    ]
    parts = job("p", 2, 6, 2, preemptible=True, checkpoint_interval=1.0)
    relaxed = relaxation(on(4, *jobs, parts))
    moments = grid(relaxed, 1.3, 1000)
    columns = columns_of(relaxed, moments)
    built = program(relaxed, moments, columns)
    solved = highs.solve(built)
    starts = []
    names = ("kind", "part", "begin", "end", "share", "cost")
    for kind, part, begin, end, share, cost in zip(*(getattr(columns, name).tolist() for name in names), strict=True):
        units = tuple((resource, amount * share) for resource, amount in relaxed.kinds[kind].parts[part].uses)
        starts.append(time_model.Start(kind, begin, end, cost, units))
    there = [[4.0] * (len(moments) - 1)]
    model = time_model.build([kind.count for kind in relaxed.kinds], starts, moments.tolist(), there)
    reference = highs.solve(arrays.program(model))
    assert solved.objective is not None
    scale = np.abs(columns.cost).mean()
    assert solved.objective * scale == pytest.approx(reference.objective, rel=1e-9)
    assert solved.row_duals is not None
    assert reference.row_duals is not None
    found = priced(relaxed, Prices(moments, prices_of(relaxed, moments, columns, solved.row_duals))).bound
    of_rows = -reference.row_duals[len(relaxed.kinds) :] / np.diff(moments)
    assert len(of_rows) == len(moments) - 1
    assert reference.objective is not None
    for bound in (found, priced(relaxed, Prices(moments, of_rows[None, :])).bound):
        assert 0.98 * reference.objective <= bound <= math.ceil(reference.objective)


# --- against exhaustive search -------------------------------------------------------------------------------


@dataclass
class Drawn:
    """A job, and every way in which it can run: units on each of two models, and milliseconds."""

    weight: int
    release: int
    options: list[tuple[int, int, int]]
    job: Job = field(repr=False)


def drawn(draw: random.Random, name: str, room: tuple[int, int]) -> Drawn:
    """Return a job of tasks with one card each, on a node of model A and one of model B."""
    most = draw.randint(1, 3)
    least = draw.randint(1, most)
    seconds, factor = draw.randint(1, 9), draw.choice((0.5, 1.0, 2.0))
    speeds = [draw.choice((0.25, 0.5, 0.75, 1.0)) for _ in range(most - 1)]
    models = draw.choice(((), (), ("A",), ("B",)))
    options = []
    for count in range(least, most + 1):
        for on_a in range(count + 1):
            on_b = count - on_a
            if on_a > room[0] or on_b > room[1] or (models == ("A",) and on_b) or (models == ("B",) and on_a):
                continue
            slow = max([1.0] * (on_a > 0) + [factor] * (on_b > 0))
            speed = 1.0 if count == most else speeds[count - 1]
            options.append((on_a, on_b, math.ceil(1000 * seconds * slow / speed)))
    scaling = tuple((count, speeds[count - 1]) for count in range(1, most))
    duration = Duration(seconds=seconds, gpu_models={"B": factor}, levels={"cluster": 1.0}, scaling=scaling)
    group = TaskGroup(name="g", count=most, min_count=least, task=Task(gpus=1, gpu_models=models))
    weight, release = draw.randint(1, 4), draw.choice((0, 0, draw.randint(0, 6)))
    made = Job(name=name, groups=(group,), duration=duration, weight=weight, submit_time=float(release))
    return Drawn(weight, 1000 * release, options, made)


def least_cost(jobs: list[Drawn], room: tuple[int, int], taken: tuple[int, int]) -> int | None:
    """Return the least weighted completion time: every order, every option, each job as early as it fits.

    Parameters
    ----------
    jobs : list of Drawn
    room : (int, int)
        Cards of each model.
    taken : (int, int)
        Cards of model A that are held, and until when.
    """
    found = None
    for order in itertools.permutations(jobs):
        for options in itertools.product(*(one.options for one in order)):
            placed = [(0, taken[1], taken[0], 0)]
            cost = 0
            for one, (on_a, on_b, run) in zip(order, options, strict=True):
                moments = sorted({one.release, *(end for _, end, _, _ in placed if end > one.release)})
                start = next(moment for moment in moments if fits(placed, room, moment, run, on_a, on_b))
                placed.append((start, start + run, on_a, on_b))
                cost += one.weight * (start + run - one.release)
            found = cost if found is None else min(found, cost)
    return found


def fits(placed: list[tuple[int, int, int, int]], room: tuple[int, int], start: int, run: int, a: int, b: int) -> bool:
    moments = [start, *(begin for begin, _, _, _ in placed if start < begin < start + run)]
    return all(
        sum(one[2] for one in placed if one[0] <= moment < one[1]) + a <= room[0]
        and sum(one[3] for one in placed if one[0] <= moment < one[1]) + b <= room[1]
        for moment in moments
    )


@pytest.mark.parametrize("seed", range(12))
def test_no_bound_is_above_the_optimum(seed: int) -> None:
    draw = random.Random(seed)
    room = (draw.randint(1, 4), draw.randint(0, 2))
    jobs = [one for i in range(draw.randint(1, 3)) if (one := drawn(draw, f"j{i}", room)).options]
    if not jobs:
        return
    nodes = tuple(
        Node(name=name, gpus=(Gpu(model=name, count=cards),)) for name, cards in zip("AB", room, strict=True) if cards
    )
    held = draw.choice((0, 1))
    holder = Job(
        name="r",
        groups=(TaskGroup(name="g", task=Task(gpus=1)),),
        duration=Duration(seconds=3),
        running=Running(tasks=(RunningTask(group="g", index=0, node="A", gpus=(0,)),), since=0.0),
    )
    work = compile_work(Snapshot(time=0.0, nodes=nodes, jobs=(*(one.job for one in jobs), *([holder] * held))))
    optimum = least_cost(jobs, room, (held, 3000))
    assert optimum is not None
    relaxed = relaxation(work)
    assert trivial_bound(relaxed) <= area_bound(relaxed) <= optimum
    found = grid_bound(work, 1.2, 500).bound
    assert area_bound(relaxed) <= found <= optimum
    moments = np.array([0, *sorted(draw.sample(range(1, 20000), 5))])
    price = np.array([[draw.choice((0.0, draw.random(), 2.0)) for _ in range(5)] for _ in relaxed.profiles])
    assert priced(relaxed, Prices(moments, price)).bound <= optimum


# --- against whatever a policy does --------------------------------------------------------------------------


class Fickle:
    """Starts and stops jobs at random."""

    name, period = "fickle", 700

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw

    def decide(self, desk: Desk) -> None:
        """Stop some that run, and start some that wait."""
        late = desk.now > 60_000
        for one in [] if late else list(desk.live):
            if desk.may_stop(one) and self._draw.random() < 0.2:
                desk.stop(one)
        for one in sorted(desk.waiting, key=lambda _: self._draw.random()):
            if late or self._draw.random() < 0.8:
                desk.start(one)


@pytest.mark.parametrize("seed", range(12))
def test_no_schedule_with_stops_is_below_a_bound(seed: int) -> None:
    draw = random.Random(seed)
    jobs, cards = [], 4
    for i in range(draw.randint(1, 5)):
        wide, since, running = draw.randint(1, 2), -draw.randint(0, 4), None
        if cards >= wide and draw.random() < 0.4:
            cards -= wide
            tasks = tuple(RunningTask(group="g", index=k, node="n", gpus=(cards + k,)) for k in range(wide))
            running = Running(tasks=tasks, since=float(since), work_done=draw.choice((None, 0.0, 2.0, 30.0)))
        jobs.append(
            Job(
                name=f"j{i}",
                groups=(TaskGroup(name="g", count=wide, task=Task(gpus=1)),),
                duration=Duration(seconds=draw.randint(1, 8), gpu_models={"B": draw.choice((0.5, 2.0))}),
                weight=draw.randint(0, 3),
                submit_time=float(draw.randint(-3, 5)),
                preemptible=draw.random() < 0.8,
                checkpoint_interval=draw.choice((None, 0.5, 1.0)),
                restart_seconds=draw.choice((0.0, 1.0)),
                running=running,
            )
        )
    nodes = (Node(name="n", gpus=(Gpu(model="A", count=4),)), Node(name="m", gpus=(Gpu(model="B", count=2),)))
    work = compile_work(Snapshot(time=0.0, nodes=nodes, jobs=tuple(jobs)))
    value = min(Loop(Desk(work), Fickle(random.Random(trial))).run().value(work) for trial in range(5))
    relaxed = relaxation(work)
    assert trivial_bound(relaxed) <= area_bound(relaxed) <= grid_bound(work, 1.2, 500).bound <= value


def test_kinds_hold_all_jobs_that_count() -> None:
    relaxed = relaxation(on(4, job("a", 2, 5, count=3), job("b", 2, 5, 2)))
    assert [(kind.jobs, kind.weight) for kind in relaxed.kinds] == [((0, 1, 2), 1), ((3,), 2)]
    assert isinstance(relaxed, Relaxation)
    assert isinstance(relaxed.kinds[0], Kind)
