"""The solver's process from within: it waits for jobs, solves one after the other, and shows that it is alive.

While it has a job, a thread sends a beat each second. Solving in HiGHS does not hold Python's lock, so the beat only
stops when the process is stopped, or stuck in a call that never comes back. A process without a host ends: waiting,
it reads the end of the socket; working, its next beat finds nobody; and if it is stuck so that nothing in Python
runs, the system ends it after some time of computing without a beat.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from placement.exact.processes.handover import Channel, Hurry
from placement.instance import Assignment, Instance
from placement.solver import Limits, Result

EVERY = 1.0
"""Seconds between two beats."""
STUCK = 300
"""Seconds of computing without a beat after which the system ends the process."""


class Task(Protocol):
    """What the process may be asked to do."""

    def run(self, send: Callable[[object], None], hurry: Callable[[], bool]) -> object:
        """Return the answer.

        Parameters
        ----------
        send : callable
            Tells the host of progress.
        hurry : callable
            Tells whether the host wants what there is by now.
        """


@dataclass(frozen=True, slots=True)
class Job:
    """All that a call asks of the process; the limits' deadline holds here too, for the clock is the system's."""

    instance: Instance
    objectives: tuple[str, ...]
    limits: Limits
    seed: int
    start: Assignment | None
    method: str = "exact"

    def run(self, send: Callable[[object], None], hurry: Callable[[], bool]) -> Result:
        """Return what the exact pipeline finds; nobody hurries it but by its limits."""
        from placement.exact import run

        return run(
            self.instance,
            objectives=self.objectives,
            limits=self.limits,
            seed=self.seed,
            start=self.start,
            report=send,
            method=self.method,
        )


@dataclass(frozen=True, slots=True)
class Done:
    """The answer to a task, and the bytes of memory that the process has then."""

    result: object
    resident: int


def main(descriptor: int) -> None:
    """Serve the host at the other end of a socket until it hangs up; does not return.

    Parameters
    ----------
    descriptor : int
        Of this process's end of the socket.
    """
    try:
        _serve(Channel(socket.socket(fileno=descriptor)))
        os._exit(0)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
        # at once, whatever a library's thread or exit handler is up to: the host waits for this end
        os._exit(1)


def _serve(channel: Channel) -> None:
    working = threading.Event()
    working.set()
    threading.Thread(target=_beat, args=(channel, working, os.getppid()), daemon=True).start()
    _load()
    while True:
        working.clear()
        channel.wait()
        working.set()
        try:
            task: Any = channel.receive()
        except EOFError:
            return
        if isinstance(task, Hurry):
            continue
        channel.send(Done(task.run(channel.send, channel.waiting), _resident()))
        del task
        gc.collect()


def _load() -> None:
    """Import all that a job needs, so that the first one need not wait for it."""
    import placement.exact.pipeline
    import placement.exact.small.classes
    import placement.exact.small.size  # noqa: F401

    gc.collect()
    gc.freeze()


def _beat(channel: Channel, working: threading.Event, host: int) -> None:
    while True:
        working.wait()
        # counts computing and not the clock: a process that was stopped and goes on is not stuck
        signal.setitimer(signal.ITIMER_PROF, STUCK)
        try:
            channel.beat()
        except OSError:
            os._exit(1)
        # the socket may be held open by a copy of the host
        if os.getppid() != host:
            os._exit(1)
        time.sleep(EVERY)


def _resident() -> int:
    """Return the bytes of memory that this process has."""
    try:
        # the most that it ever had would count what the host had when it started this process
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    except OSError:
        import resource

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
    return pages * os.sysconf("SC_PAGE_SIZE")
