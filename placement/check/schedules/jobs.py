"""Jobs: every job that counts is listed with what its stretches make of it, or left out, and goes on if it runs."""

from __future__ import annotations

from collections.abc import Iterator

from placement.check.facts.names import name_of
from placement.check.schedules.case import Time, Timed, counts, has_end
from placement.check.violation import Violation, many, show

RULE = "jobs"


def judge(case: Timed) -> Iterator[Violation]:
    """Yield jobs that are missing or listed where they do not belong, and rows that the stretches do not make."""
    listed = {place: row for row, name in enumerate(case.schedule.jobs.job) if (place := case.jobs.find(name))}
    left = {place: row for row, place in enumerate(case.left)}
    for spec, job in enumerate(case.snapshot.jobs):
        missing = []
        for copy in range(job.count):
            place = spec, copy
            if place in listed or place in left or (spec, copy) in case.by_job:
                yield from _job(case, place, listed.get(place), left.get(place))
            elif has_end(job):
                missing.append(copy)
        if missing:
            name = show(name_of(job, missing[0]))
            more = f" and {many(len(missing) - 1, 'more job')}" if len(missing) > 1 else ""
            where = "jobs" if counts(job) else "stretches"
            yield Violation(RULE, where, f"{name}{more} of jobs[{spec}] gets no start and is not left out")


def _job(case: Timed, place: tuple[int, int], row: int | None, left: int | None) -> Iterator[Violation]:
    job, times = case.snapshot.jobs[place[0]], case.by_job.get(place)
    name = show(case.name_of(place))
    if left is not None:
        path = f"left_out[{left}]"
        if not counts(job):
            yield Violation(RULE, path, f"{name} runs, and nobody may stop it, so it is not left out")
        elif times is not None:
            yield Violation(RULE, path, f"{name} is left out and has stretches[{times[0].number}]")
    if row is not None and not (counts(job) and times):
        why = "has no stretch" if counts(job) else "does not count, for it runs and cannot be stopped or has no end"
        yield Violation(RULE, f"jobs[{row}]", f"{name} {why}, so it is not listed")
    elif row is None and counts(job) and times and left is None:
        yield Violation(RULE, "jobs", f"{name} has stretches[{times[0].number}], so it must be listed")
    elif row is not None and times:
        yield from _row(case, place, row, times)


def _row(case: Timed, place: tuple[int, int], row: int, times: list[Time]) -> Iterator[Violation]:
    jobs, due = case.schedule.jobs, _due(case, place, times)
    for column, right in due.items():
        found = getattr(jobs, column)[row]
        if found != right:
            what = f"{show(case.name_of(place))}: {column} is {found!r}, the stretches make {right!r}"
            if column in ("queue", "priority", "weight", "release", "waited"):
                what = f"{show(case.name_of(place))}: {column} is {found!r}, the snapshot makes it {right!r}"
            yield Violation(RULE, f"jobs[{row}].{column}", what)


def _due(case: Timed, place: tuple[int, int], times: list[Time]) -> dict[str, str | int | float]:
    job = case.snapshot.jobs[place[0]]
    # what runs was submitted, whatever its entry says
    submit = 0 if job.submit_time is None or job.running is not None else case.moment(job.submit_time)
    release, end = max(submit, 0), max(time.end for time in times)
    held = sum(time.end - time.start for time in times)
    restart = sum(time.restart + time.lost for time in times)
    return {
        "queue": job.queue,
        "priority": job.priority,
        "weight": case.weights[place[0]],
        "release": release / 1000,
        "start": times[0].start / 1000,
        "end": end / 1000,
        "queued": (end - release - held) / 1000,
        "run": (held - restart) / 1000,
        "restart": restart / 1000,
        "waited": 0.0 if job.running is not None else max(0, -submit) / 1000,
    }
