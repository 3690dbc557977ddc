"""Starts: no job starts before it may: its release, what it comes after, its hard deadline, nodes set aside.

A job goes on in a stretch that it was in before the snapshot's time; what is said here goes for all others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from placement.check.schedules.case import Time, Timed, has_end, seconds
from placement.check.schedules.work import dues
from placement.check.violation import Violation, show

RELEASE, ORDER, DEADLINE, WINDOWS = "arrival", "order", "deadline", "windows"


def judge(case: Timed) -> Iterator[Violation]:
    """Yield every stretch that starts when or where it may not."""
    windows = _windows(case)
    for place, times in case.by_job.items():
        job = case.snapshot.jobs[place[0]]
        first = 0 if job.submit_time is None or job.running is not None else case.moment(job.submit_time)
        for time in times:
            if time.carried or not has_end(job):
                continue
            path, name = f"stretches[{time.number}]", show(case.name_of(place))
            ends = _would_end(case, time)
            if time.start < first:
                what = f"{name} starts at {seconds(time.start)}, it is not there before {seconds(first)}"
                yield Violation(RELEASE, path, what)
            if job.hard_deadline and job.deadline is not None and ends > case.moment(job.deadline):
                latest = seconds(case.moment(job.deadline))
                yield Violation(DEADLINE, path, f"{name} would end at {seconds(ends)}, its hard deadline is {latest}")
            yield from _early(case, place, time)
            if windows:
                yield from _shut(case, place, time, ends, windows)


def _would_end(case: Timed, time: Time) -> int:
    """Return when a job would end if it were not stopped."""
    due = dues(case)[time.number]
    return time.start + due.restart + due.work


def _early(case: Timed, place: tuple[int, int], time: Time) -> Iterator[Violation]:
    """Yield that a job starts before one has ended that it comes after; one that runs now did so before."""
    job = case.snapshot.jobs[place[0]]
    for before in job.after if job.running is None else ():
        other = case.jobs.find(before)
        times = [] if other is None else case.by_job.get(other, [])
        ended = max((one.end for one in times), default=None)
        if ended is None or ended > time.start:
            when = "never ends" if ended is None else f"ends at {seconds(ended)}"
            name = f"{show(case.name_of(place))} starts at {seconds(time.start)}"
            what = f"{name}, and {show(before)}, which must end before, {when}"
            yield Violation(ORDER, f"stretches[{time.number}]", what)


# --- nodes set aside -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Window:
    """Nodes set aside, by number, and until when."""

    name: str
    nodes: frozenset[int]
    start: int
    end: int
    jobs: frozenset[str]
    queues: frozenset[str]


def _windows(case: Timed) -> list[_Window]:
    found = []
    for one in case.snapshot.reservations:
        places = [place for name in one.nodes if (place := case.facts.node_names.find(name))]
        nodes = frozenset(int(case.facts.node_names.first[spec]) + copy for spec, copy in places)
        start, end = case.moment(one.start), case.moment(one.end)
        found.append(_Window(one.name, nodes, start, end, frozenset(one.jobs), frozenset(one.queues)))
    return found


def _shut(case: Timed, place: tuple[int, int], time: Time, ends: int, windows: list[_Window]) -> Iterator[Violation]:
    """Yield that a job is on nodes that are set aside for others before it would end."""
    job, name = case.snapshot.jobs[place[0]], case.name_of(place)
    for window in windows:
        mine = name in window.jobs or (job.queue and job.queue in window.queues)
        if mine or not (window.start < ends and time.start < window.end):
            continue
        if window.nodes & _nodes(case)[time.number]:
            between = f"from {seconds(window.start)} to {seconds(window.end)}"
            what = f"{show(name)} would end at {seconds(ends)} on nodes that {show(window.name)} sets aside {between}"
            yield Violation(WINDOWS, f"stretches[{time.number}]", what)


def _nodes(case: Timed) -> dict[int, frozenset[int]]:
    """Return the nodes of each stretch."""
    if WINDOWS not in case.kept:
        node = case.facts.node_names.first[case.rows.spec] + case.rows.copy
        found: dict[int, set[int]] = defaultdict(set)
        for number, one in np.unique(np.stack([case.rows.job, node]), axis=1).T.tolist():
            found[number].add(one)
        case.kept[WINDOWS] = {number: frozenset(nodes) for number, nodes in found.items()}
    nodes: dict[int, frozenset[int]] = case.kept[WINDOWS]
    return nodes
