"""Work: how long each stretch has to last, from the part of the work that is left and what was lost by stops.

A stretch is [restart][work that is kept][work that is lost]. A job that is stopped loses what it did since its last
checkpoint (all of it where it writes none), needs ``restart_seconds`` when it starts again, and waits meanwhile. A job
that runs longer than estimated is expected to run on until the next of some steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor

from placement.check.schedules.case import Time, Timed, has_end, seconds
from placement.check.violation import Violation, show
from placement.snapshot import Job

LENGTH, STOPS = "run_time", "preemption"
"""The rules: how long stretches last, and who may be stopped when."""

STEPS = (60, 300, 900, 1800, 3600, 7200, 18000, 36000, 72000, 180000, 360000)
"""Seconds: the steps of Tsafrir, Etsion and Feitelson (IEEE TPDS 18(6), 2007)."""

ONE = Fraction(1)


@dataclass(frozen=True, slots=True)
class Due:
    """What a stretch has to be.

    Attributes
    ----------
    restart : int
        Milliseconds in which the job is restored, if it is not stopped in them.
    work : int
        Milliseconds of work that are left to it.
    since : int
        When it was started.
    kept : Fraction
        Part of its work that is safe when the stretch begins; below 0 where it takes longer than estimated.
    unsaved : int
        Milliseconds of work that are done and not safe then.
    """

    restart: int
    work: int
    since: int
    kept: Fraction
    unsaved: int


def judge(case: Timed) -> Iterator[Violation]:
    """Yield every stretch that is too long or too short, and every stop that may not be."""
    yield from _too_many(case)
    for place, times in case.by_job.items():
        job = case.snapshot.jobs[place[0]]
        if job.running is not None and not has_end(job):
            yield Violation(
                LENGTH, f"stretches[{times[0].number}]", f"{show(job.name)} has no end, so it has no stretch"
            )
            continue
        if job.duration is None:
            yield Violation(LENGTH, f"stretches[{times[0].number}]", f"{show(job.name)} does not say how long it runs")
            continue
        if job.running is not None and not times[0].carried:
            yield from _stopped_now(case, job, times[0])
        for time in times:
            yield from _stretch(case, job, time, dues(case)[time.number], time is times[-1])
        for one, other in pairwise(times):
            if other.start < one.end:
                what = f"it starts at {seconds(other.start)}, before stretches[{one.number}] of the same job has ended"
                yield Violation(STOPS, f"stretches[{other.number}]", what)


def _too_many(case: Timed) -> Iterator[Violation]:
    """Yield a violation where more running jobs are stopped than the policy of the snapshot allows."""
    most = case.snapshot.policy.max_preemptions
    running = [times for place, times in case.by_job.items() if case.snapshot.jobs[place[0]].running is not None]
    stopped = sum(len(times) > 1 or not times[0].carried for times in running)
    if most is not None and stopped > most:
        what = f"{stopped} jobs that run are stopped, policy.max_preemptions allows {most}"
        yield Violation(STOPS, "stretches", what)


def dues(case: Timed) -> dict[int, Due]:
    """Return what each stretch has to be, given what the ones of its job before it are."""
    if LENGTH not in case.kept:
        case.kept[LENGTH] = {
            time.number: due
            for place, times in case.by_job.items()
            if has_end(case.snapshot.jobs[place[0]])
            for time, due in zip(times, _dues(case, place[0], times), strict=True)
        }
    found: dict[int, Due] = case.kept[LENGTH]
    return found


def _dues(case: Timed, spec: int, times: Sequence[Time]) -> Iterator[Due]:
    job = case.snapshot.jobs[spec]
    kept, again = Fraction(0), False
    if spec in case.present:
        # it was stopped before it did anything more
        full = case.full.get(case.present[spec], 0)
        kept, again = _after(job, present(case, job, full), 0, full), True
    for time in times:
        full = case.full.get(time.number, 0)
        due = Due(_span(job.restart_seconds) if again else 0, ceil(full * (1 - kept)), time.start, kept, 0)
        if time.carried and job.running is not None and not again:
            due = present(case, job, full)
        yield due
        kept, again = _after(job, due, _worked(time, due), full), True


def _worked(time: Time, due: Due) -> int:
    return time.end - time.start - min(due.restart, time.end - time.start)


def _after(job: Job, due: Due, worked: int, full: int) -> Fraction:
    """Return the part of a job's work that is safe once it was stopped."""
    saved = _saved(job, due, worked)
    return min(ONE, due.kept + (Fraction(saved, full) if full else 0))


