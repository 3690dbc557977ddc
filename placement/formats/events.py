"""A snapshot with jobs that come over time, as the cluster before they come and the log of their arrivals."""

from __future__ import annotations

from operator import attrgetter

import msgspec

from placement.errors import InputError
from placement.snapshot import EventLog, Snapshot
from placement.snapshot.events import JobArrived
from placement.snapshot.report import show


def arrivals(snapshot: Snapshot) -> tuple[Snapshot, EventLog]:
    """Return the snapshot with its running jobs alone, and the arrival of every other job at its submit time.

    Jobs of one time stay in their order, and nothing of a job changes but that its event says when it comes. Where
    nothing runs, the snapshot is of the time of the first arrival; else of its own, and jobs that came before it come
    then.

    Parameters
    ----------
    snapshot : Snapshot
        Verified.

    Raises
    ------
    InputError
        If a job that waits has no submit time.
    """
    stays = tuple(job for job in snapshot.jobs if job.running is not None)
    coming: list[JobArrived] = []
    for job in snapshot.jobs:
        if job.running is not None:
            continue
        if job.submit_time is None:
            raise InputError.one(f"nothing says when job {show(job.name)} comes", "leave --events out")
        moment = max(job.submit_time, snapshot.time) if stays else job.submit_time
        coming.append(JobArrived(time=moment, job=msgspec.structs.replace(job, submit_time=None)))
    coming.sort(key=attrgetter("time"))
    time = snapshot.time if stays or not coming else coming[0].time
    return msgspec.structs.replace(snapshot, jobs=stays, time=time), EventLog(events=tuple(coming))


def dumps(log: EventLog) -> bytes:
    """Return an event log as one line of JSON, defaults left out."""
    return msgspec.json.encode(log, order="deterministic") + b"\n"
