"""The exact pipeline in a process of its own, so that a deadline holds whatever the solver does.

HiGHS does not look at its time limit inside presolve and cut separation, and a solver can crash. So it runs in a
child process that sends what it has as soon as it has it, and is killed at the deadline. The child is started as
a fresh interpreter: a fork would copy the host's threads' locks, and multiprocessing's spawn would import the
host's main script again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pickle
import queue
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import IO, ClassVar

from placement.instance import Assignment, Instance
from placement.snapshot import Snapshot
from placement.solver import Bound, Limits, Progress, Report, Result, Stop, silent

_LENGTH = struct.Struct("<Q")
GRACE = 0.02
"""Seconds before the deadline at which the child is killed, so that the answer is there in time."""


def _send(stream: IO[bytes], item: object) -> None:
    data = pickle.dumps(item, protocol=pickle.HIGHEST_PROTOCOL)
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def _receive(stream: IO[bytes]) -> object | None:
    """Return the next item, or None at the end of the stream."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    data = stream.read(length)
    return None if len(data) < length else pickle.loads(data)


@dataclasses.dataclass(frozen=True, slots=True)
class _Job:
    """All that the child needs."""

    instance: Instance
    objectives: tuple[str, ...]
    seconds: float
    gap: float
    nodes: int | None
    seed: int
    start: Assignment | None


class Exact:
    """Mixed-integer models solved by HiGHS, with a proven bound; killed at the deadline."""

    name: ClassVar[str] = "exact"

    def supports(self, instance: Instance) -> str | None:
        """Return None: every instance is taken."""
        return None

    def solve(
        self,
        instance: Instance,
        *,
        objectives: tuple[str, ...],
        limits: Limits,
        seed: int = 0,
        start: Assignment | None = None,
        report: Report = silent,
    ) -> Result:
        """Return the best assignment and bounds that the child sent in time; see `Solver.solve`."""
        with tempfile.TemporaryFile() as errors:
            child = _launch(errors)
            try:
                return _supervise(child, errors, instance, objectives, limits, seed, start, report)
            finally:
                child.kill()
                child.wait()
                for stream in (child.stdin, child.stdout):
                    if stream is not None:
                        with contextlib.suppress(OSError):
                            stream.close()


def _launch(errors: IO[bytes]) -> subprocess.Popen[bytes]:
    # -P: the working directory may hold anything, and must not be searched unless this process searches it
    home = str(Path(__file__).resolve().parent.parent.parent)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*(p for p in sys.path if p), home])}
    return subprocess.Popen(
        [sys.executable, "-P", "-c", "from placement.exact.worker import child; child()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        env=environment,
    )


def _supervise(
    child: subprocess.Popen[bytes],
    errors: IO[bytes],
    instance: Instance,
    objectives: tuple[str, ...],
    limits: Limits,
    seed: int,
    start: Assignment | None,
    report: Report,
) -> Result:
    assert child.stdin is not None
    assert child.stdout is not None
    inbox: queue.Queue[object | None] = queue.Queue()
    job = _Job(
        # node and job names stay here: the child works on indices
        dataclasses.replace(instance, snapshot=Snapshot()),
        objectives,
        limits.left - 2 * GRACE,
        limits.gap,
        limits.nodes,
        seed,
        start,
    )
    threading.Thread(target=_post, args=(child.stdin, job), daemon=True).start()
    threading.Thread(target=_read, args=(child.stdout, inbox), daemon=True).start()
    best = start
    bounds: dict[tuple[str, int | None], Bound] = {}
    while True:
        wait = None if limits.deadline == float("inf") else max(0.0, limits.left - GRACE)
        try:
            item = inbox.get(timeout=wait)
        except queue.Empty:
            return Result(best or Assignment.empty(), Stop.TIME, tuple(bounds.values()))
        if isinstance(item, Result):
            return item
        if isinstance(item, Progress):
            best = item.assignment or best
            bounds |= {_phase(bound): bound for bound in item.bounds}
            report(item)
        else:
            reason = _reason(child, errors)
            return Result(best or Assignment.empty(), Stop.FAILED, tuple(bounds.values()), notes=(reason,))


def _phase(bound: Bound) -> tuple[str, int | None]:
    return bound.objective, bound.priority


def _post(stream: IO[bytes], job: _Job) -> None:
    # the stream stays open: its end tells the child that its parent is gone
    with contextlib.suppress(OSError, ValueError):
        _send(stream, job)


def _read(stream: IO[bytes], inbox: queue.Queue[object | None]) -> None:
    item: object | None = b""
    while item is not None:
        try:
            item = _receive(stream)
        except Exception:
            # a torn or unreadable message means the same as a dead child
            item = None
        inbox.put(item)


def _reason(child: subprocess.Popen[bytes], errors: IO[bytes]) -> str:
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(timeout=1.0)
    errors.seek(0)
    lines = errors.read().decode(errors="replace").strip().splitlines()
    code = child.returncode
    how = (
        "stopped answering"
        if code is None
        else f"was killed by signal {-code}"
        if code < 0
        else f"ended with code {code}"
    )
    return f"the solver process {how}" + (f": {lines[-1]}" if lines else "")


def _leave_with_parent(stdin: IO[bytes]) -> None:
    """End this process when its parent does, killed or not: nobody is left to take the answer."""
    stdin.read(1)
    os._exit(1)


def child() -> None:
    """Run one job from standard input; the entry point of the child process."""
    stdin, stdout = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # whatever a library prints must not end up between messages
    os.dup2(2, 1)
    job = _receive(stdin)
    assert isinstance(job, _Job)
    threading.Thread(target=_leave_with_parent, args=(stdin,), daemon=True).start()
    from placement.exact import run

    result = run(
        job.instance,
        objectives=job.objectives,
        limits=Limits(time.monotonic() + job.seconds, job.gap, job.nodes),
        seed=job.seed,
        start=job.start,
        report=lambda progress: _send(stdout, progress),
    )
    _send(stdout, result)
