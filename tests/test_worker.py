"""The exact method's process: whatever happens to it, an answer comes, and the next call works."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import replace

import pytest
import worker_cases as cases

from placement.exact.processes.worker import Exact, warm
from placement.solver import Limits, Progress, Result, Stop

SIZE = b"plc1" + bytes(4) + b"\xff" * 8
GARBAGE = {"text": b"Set parameter Username\n" * 10, "length": SIZE, "no block": b"plc1" + b"\1" * 12}


def fails(result: Result, *words: str) -> None:
    """The call failed as it should, and left no process that cannot answer the next one."""
    assert result.stop is Stop.FAILED
    assert len(result.notes) == 1
    for word in words:
        assert word in result.notes[0]
    assert Exact().solve(cases.tiny(3), objectives=("value",), limits=Limits()).stop is Stop.OPTIMAL


def test_killed_before_it_has_work() -> None:
    pid = cases.warm_one()
    cases.kill_all()
    assert Exact().solve(cases.tiny(3), objectives=("value",), limits=Limits()).stop is Stop.OPTIMAL
    assert pid not in cases.solvers()


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM], ids=lambda sent: sent.name)
def test_killed_while_solving(sent: signal.Signals) -> None:
    instance, start = cases.openb()
    told: list[Progress] = []

    def kill(progress: Progress) -> None:
        told.append(progress)
        for pid in cases.solvers():
            os.kill(pid, sent)

    result = Exact().solve(instance, objectives=("value",), limits=Limits(), start=start, report=kill)
    assert told
    assert {b.objective for b in result.bounds} == {b.objective for progress in told for b in progress.bounds}
    assert cases.worth(instance, result.assignment) >= cases.worth(instance, start)
    fails(result, f"was killed by signal {sent.value}")


def test_killed_while_it_starts() -> None:
    cases.kill_all()
    pid = cases.warm_one()
    threading.Timer(0.1, os.kill, (pid, signal.SIGKILL)).start()
    instance, start = cases.openb()
    # taken by the call before or after its end
    result = Exact().solve(instance, objectives=("value",), limits=Limits(time.monotonic() + 2), start=start)
    assert result.stop in (Stop.FAILED, Stop.TIME)
    assert Exact().solve(cases.tiny(3), objectives=("value",), limits=Limits()).stop is Stop.OPTIMAL


def test_a_crash_is_told_with_its_last_line() -> None:
    instance = cases.tiny(1)
    # an index no shape has: the process raises while it builds its model
    leaf = replace(instance.job_classes[0].leaves[0], shape=10**6)
    broken = replace(
        instance.job_classes[0], leaves=(leaf,), root=replace(instance.job_classes[0].root, children=(leaf,))
    )
    instance = replace(instance, job_classes=(broken, *instance.job_classes[1:]))
    result = Exact().solve(instance, objectives=("value",), limits=Limits())
    fails(result, "the solver process ended with code 1: IndexError")


@pytest.mark.parametrize(
    ("within", "words"),
    [
        (cases.Within(os.abort), "was killed by signal 6"),
        (cases.Within(os._exit, 3), "ended with code 3"),
        (cases.Within(cases.run_out_of_memory), "ended with code 1: MemoryError: no room for 3 matrices"),
        (cases.Within(exec, "raise SystemExit('enough')"), "ended with code 1"),
        (cases.Within(cases.compute_stuck), f"was killed by signal {signal.SIGPROF.value}"),
    ],
    ids=["abort", "exit", "memory", "raises", "stuck"],
)
def test_it_ends_from_within(within: cases.Within, words: str) -> None:
    fails(Exact().solve(cases.tiny(1), objectives=(within,), limits=Limits()), words)


def test_what_an_earlier_job_printed_is_not_a_reason() -> None:
    first = cases.Within(exec, "import sys; print('an old story', file=sys.stderr)")
    Exact().solve(cases.tiny(1), objectives=("value", first), limits=Limits())
    within = cases.Within(os._exit, 3)
    result = Exact().solve(cases.tiny(1), objectives=(within,), limits=Limits())
    assert result.notes == ("the solver process ended with code 3",)


@pytest.mark.parametrize("data", GARBAGE.values(), ids=GARBAGE.keys())
def test_garbage_on_the_channel(data: bytes) -> None:
    within = cases.Within(cases.send_garbage, data)
    fails(Exact().solve(cases.tiny(1), objectives=(within,), limits=Limits()), "sent what cannot be read")


def test_half_a_message_is_silence() -> None:
    within = cases.Within(cases.send_garbage, b"plc1" + bytes(4))
    limits = Limits(time.monotonic() + 3)
    # it is waited for, until a beat makes it garbage
    assert Exact().solve(cases.tiny(1), objectives=(within,), limits=limits).stop in (Stop.TIME, Stop.FAILED)


@pytest.mark.parametrize("hang", [cases.loop_for_ever, cases.sleep_for_ever])
@pytest.mark.parametrize("limited", [True, False], ids=["limited", "unlimited"])
def test_it_hangs_in_a_call(hang: object, limited: bool) -> None:
    assert callable(hang)
    limits = Limits(time.monotonic() + 3) if limited else Limits()
    solver = Exact() if limited else Exact(silence=4.0)
    result = solver.solve(cases.tiny(1), objectives=(cases.Within(hang),), limits=limits)
    if limited:
        assert result.stop is Stop.TIME
        assert Exact().solve(cases.tiny(3), objectives=("value",), limits=Limits()).stop is Stop.OPTIMAL
    else:
        fails(result, "stopped answering")


@pytest.mark.parametrize("limited", [True, False], ids=["limited", "unlimited"])
def test_it_is_stopped(limited: bool) -> None:
    instance, start = cases.openb()
    stopped: set[int] = set()

    def stop(progress: Progress) -> None:
        if not stopped:
            stopped.update(cases.solvers())
            for pid in stopped:
                os.kill(pid, signal.SIGSTOP)

    limits = Limits(time.monotonic() + 8) if limited else Limits()
    result = Exact(silence=4.0 if not limited else 120).solve(
        instance, objectives=("value",), limits=limits, start=start, report=stop
    )
    assert stopped
    assert cases.wait_until(lambda: all(map(cases.is_gone, stopped)))
    assert cases.worth(instance, result.assignment) >= cases.worth(instance, start)
    if limited:
        assert result.stop is Stop.TIME
    else:
        fails(result, "stopped answering")


def test_a_long_solve_is_not_silence() -> None:
    instance, start = cases.openb()
    limits = Limits(time.monotonic() + 8)
    result = Exact(silence=4.0).solve(instance, objectives=("value",), limits=limits, start=start)
    assert result.stop is not Stop.FAILED


def test_the_deadline_kills_and_what_was_found_is_kept() -> None:
    instance, start = cases.openb()
    seen: list[Progress] = []
    # all of its work takes several times as long
    limits = Limits(time.monotonic() + 1.5)
    result = Exact().solve(instance, objectives=("value",), limits=limits, start=start, report=seen.append)
    assert result.stop is Stop.TIME
    assert cases.worth(instance, result.assignment) >= cases.worth(instance, start)


def test_a_deadline_that_has_passed() -> None:
    result = Exact().solve(cases.tiny(1), objectives=("value",), limits=Limits(time.monotonic() - 1))
    assert result.stop is Stop.TIME


def test_no_process_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    cases.kill_all()
    with monkeypatch.context() as patched:
        patched.setattr("sys.executable", "/no/such/python")
        warm()
        result = Exact().solve(cases.tiny(1), objectives=("value",), limits=Limits())
    fails(result, "no solver process could be started", "/no/such/python")


def test_a_report_that_raises_ends_it() -> None:
    instance, start = cases.openb()
    seen: set[int] = set()

    def give_up(progress: Progress) -> None:
        seen.update(cases.solvers())
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Exact().solve(instance, objectives=("value",), limits=Limits(), start=start, report=give_up)
    assert len(seen) == 1
    assert cases.wait_until(lambda: all(map(cases.is_gone, seen)))
    assert Exact().solve(cases.tiny(3), objectives=("value",), limits=Limits()).stop is Stop.OPTIMAL
