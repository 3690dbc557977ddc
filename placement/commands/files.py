"""Where input comes from and where output goes."""

from __future__ import annotations

import contextlib
import io
import os
import stat
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from placement import instances
from placement.errors import SnapshotError, UsageError
from placement.snapshot import Snapshot
from placement.snapshot.read import load
from placement.snapshot.report import suggestion

STANDARD = "-"
"""Stands for standard input where a file is read, for standard output where one is written."""


LONGEST = 200
"""Characters of a path that a message shows."""


def read_snapshot(source: str) -> Snapshot:
    """Read a snapshot from a file, from standard input for ``-``, or from the shipped instance of that name.

    A file of that name goes before a shipped instance.
    """
    if source == STANDARD or os.path.lexists(source):
        return load(source)
    if source in instances.names():
        return load(instances.path(source))
    what = "there is no such file, and no shipped instance of that name"
    raise SnapshotError.one(what, suggestion(source, instances.names()), source=source)


def refuse_two_standard_inputs(*sources: str) -> None:
    """Raise if more than one input is to come from standard input."""
    if sources.count(STANDARD) > 1:
        raise UsageError.one("standard input can be read only once", "name a file for one of them")


@dataclass(frozen=True, slots=True)
class Output:
    """A place for one document, found usable before the work that makes the document starts."""

    target: str
    option: str = "--output"

    @classmethod
    def to(cls, target: str, inputs: Sequence[str] = (), option: str = "--output") -> Output:
        """Return the output for ``-`` or a path, which an option of the command names.

        Raises
        ------
        UsageError
            If nothing can be written there, or it is one of the inputs.
        """
        if target == STANDARD:
            _refuse_closed_output()
            return cls(target, option)
        refuse_name(target, option, inputs)
        real = os.path.realpath(target)
        folder = os.path.dirname(real)
        replaced = os.path.isfile(real) or not os.path.exists(real)
        if replaced and not os.access(folder, os.W_OK | os.X_OK):
            raise UsageError.one(f"{folder} is not writable", "name a file elsewhere", path=option)
        return cls(target, option)

    def write(self, document: bytes) -> None:
        """Write the whole document, or nothing and raise."""
        write_all([(self, document)])


def write_all(documents: Sequence[tuple[Output, bytes]]) -> None:
    """Write all documents, each whole, in this order; if one cannot be written, none of the files changes.

    All are written under other names first, which takes all the room there has to be, and then renamed. Pipes, devices
    and standard output are written to at once, after files are ready.

    Raises
    ------
    UsageError
        If one cannot be written.
    """
    ready: list[tuple[Output, Path, Path]] = []
    streams: list[tuple[Output, bytes]] = []
    writing = Output(STANDARD)
    try:
        for output, document in documents:
            writing = output
            if output.target == STANDARD or _is_special(output.target):
                streams.append((output, document))
            else:
                path = Path(os.path.realpath(output.target))
                ready.append((output, _written_beside(path, document), path))
        for output, document in streams:
            writing = output
            _send(output.target, document)
        for output, temporary, path in ready:
            writing = output
            os.replace(temporary, path)
    except OSError as error:
        if writing.target == STANDARD:
            raise
        what = f"{writing.target} cannot be written ({error.strerror})"
        raise UsageError.one(what, "nothing was written", path=writing.option) from None
    finally:
        for _, temporary, _ in ready:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def _is_special(target: str) -> bool:
    """Return whether a name is that of a pipe or a device, which is written to and never replaced."""
    return os.path.exists(target) and not os.path.isfile(target)


def _send(target: str, document: bytes) -> None:
    if target == STANDARD:
        sys.stdout.flush()
        sys.stdout.buffer.write(document)
        sys.stdout.buffer.flush()
    else:
        Path(target).write_bytes(document)


def _refuse_closed_output() -> None:
    """Raise if standard output is closed or takes nothing, before there is an answer that would be lost."""
    try:
        os.write(sys.stdout.fileno(), b"")
    except (io.UnsupportedOperation, BrokenPipeError, BlockingIOError):
        # no file of the system; a pipe that nobody reads has an exit code of its own
        return
    except OSError as error:
        what = f"standard output cannot be written ({error.strerror})"
        raise UsageError.one(what, "send it to a file, or to /dev/null") from None


def refuse_name(target: str, option: str, inputs: Sequence[str] = ()) -> None:
    """Raise if no file can have this name, or if it is one of the inputs.

    A link stands for the file that it leads to, which is the one that gets written.
    """
    if not target:
        raise UsageError.one("the name is empty", "name a file", path=option)
    if target.endswith(os.sep) or os.path.isdir(target):
        raise UsageError.one(f"{target} is a directory", "name a file in it", path=option)
    try:
        os.stat(target)
    except (FileNotFoundError, NotADirectoryError):
        folder = os.path.dirname(os.path.realpath(target) if os.path.islink(target) else target) or os.curdir
        if not os.path.isdir(folder):
            raise UsageError.one(f"there is no directory {folder}", "make it first", path=option) from None
    except OSError as error:
        # links that go round in circles, a name that is too long, a directory that is closed to us
        what = f"{target[:LONGEST]} cannot be written ({error.strerror})"
        raise UsageError.one(what, "name another file", path=option) from None
    for source in inputs:
        if same_file(target, source):
            raise UsageError.one(f"{target} is the input", "name another file", path=option)


def same_file(target: str, source: str) -> bool:
    """Return whether a path and another one, or ``-`` for standard input, are one file; a device may be both."""
    try:
        one, other = os.stat(target), os.fstat(sys.stdin.fileno()) if source == STANDARD else os.stat(source)
    except (OSError, ValueError):
        return source != STANDARD and os.path.realpath(target) == os.path.realpath(source)
    return stat.S_ISREG(one.st_mode) and os.path.samestat(one, other)


def _written_beside(path: Path, document: bytes) -> Path:
    """Write what a file is to hold under another name, to be renamed, so that nobody ever sees half of it."""
    mode = path.stat().st_mode if path.exists() else None
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".placement-")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(document)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, _default_mode() if mode is None else stat.S_IMODE(mode))
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    return Path(temporary)


def _default_mode() -> int:
    """Return the permissions a new file gets; `tempfile` makes private ones."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def refuse_one_place(snapshot: str, output: str | None, after: str | None, printed: bool) -> None:
    """Raise if of a plan, the snapshot it is for, and what is printed two would go to one place."""
    if after is not None and after != STANDARD:
        refuse_name(after, "--after", [snapshot])
        if output is not None and output != STANDARD and same_file(after, output):
            raise UsageError.one(f"{after} gets the plan already", "name another file", path="--after")
    if STANDARD in (output, after):
        which, what = ("-o -", "the plan") if output == STANDARD else ("--after -", "the snapshot")
        if output == after:
            raise UsageError.one(f"{which} writes {what} there already", "name a file for one of them", path="--after")
        if printed:
            raise UsageError.one(f"{which} writes {what} there already", "leave one of the two out", path="--format")
