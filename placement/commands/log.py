"""Progress as lines of JSON, for who watches a long run from elsewhere."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Lock
from typing import BinaryIO, TextIO

import msgspec

from placement.commands.files import LONGEST, STANDARD, refuse_name, same_file
from placement.errors import UsageError
from placement.plan import Plan
from placement.report import terminal
from placement.run import Listener, Update

OPTION = "--log"


class Log:
    """A log of progress; one without a target takes nothing.

    Every line is written as it comes, so a command that is ended leaves what was written. A log that breaks does not
    end the search, which may have hours behind it: the log ends, with a warning, and the answer is given.

    Parameters
    ----------
    target : str, optional
        A path, or ``-`` for standard error; see `to`.
    """

    def __init__(self, target: str | None) -> None:
        self._target = target
        self._stream: BinaryIO | None = None
        self._failure: OSError | None = None
        # the engine tells of greedy rules from another thread
        self._lock = Lock()

    @classmethod
    def to(cls, target: str | None, inputs: Sequence[str] = (), output: str | None = None) -> Log:
        """Return the log for ``-``, a path, or None; nothing is opened yet, so bad input leaves no file.

        Parameters
        ----------
        target : str, optional
        inputs : sequence of str
        output : str, optional
            Where the answer goes.

        Raises
        ------
        UsageError
            If no file can have that name, or if it is in use already.
        """
        if target is None or target == STANDARD:
            return cls(target)
        refuse_name(target, OPTION, inputs)
        if output is not None and output != STANDARD and same_file(target, output):
            raise UsageError.one(f"{target} is the output too", "name another file", path=OPTION)
        for name, stream in (("output", sys.stdout), ("error", sys.stderr)):
            if _leads_to(stream, target):
                raise UsageError.one(f"standard {name} goes to {target} too", "name another file", path=OPTION)
        return cls(target)

    @contextmanager
    def open(self) -> Iterator[None]:
        """Open the log, and close it at the end with a warning if it could not be written in full.

        Raises
        ------
        UsageError
            If it cannot be opened.
        """
        if self._target == STANDARD:
            self._stream = sys.stderr.buffer
        elif self._target is not None:
            try:
                self._stream = open(self._target, "wb")  # noqa: SIM115 - closed below, where that may fail
            except OSError as error:
                what = f"{self._target[:LONGEST]} cannot be written ({error.strerror})"
                raise UsageError.one(what, "name another file", path=OPTION) from None
        try:
            yield
        finally:
            self._close()

    @contextmanager
    def progress(self, what: str, solver: str = "") -> Iterator[Listener | None]:
        """Yield what `solve` is to tell: the log, the terminal, both, or None for neither.

        Parameters
        ----------
        what : str
            For the terminal, such as ``"solving"``.
        solver : str
            For the log, where several are run.
        """
        if self._target == STANDARD:
            # lines and a line that is drawn again and again cannot share a terminal
            yield lambda update: self._take(update, solver)
            return
        with terminal.progress(what) as shown:
            if self._stream is None:
                yield shown
                return

            def both(update: Update) -> None:
                self._take(update, solver)
                if shown is not None:
                    shown(update)

            yield both

    def done(self, plan: Plan, solver: str = "") -> None:
        """Write the outcome."""
        outcome = {"value": plan.value, "bound": plan.bound, "gap": plan.gap, "status": plan.status, "stop": plan.stop}
        self._write(solver, {"seconds": _rounded(plan.seconds.get("total", 0.0)), "phase": "done", **outcome})

    def _take(self, update: Update, solver: str) -> None:
        known = {"value": update.value, "bound": update.bound, "gap": update.gap}
        self._write(solver, {"seconds": _rounded(update.seconds), "phase": update.phase, **known})

    def _write(self, solver: str, record: dict[str, object]) -> None:
        line = msgspec.json.encode({"solver": solver, **record} if solver else record) + b"\n"
        with self._lock:
            if self._stream is None or self._failure is not None:
                return
            try:
                self._stream.write(line)
                self._stream.flush()
            except OSError as error:
                self._failure = error

    def _close(self) -> None:
        with self._lock:
            stream, self._stream = self._stream, None
        if stream is not None and self._target != STANDARD:
            try:
                stream.close()
            except OSError as error:
                # some file systems say only now that there is no room
                self._failure = self._failure or error
        if self._failure is not None:
            name = "standard error" if self._target == STANDARD else self._target
            terminal.say("warning", f"{OPTION}: {name} could not be written in full ({self._failure.strerror})")


def _rounded(seconds: float) -> float:
    return round(seconds, 3)


def _leads_to(stream: TextIO, path: str) -> bool:
    """Return whether a stream is a file of that path; a terminal or another device may be both."""
    with suppress(OSError, ValueError):
        one, other = os.fstat(stream.fileno()), os.stat(path)
        return stat.S_ISREG(one.st_mode) and os.path.samestat(one, other)
    return False
