"""Jobs moved in another process at the same time: the best of both is better than what one finds by itself.

Where a search has time enough, it has a solver process of `placement.exact.processes.pool` move jobs of the same
schedule by other seeds while it moves them itself, or proves bounds. What differs from one seed to the next is about as
much as a search twice as long would gain. The process is told to stop when the search has come to where it needs to
know. One that is still loading, or in the middle of a long move, is asked again later; one that dies is done without.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from placement.exact.processes import pool as processes
from placement.exact.processes.child import Done
from placement.exact.processes.handover import BEAT, HURRY
from placement.exact.processes.process import Process
from placement.scheduling.moves.moving import Movable, Turns, move
from placement.scheduling.passes import Pass
from placement.solver import Limits

LEAST = 4.0
"""Seconds that a search has, at least, for a process beside it."""
PATIENCE = 0.3
"""Seconds to wait for the answer of a process that has just been told to stop."""
SOON = 0.05
"""The same where the time is up."""


class Begun:
    """A message that says that the process has loaded what it needs and moves jobs."""


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
        send(Begun())
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
        self._asked = 0
        self._begun = self._hurried = False
        self._undisturbed = 0.0
        self._resident = 0
        if limits.deadline < float("inf") and limits.left >= LEAST and _cores() > 1:
            with contextlib.suppress(OSError):
                self._process = processes.pool.take()

    @property
    def ready(self) -> bool:
        """Whether the process may be asked for what it has found."""
        return not self._asked or time.monotonic() >= self._undisturbed

    @property
    def free(self) -> bool:
        """Whether the process may be asked for something: it does nothing, or has not begun with what it was to do.

        That is over at once when it comes to it, for whatever comes next hurries it.
        """
        return self._asked == 0 or (self._asked == 1 and not self._begun)

    def begin(self, aside: Aside, undisturbed: bool = False) -> None:
        """Have the process do something, if it is there and free.

        Parameters
        ----------
        aside : Aside
        undisturbed : bool
            Whether it is not ready before its time is up.
        """
        if self._process is None or not self.free:
            return
        self._undisturbed = aside.limits.deadline if undisturbed else 0.0
        # before it is sent: whatever interrupts that, a process that may have work to do is not given back
        self._asked += 1
        self._hurried = False
        try:
            self._process.channel.send(aside)
        except Exception:
            # it may be more than there is memory for: the search goes on alone
            self._drop()

    def end(self, limits: Limits, patience: float = PATIENCE) -> list[Pass]:
        """Return what the process has found by now, if it found anything and says so in time.

        Parameters
        ----------
        limits : Limits
            When its answer is of no use any more.
        patience : float
            Seconds to wait for it, at most; only the first time that it is asked.
        """
        if self._process is None or not self._asked:
            return []
        try:
            found = self._heard(self._process, 0.0)
            if self._asked and self._begun and not self._hurried:
                self._hurried = True
                self._process.channel.send(HURRY)
                found += self._heard(self._process, min(patience, max(SOON, limits.left)))
        except Exception:
            # whatever it was: the search goes on alone
            self._drop()
            return []
        return found

    def close(self) -> None:
        """Let go of the process: one that did what it was asked for is there for the next call."""
        try:
            self.end(Limits(), SOON)
        finally:
            if self._asked:
                self._drop()
        if self._process is not None:
            processes.pool.give(self._process, self._resident)
            self._process = None

    def _heard(self, process: Process, seconds: float) -> list[Pass]:
        """Return what the process says within some time that it has found, until it has answered all."""
        found: list[Pass] = []
        until = time.monotonic() + seconds
        while self._asked:
            try:
                item = process.channel.receive(max(0.0, until - time.monotonic()))
            except TimeoutError:
                break
            if isinstance(item, Done) and isinstance(item.result, Pass | None):
                self._asked -= 1
                self._begun, self._resident = True, item.resident
                if item.result is not None:
                    found.append(item.result)
            elif isinstance(item, Begun):
                self._begun = True
            elif item is not BEAT:
                raise ValueError("not an answer")
        return found

    def _drop(self) -> None:
        process, self._process, self._asked = self._process, None, 0
        if process is not None:
            processes.pool.end(process)


def _cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