def _saved(job: Job, due: Due, worked: int) -> int:
    """Return how much work is safe after some, of what was not when the stretch began: by a checkpoint since then."""
    every, unsaved = _span(job.checkpoint_interval), due.unsaved + worked
    saved = unsaved - unsaved % every if every else 0
    return saved if saved > due.unsaved else 0


def _span(seconds: float | None) -> int:
    return 0 if seconds is None else ceil(1000 * Fraction(str(seconds)))


# --- what runs now -------------------------------------------------------------------------------------------


def present(case: Timed, job: Job, full: int) -> Due:
    """Return what is left of a running job, of which all takes so many milliseconds where it is."""
    running = job.running
    assert running is not None
    now = Fraction(str(case.snapshot.time))
    since = 0 if running.since is None else min(0, floor(1000 * (Fraction(str(running.since)) - now)))
    worked = -since if running.work_done is None else floor(1000 * Fraction(str(running.work_done)))
    over = max(0, worked - full)
    work = full - worked if worked < full else expected(over) - over
    if not full:
        return Due(0, work, since, ONE, 0)
    at_risk = worked
    if running.last_checkpoint is not None:
        at_risk = max(0, ceil(1000 * (now - Fraction(str(running.last_checkpoint)))))
    elif job.checkpoint_interval:
        at_risk = worked % _span(job.checkpoint_interval)
    # what it is expected to take in all, where that is more than estimated, it takes again
    unsaved = min(worked, at_risk)
    return Due(0, work, since, 1 - Fraction(work + unsaved, full), unsaved)


def expected(over: int) -> int:
    """Return by how many milliseconds a job is expected to run longer than estimated that has done so for some."""
    return next((1000 * step for step in STEPS if 1000 * step > over), 2 * over)


# --- one stretch ---------------------------------------------------------------------------------------------


def _stopped_now(case: Timed, job: Job, first: Time) -> Iterator[Violation]:
    path, name = f"stretches[{first.number}]", show(job.name)
    since = present(case, job, case.full.get(case.present[case.job[first.number][0]], 0)).since
    if not job.preemptible:
        what = f"{name} runs and is not preemptible, so it goes on where it is from 0 on"
        yield Violation(STOPS, path, what)
    elif -since < _span(job.minimum_run_seconds):
        yield Violation(STOPS, path, f"{name} is stopped at 0, {_too_soon(job, -since)}")


def _too_soon(job: Job, ran: int) -> str:
    return f"{seconds(ran)} after its start; it may be after {seconds(_span(job.minimum_run_seconds))}"


def _stretch(case: Timed, job: Job, time: Time, due: Due, last: bool) -> Iterator[Violation]:
    path, length = f"stretches[{time.number}]", time.end - time.start
    name = show(case.name_of(case.job[time.number]))
    whole = due.restart + due.work
    restart, lost = due.restart, 0
    if last:
        if length != whole:
            what = f"{name} takes {seconds(length)}, it needs {seconds(whole)}"
            parts = f" ({seconds(due.restart)} of them to be restored)" if due.restart else ""
            yield Violation(LENGTH, path, what + parts)
            return
    else:
        if not job.preemptible:
            yield Violation(STOPS, path, f"{name} is stopped at {seconds(time.end)} and is not preemptible")
        elif time.end - due.since < _span(job.minimum_run_seconds):
            yield Violation(STOPS, path, f"{name} is stopped {_too_soon(job, time.end - due.since)}")
        if length >= whole:
            what = f"{name} is stopped after {seconds(length)}, it had ended after {seconds(whole)}"
            yield Violation(LENGTH, path, what)
            return
        restart = min(due.restart, length)
        worked = length - restart
        lost = min(worked, due.unsaved + worked - _saved(job, due, worked))
    for field, found, right in (("restart", time.restart, restart), ("lost", time.lost, lost)):
        if found != right:
            yield Violation(STOPS, f"{path}.{field}", f"{name}: {seconds(found)}, it must be {seconds(right)}")
