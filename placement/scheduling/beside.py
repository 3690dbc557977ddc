"""Jobs moved in another process at the same time: the best of both is better than what one finds by itself.

Where a search has time enough, it has a solver process of `placement.exact.pool` move jobs of the same schedule by
other seeds while it moves them itself, or proves bounds. What differs from one seed to the next is about as much as a
search twice as long would gain. The process is told to stop when the search has come to where it needs to know; one
that dies, or does not answer, is done without.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from placement.exact import pool as processes
from placement.exact.child import HURRY, Done
from placement.exact.handover import BEAT
from placement.exact.process import Process
from placement.scheduling.moving import Movable, Turns, move
from placement.scheduling.passes import Pass
from placement.solver import Limits

LEAST = 4.0
"""Seconds that a search has, at least, for a process beside it."""
PATIENCE = 0.3
"""Seconds to wait for the answer of a process that has been told to stop."""
SOON = 0.05
"""The same where the time is up."""


@dataclass(frozen=True, slots=True)
class Aside:
    """What the process is asked for.

    Attributes
    ----------
    what : Movable
    turns : Turns
    limits : Limits
    enough : int
        Value that is good enough.
    """

    what: Movable
    turns: Turns
    limits: Limits
    enough: int

    def run(self, send: Callable[[object], None], hurry: Callable[[], bool]) -> Pass | None:
        """Return the best schedule until the time is up or the host is in a hurry."""
        best = self.turns.found.value

        def offer(found: Pass) -> None:
            nonlocal best
            best = min(best, found.value)

        return move(self.what, self.turns, self.limits, lambda: best <= self.enough or hurry(), offer)


class Beside:
    """The process beside a search, if there is one.

    Parameters
    ----------
    limits : Limits
        Of the search; where they are too short, or the machine has but one core, there is no process.
    """

    def __init__(self, limits: Limits) -> None:
        self._process: Process | None = None
        self._busy = False
        self._undisturbed = 0.0
        self._resident = 0
        if limits.deadline < float("inf") and limits.left >= LEAST and _cores() > 1:
            with contextlib.suppress(OSError):
                self._process = processes.pool.take()

    @property
    def ready(self) -> bool:
        """Whether the process may be asked for what it has found."""
        return not self._busy or time.monotonic() >= self._undisturbed

    def begin(self, aside: Aside, undisturbed: bool = False) -> None:
        """Have the process do something, if it is there and has nothing to do.

        Parameters
        ----------
        aside : Aside
        undisturbed : bool
            Whether it is not ready before its time is up.
        """
        if self._process is None or self._busy:
            return
        self._undisturbed = aside.limits.deadline if undisturbed else 0.0
        try:
            self._process.channel.send(aside)
        except OSError:
            self._drop()
        else:
            self._busy = True

    def end(self, limits: Limits, patience: float = PATIENCE) -> Pass | None:
        """Return what the process has found by now, if it found anything.

        Parameters
        ----------
        limits : Limits
            When its answer is of no use any more.
        patience : float
            Seconds to wait for it, at most.
        """
        if self._process is None or not self._busy:
            return None
        until = time.monotonic() + min(patience, max(SOON, limits.left))
        try:
            self._process.channel.send(HURRY)
            while True:
                item = self._process.channel.receive(max(0.0, until - time.monotonic()))
                if item is not BEAT:
                    break
        except Exception:
            # whatever it was: the search goes on alone
            self._drop()
            return None
        if not isinstance(item, Done) or not isinstance(item.result, Pass | None):
            self._drop()
            return None
        self._busy, self._resident = False, item.resident
        return item.result

    def close(self) -> None:
        """Let go of the process: one that did what it was asked for is there for the next call."""
        if self._process is None:
            return
        if self._busy:
            self._drop()
            return
        processes.pool.give(self._process, self._resident)
        self._process = None

    def _drop(self) -> None:
        assert self._process is not None
        processes.pool.end(self._process)
        self._process, self._busy = None, False


def _cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
