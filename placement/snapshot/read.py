"""Reading and writing snapshots and event logs: every way in passes the same checks."""

from __future__ import annotations

import hashlib
import numbers
import weakref
from collections.abc import Hashable
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec

from placement.collector import collector_paused
from placement.errors import Problem, SnapshotError
from placement.snapshot.events import EventLog
from placement.snapshot.report import Report
from placement.snapshot.schema import schema as schema
from placement.snapshot.sharing import share
from placement.snapshot.snapshot import Snapshot
from placement.snapshot.strict import decode, name_of, read
from placement.snapshot.structure import explain
from placement.snapshot.validate import MOST_ENTRIES, judge, judge_events
from placement.snapshot.workload import Job

Record = TypeVar("Record", bound=msgspec.Struct)

_verified: dict[int, weakref.ref[Snapshot]] = {}
"""By identity: snapshots in normal form that passed."""


def load(source: str | Path | BinaryIO) -> Snapshot:
    """Read a snapshot.

    Parameters
    ----------
    source : str, path or binary file
        A JSON file, plain or compressed by gzip; ``"-"`` is standard input.

    Returns
    -------
    Snapshot
        One that keeps every rule of the format.

    Raises
    ------
    SnapshotError
        If it cannot be read or is wrong. The first mistake in structure is reported alone, mistakes in meaning are
        reported together.
    """
    # one pause for all of it: a collector that wakes between decoding and sharing would look at what is about to go
    with collector_paused():
        return _accepted(decode(read(source), Snapshot, source=name_of(source), most=MOST_ENTRIES), name_of(source))


def loads(data: bytes | str, source: str = "") -> Snapshot:
    """Read a snapshot from bytes or text; see `load`.

    Parameters
    ----------
    data : bytes or str
    source : str
        Name to use in messages.
    """
    if not isinstance(data, bytes | bytearray | memoryview | str):
        what = f"found {type(data).__name__}, expected bytes or text"
        raise SnapshotError([Problem("", what, "read a file with placement.load")], source)
    text = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else bytes(data)
    with collector_paused():
        return _accepted(decode(text, Snapshot, source=source, most=MOST_ENTRIES), source)


def load_events(source: str | Path | BinaryIO) -> EventLog:
    """Read an event log; see `load` for the source and the errors."""
    log = decode(read(source), EventLog, source=name_of(source), most=MOST_ENTRIES)
    _raise_if_wrong(judge_events(log), name_of(source))
    return log


def dumps(snapshot: Snapshot) -> bytes:
    """Return a snapshot in its canonical form: one line of JSON, defaults left out, keys of mappings sorted.

    ``loads(dumps(s)) == s``, and equal snapshots whose numbers are written alike give equal bytes.

    Raises
    ------
    SnapshotError
        If it was built in Python with values that JSON cannot hold.
    """
    try:
        return msgspec.json.encode(_canonical(snapshot), order="deterministic") + b"\n"
    except (TypeError, ValueError, RecursionError, AttributeError) as why:
        raise SnapshotError([_not_json(why)]) from None


def digest(snapshot: Snapshot) -> str:
    """Return the SHA-256 of the canonical form, in hexadecimal."""
    return hashlib.sha256(dumps(snapshot)).hexdigest()


def verified(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot built in Python after the checks that `load` makes, in its normal form.

    What `load` and this function returned is not checked again; what was built in Python is, for lists and mappings
    in it may have changed.

    Parameters
    ----------
    snapshot : Snapshot

    Returns
    -------
    Snapshot
        Equal to the argument, with tuples where lists were given and plain numbers where others were.

    Raises
    ------
    SnapshotError
        With the same problems as if it had been read from a file.
    """
    if not isinstance(snapshot, Snapshot):
        what = f"found {type(snapshot).__name__}, expected a Snapshot"
        raise SnapshotError([Problem("", what, "read a file with placement.load")])
    known = _verified.get(id(snapshot))
    if known is not None and known() is snapshot:
        return snapshot
    normal = _accepted(_converted(snapshot))
    remember(normal)
    return normal


def _converted(snapshot: Snapshot) -> Snapshot:
    with collector_paused():
        try:
            plain = msgspec.to_builtins(snapshot, enc_hook=_plain_number)
        except (TypeError, ValueError, RecursionError) as why:
            raise SnapshotError([_not_json(why)]) from None
        try:
            normal = msgspec.convert(plain, Snapshot)
        except msgspec.ValidationError as why:
            text = msgspec.json.encode(plain).decode()
            raise SnapshotError([Problem(*explain(text, str(why), Snapshot))]) from None
    dumps(normal)
    return normal


def _plain_number(value: object) -> int | float:
    """Return a number of another library as Python's own."""
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    raise TypeError(f"found an object of type {type(value).__name__}, expected what JSON can hold")


def _not_json(why: Exception) -> Problem:
    what = "it refers to itself, or is nested too deeply" if isinstance(why, RecursionError) else str(why)
    return Problem("", f"the snapshot cannot be written as JSON: {what}", "use numbers, text, lists and mappings only")


def _canonical(snapshot: Snapshot) -> Snapshot:
    """Return an equal snapshot in which every value that equals its default is the default itself.

    The encoder leaves out what is the default object, not what equals it; this concerns numbers with a fraction,
    records and filled tuples, for Python keeps one object of each other default.
    """
    policy = _defaulted(snapshot.policy)
    return _defaulted(
        msgspec.structs.replace(
            snapshot,
            nodes=tuple(map(_defaulted, snapshot.nodes)),
            jobs=tuple(_defaulted(_with_duration(job)) for job in snapshot.jobs),
            queues=tuple(map(_defaulted, snapshot.queues)),
            policy=policy,
        )
    )


def _with_duration(job: Job) -> Job:
    return job if job.duration is None else msgspec.structs.replace(job, duration=_defaulted(job.duration))


@cache
def _defaults(record: Any) -> tuple[tuple[str, object], ...]:
    fields = msgspec.structs.fields(record)
    return tuple(
        (f.name, f.default) for f in fields if isinstance(f.default, (float, tuple, msgspec.Struct)) and f.default != ()
    )


def _defaulted(record: Record) -> Record:
    kind: Hashable = type(record)
    changed = {
        name: default
        for name, default in _defaults(kind)
        if (value := getattr(record, name)) is not default and value == default
    }
    return msgspec.structs.replace(record, **changed) if changed else record


def _accepted(snapshot: Snapshot, source: str = "") -> Snapshot:
    with collector_paused():
        share(snapshot)
        report = judge(snapshot)
    _raise_if_wrong(report, source)
    remember(snapshot)
    return snapshot


def _raise_if_wrong(report: Report, source: str) -> None:
    if report.total:
        raise SnapshotError(report.problems, source, report.total)


def remember(snapshot: Snapshot) -> None:
    """Note that a snapshot in normal form needs no more checks, for as long as it lives."""
    key = id(snapshot)
    _verified[key] = weakref.ref(snapshot, lambda _: _verified.pop(key, None) and None)
