"""The solver processes of this host: at most one waits for work, and every call has one to itself.

The one that waits has its libraries loaded, so a call need not wait for that. One that did anything but answer is
ended and another started in its place. None of them outlives the host, and a fork of the host has none of them.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import weakref

from placement.exact.processes.process import Process

AFTER = 1.0
"""Seconds after which a replacement loads its libraries: until then the host names and checks its plan, or ends."""
MOST = 2**30
"""Bytes of memory above which a process is not kept."""


class Pool:
    """Solver processes; any thread may call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: Process | None = None
        # weak: one that an interrupt made nobody's hangs up by itself
        self._all: weakref.WeakSet[Process] = weakref.WeakSet()
        self._ended: list[Process] = []

    def warm(self, idle: float = 0.0) -> None:
        """See to it that a process waits for work; it may still be loading when this returns.

        Raises
        ------
        OSError
            If the system starts no process.
        """
        with self._lock:
            self._reap()
            if self._idle is None:
                self._idle = self._start(idle)

    def has_idle(self) -> bool:
        """Return whether a process waits for work."""
        with self._lock:
            self._reap()
            return self._idle is not None

    def take(self) -> Process:
        """Return a process for one call: the one that waits, or a new one.

        Raises
        ------
        OSError
            If the system starts no process.
        """
        with self._lock:
            self._reap()
            process, self._idle = self._idle, None
            return process or self._start()

    def give(self, process: Process, resident: int) -> None:
        """Take a process back that answered; it is kept if none waits yet and it has not become too large.

        Parameters
        ----------
        process : Process
        resident : int
            Bytes of memory that it has.
        """
        with self._lock:
            if resident <= MOST and self._idle is None:
                process.forget_errors()
                self._idle = process
                return
        self.end(process)
        self.replace()

    def end(self, process: Process) -> None:
        """End a process."""
        process.end()
        with self._lock:
            self._ended.append(process)
            self._reap()

    def replace(self) -> None:
        """Start a process in place of one that was ended; without one, the next call is slower and no worse."""
        with contextlib.suppress(OSError):
            self.warm(AFTER)

    def close(self) -> None:
        """End every process; in a fork of the host, let go of them."""
        # another thread may hold the lock, which is not there to let go of it after a fork
        self._lock = threading.Lock()
        for process in list(self._all):
            process.end(patience=1.0)
        self._idle = None

    def _start(self, idle: float = 0.0) -> Process:
        process = Process(idle)
        self._all.add(process)
        return process

    def _reap(self) -> None:
        """Wait for whoever has ended, so that nothing stays of it, and forget a waiting process that died."""
        self._ended = [process for process in self._ended if process.alive()]
        if self._idle is not None and not self._idle.alive():
            self._idle.end()
            self._idle = None


pool = Pool()
"""The one pool of this host."""
atexit.register(pool.close)
if hasattr(os, "register_at_fork"):
    # two hosts on one channel would read each other's answers
    os.register_at_fork(after_in_child=pool.close)
