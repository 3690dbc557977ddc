"""Free cards at a moment that only moves on, against those of a whole profile of time; and passes that give up."""

from __future__ import annotations

import math
import time
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import placement
from placement.heuristics.filling import OutOfTimeError
from placement.scheduling.compile import compile_work
from placement.scheduling.counts import Counted, counted
from placement.scheduling.passes import parallel, present, serial
from placement.scheduling.rising import Rising, rises
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

MODELS = {"A": 1.0, "B": 2.0}
FLAT = {"cluster": 1.0}
SIZE = 4


def drawn(seed: int) -> Snapshot:
    """Return jobs of one or several tasks on nodes of two models, of each of which the first may be in use."""
    rng = Random(seed)
    nodes = tuple(Node(name=name, count=rng.randint(3, 4), gpus=(Gpu(model=name, count=SIZE),)) for name in MODELS)
    jobs = []
    for number in range(rng.randint(1, 8)):
        tasks = rng.randint(1, 3)
        group = TaskGroup(name="w", count=tasks, task=Task(gpus=rng.randint(1, SIZE)))
        duration = Duration(seconds=rng.randint(1, 9), gpu_models=MODELS, levels=FLAT)
        jobs.append(Job(name=f"j{number}", groups=(group,), duration=duration, weight=rng.randint(1, 3)))
    for number, node in enumerate(nodes):
        if rng.random() < 0.6:
            task = RunningTask(group="w", index=0, node=f"{node.name}-0", gpus=tuple(range(rng.randint(1, SIZE))))
            group = TaskGroup(name="w", task=Task(gpus=len(task.gpus)))
            length = Duration(seconds=rng.randint(1, 9), levels=FLAT)
            jobs.append(Job(name=f"r{number}", groups=(group,), duration=length, running=Running(tasks=(task,))))
    return Snapshot(nodes=nodes, jobs=tuple(jobs))


def by_counts(snapshot: Snapshot) -> Counted:
    found = counted(compile_work(snapshot))
    assert found is not None
    return found


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6), st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 7)), max_size=25))
def test_what_fits_now_is_what_fits_in_a_profile(seed: int, asked: list[tuple[int, int]]) -> None:
    work = by_counts(drawn(seed))
    base = present(work)
    assert rises(base)
    whole, now = base.copy(), 0
    rising = Rising(work, base)
    waiting = [job for job in range(work.work.jobs) if job not in work.work.ongoing]
    for later, number in asked:
        now += later
        assert rising.most(now) == whole.most(now)
        job = waiting[number % len(waiting)]
        found = rising.now(job, now)
        assert found == whole.now(job, now)
        if found is not None:
            end, nodes = found
            cards = work.gangs[work.job_class[job]].cards
            rising.take(nodes, cards, now, end)
            whole.take(nodes, cards, now, end)


def test_a_window_that_takes_cards_later_needs_a_profile() -> None:
    """One node of four cards, closed from 3 to 5 s: a job of 2 s starts at 0, a second at 5, and T is 2 + 7."""
    group = TaskGroup(name="w", task=Task(gpus=SIZE))
    jobs = (Job(name="j", count=2, groups=(group,), duration=Duration(seconds=2, levels=FLAT)),)
    nodes = (Node(name="A", gpus=(Gpu(model="A", count=SIZE),)),)
    windows = (Reservation(name="upkeep", start=3.0, end=5.0, nodes=("A",)),)
    snapshot = Snapshot(nodes=nodes, jobs=jobs, reservations=windows)
    work = by_counts(snapshot)
    assert not rises(present(work))
    found = parallel(work, range(2), present(work))
    assert [(start, end) for _, start, end, _ in found.starts] == [(0, 2000), (5000, 7000)]
    assert found.value == 9000 == 1000 * placement.schedule(snapshot).value


@pytest.mark.parametrize("make", [serial, parallel])
def test_a_pass_gives_up_when_its_time_is_over(make: object) -> None:
    assert callable(make)
    work = by_counts(drawn(1))
    waiting = [job for job in range(work.work.jobs) if job not in work.work.ongoing]
    with pytest.raises(OutOfTimeError):
        make(work, waiting, present(work), time.monotonic() - 1)
    assert len(make(work, waiting, present(work), math.inf).starts) == len(waiting)
