"""How far running jobs are: what a snapshot says of them at a later moment, and what is left of one that is stopped."""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction
from math import ceil, floor

import msgspec

from placement.scheduling.compile import expected
from placement.snapshot import Job, Running
from placement.snapshot.report import show


def dated(job: Job, time: float) -> Job:
    """Return a running job that says when it was started: now where that is not known, or when it was last saved."""
    running = job.running
    assert running is not None
    if running.since is not None:
        return job
    if running.last_checkpoint is not None and running.last_checkpoint < time:
        # what was done before now is what is said of it, and else nothing
        done = running.work_done or 0.0
        running = msgspec.structs.replace(running, since=running.last_checkpoint, work_done=done)
    else:
        running = msgspec.structs.replace(running, since=time)
    return msgspec.structs.replace(job, running=running)


def until(job: Job, time: float, began: float) -> Job:
    """Return a running job as a snapshot of some time would state it.

    Parameters
    ----------
    job : Job
        `Running.work_done` and `Running.last_checkpoint`, where they are stated, are those of the time `began`.
    time, began : float
    """
    running = job.running
    assert running is not None
    done, saved = running.work_done, running.last_checkpoint
    if done is None and saved is None:
        return job
    if done is not None:
        done = float(_exact(done) + _exact(time) - _exact(began))
    if saved is not None and job.checkpoint_interval:
        every = _exact(job.checkpoint_interval)
        saved = float(_exact(saved) + (_exact(time) - _exact(saved)) // every * every)
    return msgspec.structs.replace(job, running=msgspec.structs.replace(running, work_done=done, last_checkpoint=saved))


def held_up(job: Job, time: float, there: Collection[str]) -> str:
    """Return why a job may not start yet whatever is free: what it comes after has not ended, or it is to come."""
    for other in job.after:
        if other in there:
            return f"it comes after {other}, which has not ended"
    if job.submit_time is not None and job.submit_time > time:
        return f"it is submitted at {show(job.submit_time)}, and it is {show(time)}"
    return ""


def ended(job: Job, there: Collection[str]) -> Job:
    """Return a job that no longer names what has ended before it."""
    left = tuple(name for name in job.after if name in there)
    return job if left == job.after else msgspec.structs.replace(job, after=left)


def stopped(job: Job, time: float, factor: float, restoring: float) -> Job:
    """Return a running job that waits again, with the duration of what it has yet to do.

    That is its work less what was done before its last checkpoint, and `Job.restart_seconds`. The work of a job past
    its estimate is what it is then expected to be, see `placement.scheduling.compile.expected`.

    Parameters
    ----------
    job : Job
        As of that time; see `until`.
    time : float
    factor : float
        How many times its stated seconds it takes where it is.
    restoring : float
        How many of its stated seconds are no work, for it was stopped before.
    """
    running, duration = job.running, job.duration
    assert running is not None
    # it was submitted, and what it came after had ended
    submitted = None if job.submit_time is not None and job.submit_time > time else job.submit_time
    waits = msgspec.structs.replace(job, running=None, after=(), submit_time=submitted)
    if duration is None:
        return waits
    whole, times = _exact(duration.seconds) * _exact(factor), _exact(factor)
    worked = _worked(running, time)
    if 1000 * worked >= ceil(1000 * whole):
        whole = worked + _beyond(worked - whole)
    work = whole - _exact(restoring) * times
    kept = _kept(job, running, time, worked - _exact(restoring) * times)
    left = max(Fraction(0), work - kept)
    seconds = ceil(1000 * (left / times + _exact(job.restart_seconds or 0.0))) / 1000
    return msgspec.structs.replace(waits, duration=msgspec.structs.replace(duration, seconds=seconds))


def _worked(running: Running, time: float) -> Fraction:
    """Return the seconds that a job has run, those in which it was restored included.

    They are whole milliseconds, as in a schedule: those that are said to be done, or since some moment have begun.
    """
    if running.work_done is not None:
        return Fraction(floor(1000 * _exact(running.work_done)), 1000)
    since = _exact(time if running.since is None else running.since)
    return Fraction(ceil(1000 * (_exact(time) - since)), 1000)


def _beyond(over: Fraction) -> Fraction:
    """Return the seconds for which a job is expected to go on that is so many past its estimate."""
    past = ceil(1000 * over)
    return Fraction(expected(past), 1000) - over


def _kept(job: Job, running: Running, time: float, done: Fraction) -> Fraction:
    """Return the seconds of work that are safe in the last checkpoint, of those that are done."""
    every = _exact(job.checkpoint_interval or 0.0)
    if running.last_checkpoint is not None:
        unsaved = _exact(time) - _exact(running.last_checkpoint)
    else:
        unsaved = done % every if every else done
    return max(Fraction(0), done - unsaved)


def _exact(seconds: float) -> Fraction:
    """Return a number of seconds as the decimal it is written as."""
    return Fraction(repr(float(seconds)))
