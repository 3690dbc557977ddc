"""Jobs moved in a process beside: the same as here, until it is told to hurry; one that fails is done without."""

from __future__ import annotations

import math
import os
import signal
import time
from random import Random

import pytest
from worker_cases import kill_all, solvers

import placement
from placement.exact import pool
from placement.exact.child import Done
from placement.exact.handover import BEAT
from placement.scheduling.beside import LEAST, Aside, Beside
from placement.scheduling.compile import compile_work
from placement.scheduling.counts import counted
from placement.scheduling.desk import Desk
from placement.scheduling.moving import Movable, Turns, move
from placement.scheduling.passes import FIRST, Pass, ordered, parallel, present
from placement.snapshot import Duration, Gpu, Job, Node, Snapshot, Task, TaskGroup
from placement.solver import Limits

TWO_CORES = pytest.mark.skipif(
    hasattr(os, "sched_getaffinity") and len(os.sched_getaffinity(0)) < 2, reason="a process beside takes another core"
)


def drawn(seed: int, jobs: int = 25) -> Snapshot:
    """Return gangs of 1 to 8 cards on two nodes of 4."""
    rng = Random(seed)
    return Snapshot(
        nodes=(Node(name="n", count=2, gpus=(Gpu(model="A", count=4),)),),
        jobs=tuple(
            Job(
                name=f"j{number}",
                weight=rng.randint(1, 4),
                groups=(TaskGroup(name="w", count=tasks, task=Task(gpus=4 if tasks == 2 else rng.randint(1, 4))),),
                duration=Duration(seconds=rng.randint(1, 100), levels={"cluster": 1.0}),
            )
            for number, tasks in enumerate(rng.choice([1, 1, 2]) for _ in range(jobs))
        ),
    )


def begun(snapshot: Snapshot) -> tuple[Movable, Pass]:
    """Return jobs to move, and the schedule of a simple order."""
    work = compile_work(snapshot)
    by_counts = counted(work)
    assert by_counts is not None
    base = present(by_counts)
    order = ordered(range(work.jobs), FIRST[-1], Desk(work))
    return Movable(by_counts, base, {}), parallel(by_counts, order, base, math.inf)


def answer(beside: Beside) -> Pass:
    """Return what a process has found that is not told to hurry."""
    assert beside._process is not None
    item: object = BEAT
    while item is BEAT:
        item = beside._process.channel.receive(60.0)
    assert isinstance(item, Done)
    assert isinstance(item.result, Pass)
    return item.result


@TWO_CORES
@pytest.mark.parametrize("onward", [True, False])
def test_what_is_moved_beside_is_moved_as_here(onward: bool) -> None:
    what, first = begun(drawn(1))
    turns = Turns(first, 7, 3, onward, most=300)
    offered: list[int] = []
    here = move(what, turns, Limits(), lambda: False, lambda found: offered.append(found.value))
    assert here is not None
    assert here.value < first.value
    assert here.value == min(offered)
    beside = Beside(Limits(time.monotonic() + 100))
    try:
        beside.begin(Aside(what, turns, Limits(), 0))
        there = answer(beside)
    finally:
        beside.close()
    assert (there.value, sorted(there.starts)) == (here.value, sorted(here.starts))


@TWO_CORES
def test_a_process_told_to_hurry_gives_what_it_has() -> None:
    what, first = begun(drawn(2))
    beside = Beside(Limits(time.monotonic() + 100))
    try:
        for _ in range(3):
            beside.begin(Aside(what, Turns(first, 0), Limits(), 0))
            found = beside.end(Limits(), patience=60.0)
            assert found is not None
            assert found.value <= first.value
    finally:
        beside.close()


def test_what_is_good_enough_ends_it() -> None:
    what, first = begun(drawn(3))
    found = Aside(what, Turns(first, 0), Limits(), first.value - 1).run(lambda _: None, lambda: False)
    assert found is not None
    assert found.value < first.value
    assert Aside(what, Turns(first, 0), Limits(), first.value).run(lambda _: None, lambda: False) == first
    assert Aside(what, Turns(first, 0), Limits(), 0).run(lambda _: None, lambda: True) == first


@TWO_CORES
def test_an_undisturbed_process_is_not_ready_before_its_time() -> None:
    what, first = begun(drawn(4))
    beside = Beside(Limits(time.monotonic() + 100))
    try:
        assert beside.ready
        end = time.monotonic() + 1.5
        beside.begin(Aside(what, Turns(first, 0), Limits(end), 0), undisturbed=True)
        assert not beside.ready or time.monotonic() >= end
        time.sleep(max(0.0, end - time.monotonic()))
        assert beside.ready
        beside.end(Limits())
    finally:
        beside.close()


@TWO_CORES
def test_a_process_that_dies_is_done_without() -> None:
    what, first = begun(drawn(5))
    beside = Beside(Limits(time.monotonic() + 100))
    try:
        beside.begin(Aside(what, Turns(first, 0), Limits(), 0))
        assert beside._process is not None
        os.kill(beside._process.pid, signal.SIGKILL)
        assert beside.end(Limits()) is None
        beside.begin(Aside(what, Turns(first, 0), Limits(), 0))
        assert beside.end(Limits()) is None
        assert beside.ready
    finally:
        beside.close()


def test_short_searches_have_none() -> None:
    kill_all()
    for limits in (Limits(), Limits(time.monotonic() + LEAST / 2)):
        beside = Beside(limits)
        assert beside._process is None
        assert solvers() == set()
        beside.close()


@TWO_CORES
def test_a_schedule_whose_process_is_killed_is_as_good_as_it_gets_alone() -> None:
    kill_all()
    killed: set[int] = set()

    def report(value: float | None, bound: float | None, phase: str) -> None:
        for pid in solvers() - killed:
            os.kill(pid, signal.SIGKILL)
            killed.add(pid)

    snapshot = drawn(6, 40)
    found = placement.schedule(snapshot, time_limit=LEAST + 1, report=report)
    assert killed
    assert placement.check(snapshot, found) == []
    assert found.bound is not None
    assert found.bound <= found.value <= placement.schedule(snapshot, solver="fifo").value
    pool.pool.close()
