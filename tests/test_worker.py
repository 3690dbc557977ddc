"""The exact method's process: whatever happens to it, an answer comes."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from dataclasses import replace
from typing import IO

import pytest
import strategies

import placement as pl
from placement.compile import compile as compile_snapshot
from placement.evaluate import scores
from placement.exact import worker
from placement.heuristics import HEURISTICS
from placement.instance import Assignment, Instance
from placement.solver import Limits, Progress, Stop


def openb() -> tuple[Instance, Assignment]:
    instance = compile_snapshot(pl.load(pl.instances.path("openb")))
    start = HEURISTICS["first-fit"].solve(instance, objectives=("value",), limits=Limits()).assignment
    return instance, start


def test_a_killed_process_gives_the_start_and_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    instance, start = openb()
    children: list[int] = []
    launch = worker._launch

    def watched(errors: IO[bytes]) -> subprocess.Popen[bytes]:
        child = launch(errors)
        children.append(child.pid)
        threading.Timer(1.0, os.kill, (child.pid, signal.SIGKILL)).start()
        return child

    monkeypatch.setattr(worker, "_launch", watched)
    result = worker.Exact().solve(instance, objectives=("value",), limits=Limits(), start=start)
    assert result.stop is Stop.FAILED
    assert "was killed by signal 9" in result.notes[0]
    assert len(result.assignment) >= len(start)
    monkeypatch.undo()
    # the next call works
    tiny = compile_snapshot(strategies.random_tiny(3))
    assert worker.Exact().solve(tiny, objectives=("value",), limits=Limits()).stop is Stop.OPTIMAL


def test_a_crash_is_told_with_its_last_line() -> None:
    instance = compile_snapshot(strategies.random_tiny(1))
    # an index no shape has: the child raises while it builds its model
    leaf = replace(instance.job_classes[0].leaves[0], shape=10**6)
    broken = replace(
        instance.job_classes[0], leaves=(leaf,), root=replace(instance.job_classes[0].root, children=(leaf,))
    )
    instance = replace(instance, job_classes=(broken, *instance.job_classes[1:]))
    result = worker.Exact().solve(instance, objectives=("value",), limits=Limits())
    assert result.stop is Stop.FAILED
    assert result.notes[0].startswith("the solver process ended with code 1: IndexError")
    assert len(result.assignment) == 0


def test_the_deadline_kills_and_what_was_found_is_kept() -> None:
    instance, start = openb()
    seen: list[Progress] = []
    began = time.monotonic()
    result = worker.Exact().solve(
        instance, objectives=("value",), limits=Limits(time.monotonic() + 3.0), start=start, report=seen.append
    )
    assert time.monotonic() - began < 30
    assert result.stop in (Stop.TIME, Stop.WORK)
    worth = [scores(instance, assignment, ("value",))[0].value for assignment in (start, result.assignment)]
    assert worth[1] >= worth[0]


def test_no_process_is_left_behind() -> None:
    before = set(threading.enumerate())
    instance = compile_snapshot(strategies.random_tiny(2))
    worker.Exact().solve(instance, objectives=("value",), limits=Limits())
    deadline = time.monotonic() + 10
    while set(threading.enumerate()) - before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not set(threading.enumerate()) - before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
