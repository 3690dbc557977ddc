"""The life of solver processes: kept, handed from call to call, replaced, and never left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import worker_cases as cases

from placement.compile import compile as compile_snapshot
from placement.exact.processes import pool
from placement.exact.processes.worker import Exact, warm
from placement.generate import generate
from placement.instance import Instance
from placement.solver import Limits, Progress, Result, Stop


def solve(instance: Instance, *objectives: str) -> Result:
    return Exact().solve(instance, objectives=objectives or ("value",), limits=Limits(nodes=50), seed=7)


def run(program: str) -> list[str]:
    """Return the lines that a host of its own prints."""
    head = "import os, signal, sys, time\nimport worker_cases as cases\nfrom test_worker_life import solve\n"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    ran = subprocess.run([sys.executable, "-c", head + program], stdout=subprocess.PIPE, text=True, env=environment)
    return ran.stdout.splitlines()


def equal(one: Result, other: Result) -> bool:
    columns = ("job", "leaf", "task", "node", "cards", "offset")
    return (one.stop, one.bounds, one.notes) == (other.stop, other.bounds, other.notes) and all(
        np.array_equal(getattr(one.assignment, name), getattr(other.assignment, name)) for name in columns
    )


# --- kept ------------------------------------------------------------------------------------------------------------


def test_consecutive_calls_have_one_process() -> None:
    pid = cases.warm_one()
    for seed in range(5):
        assert solve(cases.tiny(seed)).stop is Stop.OPTIMAL
        assert cases.solvers() == {pid}


def test_warm_starts_no_second_one() -> None:
    pid = cases.warm_one()
    warm()
    assert cases.solvers() == {pid}


def test_one_that_was_killed_is_replaced() -> None:
    pid = cases.warm_one()
    assert solve(cases.tiny(1), cases.Within(cases.kill_itself)).stop is Stop.FAILED
    assert cases.wait_until(lambda: cases.is_gone(pid))
    (new,) = cases.solvers()
    assert solve(cases.tiny(1)).stop is Stop.OPTIMAL
    assert cases.solvers() == {new}


def test_one_that_overran_is_replaced() -> None:
    pid = cases.warm_one()
    limits = Limits(time.monotonic() + 2)
    hanging = cases.Within(cases.sleep_for_ever)
    assert Exact().solve(cases.tiny(1), objectives=(hanging,), limits=limits).stop is Stop.TIME
    assert cases.wait_until(lambda: cases.is_gone(pid))
    assert len(cases.solvers()) == 1


def test_one_that_became_large_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    pid = cases.warm_one()
    solve(cases.tiny(1), "value", cases.Within(cases.grow, 10))
    assert cases.solvers() == {pid}
    solve(cases.tiny(1), "value", cases.Within(cases.grow, pool.MOST))
    assert cases.wait_until(lambda: cases.is_gone(pid))
    assert len(cases.solvers()) == 1


def test_each_thread_has_its_own() -> None:
    instances = [cases.tiny(seed) for seed in range(16)]
    alone = [solve(instance) for instance in instances]
    seen: set[int] = set()
    together = threading.Barrier(4)

    def work(number: int) -> list[Result]:
        def report(progress: Progress) -> None:
            seen.update(cases.solvers())

        together.wait()
        objectives = ("value", cases.Within(cases.nap))
        Exact().solve(instances[0], objectives=objectives, limits=Limits(), report=report)
        return [solve(instance) for instance in instances]

    watch = threading.Event()

    def look() -> None:
        while not watch.wait(0.05):
            seen.update(cases.solvers())

    looking = threading.Thread(target=look)
    looking.start()
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(work, range(4)))
    watch.set()
    looking.join()
    assert len(seen) >= 4
    assert all(equal(a, b) for results in found for a, b in zip(alone, results, strict=True))
    assert cases.wait_until(lambda: len(cases.solvers()) == 1)


# --- the same answer -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("objectives", [("value",), ("fragmentation", "value"), ("value", "nodes", "tasks")])
def test_what_was_solved_before_changes_nothing(objectives: tuple[str, ...]) -> None:
    first = compile_snapshot(generate(nodes=24, load=1.5, gangs=0.5, seed=1))
    others = [cases.tiny(seed) for seed in range(8)] + [compile_snapshot(generate(nodes=16, seed=2))]
    cases.kill_all()
    pid = cases.warm_one()
    fresh = solve(first, *objectives)
    assert len(fresh.assignment)
    for other in others:
        solve(other)
    again = solve(first, *objectives)
    assert cases.solvers() == {pid}
    assert equal(fresh, again)
    cases.kill_all()
    assert equal(fresh, solve(first, *objectives))


# --- nothing is left -------------------------------------------------------------------------------------------------


def test_no_file_descriptor_or_thread_is_left() -> None:
    instance, start = cases.openb()
    shared = Path("/dev/shm")

    def state() -> tuple[object, ...]:
        files = set(shared.iterdir()) if shared.exists() else set()
        return len(os.listdir("/proc/self/fd")), files, set(threading.enumerate()), len(cases.solvers())

    solve(cases.tiny(1))
    before = state()
    # each of them ends another way, and the large instance is handed over each time
    limits = Limits(time.monotonic() + 2)
    assert Exact().solve(instance, objectives=("value",), limits=limits, start=start).stop is Stop.TIME
    for function in (os.abort, cases.run_out_of_memory):
        within = cases.Within(function)
        failed = Exact().solve(instance, objectives=(within,), limits=Limits(), start=start)
        assert failed.stop is Stop.FAILED

    def stop(progress: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Exact().solve(instance, objectives=("value",), limits=Limits(), start=start, report=stop)
    solve(cases.tiny(1))
    assert cases.wait_until(lambda: state() == before), (state(), before)


def test_no_process_survives_a_host_that_ends(capfd: pytest.CaptureFixture[str]) -> None:
    (pid,) = run("import warnings; warnings.simplefilter('always')\nsolve(cases.tiny(1)); print(*cases.solvers())")
    assert cases.is_gone(int(pid))
    # nor does the interpreter find anything that should have been closed
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("waiting", [True, False], ids=["waiting", "working"])
def test_no_process_survives_a_host_that_is_killed(waiting: bool) -> None:
    if waiting:
        lines = run("solve(cases.tiny(1)); print(*cases.solvers(), flush=True); os.kill(os.getpid(), signal.SIGKILL)")
    else:
        lines = run(
            "from placement.exact.processes.worker import Exact\nfrom placement.solver import Limits\n"
            "def report(progress):\n"
            "    print(*cases.solvers(), flush=True); os.kill(os.getpid(), signal.SIGKILL)\n"
            "instance, start = cases.openb()\n"
            "Exact().solve(instance, objectives=('value',), limits=Limits(), start=start, report=report)\n"
        )
    (pid,) = lines
    assert cases.wait_until(lambda: cases.is_gone(int(pid)))


def test_a_fork_does_not_share_it() -> None:
    lines = run(
        "solve(cases.tiny(1)); (mine,) = cases.solvers()\n"
        "sys.stdout.flush()\n"
        "child = os.fork()\n"
        "result = solve(cases.tiny(2))\n"
        "print(result.stop, cases.solvers() != {mine}, len(cases.solvers()), flush=True)\n"
        "if child == 0: sys.exit()\n"
        "os.waitpid(child, 0)\n"
        "print(solve(cases.tiny(3)).stop, cases.solvers() == {mine})\n"
    )
    assert sorted(lines[:2]) == ["optimal False 1", "optimal True 1"]
    assert lines[2:] == ["optimal True"]


def test_a_fork_in_the_middle_of_a_call_leaves_it_alone() -> None:
    lines = run(
        "from placement.exact.processes.worker import Exact\nfrom placement.solver import Limits\n"
        "instance, start = cases.openb()\n"
        "mine, child = os.getpid(), []\n"
        "def report(progress):\n"
        "    if not child: child.append(os.fork())\n"
        "limits = Limits(time.monotonic() + 6)\n"
        "result = Exact().solve(instance, objectives=('value',), limits=limits, start=start, report=report)\n"
        "kept = cases.worth(instance, result.assignment) >= cases.worth(instance, start)\n"
        "print(os.getpid() == mine, result.stop, kept, flush=True)\n"
        "if os.getpid() == mine: os.waitpid(child[0], 0)\n"
    )
    forked, mine = sorted(lines)
    assert forked == "False failed True"
    # a fast machine is through before the time is up
    assert mine in ("True time True", "True work True")


def test_an_interrupt_at_the_terminal_does_not_reach_it() -> None:
    pid = cases.warm_one()
    assert solve(cases.tiny(1)).stop is Stop.OPTIMAL
    os.kill(pid, signal.SIGINT)
    assert solve(cases.tiny(2)).stop is Stop.OPTIMAL
    assert cases.solvers() == {pid}


def test_both_stopped_and_continued_is_no_silence() -> None:
    """As with Ctrl-Z and fg: the clock ran on, and neither is to blame."""
    lines = run(
        "import subprocess\n"
        "from placement.exact.processes.worker import Exact\nfrom placement.solver import Limits\n"
        "instance, start = cases.openb()\n"
        "told = []\n"
        "def report(progress):\n"
        "    told.append(progress)\n"
        "    if len(told) == 1:\n"
        "        both = ' '.join(map(str, [*cases.solvers(), os.getpid()]))\n"
        "        subprocess.Popen(['sh', '-c', f'kill -STOP {both}; sleep 6; kill -CONT {both}'])\n"
        "limits = Limits(time.monotonic() + 12)\n"
        "solver = Exact(silence=4.0)\n"
        "result = solver.solve(instance, objectives=('value',), limits=limits, start=start, report=report)\n"
        "print(result.stop)\n"
    )
    assert lines in (["time"], ["work"], ["optimal"])
