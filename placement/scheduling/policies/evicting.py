"""Stopping jobs for others, never for nothing: whom to stop is tried out first, and then the other job does start."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

from placement.instance import Ints
from placement.scheduling.desk import Desk
from placement.scheduling.orders import Key

Choice = Callable[[Desk, int], tuple[list[int], Ints | None] | None]
"""Of a job that waits and does not fit: jobs to stop for it and the nodes that it then keeps to (None for all)."""


def serve(desk: Desk, key: Key, choose: Choice) -> None:
    """Try all that wait by a key, start each job that fits or for which others are stopped, and try those in turn.

    Whoever is stopped for a job must come after it, and the key change for a job that waits only when it is stopped.
    """
    line, place = desk.line(key), 0
    stopped: list[tuple[tuple[float, ...] | float, int]] = []
    while stopped or place < len(line):
        if stopped and (place == len(line) or stopped[0] < (key(desk, line[place]), line[place])):
            _, job = heapq.heappop(stopped)
        else:
            job, place = line[place], place + 1
        if desk.start(job):
            continue
        chosen = choose(desk, job)
        if chosen is None:
            continue
        victims, within = chosen
        start_instead(desk, job, victims, within)
        for victim in victims:
            heapq.heappush(stopped, (key(desk, victim), victim))
    ask_when_stoppable(desk)


def start_instead(desk: Desk, job: int, victims: Sequence[int], within: Ints | None = None) -> None:
    """Stop some jobs, without which another was seen to fit, and start that one."""
    for victim in victims:
        desk.stop(victim)
    tasks = desk.fit(job, within)
    assert tasks is not None, "a job does not fit though it did when others were taken away for a trial"
    desk.settle(job, tasks)


def ask_when_stoppable(desk: Desk) -> None:
    """Ask the policy again when the next job comes to its minimum run time, if some job waits."""
    if desk.waiting:
        moments = (desk.stoppable_from(job) for job in desk.live)
        desk.again = min([desk.again, *(moment for moment in moments if moment > desk.now)])


def fits(desk: Desk, job: int, within: Ints | None = None) -> bool:
    """Return whether a job that waits fits."""
    tasks = desk.fit(job, within)
    if tasks is None:
        return False
    desk.withdraw(job, tasks)
    return True


def fewest(desk: Desk, job: int, candidates: Sequence[int], within: Ints | None = None) -> list[int] | None:
    """Return jobs without which another fits: taken away in turn until it does, then put back where it still does.

    They are put back from the last but one to the first. None where it does not fit without all of them, or where more
    would be stopped than may be.
    """
    if not desk.may_fit(job, sum(desk.live[one].units for one in candidates)):
        return None
    if not _fits_without(desk, job, candidates, within):
        return None
    gone: list[int] = []
    try:
        for candidate in candidates:
            desk.lift(candidate)
            gone.append(candidate)
            if fits(desk, job, within):
                break
        _put_back(desk, job, gone, gone[-2::-1], within)
        return _allowed(desk, gone)
    finally:
        for candidate in gone:
            desk.put_back(candidate)


def spared(desk: Desk, job: int, candidates: Sequence[int], within: Ints | None = None) -> list[int] | None:
    """Return jobs without which another fits: all are taken away, and then put back in turn where it still fits.

    None where it does not fit without all of them, or where more would be stopped than may be.
    """
    gone: list[int] = []
    if not desk.may_fit(job, sum(desk.live[one].units for one in candidates)):
        return None
    try:
        for candidate in candidates:
            desk.lift(candidate)
            gone.append(candidate)
        if not fits(desk, job, within):
            return None
        _put_back(desk, job, gone, candidates, within)
        return _allowed(desk, gone)
    finally:
        for candidate in gone:
            desk.put_back(candidate)


def _allowed(desk: Desk, gone: Sequence[int]) -> list[int] | None:
    return list(gone) if desk.may_stop_together(gone) else None


def _fits_without(desk: Desk, job: int, others: Sequence[int], within: Ints | None) -> bool:
    with desk.without(others):
        return fits(desk, job, within)


def _put_back(desk: Desk, job: int, gone: list[int], order: Sequence[int], within: Ints | None) -> None:
    """Put jobs back in turn, out of those that are gone, where another still fits beside them."""
    for candidate in order:
        desk.put_back(candidate)
        if fits(desk, job, within):
            gone.remove(candidate)
        else:
            desk.lift(candidate)


def stoppable_below(desk: Desk, job: int) -> list[int]:
    """Return the jobs of lower priority that may be stopped now."""
    priority = desk.work.priority
    if priority[job] == desk.lowest:
        return []
    return [other for other in desk.live if priority[other] < priority[job] and desk.may_stop(other)]
