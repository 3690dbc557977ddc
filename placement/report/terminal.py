"""What a terminal gets, and what a pipe gets instead."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TextIO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from placement.run import Listener, Update


def printable(text: str) -> str:
    r"""Return the text with control characters written out, so that a name cannot drive a terminal.

    Examples
    --------
    >>> printable("job\x1b[2J")
    'job\\x1b[2J'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def say(kind: str, text: str) -> None:
    """Write lines such as ``error: what is wrong`` to standard error.

    Where that cannot be written there is nobody left to tell, so the command goes on to its exit code.
    """
    tell("\n".join(f"{kind}: {printable(line)}" for line in text.splitlines()))


def tell(text: str) -> None:
    """Write text to standard error; see `say`."""
    try:
        print(text, file=sys.stderr)  # noqa: T201
    except OSError:
        discard(sys.stderr)


def discard(stream: TextIO) -> None:
    """Send what a broken stream still holds to nowhere: the interpreter flushes it at its end, and would complain."""
    with suppress(OSError, ValueError):
        handle = os.open(os.devnull, os.O_WRONLY)
        os.dup2(handle, stream.fileno())
        os.close(handle)


def console() -> Console:
    """Return a console on standard output: colours on a terminal only, 80 columns in a pipe."""
    return _Console(highlight=False, markup=False, emoji=False)


class _Console(Console):
    def on_broken_pipe(self) -> None:
        # by itself it would end the program with 1, which is the answer "no" here
        raise BrokenPipeError


def table(*headings: str, left: int = 1) -> Table:
    """Return an empty table whose first `left` columns hold text and the others numbers."""
    grid = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 0, 0, 1))
    for number, heading in enumerate(headings):
        if number < left:
            grid.add_column(heading, overflow="fold")
        else:
            grid.add_column(heading, justify="right", no_wrap=True)
    return grid


def number(value: float | None, digits: int = 2) -> str:
    """Return a number for people: thousands apart, no decimals that say nothing, a dash for none.

    Examples
    --------
    >>> number(8152.0), number(3.14159), number(None)
    ('8,152', '3.14', '–')
    """
    if value is None:
        return "–"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.{digits}f}"


def counted(amount: float, what: str) -> str:
    """Return an amount of things.

    Examples
    --------
    >>> counted(1, "node"), counted(1213, "node")
    ('1 node', '1,213 nodes')
    """
    return f"{number(amount)} {what if amount == 1 else f'{what}s'}"


def percent(value: float | None, digits: int = 2) -> str:
    """Return a percentage without its sign, or a dash for none; a small one is never shown as zero.

    Examples
    --------
    >>> percent(3.104), percent(0.0001), percent(0.0), percent(None)
    ('3.10', '<0.01', '0.00', '–')
    """
    if value is None:
        return "–"
    if 0 < value < 0.5 * 10**-digits:
        return f"<{10**-digits:.{digits}f}"
    return f"{value:.{digits}f}"


def plain(text: str, style: str = "") -> Text:
    """Return text that is printed as it is, whatever markup it seems to hold."""
    return Text(printable(text), style=style)


@contextmanager
def progress(what: str) -> Iterator[Listener | None]:
    """Show on standard error what `solve` is doing, if that is a terminal; yield its listener."""
    if not sys.stderr.isatty():
        yield None
        return
    line = _Line(what, time.monotonic())
    with Console(stderr=True, highlight=False, markup=False).status(line):
        yield line.take


@dataclass(slots=True)
class _Line:
    """The last that is known; drawn anew several times a second, so that the clock moves between two updates too."""

    what: str
    began: float
    update: Update | None = None

    def take(self, update: Update) -> None:
        self.began, self.update = time.monotonic() - update.seconds, update

    def __rich__(self) -> Text:
        update, seconds = self.update, time.monotonic() - self.began
        known = "" if update is None else f"  {update.phase}{_known(update)}"
        return plain(f"{self.what}  {seconds:.0f} s{known}")


def _known(update: Update) -> str:
    parts = [
        f"value {number(update.value)}" if update.value is not None else "",
        f"bound {number(update.bound)}" if update.bound is not None else "",
        f"gap {percent(100 * update.gap)} %" if update.gap is not None else "",
    ]
    return "".join(f"  {part}" for part in parts if part)
