"""Left out: a job gets no start for one of a few reasons, and none of these may be said of a job that could run.

A job can ``"never"`` run when nodes without work could not take it, when something that it comes after never ends, or
when running work without an end is in its way. Two things show that it could after all: that one node without work
takes the one task that it needs, where nothing is in the way for ever, and that the schedule starts another one like
it.
"""

from __future__ import annotations

from collections.abc import Iterator

from placement.check.schedules.case import Timed, has_end
from placement.check.violation import Violation, show
from placement.check.waiting.possible import Possible
from placement.snapshot import Job

RULE = "left_out"


def judge(case: Timed) -> Iterator[Violation]:
    """Yield every wrong reason."""
    possible = Possible(case.new)
    alike = _started(case)
    for row, (entry, place) in enumerate(zip(case.schedule.left_out, case.left, strict=True)):
        job = case.snapshot.jobs[place[0]]
        path, name = f"left_out[{row}].reason", show(entry.job)
        if entry.reason == "late" and not (job.hard_deadline and job.deadline is not None):
            yield Violation(RULE, path, f"the reason is late, and {name} has no hard deadline")
        elif entry.reason == "quota" and not (job.queue and case.snapshot.queues):
            yield Violation(RULE, path, f"the reason is quota, and {name} is in no queue that has one")
        elif entry.reason == "never" and _after_ends(case, job):
            gang = int(case.facts.gang[len(case.job) + row])
            other = alike.get((gang, job.tenant, job.queue))
            if other is not None:
                what = f"the reason is never, and {show(other)}, which asks for the same, gets a start"
                yield Violation(RULE, path, what)
            elif _one_task(job) and _open(case) and possible.gang(case.facts.gangs[gang]):
                what = f"the reason is never, and a node without work could take the one task that {name} needs"
                yield Violation(RULE, path, what)


def _started(case: Timed) -> dict[tuple[int, str, str], str]:
    """Return a job that the schedule starts, by what it asks for, its tenant and its queue."""
    found = {}
    for number, (spec, copy) in enumerate(case.job):
        if not case.carried[number]:
            job = case.snapshot.jobs[spec]
            found[int(case.facts.gang[number]), job.tenant, job.queue] = case.name_of((spec, copy))
    return found


def _after_ends(case: Timed, job: Job) -> bool:
    """Return whether all ends that a job comes after."""
    return all(case.jobs.find(before) in case.by_job for before in job.after)


def _one_task(job: Job) -> bool:
    """Return whether a job needs no more than one task, of which nothing is said but what nodes can be asked."""
    groups = job.groups
    if len(groups) != 1 or groups[0].task is None or job.affinity or groups[0].topology is not None:
        return False
    return groups[0].count == 1 or groups[0].min_count == 1


def _open(case: Timed) -> bool:
    """Return whether nothing is in anybody's way for ever."""
    endless = any(job.running is not None and not has_end(job) for job in case.snapshot.jobs)
    return not (endless or case.snapshot.limits or case.snapshot.queues)
