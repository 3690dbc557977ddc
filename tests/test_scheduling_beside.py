"""Jobs moved in a process beside: the same as here, until it is told to hurry; one that fails is done without."""

from __future__ import annotations

import contextlib
import math
import os
import pickle
import signal
import time
from fractions import Fraction
from random import Random

import pytest
from msgspec.structs import replace
from worker_cases import is_gone, kill_all, solvers, wait_until, warm_one

import placement
from placement.exact.processes import pool
from placement.scheduling.compile import compile_work
from placement.scheduling.counts import counted
from placement.scheduling.desk import Desk
from placement.scheduling.moves.beside import LEAST, Aside, Beside
from placement.scheduling.moves.improve import Improver
from placement.scheduling.moves.moving import Movable, Turns, move
from placement.scheduling.passes import FIRST, Pass, ordered, parallel, present
from placement.scheduling.progress import silent
from placement.scheduling.search import _Best
from placement.scheduling.search import _Search as Search
from placement.snapshot import Duration, Gpu, Job, Node, Running, RunningTask, Snapshot, Task, TaskGroup
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
    (found,) = beside._heard(beside._process, 60.0)
    return found


def has_begun(beside: Beside) -> bool:
    """Return whether a process is at what it was asked for, if it has not answered already."""
    assert beside._process is not None
    assert beside._heard(beside._process, 0.0) == []
    return beside._begun


class Unsendable(float):
    """A number that raises an error when it is to be sent."""

    error: type[BaseException] = MemoryError

    def __reduce__(self) -> str:
        raise self.error


class Interrupted(Unsendable):
    error = KeyboardInterrupt


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
        beside.begin(Aside(what.bare(), turns, Limits(), 0))
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
            assert wait_until(lambda: has_begun(beside))
            (found,) = beside.end(Limits(), patience=60.0)
            assert found.value <= first.value
    finally:
        beside.close()


@TWO_CORES
def test_one_that_is_still_loading_is_not_given_up() -> None:
    kill_all()
    what, first = begun(drawn(2))
    beside = Beside(Limits(time.monotonic() + 100))
    try:
        beside.begin(Aside(what, Turns(first, 0), Limits(), 0))
        assert beside.end(Limits(), patience=60.0) == []
        assert beside.free
        # what comes next ends what it has not begun with; no more than that waits
        beside.begin(Aside(what, Turns(first, 1, most=300), Limits(), 0))
        assert not beside.free
        beside.begin(Aside(what, Turns(first, 2), Limits(), 0))
        assert beside._process is not None
        found = beside._heard(beside._process, 60.0)
        assert len(found) == 2
        assert beside.free
        here = move(what, Turns(first, 1, most=300), Limits(), lambda: False, lambda _: None)
        assert here is not None
        assert (found[1].value, sorted(found[1].starts)) == (here.value, sorted(here.starts))
        before = solvers()
    finally:
        beside.close()
    assert len(before) == 1
    assert solvers() == before


@TWO_CORES
def test_one_that_does_not_answer_is_asked_again() -> None:
    what, first = begun(drawn(2))
    beside = Beside(Limits(time.monotonic() + 100))
    try:
        beside.begin(Aside(what, Turns(first, 0), Limits(), 0))
        assert wait_until(lambda: has_begun(beside))
        assert beside._process is not None
        pid = beside._process.pid
        os.kill(pid, signal.SIGSTOP)
        for _ in range(2):
            assert beside.end(Limits(), patience=0.01) == []
            assert not beside.free
            # neither is it asked for anything else
            beside.begin(Aside(what, Turns(first, 1), Limits(), 0))
        os.kill(pid, signal.SIGCONT)
        assert wait_until(lambda: bool(beside.end(Limits())))
        assert beside.free
        beside.begin(Aside(what, Turns(first, 1), Limits(), 0))
        assert wait_until(lambda: has_begun(beside))
        os.kill(pid, signal.SIGSTOP)
    finally:
        beside.close()
    assert wait_until(lambda: is_gone(pid))


