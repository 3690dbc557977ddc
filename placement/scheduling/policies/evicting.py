"""Stopping jobs for others, never for nothing: whom to stop is tried out first, and then the other job does start."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

from placement.instance import Ints
from placement.scheduling.desk import Apart, Desk, Key
from placement.scheduling.line import Ranked
from placement.scheduling.room import Room

Choice = Callable[[Desk, int], tuple[list[int], Ints | None] | None]
"""Of a job that waits and does not fit: jobs to stop for it and the nodes that it then keeps to (None for all).

No jobs if it is not to start now. None if it does not fit even without all jobs that might be stopped for it.
"""


def serve(desk: Desk, key: Key, choose: Choice, apart: Apart | None = None) -> None:
    """Try all that wait by a key, start each job that fits or for which others are stopped, and try those in turn.

    Whoever is stopped for a job must come after it, and the key change for a job that waits only when it is stopped.
    Who comes later may have no more jobs to stop, of those that `apart` says the same of. So once a job does not fit
    without all of them, none that is alike fits before others are stopped.
    """
    turns = desk.turns(key, apart)
    stopped: list[Ranked] = []
    while (head := turns.head()) is not None or stopped:
        if stopped and (head is None or stopped[0] < head):
            now = heapq.heappop(stopped)
            if turns.is_refused(now[1]):
                continue
        else:
            assert head is not None
            now = head
            turns.take()
        job = now[1]
        if desk.start(job):
            continue
        chosen = choose(desk, job)
        if chosen is None:
            turns.refuse(job)
            continue
        victims, within = chosen
        if victims:
            start_instead(desk, job, victims, within)
            for victim in victims:
                heapq.heappush(stopped, (key(desk, victim), victim))
            turns.readmit(now)
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
    if desk.waiting and desk.work.minimum_run.any():
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

    They are put back from the last but one to the first. None where it does not fit without all of them, and no jobs
    where more would be stopped than may be.
    """
    if not candidates or not desk.may_fit(job, sum([desk.live[one].units for one in candidates])):
        return None
    room = Room(desk)
    least = room.first_that_may_do(job, [desk.load(one, desk.live[one].tasks) for one in candidates])
    if least is None:
        return None
    growing = least > 0 and desk.refused_alike(job) >= 0
    """Whether the job fits without all of them if it fits without some."""
    if not growing and not _fits_without(desk, job, candidates, within):
        return None
    gone: list[int] = []
    try:
        desk.lift_all(candidates[:least])
        gone += candidates[:least]
        if not gone or not fits(desk, job, within):
            if growing and not _fits_without(desk, job, candidates[len(gone) :], within):
                return None
            for candidate in candidates[len(gone) :]:
                desk.lift(candidate)
                room.give(desk.load(candidate, desk.live[candidate].tasks))
                gone.append(candidate)
                if fits(desk, job, within):
                    break
        _put_back(desk, job, gone, gone[-2::-1], within, room)
        return _allowed(desk, gone)
    finally:
        desk.put_all_back(gone)


def spared(desk: Desk, job: int, candidates: Sequence[int], within: Ints | None = None) -> list[int] | None:
    """Return jobs without which another fits: all are taken away, and then put back in turn where it still fits.

    None where it does not fit without all of them, and no jobs where more would be stopped than may be.
    """
    gone: list[int] = []
    room = room_without(desk, job, candidates)
    if room is None:
        return None
    try:
        desk.lift_all(candidates)
        gone += candidates
        if not fits(desk, job, within):
            return None
        _put_back(desk, job, gone, candidates, within, room)
        return _allowed(desk, gone)
    finally:
        desk.put_all_back(gone)


def room_without(desk: Desk, job: int, candidates: Sequence[int]) -> Room | None:
    """Return what is free without some jobs that run; None where another surely does not fit then."""
    if not desk.may_fit(job, sum([desk.live[one].units for one in candidates])):
        return None
    room = Room(desk)
    room.exchange([desk.load(one, desk.live[one].tasks) for one in candidates], [-1] * len(candidates))
    return room if room.may_hold(job) else None


def _allowed(desk: Desk, gone: Sequence[int]) -> list[int]:
    return list(gone) if desk.may_stop_together(gone) else []


def _fits_without(desk: Desk, job: int, others: Sequence[int], within: Ints | None) -> bool:
    with desk.without(others):
        return fits(desk, job, within)


def _put_back(desk: Desk, job: int, gone: list[int], order: Sequence[int], within: Ints | None, room: Room) -> None:
    """Put jobs back in turn, out of those that are gone, where another still fits beside them.

    The room is what is free without all that are gone.
    """
    for candidate in order:
        load = desk.load(candidate, desk.live[candidate].tasks)
        room.take(load)
        if room.may_hold(job):
            desk.put_back(candidate)
            if fits(desk, job, within):
                gone.remove(candidate)
                continue
            desk.lift(candidate)
        room.give(load)


def stoppable_below(desk: Desk, job: int) -> list[int]:
    """Return the jobs of lower priority that may be stopped now."""
    priority = desk.work.priority
    if priority[job] == desk.lowest:
        return []
    return [other for other in desk.live if priority[other] < priority[job] and desk.may_stop(other)]
