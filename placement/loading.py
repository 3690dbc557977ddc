"""Signals while the command loads the package: they end the process at once, without a trace.

There is nothing yet that would have to be left in order. Another program that loads the package keeps its own handlers.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from types import FrameType

from placement.interrupts import INTERRUPTED, TERMINATED, WORDS, handle_by


def _end(number: int, _: FrameType | None) -> None:
    if number == signal.SIGINT:
        with suppress(OSError):
            os.write(2, f"error: {WORDS}\n".encode())
    os._exit(INTERRUPTED if number == signal.SIGINT else TERMINATED)


def _by_the_command() -> bool:
    """Return whether this process runs ``python -m placement``, or the script that is installed beside its Python."""
    program = sys.argv[0] if sys.argv else ""
    if program == "-m":
        # so it is called until its file is found, which comes after this
        return sys.orig_argv[sys.orig_argv.index("-m") :][1:2] == ["placement"]
    folder, name = os.path.split(os.path.realpath(program))
    return os.path.splitext(name)[0] == "placement" and folder == os.path.realpath(os.path.dirname(sys.executable))


if _by_the_command():
    handle_by(_end)