@TWO_CORES
def test_one_that_is_at_work_when_the_search_ends_is_kept() -> None:
    pid = warm_one()
    what, first = begun(drawn(2))
    beside = Beside(Limits(time.monotonic() + 100))
    beside.begin(Aside(what, Turns(first, 0), Limits(time.monotonic() + 100), 0), undisturbed=True)
    assert wait_until(lambda: has_begun(beside))
    assert not beside.ready
    beside.close()
    assert solvers() == {pid}


@TWO_CORES
def test_what_cannot_be_sent_is_not_done_beside() -> None:
    what, first = begun(drawn(2))
    for kind in (Unsendable, Interrupted):
        pid = warm_one()
        beside = Beside(Limits(time.monotonic() + 100))
        try:
            with pytest.raises(KeyboardInterrupt) if kind is Interrupted else contextlib.nullcontext():
                beside.begin(Aside(what, Turns(first, 0, heat=kind(1.0)), Limits(), 0))
        finally:
            beside.close()
        # nobody knows what it has to do
        assert wait_until(lambda pid=pid: is_gone(pid))  # type: ignore[misc]


@TWO_CORES
@pytest.mark.parametrize("jobs", [0, 1])
def test_nothing_to_move_is_not_moved_beside(jobs: int) -> None:
    pid = warm_one()
    # a job that could be stopped for others counts, so that the value is not 0 without jobs
    held = Job(
        name="held",
        preemptible=True,
        groups=(TaskGroup(name="w", count=1, task=Task(gpus=4)),),
        duration=Duration(seconds=10, levels={"cluster": 1.0}),
        running=Running(tasks=(RunningTask(group="w", index=0, node="n-0", gpus=(0, 1, 2, 3)),), since=0.0),
    )
    snapshot = drawn(3, jobs)
    snapshot = Snapshot(nodes=snapshot.nodes, jobs=(held, *snapshot.jobs))
    found = placement.schedule(snapshot, time_limit=LEAST + 1)
    assert found.status == "proven"
    assert solvers() == {pid}


@pytest.mark.parametrize("gap", [0.0, 0.1, 0.5, 1.0])
def test_what_is_good_enough_beside_is_so_here(gap: float) -> None:
    what, first = begun(drawn(7, 12))
    search = Search(what.work.work, what.work, Limits(gap=gap), 0, silent)
    # the last are beyond what doubles tell apart
    for bound in (0, 1, 99, 12345678, 2**60 - 1, 2**60 + 1):
        search._best, search._bound = _Best("", first), bound
        enough = search._enough()
        if gap < 1:
            # (value - bound) / value is at most the gap of this value, and of none above
            assert enough - bound <= Fraction(gap) * enough
            assert enough + 1 - bound > Fraction(gap) * (enough + 1)
        # what leaves jobs out is never good enough, however little the others cost
        search._best = _Best("", Pass(first.starts, first.value, [0]))
        assert search._enough() < 0


def test_what_cannot_be_moved_again_is_not_lost() -> None:
    """What is found first has been passed through once; passed through again it would end a job after its deadline."""
    snapshot, rng = drawn(215, 8), Random(215)
    jobs = tuple(
        replace(one, deadline=float(rng.randint(150, 500)), hard_deadline=True) if rng.random() < 0.5 else one
        for one in snapshot.jobs
    )
    what, first = begun(replace(snapshot, nodes=(replace(snapshot.nodes[0], count=3),), jobs=jobs))
    found = move(what, Turns(first, 0, 2, most=60), Limits(), lambda: False, lambda _: None)
    assert found is not None
    assert found.value < first.value
    assert Improver.of(what.work, what.base, found.starts, 1) is None


def test_what_is_sent_does_not_grow_with_what_jobs_say_of_themselves() -> None:
    what, _ = begun(drawn(2, 60))
    assert len(pickle.dumps(what)) - len(pickle.dumps(what.bare())) > 60 * 50
    assert what.work.work.instance.snapshot.jobs
    for one in (what.bare().work.work.instance, what.bare().work.clock._instance, what.bare().base._work.work.instance):
        assert not one.snapshot.jobs


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
        assert wait_until(lambda: beside.end(Limits()) == [] and beside._process is None)
        beside.begin(Aside(what, Turns(first, 0), Limits(), 0))
        assert beside.end(Limits()) == []
        assert beside.ready
        assert beside.free
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
