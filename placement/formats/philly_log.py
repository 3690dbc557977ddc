"""The log of Philly's clusters, ``cluster_job_log``: jobs with their attempts, in JSON.

Every attempt lists machines and cards. A job wants as many cards as its first attempt that has any, and ran for as long
as all attempts that began and ended together: what is lost when an attempt fails is run again. Times have no zone; they
are read as UTC.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec

from placement.formats.documents import convert, documents
from placement.formats.ledger import Ledger
from placement.formats.source import File
from placement.snapshot.report import show

NEVER = ("", "None")
"""How the log writes a time that there is none of."""


class _Machine(msgspec.Struct, gc=False):
    ip: str = ""
    gpus: list[str] | None = None


class _Attempt(msgspec.Struct, gc=False):
    start_time: str | None = None
    end_time: str | None = None
    detail: list[_Machine] | None = None


class _Entry(msgspec.Struct, gc=False):
    jobid: str
    submitted_time: str
    vc: str = ""
    attempts: list[_Attempt] | None = None


def is_log(file: File) -> bool:
    """Return whether a file is JSON, which no CSV file begins like."""
    return file.data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"[", b"{")


def attempts(file: File, ledger: Ledger) -> Iterator[tuple[str, int, float, float | None, str]]:
    """Yield name, cards, submit time, run time and virtual cluster of each job; times in seconds.

    Raises
    ------
    InputError
        If the file is not a list of jobs, or a time is none.
    """
    ledger.assumed("time zone", "UTC", file.name)
    ledger.ignored(
        "machines, users and outcomes of attempts", "where a job ran says nothing of where it may", file.name
    )
    for path, entry in _entries(file):
        ran: float | None = None
        tried = entry.attempts or []
        for index, attempt in enumerate(tried):
            where = f"{path}.attempts[{index}]"
            began = _seconds(file, attempt.start_time, f"{where}.start_time")
            ended = _seconds(file, attempt.end_time, f"{where}.end_time")
            if began is None or ended is None:
                ledger.ignored("attempts that have no begin or no end", "nobody knows how long they ran", where)
            elif ended < began:
                ledger.contradiction("attempts that end before they begin", "that they ran for no time", where)
            else:
                ran = (ran or 0.0) + ended - began
        submit = _seconds(file, entry.submitted_time, f"{path}.submitted_time")
        if submit is None:
            ledger.ignored("jobs that were never submitted", "nobody knows when they come", path)
            continue
        if not ran:
            ledger.assumed("run time", "none: no attempt has one", path)
        cards = (sum(len(machine.gpus or ()) for machine in attempt.detail or ()) for attempt in tried)
        yield entry.jobid, next(filter(None, cards), 0), submit, ran or None, entry.vc


def _entries(file: File) -> Iterator[tuple[str, _Entry]]:
    for path, value in documents(file):
        if isinstance(value, msgspec.Raw) and bytes(value).lstrip()[:1] == b"{":
            yield path, convert(value, _Entry, file.name, path)
            continue
        listed: list[Any] = convert(value, list[msgspec.Raw], file.name, path)
        for index, item in enumerate(listed):
            where = f"{path}[{index}]"
            yield where, convert(item, _Entry, file.name, where)


def _seconds(file: File, text: str | None, path: str) -> float | None:
    if text is None or text in NEVER:
        return None
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except (ValueError, OverflowError):
        raise file.error(f"{show(text)} is not a time such as 2017-10-07 01:11:39", "correct the field", path) from None
