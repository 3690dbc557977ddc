"""Signals that end a command: each ends it, whatever becomes of the exception that it raises.

A signal's handler runs between any two steps of the program, and an exception that it raises there may get lost: the
initialisation of a compiled module clears errors that it does not expect, a destructor or the callback of a weak
reference cannot raise at all, and an exception may be turned into another one. So it is remembered that the end was
asked for, and an exception that got lost is raised again, until the command is on its way out.

Nothing but small parts of the standard library is loaded here, for this is loaded before all else.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED, TERMINATED = 130, 143
"""Exit codes, a shell's for the two signals."""
WORDS = "interrupted"
"""What is said of an interrupt; a request to end is obeyed in silence."""
AGAIN = 0.02
"""Seconds after which an exception that got lost is raised again."""


class Interrupted(KeyboardInterrupt):
    """An interrupt at the keyboard.

    Of a class of its own: once a plain `KeyboardInterrupt` has left `exec` or `eval`, CPython may die of the signal at
    its end in place of giving the exit code, although the exception was caught.
    """


class Terminated(SystemExit):
    """A request to end, as an exception so that the solver's process is ended and no half-written file stays."""

    def __init__(self) -> None:
        super().__init__(TERMINATED)


ENDS: dict[int, type[Interrupted | Terminated]] = {signal.SIGINT: Interrupted, signal.SIGTERM: Terminated}
"""The signals that end a command, and what they raise."""

_asked: type[Interrupted | Terminated] | None = None


def handle_by(handler: Callable[[int, FrameType | None], None]) -> None:
    """Give these signals a handler, but for those that are ignored, as by what a shell runs in its background."""
    for number in ENDS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def listen() -> None:
    """Let these signals raise their exceptions in the main thread from now on."""
    handle_by(_ask)
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, lambda *_: again())
    complain = sys.unraisablehook

    def tell(lost: sys.UnraisableHookArgs) -> None:
        # what a destructor could not raise is raised again, and no trace is wanted of the first time
        if not issubclass(lost.exc_type, Interrupted | Terminated):
            complain(lost)

    sys.unraisablehook = tell


def again() -> None:
    """Raise the exception of a signal that came, unless it is on its way."""
    if _asked is not None and not _is_on_its_way():
        raise _asked


@contextmanager
def heard() -> Iterator[None]:
    """Once a signal came, let nothing but its exception get out: neither an answer nor what it was turned into."""
    try:
        yield
    except BaseException as error:
        if _asked is None or isinstance(error, _asked):
            raise
        raise _asked from None
    again()


def over() -> None:
    """Ignore these signals from now on: the exit code is known, and what remains is to leave in order."""
    global _asked
    for number in ENDS:
        if signal.getsignal(number) is _ask:
            signal.signal(number, signal.SIG_IGN)
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0)
    _asked = None


def _ask(number: int, _: FrameType | None) -> None:
    """Raise the exception of the first signal; a further one asks for what is under way already."""
    global _asked
    if _asked is None:
        _asked = ENDS[number]
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, AGAIN, AGAIN)
        raise _asked


def _is_on_its_way() -> bool:
    """Return whether the exception, or one that was raised because of it, is being handled."""
    error = sys.exception()
    while error is not None and not isinstance(error, Interrupted | Terminated):
        error = error.__context__
    return error is not None
