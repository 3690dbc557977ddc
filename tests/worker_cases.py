"""Instances, and things done to solver processes from outside and within. Import it as ``worker_cases``."""

from __future__ import annotations

import ctypes
import itertools
import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

import strategies

import placement as pl
from placement.compile import compile as compile_snapshot
from placement.evaluate import scores
from placement.exact.processes import child
from placement.exact.processes.worker import warm
from placement.heuristics import HEURISTICS
from placement.instance import Assignment, Instance
from placement.solver import Limits


def tiny(seed: int) -> Instance:
    """A tiny instance, solved in milliseconds."""
    return compile_snapshot(strategies.random_tiny(seed))


def openb() -> tuple[Instance, Assignment]:
    """An instance that takes many seconds, and a start."""
    instance = compile_snapshot(pl.load(pl.instances.path("openb")))
    start = HEURISTICS["first-fit"].solve(instance, objectives=("value",), limits=Limits()).assignment
    return instance, start


def worth(instance: Instance, assignment: Assignment) -> float:
    """The value of an assignment."""
    return float(sum(score.value for score in scores(instance, assignment, ("value",))[:1]))


def solvers(host: int | None = None) -> set[int]:
    """The solver processes of a host that are not dead."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            words = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if (
            int(parent) == (os.getpid() if host is None else host)
            and b"placement.exact.processes.child" in words
            and state != "Z"
        ):
            found.add(int(folder.name))
    return found


def wait_until(holds: Callable[[], bool]) -> bool:
    """Return whether something holds within a minute."""
    end = time.monotonic() + 60
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def warm_one() -> int:
    """Have a solver process wait for work; return its number."""
    warm()
    # it has no command line for a moment
    assert wait_until(lambda: len(solvers()) == 1)
    return solvers().pop()


def kill_all() -> None:
    """Kill all solver processes of this host, and wait until the host could know."""
    for pid in solvers():
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def is_gone(pid: int) -> bool:
    """Whether a process has ended, reaped or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


class Within(str):
    """An objective that calls a function where it is unpickled, which is in the solver process."""

    __slots__ = ("call",)
    call: tuple[Callable[..., object], tuple[object, ...]]

    def __new__(cls, function: Callable[..., object], *values: object) -> Within:
        made = super().__new__(cls, "value")
        made.call = (function, values)
        return made

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return self.call


def loop_for_ever() -> None:
    """Compute in C with Python's lock held."""
    sum(itertools.repeat(1))


def sleep_for_ever() -> None:
    """Wait in C with Python's lock held."""
    ctypes.PyDLL(None).sleep(10**6)


def compute_stuck() -> None:
    """Compute in C with Python's lock held, in a process that has little patience with that."""
    child.STUCK = 1
    time.sleep(3 * child.EVERY)
    loop_for_ever()


def run_out_of_memory() -> None:
    raise MemoryError("no room for 3 matrices")


def send_garbage(data: bytes) -> str:
    """Write to the host's socket, past the channel."""
    for name in os.listdir("/proc/self/fd"):
        try:
            connection = socket.socket(fileno=os.dup(int(name)))
        except OSError:
            continue
        connection.sendall(data)
    time.sleep(3600)
    return "value"


def grow(size: int) -> str:
    """Keep some memory for good."""
    KEPT.append(b"x" * size)
    return "value"


KEPT: list[bytes] = []


def nap() -> str:
    """Take long enough for other threads to need processes of their own."""
    time.sleep(3)
    return "value"


def kill_itself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
